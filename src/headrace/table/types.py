"""PyFlink's place for data types, rows and row kinds."""

from __future__ import annotations

from headrace import types
from headrace.common._missing import missing_names
from headrace.common.types import Row, RowKind
from headrace.types import *  # noqa: F403 - the place PyFlink has them at

__all__ = ["Row", "RowKind"]
__all__ += types.__all__

__getattr__ = missing_names(
    __name__,
    "RawType",
    "UserDefinedType",
    "ZonedTimestampType",
)
