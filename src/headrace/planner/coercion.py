"""Which types are compatible: the common type of several, comparisons, and casts.

Follows Flink 2: integers are DECIMALs of 3, 5, 10 and 19 digits beside a DECIMAL; strings become numbers or times
where they are compared with them; a TIMESTAMP is never compared with a DATE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace import types as t
from headrace.types.logical import MAX_DECIMAL_PRECISION, MAX_LENGTH

__all__ = [
    "adjusted_decimal",
    "as_decimal",
    "can_cast",
    "can_cast_implicitly",
    "can_cast_null",
    "common_type",
    "comparison_type",
    "is_binary",
    "is_interval",
    "is_string",
    "is_temporal",
    "length_of",
]

#: Digits after the point that an overflowing DECIMAL keeps, as far as it has them.
_MIN_SCALE: Final = 6


def is_string(one: t.DataType) -> bool:
    """CHAR, VARCHAR or STRING."""
    return isinstance(one, t.CharType | t.VarCharType)


def is_binary(one: t.DataType) -> bool:
    """BINARY, VARBINARY or BYTES."""
    return isinstance(one, t.BinaryType | t.VarBinaryType)


def is_temporal(one: t.DataType) -> bool:
    """A date, time or timestamp."""
    return isinstance(one, t.DateType | t.TimeType | t.TimestampType | t.LocalZonedTimestampType)


def is_interval(one: t.DataType) -> bool:
    """An interval of months or of milliseconds."""
    return isinstance(one, t.DayTimeIntervalType | t.YearMonthIntervalType)


def as_decimal(one: t.DataType) -> t.DecimalType | None:
    """The DECIMAL that holds every value of an integer type or DECIMAL; None for others."""
    if isinstance(one, t.DecimalType):
        return one
    if isinstance(one, t.IntegralType):
        return t.DecimalType(one.DIGITS, 0, one.is_nullable)
    return None


def adjusted_decimal(precision: int, scale: int, nullable: bool) -> t.DecimalType:
    """A DECIMAL with these digits; beyond 38 it gives up digits after the point, down to six.

    >>> adjusted_decimal(39, 10, True)
    DecimalType(38, 9, true)
    """
    if precision <= MAX_DECIMAL_PRECISION:
        return t.DecimalType(precision, scale, nullable)
    whole = precision - scale
    kept = max(MAX_DECIMAL_PRECISION - whole, min(scale, _MIN_SCALE))
    return t.DecimalType(MAX_DECIMAL_PRECISION, kept, nullable)


def common_type(types: Sequence[t.DataType]) -> t.DataType | None:
    """The narrowest type that holds values of all these; None if there is none.

    >>> from headrace.types import DataTypes
    >>> common_type([DataTypes.INT(False), DataTypes.DECIMAL(10, 2)])
    DecimalType(12, 2, true)
    """
    nullable = any(one.is_nullable for one in types)
    known = [one for one in types if not isinstance(one, t.NullType)]
    if not known:
        return t.NullType()
    found = known[0]
    for other in known[1:]:
        merged = _merged(found, other)
        if merged is None:
            return None
        found = merged
    return found.with_nullability(nullable)


def _merged(one: t.DataType, other: t.DataType) -> t.DataType | None:
    if one.nullable() == other.nullable():
        return one
    if isinstance(one, t.NumericType) and isinstance(other, t.NumericType):
        return _merged_numbers(one, other)
    for same, longest in ((is_string, t.VarCharType), (is_binary, t.VarBinaryType)):
        if same(one) and same(other):
            return longest(max(length_of(one), length_of(other)))
    for kind in (t.TimestampType, t.LocalZonedTimestampType, t.TimeType):
        if isinstance(one, kind) and isinstance(other, kind):
            return kind(max(one.precision, other.precision))
    if isinstance(one, t.TimestampType | t.LocalZonedTimestampType) and isinstance(
        other, t.TimestampType | t.LocalZonedTimestampType
    ):
        return t.LocalZonedTimestampType(max(one.precision, other.precision))
    if is_interval(one) and type(one) is type(other):
        return one
    return _merged_parts(one, other)


def _merged_numbers(one: t.NumericType, other: t.NumericType) -> t.DataType:
    if isinstance(one, t.IntegralType) and isinstance(other, t.IntegralType):
        return one if one.BITS >= other.BITS else other
    left, right = as_decimal(one), as_decimal(other)
    if left is not None and right is not None:
        whole = max(left.precision - left.scale, right.precision - right.scale)
        # Digits before the point come first, where arithmetic would keep six after it.
        scale = min(max(left.scale, right.scale), MAX_DECIMAL_PRECISION - whole)
        return t.DecimalType(whole + scale, scale, True)
    if isinstance(one, t.DoubleType) or isinstance(other, t.DoubleType):
        return t.DoubleType()
    # FLOAT with whole numbers stays FLOAT; with a DECIMAL it would lose digits.
    return (
        t.DoubleType()
        if isinstance(one, t.DecimalType) or isinstance(other, t.DecimalType)
        else t.FloatType()
    )


def _merged_parts(one: t.DataType, other: t.DataType) -> t.DataType | None:
    match one, other:
        case (t.ArrayType(), t.ArrayType()) | (t.MultisetType(), t.MultisetType()):
            assert isinstance(one, t.ArrayType | t.MultisetType)
            assert isinstance(other, t.ArrayType | t.MultisetType)
            element = common_type([one.element_type, other.element_type])
            return None if element is None else type(one)(element)
        case t.MapType(), t.MapType():
            key = common_type([one.key_type, other.key_type])
            value = common_type([one.value_type, other.value_type])
            return None if key is None or value is None else t.MapType(key, value)
        case t.RowType(), t.RowType() if len(one) == len(other):
            fields = []
            for left, right in zip(one, other, strict=True):
                found = common_type([left.data_type, right.data_type])
                if found is None:
                    return None
                fields.append(t.RowField(left.name, found))
            return t.RowType(fields)
        case _:
            return None


def length_of(one: t.DataType) -> int:
    """How long values of a type may be."""
    length: int = getattr(one, "length", MAX_LENGTH)
    return length


def comparison_type(one: t.DataType, other: t.DataType) -> t.DataType | None:
    """What both sides of a comparison are cast to; None if they cannot be compared."""
    found = common_type([one, other])
    if found is not None:
        return found
    for left, right in ((one, other), (other, one)):
        if is_string(left) and (isinstance(right, t.NumericType | t.BooleanType) or is_temporal(right)):
            return right.nullable()
    return None


# --- casts ----------------------------------------------------------------------------------------

_TIMESTAMPS: Final = (t.TimestampType, t.LocalZonedTimestampType)
#: What goes into a column of a type without a CAST; other types take only themselves.
_IMPLICIT: Final[dict[type[t.DataType], tuple[type[t.DataType], ...]]] = {
    t.VarCharType: (t.CharType, t.VarCharType),
    t.VarBinaryType: (t.BinaryType, t.VarBinaryType),
    t.DecimalType: (t.NumericType,),
    t.DoubleType: (t.NumericType,),
    t.FloatType: (t.IntegralType, t.FloatType, t.DecimalType),
    t.TimestampType: _TIMESTAMPS,
    t.LocalZonedTimestampType: _TIMESTAMPS,
    t.DateType: (t.DateType, *_TIMESTAMPS),
    t.TimeType: (t.TimeType, *_TIMESTAMPS),
}
_SIMPLE: Final = (t.NumericType, t.BooleanType, t.DateType, t.TimeType, *_TIMESTAMPS)
#: What CAST makes of a type beside what needs no CAST.
_EXPLICIT: Final[tuple[tuple[type[t.DataType], tuple[type[t.DataType], ...]], ...]] = (
    (t.CharType, (*_SIMPLE, t.BinaryType, t.VarBinaryType)),
    (t.VarCharType, (*_SIMPLE, t.BinaryType, t.VarBinaryType)),
    (t.NumericType, (t.NumericType, t.BooleanType)),
    (t.BooleanType, (t.NumericType,)),
    (t.DateType, _TIMESTAMPS),
    (t.TimeType, _TIMESTAMPS),
    (t.BinaryType, (t.BinaryType, t.VarBinaryType)),
    (t.VarBinaryType, (t.BinaryType, t.VarBinaryType)),
)


def can_cast_implicitly(source: t.DataType, target: t.DataType) -> bool:
    """Whether a value goes into a column of another type without a CAST."""
    if isinstance(source, t.NullType):
        return True
    if isinstance(target, t.IntegralType):
        return isinstance(source, t.IntegralType) and source.BITS <= target.BITS
    if _is_nested(target):
        return _fits_in_parts(source, target, can_cast_implicitly)
    return isinstance(source, _IMPLICIT.get(type(target), (type(target),)))


def can_cast(source: t.DataType, target: t.DataType) -> bool:
    """Whether CAST knows the way."""
    if _is_nested(source) and _is_nested(target):
        return _fits_in_parts(source, target, can_cast)
    if isinstance(source, t.VariantType):
        return isinstance(target, t.VariantType)
    return (
        is_string(target)
        or can_cast_implicitly(source, target)
        or any(isinstance(source, kind) and isinstance(target, made) for kind, made in _EXPLICIT)
    )


def can_cast_null(source: t.DataType, target: t.DataType) -> bool:
    """Whether Flink, which asks no further, lets a CAST of a constant NULL through."""
    return isinstance(source, t.VarBinaryType | t.NumericType) and isinstance(
        target, (t.DateType, *_TIMESTAMPS)
    )


def _is_nested(one: t.DataType) -> bool:
    return isinstance(one, t.ArrayType | t.MultisetType | t.MapType | t.RowType)


def _fits_in_parts(
    source: t.DataType, target: t.DataType, fits: Callable[[t.DataType, t.DataType], bool]
) -> bool:
    match source, target:
        case (t.ArrayType(), t.ArrayType()) | (t.MultisetType(), t.MultisetType()):
            assert isinstance(source, t.ArrayType | t.MultisetType)
            assert isinstance(target, t.ArrayType | t.MultisetType)
            return fits(source.element_type, target.element_type)
        case t.MapType(), t.MapType():
            return fits(source.key_type, target.key_type) and fits(source.value_type, target.value_type)
        case t.RowType(), t.RowType():
            pairs = zip(source.field_types(), target.field_types(), strict=False)
            return len(source) == len(target) and all(fits(left, right) for left, right in pairs)
        case _:
            return False
