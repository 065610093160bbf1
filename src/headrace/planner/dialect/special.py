"""Functions with a syntax of their own: CAST, EXTRACT, TRIM, OVERLAY, and JSON's.

They come out as plain calls, with the words that stand in place of an argument as symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.planner.dialect.cursor import Cursor
from headrace.planner.dialect.syntax import Cast, Constant, FunctionCall, Identifier, Name, Node, Symbol
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


class SpecialForms(Cursor):
    """Reads special forms. The expressions within them are read by the subclass that knows expressions."""

    def expression(self) -> Node:
        """Any expression; the grammar of expressions overrides this."""
        raise NotImplementedError

    def operand(self) -> Node:
        """An operand of a comparison; the grammar of expressions overrides this."""
        raise NotImplementedError

    def special_form(self) -> Node | None:
        """The special form that comes next, or None."""
        reader = _SPECIAL.get(self.token.upper)
        return None if reader is None else reader(self, self.advance())

    def cast(self) -> Node:
        """CAST, which comes next."""
        return _cast(self, self.advance())


def _made(cursor: SpecialForms, start: Token, *arguments: Node, name: str | None = None) -> FunctionCall:
    cursor.expect(")")
    called = Identifier(name or start.text, start.span)
    return FunctionCall(Name((called,), start.span), arguments, cursor.span_from(start))


def _unit(cursor: SpecialForms, *units: str) -> Symbol:
    word = cursor.choose(*units)
    return Symbol(word, cursor.last.span)


def _cast(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    operand = cursor.expression()
    cursor.expect("AS")
    data_type = parse_type(cursor)
    cursor.expect(")")
    return Cast(operand, data_type, start.upper == "TRY_CAST", cursor.span_from(start))


def _extract(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    unit = _unit(cursor, *TIME_UNITS)
    cursor.expect("FROM")
    return _made(cursor, start, unit, cursor.expression())


def _trim(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    side = Symbol("BOTH", start.span)
    if cursor.sees_any("BOTH", "LEADING", "TRAILING"):
        side = _unit(cursor, "BOTH", "LEADING", "TRAILING")
    blank = Constant("string", " ", start.span)
    if cursor.accept("FROM"):
        return _made(cursor, start, side, blank, cursor.expression())
    first = cursor.expression()
    if cursor.accept("FROM"):
        return _made(cursor, start, side, first, cursor.expression())
    return _made(cursor, start, side, blank, first)


def _position(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    needle = cursor.operand()
    cursor.expect("IN")
    haystack = cursor.expression()
    if cursor.sees("FROM"):
        cursor.unsupported("POSITION ... FROM", hint="use LOCATE(text, string, start)")
    return _made(cursor, start, needle, haystack)


def _substring(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    arguments = [cursor.expression()]
    if cursor.accept("FROM"):
        arguments.append(cursor.expression())
        if cursor.accept("FOR"):
            arguments.append(cursor.expression())
    else:
        while cursor.accept(","):
            arguments.append(cursor.expression())
    return _made(cursor, start, *arguments)


def _overlay(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    arguments = [cursor.expression()]
    cursor.expect("PLACING")
    arguments.append(cursor.expression())
    cursor.expect("FROM")
    arguments.append(cursor.expression())
    if cursor.accept("FOR"):
        arguments.append(cursor.expression())
    return _made(cursor, start, *arguments)


def _floor_or_ceil(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    operand = cursor.expression()
    name = "CEIL" if start.upper == "CEILING" else start.upper
    if cursor.accept("TO"):
        unit = _unit(
            cursor, "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"
        )
        return _made(cursor, start, operand, unit, name=f"{name}_TIME")
    return _made(cursor, start, operand)


def _timestamp_arithmetic(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    written = _unit(cursor, *_DIFFERENCE_UNITS)
    arguments: list[Node] = [Symbol(_DIFFERENCE_UNITS[written.name], written.span)]
    for _ in range(2):
        cursor.expect(",")
        arguments.append(cursor.expression())
    return _made(cursor, start, *arguments)


def _json_value(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    arguments: list[Node] = [cursor.expression()]
    cursor.expect(",")
    arguments.append(cursor.expression())
    if cursor.accept("RETURNING"):
        at = cursor.token
        data_type = parse_type(cursor)
        # A NULL of the type says what to return; the registry reads its type.
        arguments.append(Cast(Constant("null", None, at.span), data_type, False, cursor.span_from(at)))
    if cursor.sees_any("NULL", "ERROR", "DEFAULT"):
        cursor.unsupported(f"{start.upper} with ON EMPTY or ON ERROR", hint="use COALESCE around it")
    return _made(cursor, start, *arguments)


def _json_query(cursor: SpecialForms, start: Token) -> Node:
    cursor.expect("(")
    arguments = [cursor.expression()]
    cursor.expect(",")
    arguments.append(cursor.expression())
    if not cursor.sees(")"):
        cursor.unsupported(f"{start.upper} with RETURNING, WRAPPER, ON EMPTY or ON ERROR")
    return _made(cursor, start, *arguments)


def _not_there(cursor: SpecialForms, start: Token) -> Node:
    cursor.unsupported(start.upper, start.span)


_SPECIAL: Final[dict[str, Callable[[SpecialForms, Token], Node]]] = {
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
    "JSON_VALUE": _json_value,
    "JSON_QUERY": _json_query,
    "JSON_EXISTS": _json_query,
    "JSON_OBJECT": _not_there,
    "JSON_ARRAY": _not_there,
    "JSON_OBJECTAGG": _not_there,
    "JSON_ARRAYAGG": _not_there,
}
