"""Functions that tests name in a catalog."""

from __future__ import annotations

from headrace.table import DataTypes
from headrace.table.udf import udf


@udf(result_type=DataTypes.BIGINT())
def triple(n):
    return n * 3
