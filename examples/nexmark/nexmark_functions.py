"""The user-defined function of q14."""

from __future__ import annotations

from headrace.table.udf import udf
from headrace.types import DataTypes


@udf(result_type=DataTypes.BIGINT())
def count_char(text: str | None, char: str) -> int:
    """Return how often a character is in a text."""
    return 0 if text is None else text.count(char)
