"""Which types go together: the common type of several, what is compared as what, what casts there are.

Follows Flink 2: integers are DECIMALs of 3, 5, 10 and 19 digits beside a DECIMAL; strings become numbers or times
where they are compared with them; a TIMESTAMP is never compared with a DATE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
    RowField,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from headrace.types.logical import MAX_DECIMAL_PRECISION, MAX_LENGTH

__all__ = [
    "adjusted_decimal",
    "as_decimal",
    "can_cast",
    "can_cast_implicitly",
    "common_type",
    "comparison_type",
    "is_binary",
    "is_interval",
    "is_string",
    "is_temporal",
]

#: Digits behind the point that an overflowing DECIMAL keeps, as far as it has them.
_MIN_SCALE: Final = 6


def is_string(one: DataType) -> bool:
    """CHAR, VARCHAR or STRING."""
    return isinstance(one, CharType | VarCharType)


def is_binary(one: DataType) -> bool:
    """BINARY, VARBINARY or BYTES."""
    return isinstance(one, BinaryType | VarBinaryType)


def is_temporal(one: DataType) -> bool:
    """A date, time or timestamp."""
    return isinstance(one, DateType | TimeType | TimestampType | LocalZonedTimestampType)


def is_interval(one: DataType) -> bool:
    """An interval of months or of milliseconds."""
    return isinstance(one, DayTimeIntervalType | YearMonthIntervalType)


def as_decimal(one: DataType) -> DecimalType | None:
    """The DECIMAL that holds every value of an integer type or DECIMAL; None for others."""
    if isinstance(one, DecimalType):
        return one
    if isinstance(one, IntegralType):
        return DecimalType(one.DIGITS, 0, one.is_nullable)
    return None


def adjusted_decimal(precision: int, scale: int, nullable: bool) -> DecimalType:
    """A DECIMAL with these digits; beyond 38 it gives up digits behind the point, down to six.

    >>> adjusted_decimal(39, 10, True)
    DECIMAL(38, 9)
    """
    if precision <= MAX_DECIMAL_PRECISION:
        return DecimalType(precision, scale, nullable)
    whole = precision - scale
    kept = max(MAX_DECIMAL_PRECISION - whole, min(scale, _MIN_SCALE))
    return DecimalType(MAX_DECIMAL_PRECISION, kept, nullable)


def common_type(types: Sequence[DataType]) -> DataType | None:
    """The narrowest type that holds values of all these; None if there is none.

    >>> from headrace.types import DataTypes
    >>> common_type([DataTypes.INT(False), DataTypes.DECIMAL(10, 2)])
    DECIMAL(12, 2)
    """
    nullable = any(one.is_nullable for one in types)
    known = [one for one in types if not isinstance(one, NullType)]
    if not known:
        return NullType()
    found = known[0]
    for other in known[1:]:
        merged = _merged(found, other)
        if merged is None:
            return None
        found = merged
    return found.with_nullability(nullable)


def _merged(one: DataType, other: DataType) -> DataType | None:
    if one.nullable() == other.nullable():
        return one
    if isinstance(one, NumericType) and isinstance(other, NumericType):
        return _merged_numbers(one, other)
    for same, longest in ((is_string, VarCharType), (is_binary, VarBinaryType)):
        if same(one) and same(other):
            return longest(max(_length(one), _length(other)))
    for kind in (TimestampType, LocalZonedTimestampType, TimeType):
        if isinstance(one, kind) and isinstance(other, kind):
            return kind(max(one.precision, other.precision))
    if is_interval(one) and type(one) is type(other):
        return one
    return _merged_parts(one, other)


def _merged_numbers(one: NumericType, other: NumericType) -> DataType:
    if isinstance(one, IntegralType) and isinstance(other, IntegralType):
        return one if one.BITS >= other.BITS else other
    left, right = as_decimal(one), as_decimal(other)
    if left is not None and right is not None:
        whole = max(left.precision - left.scale, right.precision - right.scale)
        # Digits before the point come first, where arithmetic would keep six behind it.
        scale = min(max(left.scale, right.scale), MAX_DECIMAL_PRECISION - whole)
        return DecimalType(whole + scale, scale, True)
    if isinstance(one, DoubleType) or isinstance(other, DoubleType):
        return DoubleType()
    # FLOAT with whole numbers stays FLOAT; with a DECIMAL it would lose digits.
    return DoubleType() if isinstance(one, DecimalType) or isinstance(other, DecimalType) else FloatType()


def _merged_parts(one: DataType, other: DataType) -> DataType | None:
    match one, other:
        case (ArrayType(), ArrayType()) | (MultisetType(), MultisetType()):
            assert isinstance(one, ArrayType | MultisetType)
            assert isinstance(other, ArrayType | MultisetType)
            element = common_type([one.element_type, other.element_type])
            return None if element is None else type(one)(element)
        case MapType(), MapType():
            key = common_type([one.key_type, other.key_type])
            value = common_type([one.value_type, other.value_type])
            return None if key is None or value is None else MapType(key, value)
        case RowType(), RowType() if len(one) == len(other):
            fields = []
            for left, right in zip(one, other, strict=True):
                found = common_type([left.data_type, right.data_type])
                if found is None:
                    return None
                fields.append(RowField(left.name, found))
            return RowType(fields)
        case _:
            return None


def _length(one: DataType) -> int:
    length: int = getattr(one, "length", MAX_LENGTH)
    return length


def comparison_type(one: DataType, other: DataType) -> DataType | None:
    """What both sides of a comparison are cast to; None if they cannot be compared."""
    found = common_type([one, other])
    if found is not None:
        return found
    for left, right in ((one, other), (other, one)):
        if is_string(left) and (isinstance(right, NumericType | BooleanType) or is_temporal(right)):
            return right.nullable()
        if isinstance(left, TimestampType) and isinstance(right, LocalZonedTimestampType):
            return LocalZonedTimestampType(max(left.precision, right.precision))
    return None


# --- casts ----------------------------------------------------------------------------------------

_TIMESTAMPS: Final = (TimestampType, LocalZonedTimestampType)
#: What goes into a column of a type without a CAST; other types take only themselves.
_IMPLICIT: Final[dict[type[DataType], tuple[type[DataType], ...]]] = {
    VarCharType: (CharType, VarCharType),
    VarBinaryType: (BinaryType, VarBinaryType),
    DecimalType: (NumericType,),
    DoubleType: (NumericType,),
    FloatType: (IntegralType, FloatType, DecimalType),
    TimestampType: _TIMESTAMPS,
    LocalZonedTimestampType: _TIMESTAMPS,
    DateType: (DateType, *_TIMESTAMPS),
    TimeType: (TimeType, *_TIMESTAMPS),
}
_SIMPLE: Final = (NumericType, BooleanType, DateType, TimeType, *_TIMESTAMPS)
#: What CAST makes of a type beside what needs no CAST.
_EXPLICIT: Final[tuple[tuple[type[DataType], tuple[type[DataType], ...]], ...]] = (
    (CharType, (*_SIMPLE, BinaryType, VarBinaryType)),
    (VarCharType, (*_SIMPLE, BinaryType, VarBinaryType)),
    (NumericType, (NumericType, BooleanType)),
    (BooleanType, (NumericType,)),
    (DateType, _TIMESTAMPS),
    (BinaryType, (BinaryType, VarBinaryType)),
    (VarBinaryType, (BinaryType, VarBinaryType)),
)


def can_cast_implicitly(source: DataType, target: DataType) -> bool:
    """Whether a value goes into a column of another type without a CAST."""
    if isinstance(source, NullType):
        return True
    if isinstance(target, IntegralType):
        return isinstance(source, IntegralType) and source.BITS <= target.BITS
    if _is_nested(target):
        return _fits_in_parts(source, target, can_cast_implicitly)
    return isinstance(source, _IMPLICIT.get(type(target), (type(target),)))


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether CAST knows the way."""
    if _is_nested(source) and _is_nested(target):
        return _fits_in_parts(source, target, can_cast)
    return (
        is_string(target)
        or can_cast_implicitly(source, target)
        or any(isinstance(source, kind) and isinstance(target, made) for kind, made in _EXPLICIT)
    )


def _is_nested(one: DataType) -> bool:
    return isinstance(one, ArrayType | MultisetType | MapType | RowType)


def _fits_in_parts(source: DataType, target: DataType, fits: Callable[[DataType, DataType], bool]) -> bool:
    match source, target:
        case (ArrayType(), ArrayType()) | (MultisetType(), MultisetType()):
            assert isinstance(source, ArrayType | MultisetType)
            assert isinstance(target, ArrayType | MultisetType)
            return fits(source.element_type, target.element_type)
        case MapType(), MapType():
            return fits(source.key_type, target.key_type) and fits(source.value_type, target.value_type)
        case RowType(), RowType():
            pairs = zip(source.field_types(), target.field_types(), strict=False)
            return len(source) == len(target) and all(fits(left, right) for left, right in pairs)
        case _:
            return False
