"""Flink's data types: what columns and expressions of tables are made of. No I/O, no Spark, no parser.

`logical` holds the classes, `intervals` the two kinds of intervals, `arrow` the way to Arrow and back, and
`factory` the short names (`DataTypes.BIGINT()`).
"""

from headrace.types import logical
from headrace.types.arrow import create_arrow_schema, from_arrow_type, to_arrow_type
from headrace.types.factory import DataTypes
from headrace.types.intervals import DayTimeIntervalType, Resolution, YearMonthIntervalType
from headrace.types.logical import *  # noqa: F403 - every class of types is shown here
from headrace.types.views import ListViewType, MapViewType

__all__ = [
    "DataTypes",
    "DayTimeIntervalType",
    "ListViewType",
    "MapViewType",
    "Resolution",
    "YearMonthIntervalType",
    "create_arrow_schema",
    "from_arrow_type",
    "to_arrow_type",
]
__all__ += logical.__all__
