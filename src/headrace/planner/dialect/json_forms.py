"""The forms of JSON functions: RETURNING, wrappers, what is given ON EMPTY and ON ERROR, KEY and VALUE, ON NULL.

Every clause that may be left out is an argument of the call that comes out, so that the registry sees all of them:

    JSON_VALUE(json, path, a NULL of the type, on empty, its default, on error, its default)
    JSON_QUERY(json, path, a NULL of the type, wrapper, on empty, on error)
    JSON_EXISTS(json, path, on error)
    JSON_OBJECT(on null, key, value, ...)    JSON_ARRAY(on null, value, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from headrace.planner.dialect.forms import Forms, called, closed
from headrace.planner.dialect.syntax import Cast, Constant, FunctionCall, Node, Symbol
from headrace.planner.dialect.tokens import Span, Token
from headrace.planner.dialect.types import parse_type
from headrace.types import DataTypes

__all__ = ["JSON_FORMS"]

T = TypeVar("T")

#: Functions whose text goes into the JSON around it as it is, where it stands there itself.
_MAKERS: Final = ("JSON_OBJECT", "JSON_ARRAY")


# --- reading --------------------------------------------------------------------------------------


def _json_value(cursor: Forms, start: Token) -> Node:
    read = _json_and_path(cursor)
    returned = _returning(cursor, start.span)
    chosen: dict[str, tuple[Node, Node]] = {}
    while cursor.sees_any("NULL", "ERROR", "DEFAULT"):
        how = Symbol(cursor.advance().upper, cursor.last.span)
        default = cursor.expression() if how.name == "DEFAULT" else _null(how.span)
        _choose(cursor, chosen, (how, default))
    nothing = (Symbol("NULL", start.span), _null(start.span))
    return closed(
        cursor, start, *read, returned, *chosen.get("EMPTY", nothing), *chosen.get("ERROR", nothing)
    )


def _json_query(cursor: Forms, start: Token) -> Node:
    read = _json_and_path(cursor)
    returned = _returning(cursor, start.span)
    wrapper = _wrapper(cursor, start.span)
    chosen: dict[str, Node] = {}
    while cursor.sees_any("NULL", "ERROR", "EMPTY"):
        how = cursor.advance().upper
        if how == "EMPTY":
            how = cursor.choose("ARRAY", "OBJECT")
        _choose(cursor, chosen, Symbol(how, cursor.last.span))
    nothing = Symbol("NULL", start.span)
    behaviours = (chosen.get("EMPTY", nothing), chosen.get("ERROR", nothing))
    return closed(cursor, start, *read, returned, wrapper, *behaviours)


def _json_exists(cursor: Forms, start: Token) -> Node:
    read = _json_and_path(cursor)
    how = Symbol("FALSE", start.span)
    if cursor.sees_any("TRUE", "FALSE", "UNKNOWN", "ERROR"):
        how = Symbol(cursor.advance().upper, cursor.last.span)
        cursor.expect("ON", "ERROR")
    return closed(cursor, start, *read, how)


def _json_and_path(cursor: Forms) -> tuple[Node, Node]:
    cursor.expect("(")
    json = cursor.expression()
    cursor.expect(",")
    return json, cursor.expression()


def _returning(cursor: Forms, span: Span) -> Node:
    """A NULL of the type that is returned: the registry reads its type."""
    if not cursor.accept("RETURNING"):
        return Cast(_null(span), DataTypes.STRING(), False, span)
    at = cursor.token
    data_type = parse_type(cursor)
    return Cast(_null(at.span), data_type, False, cursor.span_from(at))


def _wrapper(cursor: Forms, span: Span) -> Symbol:
    how = "WITHOUT"
    if cursor.sees_any("WITH", "WITHOUT"):
        if cursor.advance().upper == "WITH":
            how = "UNCONDITIONAL"
            if cursor.sees_any("CONDITIONAL", "UNCONDITIONAL"):
                how = cursor.advance().upper
        cursor.accept("ARRAY")
        span = cursor.expect("WRAPPER").span
    return Symbol(how, span)


def _choose(cursor: Forms, chosen: dict[str, T], given: T) -> None:
    cursor.expect("ON")
    when = cursor.choose("EMPTY", "ERROR")
    if when in chosen:
        cursor.fail(f"ON {when} is given twice", cursor.last.span)
    chosen[when] = given


def _null(span: Span) -> Constant:
    return Constant("null", None, span)


# --- making ---------------------------------------------------------------------------------------


def _json_object(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    pairs: list[Node] = []
    if not _ends(cursor):
        while True:
            pairs += _pair(cursor)
            if not cursor.accept(","):
                break
    return closed(cursor, start, _on_null(cursor, "NULL"), *pairs)


def _json_array(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    values = () if _ends(cursor) else cursor.commas(lambda: _value(cursor))
    return closed(cursor, start, _on_null(cursor, "ABSENT"), *values)


def _json_object_aggregate(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    key, value = _pair(cursor)
    return closed(cursor, start, _on_null(cursor, "NULL"), key, value)


def _json_array_aggregate(cursor: Forms, start: Token) -> Node:
    cursor.expect("(")
    value = _value(cursor)
    return closed(cursor, start, _on_null(cursor, "ABSENT"), value)


def _json(cursor: Forms, start: Token) -> Node:
    cursor.fail("JSON(...) says that a string is JSON, as a value of JSON_OBJECT or JSON_ARRAY", start.span)


def _pair(cursor: Forms) -> tuple[Node, Node]:
    if cursor.sees("KEY") and cursor.ahead().upper not in {"VALUE", ".", "(", ":"}:
        cursor.advance()
    key = cursor.expression()
    if not cursor.accept(":"):
        cursor.expect("VALUE")
    return key, _value(cursor)


def _value(cursor: Forms) -> Node:
    """A value within JSON; what is JSON already is marked, and goes in as it is."""
    at = cursor.token
    if cursor.sees("JSON", "("):
        cursor.advance()
        cursor.advance()
        return closed(cursor, at, cursor.expression(), name="JSON")
    value = cursor.expression()
    if isinstance(value, FunctionCall) and value.name.path[-1].upper() in _MAKERS:
        return called("JSON_NESTED", value.span, value)
    return value


def _ends(cursor: Forms) -> bool:
    return cursor.sees(")") or cursor.sees("NULL", "ON", "NULL") or cursor.sees("ABSENT", "ON", "NULL")


def _on_null(cursor: Forms, otherwise: str) -> Symbol:
    for how in ("NULL", "ABSENT"):
        if cursor.accept(how, "ON", "NULL"):
            return Symbol(how, cursor.last.span)
    return Symbol(otherwise, cursor.last.span)


JSON_FORMS: Final[dict[str, Callable[[Forms, Token], Node]]] = {
    "JSON_VALUE": _json_value,
    "JSON_QUERY": _json_query,
    "JSON_EXISTS": _json_exists,
    "JSON_OBJECT": _json_object,
    "JSON_ARRAY": _json_array,
    "JSON_OBJECTAGG": _json_object_aggregate,
    "JSON_ARRAYAGG": _json_array_aggregate,
    "JSON": _json,
}
