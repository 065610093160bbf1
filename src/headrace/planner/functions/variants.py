"""VARIANT: values that bring their type along, made of JSON.

A VARIANT is carried as the JSON text that Spark's own VARIANT gives, in which equal values are equal texts: names are
sorted, blanks are gone, numbers are written one way. So it can be kept in state, compared, and written by every
connector (docs/design/0125-variant.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace import types as t
from headrace.planner.expressions import Call
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import Nulls, Resolved, WrongArguments
from headrace.planner.functions.text import constant, quoted

__all__ = ["VARIANTS", "variant_item", "variant_item_type"]

VARIANTS: Final = FunctionRegistry("variant")


def _document(call: Call, text: str) -> str:
    """The canonical text of a JSON text; NULL if it is not JSON."""
    repeats = constant(call.operands[1]) if len(call.operands) > 1 else False
    if not isinstance(repeats, bool):
        raise WrongArguments(f"{call.function} takes a constant TRUE or FALSE as allow_duplicate_keys")
    made = f"to_json(try_parse_json({text}))"
    if not repeats:
        return made
    # Spark's VARIANT has no name twice; a map keeps the last value of each. Within its values nothing may repeat.
    last = f"map_from_entries(map_entries(from_json({text}, 'map<string, variant>')))"
    return f"coalesce({made}, to_json(try_parse_json(to_json({last}))))"


def _emit_parse(call: Call, operands: list[str]) -> str:
    text = operands[0]
    fail = f"raise_error(concat({quoted('PARSE_JSON: this is not JSON, or has a key twice: ')}, {text}))"
    return f"coalesce({_document(call, text)}, IF({text} IS NULL, NULL, {fail}))"


def _emit_try_parse(call: Call, operands: list[str]) -> str:
    return _document(call, operands[0])


_SIGNATURES: Final = "{}(json STRING [, allow_duplicate_keys BOOLEAN])"
VARIANTS.add(
    _SIGNATURES.format("PARSE_JSON"),
    t.VariantType(),
    _emit_parse,
    "The value of a JSON text as a VARIANT; fails if it is not JSON. A key that occurs twice is an error unless "
    "`allow_duplicate_keys` is TRUE, when the last value counts. Read it with `v['name']`, `v[place]` from 1, "
    "and JSON_STRING.",
)
VARIANTS.add(
    _SIGNATURES.format("TRY_PARSE_JSON"),
    t.VariantType(),
    _emit_try_parse,
    "The value of a JSON text as a VARIANT; NULL if it is not JSON.",
    nulls=Nulls.ALWAYS,
)


def variant_item_type(types: Sequence[t.DataType]) -> Resolved:
    """The type of ``v[key]``."""
    variant, key = types
    if not isinstance(key, t.IntegralType | t.CharType | t.VarCharType):
        raise WrongArguments(
            f"[ ] of a VARIANT takes an integer or a string, not {key.summary_without_null()}"
        )
    return (variant, key), t.VariantType()


def variant_item(call: Call, operands: list[str]) -> str:
    """Write ``v[key]``: a member of an object, or an element of an array, counted from 1."""
    variant, key = operands
    if isinstance(call.operands[1].type, t.IntegralType):
        opening, what = "[", "v[place] needs a VARIANT that is an array, not "
        path = f"concat('$[', {key} - 1, ']')"
        place = constant(call.operands[1])
        if isinstance(place, int):
            path = quoted(f"$[{place - 1}]")
        found = f"IF({key} > 0, {_member(variant, path)}, NULL)"
    else:
        name = constant(call.operands[1])
        if not isinstance(name, str):
            raise WrongArguments(
                "a field name of a VARIANT must be a constant, as in Flink", "write v['name']"
            )
        opening, what = "{", "v['name'] needs a VARIANT that is an object, not "
        quote = "'" if '"' in name else '"'
        if quote in name:
            raise WrongArguments("a field name of a VARIANT cannot contain both kinds of quotation marks")
        found = _member(variant, quoted(f"$[{quote}{name}{quote}]"))
    fail = f"CAST(raise_error(concat({quoted(what)}, {variant})) AS string)"
    return (
        f"CASE left({variant}, 1) WHEN '{opening}' THEN {found} ELSE IF({variant} IS NULL, NULL, {fail}) END"
    )


def _member(variant: str, path: str) -> str:
    return f"to_json(variant_get(parse_json({variant}), {path}, 'variant'))"
