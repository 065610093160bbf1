"""Type information: what users declare about the values of streams and state.

PyFlink's classes and the `Types` factory. A type chooses how values are serialized
(`headrace.common.codec`), the form that records take (`typed_values`) and how they are written (`typed_text`). The
*internal* form of a value is made of numbers, strings and tuples only; `to_internal_type` and `from_internal_type`
convert.
"""

from __future__ import annotations

from headrace.common.typeinfo.base import TypeInformation
from headrace.common.typeinfo.basic import BasicType, BasicTypeInfo, InstantTypeInfo
from headrace.common.typeinfo.collections import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from headrace.common.typeinfo.composites import RowDataTypeInfo, RowTypeInfo, TupleTypeInfo
from headrace.common.typeinfo.factory import Types
from headrace.common.typeinfo.opaque import ExternalTypeInfo, PickledBytesTypeInfo
from headrace.common.typeinfo.temporal import (
    DateTypeInfo,
    DurationTypeInfo,
    LocalTimeTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "DurationTypeInfo",
    "ExternalTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowDataTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]
