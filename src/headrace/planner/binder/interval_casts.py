"""Casts from and to intervals: of whole numbers, of intervals of the same kind, and to text.

All intervals of a kind are one type, as in Flink: months, or milliseconds. So a CAST to another unit changes nothing.
"""

from __future__ import annotations

import datetime
from typing import Final

from headrace import types as t
from headrace.planner.coercion import is_interval, is_string
from headrace.planner.expressions import Call, Expression, Literal

__all__ = ["carried", "cast_interval"]

_DAY_TIME: Final = t.DataTypes.INTERVAL(t.DataTypes.SECOND(3))
_MONTHS: Final = t.DataTypes.INTERVAL(t.DataTypes.MONTH())
#: What a constant counts.
_UNITS: Final[dict[str, datetime.timedelta | int]] = {
    "DAY": datetime.timedelta(days=1),
    "HOUR": datetime.timedelta(hours=1),
    "MINUTE": datetime.timedelta(minutes=1),
    "SECOND": datetime.timedelta(seconds=1),
    "YEAR": 12,
    "MONTH": 1,
}
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


def carried(target: t.DataType) -> t.DataType:
    """The type that values of an interval have, whatever its qualifier; another type is its own."""
    match target:
        case t.DayTimeIntervalType():
            return _DAY_TIME
        case t.YearMonthIntervalType():
            return _MONTHS
        case _:
            return target


def cast_interval(operand: Expression, target: t.DataType, *, is_try: bool) -> Expression | None:
    """A CAST from or to an interval; None if there is none."""
    nullable = operand.type.is_nullable or is_try
    if is_string(target):
        return Call("TRY_CAST" if is_try else "CAST", (operand,), target.with_nullability(nullable))
    if not isinstance(target, t.DayTimeIntervalType | t.YearMonthIntervalType):
        return None
    kind = carried(target)
    if is_interval(operand.type):
        if type(operand.type) is not type(target):
            return None
        return Call("TRY_CAST", (operand,), operand.type.nullable()) if is_try else operand
    unit = _UNITS.get(target.resolution.name)
    if not isinstance(operand.type, t.IntegralType) or unit is None:
        return None
    if is_try or not isinstance(operand, Literal):
        # Flink 2.3 takes a number that it does not know when it plans for the value inside of an interval.
        unit = 1 if isinstance(kind, t.YearMonthIntervalType) else _MILLISECOND
    one = Literal(unit, kind.not_null())
    return Call("TIMES", (operand, one), kind.with_nullability(nullable))
