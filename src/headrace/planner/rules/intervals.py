"""Joins of rows whose times are near each other: what a condition says about the difference of two time attributes.

l.ts BETWEEN r.ts - INTERVAL '5' SECOND AND r.ts + INTERVAL '3' SECOND        -5000 <= l.ts - r.ts <= 3000
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.planner.binder.literals import interval_ms
from headrace.planner.expressions import Call, Expression, InputRef, Literal, conjuncts
from headrace.planner.logical import Join, JoinKind, Schema, TimeKind

__all__ = ["TimeBounds", "interval_of"]

#: What a comparison says about the difference between its first and its second operand: at least, at most.
_BOUNDS: Final[dict[str, tuple[int | None, int | None]]] = {
    "EQUALS": (0, 0),
    "GREATER_THAN": (1, None),
    "GREATER_THAN_OR_EQUAL": (0, None),
    "LESS_THAN": (None, -1),
    "LESS_THAN_OR_EQUAL": (None, 0),
}
_UNITS_MS: Final = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}


@dataclass(frozen=True)
class TimeBounds:
    """The time attributes of both sides, and how far they may be apart: ``lower <= left - right <= upper``."""

    left: int
    #: A column of the right side.
    right: int
    lower_ms: int
    upper_ms: int
    time: TimeKind
    #: What else the condition says.
    rest: tuple[Expression, ...]


@dataclass
class _Bounds:
    lower: int | None = None
    upper: int | None = None

    def narrow(self, lower: int | None, upper: int | None) -> None:
        if lower is not None:
            self.lower = lower if self.lower is None else max(self.lower, lower)
        if upper is not None:
            self.upper = upper if self.upper is None else min(self.upper, upper)


def interval_of(node: Join) -> TimeBounds | None:
    """Return the interval of a join, if a time attribute of one side lies within a constant distance of the other's.

    As in Flink: joins that keep one side's rows only are regular ones, and so are those with one bound.
    """
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return None
    schema = (*node.left.schema, *node.right.schema)
    width = len(node.left.schema)
    found: dict[tuple[int, int], _Bounds] = {}
    parts: list[tuple[Expression, list[tuple[tuple[int, int], int | None, int | None]]]] = []
    for each in conjuncts(node.condition):
        said = [_difference(*one, schema, width) for one in _comparisons(each)]
        known = [one for one in said if one is not None]
        parts.append((each, known if len(known) == len(said) else []))
        for pair, lower, upper in parts[-1][1]:
            found.setdefault(pair, _Bounds()).narrow(lower, upper)
    for (left, right), bounds in found.items():
        if bounds.lower is None or bounds.upper is None:
            continue
        time = schema[left].time
        assert time is not None
        rest = [each for each, known in parts if not known or known[0][0] != (left, right)]
        return TimeBounds(left, right - width, bounds.lower, bounds.upper, time, tuple(rest))
    return None


def _difference(
    function: str, first: Expression, second: Expression, schema: Schema, width: int
) -> tuple[tuple[int, int], int | None, int | None] | None:
    """Return what a comparison says about left minus right, if it compares time attributes of both sides."""
    one, other = _shifted(first, schema), _shifted(second, schema)
    if one is None or other is None or schema[one[0]].time is not schema[other[0]].time:
        return None
    lower, upper = _BOUNDS[function]
    by = other[1] - one[1]
    lower, upper = None if lower is None else lower + by, None if upper is None else upper + by
    if one[0] < width <= other[0]:
        return (one[0], other[0]), lower, upper
    if other[0] < width <= one[0]:
        return (other[0], one[0]), None if upper is None else -upper, None if lower is None else -lower
    return None


def _comparisons(condition: Expression) -> Iterator[tuple[str, Expression, Expression]]:
    if not isinstance(condition, Call):
        return
    if condition.function == "BETWEEN":
        value, least, greatest = condition.operands
        yield "GREATER_THAN_OR_EQUAL", value, least
        yield "LESS_THAN_OR_EQUAL", value, greatest
    elif condition.function in _BOUNDS:
        first, second = condition.operands
        yield condition.function, first, second


def _shifted(expression: Expression, schema: Schema) -> tuple[int, int] | None:
    """Return the time attribute that an expression shifts, and by how many milliseconds, if it is such a one."""
    match expression:
        case InputRef(index):
            return (index, 0) if schema[index].time is not None else None
        case Call("CAST", (operand,)):
            return _shifted(operand, schema)
        case Call("PLUS" | "MINUS" as function, (one, other)):
            if function == "PLUS" and isinstance(one, Literal):
                one, other = other, one
            length = interval_ms(other) if isinstance(other, Literal) else None
            found = _shifted(one, schema)
            if length is None or found is None:
                return None
            return found[0], found[1] + (length if function == "PLUS" else -length)
        case Call("TIMESTAMPADD", (Literal(value=str(unit)), Literal(value=int(number)), operand)):
            found = _shifted(operand, schema)
            if found is None or unit.upper() not in _UNITS_MS:
                return None
            return found[0], found[1] + number * _UNITS_MS[unit.upper()]
    return None
