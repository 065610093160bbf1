"""Aggregates that are a function of the list of a group's values: they are written as that.

JSON_ARRAYAGG(v)           JSON_ARRAY_OF(..., ARRAY_AGG(v))
JSON_OBJECTAGG(k VALUE v)  JSON_OBJECT_OF(..., ARRAY_AGG(ROW(k, v)))
PERCENTILE(v, 0.5, n)      PERCENTILE_OF(0.5, ARRAY_AGG(ROW(v, n)))
"""

from __future__ import annotations

from dataclasses import replace

from headrace.planner.dialect.cursor import Cursor
from headrace.planner.dialect.forms import called
from headrace.planner.dialect.syntax import FunctionCall, Identifier, Name, Node, Symbol

__all__ = ["over_list"]

_JSON = ("JSON", "JSON_NESTED")


def over_list(cursor: Cursor, call: FunctionCall) -> FunctionCall:
    """The call as a function of a list, if it is one of these aggregates."""
    name = call.name.path[-1].upper() if len(call.name.path) == 1 else ""
    if name not in {"JSON_ARRAYAGG", "JSON_OBJECTAGG", "PERCENTILE"}:
        return call
    if call.over is not None:
        cursor.unsupported(f"{name} with OVER", call.span)
    if name == "PERCENTILE":
        return _percentile(cursor, call)
    nulls, *values = call.arguments
    last = values[-1]
    is_json = isinstance(last, FunctionCall) and last.name.path[-1] in _JSON
    kind = Symbol("JSON" if is_json else "VALUE", call.span)
    made = "JSON_ARRAY_OF" if name == "JSON_ARRAYAGG" else "JSON_OBJECT_OF"
    return called(made, call.span, nulls, kind, _listed(call, values))


def _percentile(cursor: Cursor, call: FunctionCall) -> FunctionCall:
    if len(call.arguments) not in (2, 3) or call.star:
        cursor.fail(
            "wrong arguments for PERCENTILE",
            call.span,
            hint="usage: PERCENTILE(value, part [, frequency])",
        )
    value, part, *frequency = call.arguments
    return called("PERCENTILE_OF", call.span, part, _listed(call, [value, *frequency]))


def _listed(call: FunctionCall, values: list[Node]) -> FunctionCall:
    """The list of a group's values, or rows of values, with all that was said about the aggregate."""
    one = values[0] if len(values) == 1 else called("ROW", call.span, *values)
    name = Name((Identifier("ARRAY_AGG", call.span),), call.span)
    return replace(call, name=name, arguments=(one,), is_form=False)
