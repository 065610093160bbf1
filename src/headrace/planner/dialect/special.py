"""Functions with a syntax of their own: CAST, EXTRACT, TRIM, OVERLAY, and JSON's.

They come out as plain calls, with the words that stand in place of an argument as symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.planner.dialect.forms import Forms, chosen, closed
from headrace.planner.dialect.json_forms import JSON_FORMS
from headrace.planner.dialect.syntax import Cast, Constant, Node, Symbol
from headrace.planner.dialect.tokens import Token
from headrace.planner.dialect.types import parse_type

__all__ = ["SpecialForms"]

TIME_UNITS: Final = (
    *("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"),
    *("SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND", "EPOCH", "DOW", "DOY", "ISODOW", "ISOYEAR"),
)
#: TIMESTAMPADD and TIMESTAMPDIFF also take ODBC's names.
_DIFFERENCE_UNITS: Final = {
    **{unit: unit for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")},
    **{
        f"SQL_TSI_{unit}": unit
        for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
    },
}


class SpecialForms(Forms):
    """Parses functions with a syntax of their own, such as CAST and EXTRACT."""

    def special_form(self) -> Node | None:
        """The special form that comes next, or None."""
        reader = _SPECIAL.get(self.token.upper)
        return None if reader is None else reader(self, self.advance())

    def cast(self) -> Node:
        """CAST, which comes next."""
        return _cast(self, self.advance())


def _cast(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    operand = cursor.expression()
    cursor.expect("AS")
    data_type = parse_type(cursor)
    cursor.expect(")")
    return Cast(operand, data_type, start.upper == "TRY_CAST", cursor.span_from(start))


def _extract(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    unit = chosen(cursor, *TIME_UNITS)
    cursor.expect("FROM")
    return closed(cursor, start, unit, cursor.expression())


def _trim(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    side = Symbol("BOTH", start.span)
    if cursor.sees_any("BOTH", "LEADING", "TRAILING"):
        side = chosen(cursor, "BOTH", "LEADING", "TRAILING")
    blank = Constant("string", " ", start.span)
    if cursor.accept("FROM"):
        return closed(cursor, start, side, blank, cursor.expression())
    first = cursor.expression()
    if cursor.accept("FROM"):
        return closed(cursor, start, side, first, cursor.expression())
    return closed(cursor, start, side, blank, first)


def _position(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    needle = cursor.operand()
    cursor.expect("IN")
    haystack = cursor.expression()
    if cursor.sees("FROM"):
        cursor.unsupported("POSITION ... FROM", hint="use LOCATE(text, string, start)")
    return closed(cursor, start, needle, haystack)


def _substring(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    arguments = [cursor.expression()]
    if cursor.accept("FROM"):
        arguments.append(cursor.expression())
        if cursor.accept("FOR"):
            arguments.append(cursor.expression())
    else:
        while cursor.accept(","):
            arguments.append(cursor.expression())
    return closed(cursor, start, *arguments)


def _overlay(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    arguments = [cursor.expression()]
    cursor.expect("PLACING")
    arguments.append(cursor.expression())
    cursor.expect("FROM")
    arguments.append(cursor.expression())
    if cursor.accept("FOR"):
        arguments.append(cursor.expression())
    return closed(cursor, start, *arguments)


def _floor_or_ceil(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    operand = cursor.expression()
    name = "CEIL" if start.upper == "CEILING" else start.upper
    if cursor.accept("TO"):
        unit = chosen(cursor, *TIME_UNITS[: TIME_UNITS.index("MILLISECOND") + 1])
        return closed(cursor, start, operand, unit, name=f"{name}_TIME")
    return closed(cursor, start, operand)


def _timestamp_arithmetic(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    written = chosen(cursor, *_DIFFERENCE_UNITS)
    arguments: list[Node] = [Symbol(_DIFFERENCE_UNITS[written.name], written.span)]
    for _ in range(2):
        cursor.expect(",")
        arguments.append(cursor.expression())
    return closed(cursor, start, *arguments)


_SPECIAL: Final[dict[str, Callable[[Forms, Token], Node]]] = {
    "TRY_CAST": _cast,
    "EXTRACT": _extract,
    "TRIM": _trim,
    "POSITION": _position,
    "SUBSTRING": _substring,
    "OVERLAY": _overlay,
    "FLOOR": _floor_or_ceil,
    "CEIL": _floor_or_ceil,
    "CEILING": _floor_or_ceil,
    "TIMESTAMPADD": _timestamp_arithmetic,
    "TIMESTAMPDIFF": _timestamp_arithmetic,
    **JSON_FORMS,
}
