"""Flink's types as Arrow's, and back. Arrow is what crosses from Spark to Python workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from headrace.errors import InvariantViolation, TypeInferenceError
from headrace.types import logical
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType

__all__ = ["create_arrow_schema", "from_arrow_type", "to_arrow_type"]

# Spark hands timestamps over as microseconds, whatever digits were declared, and moments in UTC.
_PLAIN: Final[dict[type[logical.DataType], pa.DataType]] = {
    logical.NullType: pa.null(),
    logical.BooleanType: pa.bool_(),
    logical.TinyIntType: pa.int8(),
    logical.SmallIntType: pa.int16(),
    logical.IntType: pa.int32(),
    logical.BigIntType: pa.int64(),
    logical.FloatType: pa.float32(),
    logical.DoubleType: pa.float64(),
    logical.CharType: pa.string(),
    logical.VarCharType: pa.string(),
    logical.VariantType: pa.string(),
    logical.BinaryType: pa.binary(),
    logical.VarBinaryType: pa.binary(),
    logical.DateType: pa.date32(),
    logical.TimeType: pa.time64("us"),
    logical.TimestampType: pa.timestamp("us"),
    logical.LocalZonedTimestampType: pa.timestamp("us", "UTC"),
    DayTimeIntervalType: pa.duration("us"),
    YearMonthIntervalType: pa.int32(),
}


def to_arrow_type(data_type: logical.DataType) -> pa.DataType:
    """The Arrow type that Spark gives values of this type.

    Example:
        >>> to_arrow_type(logical.ArrayType(logical.IntType()))
        ListType(list<element: int32>)
    """
    match data_type:
        case logical.DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case logical.ArrayType():
            return pa.list_(_field("element", data_type.element_type))
        case logical.MultisetType():
            return pa.map_(to_arrow_type(data_type.element_type), pa.int32())
        case logical.MapType():
            return pa.map_(to_arrow_type(data_type.key_type), _field("value", data_type.value_type))
        case logical.RowType():
            return pa.struct([_field(field.name, field.data_type) for field in data_type])
        case _ if type(data_type) in _PLAIN:
            return _PLAIN[type(data_type)]
        case _:
            raise InvariantViolation(f"no Arrow type is known for {data_type.summary()}")


def _field(name: str, data_type: logical.DataType) -> pa.Field:
    return pa.field(name, to_arrow_type(data_type), nullable=data_type.is_nullable)


def create_arrow_schema(field_names: Sequence[str], field_types: Sequence[logical.DataType]) -> pa.Schema:
    """The Arrow schema of columns with these names and types."""
    return pa.schema([_field(*pair) for pair in zip(field_names, field_types, strict=True)])


_DIGITS: Final[dict[str, int]] = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_SECONDS: Final = DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution.DAY_TO_SECOND)


def _unit(arrow: pa.DataType) -> str:
    return str(arrow).partition("[")[2].partition("]")[0].partition(",")[0]


def _timestamp(arrow: pa.DataType, nullable: bool) -> logical.DataType:
    kind = logical.TimestampType if arrow.tz is None else logical.LocalZonedTimestampType
    return kind(_DIGITS[_unit(arrow)], nullable)


def _element(field: pa.Field) -> logical.DataType:
    return from_arrow_type(field.type, field.nullable)


_BACK: Final[
    tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, bool], logical.DataType]], ...]
] = (
    (pa.types.is_null, lambda _, nullable: logical.NullType()),
    (pa.types.is_boolean, lambda _, nullable: logical.BooleanType(nullable)),
    (pa.types.is_int8, lambda _, nullable: logical.TinyIntType(nullable)),
    (pa.types.is_int16, lambda _, nullable: logical.SmallIntType(nullable)),
    (pa.types.is_int32, lambda _, nullable: logical.IntType(nullable)),
    (pa.types.is_int64, lambda _, nullable: logical.BigIntType(nullable)),
    (pa.types.is_float32, lambda _, nullable: logical.FloatType(nullable)),
    (pa.types.is_float64, lambda _, nullable: logical.DoubleType(nullable)),
    (
        pa.types.is_decimal128,
        lambda arrow, nullable: logical.DecimalType(arrow.precision, arrow.scale, nullable),
    ),
    (pa.types.is_string, lambda _, nullable: logical.VarCharType(logical.MAX_LENGTH, nullable)),
    (pa.types.is_large_string, lambda _, nullable: logical.VarCharType(logical.MAX_LENGTH, nullable)),
    (pa.types.is_fixed_size_binary, lambda arrow, nullable: logical.BinaryType(arrow.byte_width, nullable)),
    (pa.types.is_binary, lambda _, nullable: logical.VarBinaryType(logical.MAX_LENGTH, nullable)),
    (pa.types.is_large_binary, lambda _, nullable: logical.VarBinaryType(logical.MAX_LENGTH, nullable)),
    (pa.types.is_date32, lambda _, nullable: logical.DateType(nullable)),
    (pa.types.is_time, lambda arrow, nullable: logical.TimeType(_DIGITS[_unit(arrow)], nullable)),
    (pa.types.is_duration, lambda _, nullable: _SECONDS.with_nullability(nullable)),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_list, lambda arrow, nullable: logical.ArrayType(_element(arrow.value_field), nullable)),
    (
        pa.types.is_large_list,
        lambda arrow, nullable: logical.ArrayType(_element(arrow.value_field), nullable),
    ),
    (
        pa.types.is_map,
        lambda arrow, nullable: logical.MapType(
            from_arrow_type(arrow.key_type), _element(arrow.item_field), nullable
        ),
    ),
    (
        pa.types.is_struct,
        lambda arrow, nullable: logical.RowType(
            [logical.RowField(field.name, _element(field)) for field in arrow.fields], nullable
        ),
    ),
)


def from_arrow_type(arrow_type: pa.DataType, nullable: bool = True) -> logical.DataType:
    """The type of a column with this Arrow type.

    Raises:
        TypeInferenceError: Flink has no such type.
    """
    for is_kind, make in _BACK:
        if is_kind(arrow_type):
            return make(arrow_type, nullable)
    raise TypeInferenceError(f"there is no SQL type for Arrow's {arrow_type}")
