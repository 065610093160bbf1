"""Functions that read JSON strings.

As in Flink a path is strict unless it says `lax`. Whatever a strict path does not find, and a value of the wrong shape,
is an error; to a lax one it is nothing. JSON that cannot be read has no values, and a NULL in it is taken for none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headrace.planner.coercion import is_string
from headrace.planner.expressions import Call
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import Nulls, Resolved, WrongArguments
from headrace.planner.functions.text import constant, let, quoted, string_constant
from headrace.types import ArrayType, BooleanType, DataType, DataTypes, NullType

__all__ = ["JSON"]

JSON: Final = FunctionRegistry("JSON")
_STRING: Final = DataTypes.STRING()
_PATH: Final = re.compile(r"\s*(?:(lax|strict)\s+)?(\$.*?)\s*", re.DOTALL)


# --- paths ----------------------------------------------------------------------------------------


class _Path:
    """A path of a call, and what Spark finds by it."""

    def __init__(self, call: Call) -> None:
        text = string_constant(call, 1)
        if text is None:
            raise WrongArguments(
                f"{call.function} takes a constant path", "write it as a string, such as '$.name'"
            )
        match = _PATH.fullmatch(text)
        if match is None:
            raise WrongArguments(
                f"{text!r} is not a JSON path", "a path begins with $, such as '$.name' or 'lax $.list[0]'"
            )
        self.is_lax = match[1] == "lax"
        #: Spark wants no dot before a bracket.
        self.path: str = match[2].replace(".[", "[")
        before, star, behind = self.path.partition("[*]")
        self.before, self.is_wild, self.behind = before, bool(star), behind
        if "*" in self.before or "*" in self.behind or ".." in self.path or "?" in self.path:
            raise WrongArguments(
                f"{call.function}: the path {text!r} is not supported yet",
                "JSON_VALUE, JSON_QUERY and JSON_EXISTS take it; others names, numbers of elements, and [*] once",
            )

    def text(self, json: str) -> str:
        """The text of what is found: of a string without quotes, of all else as JSON; NULL if there is nothing."""
        return f"get_json_object({json}, {quoted(self.path)})"

    def value(self, json: str) -> str:
        """What is found, as a VARIANT, which tells a string from JSON; NULL, or the JSON null, if there is nothing."""
        return f"try_variant_get(try_parse_json({json}), {quoted(self.path)}, 'variant')"

    def texts(self, json: str) -> str:
        """The JSON of all that [*] finds, as an array of strings; NULL if there is neither an array nor an object."""
        place = f"try_parse_json({json}), {quoted(self.before)}"
        members = f"map_values(try_variant_get({place}, 'map<string, variant>'))"
        elements = f"coalesce(try_variant_get({place}, 'array<variant>'), {members})"
        each = f"try_variant_get(element, {quoted('$' + self.behind)}, 'variant')"
        return f"filter(transform({elements}, element -> to_json({each})), each -> each IS NOT NULL)"

    def is_readable(self, json: str) -> str:
        """Whether there is JSON that a lax path with [*] goes into: it finds nothing there, which is not an error."""
        document = f"try_parse_json({json})"
        return f"({document} IS NOT NULL AND NOT is_variant_null({document}))"


def _check(types: Sequence[DataType], name: str) -> tuple[DataType, DataType]:
    """Refuse what is no JSON string, or no path."""
    for one in types[:2]:
        if not is_string(one) and not isinstance(one, NullType):
            raise WrongArguments(f"{name} takes a JSON string and a path, not {one.summary_without_null()}")
    return tuple(_STRING if isinstance(one, NullType) else one for one in types[:2])  # type: ignore[return-value]  # two


def _is_nested(value: str) -> str:
    """Whether a VARIANT is an object or an array."""
    return f"coalesce(schema_of_variant({value}) RLIKE '^(OBJECT|ARRAY)', FALSE)"


def _failing(call: Call, what: str) -> str:
    return f"raise_error({quoted(f'{call.function}: {what}')})"


# --- JSON_VALUE -----------------------------------------------------------------------------------


def _value(types: Sequence[DataType]) -> Resolved:
    json, path = _check(types, "JSON_VALUE")
    returned = types[2].nullable()
    arguments = (json, path, returned, types[3], returned, types[5], returned)
    return arguments, returned


def _emit_value(call: Call, operands: list[str]) -> str:
    json, path = operands[0], _Path(call)
    how, default = (call.operands[3], operands[4]) if path.is_lax else (call.operands[5], operands[6])
    kind = call.type.spark_name()
    otherwise = {
        "NULL": f"CAST(NULL AS {kind})",
        "ERROR": f"CAST({_failing(call, f'there is no scalar at {path.path}')} AS {kind})",
        "DEFAULT": default,
    }[str(constant(how))]
    if path.is_wild:  # it finds an array, which is not a scalar
        return f"CASE WHEN {json} IS NULL THEN NULL ELSE {otherwise} END"
    # A string may look like an object or an array.
    looks = "(startswith(__text, '{') OR startswith(__text, '['))"
    nested = f"({looks} AND {_is_nested(path.value(json))})"
    chosen = (
        f"CASE WHEN {json} IS NULL THEN NULL WHEN __text IS NULL OR {nested} THEN {otherwise} "
        f"ELSE CAST(__text AS {kind}) END"
    )
    return let("__text", path.text(json), chosen)


JSON.add_shape(
    "JSON_VALUE",
    "JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT value} ON EMPTY] [... ON ERROR])",
    "A scalar at a path of a JSON string, of the type RETURNING names. A strict path (the default) that finds none is "
    "an error, a `lax` one is empty; both return NULL unless you specify ON EMPTY or ON ERROR.",
    _value,
    _emit_value,
    is_form=True,
)


# --- JSON_QUERY -----------------------------------------------------------------------------------


def _query(types: Sequence[DataType]) -> Resolved:
    json, path = _check(types, "JSON_QUERY")
    returned = types[2].nullable()
    if returned not in (_STRING, ArrayType(_STRING)) and not is_string(returned):
        raise WrongArguments(
            f"JSON_QUERY returns STRING or ARRAY<STRING>, not {returned.summary_without_null()}"
        )
    return (json, path, returned, *types[3:]), returned


def _emit_query(call: Call, operands: list[str]) -> str:
    json, path = operands[0], _Path(call)
    wrapper = str(constant(call.operands[3]))
    outcomes = {
        "NULL": "CAST(NULL AS string)",
        "ERROR": f"CAST({_failing(call, f'there is no object or array at {path.path}')} AS string)",
        "ARRAY": "'[]'",
        "OBJECT": "'{}'",
    }
    on_empty, on_error = (outcomes[str(constant(call.operands[place]))] for place in (4, 5))
    if path.is_wild:
        text = _all_found(json, path, wrapper, on_error)
    else:
        text = let(
            "__value", path.value(json), _wrapped(json, wrapper, on_empty if path.is_lax else on_error)
        )
    if isinstance(call.type, ArrayType):
        # As in Flink an element that is JSON itself is its text.
        return f"from_json({text}, 'array<string>')"
    return text


def _all_found(json: str, path: _Path, wrapper: str, otherwise: str) -> str:
    """What JSON_QUERY makes of all values that [*] finds: a lax path may find none."""
    texts = path.texts(json)
    if path.is_lax:
        texts = f"coalesce({texts}, IF({path.is_readable(json)}, CAST(array() AS array<string>), NULL))"
    made = "concat('[', array_join(__texts, ','), ']')"
    made = f"concat('[', {made}, ']')" if wrapper == "UNCONDITIONAL" else made
    chosen = f"CASE WHEN {json} IS NULL THEN NULL WHEN __texts IS NULL THEN {otherwise} ELSE {made} END"
    return let("__texts", texts, chosen)


def _wrapped(json: str, wrapper: str, otherwise: str) -> str:
    """What JSON_QUERY makes of the one value that is found."""
    is_nothing = "__value IS NULL OR is_variant_null(__value)"
    start = f"CASE WHEN {json} IS NULL THEN NULL WHEN {is_nothing} THEN {otherwise}"
    if wrapper == "WITHOUT":
        return f"{start} WHEN {_is_nested('__value')} THEN to_json(__value) ELSE {otherwise} END"
    if wrapper == "CONDITIONAL":
        start += " WHEN schema_of_variant(__value) LIKE 'ARRAY%' THEN to_json(__value)"
    return f"{start} ELSE concat('[', to_json(__value), ']') END"


JSON.add_shape(
    "JSON_QUERY",
    "JSON_QUERY(json, path [RETURNING type] [{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} [ARRAY] WRAPPER] "
    "[{NULL | EMPTY ARRAY | EMPTY OBJECT | ERROR} ON EMPTY] [... ON ERROR])",
    "An object or array at a path of a JSON string, as JSON, or as an array of strings with RETURNING ARRAY<STRING>. "
    "A wrapper puts it, or a scalar, into an array; a CONDITIONAL one leaves arrays as they are.",
    _query,
    _emit_query,
    is_form=True,
)


# --- JSON_EXISTS, JSON_LENGTH, IS JSON ------------------------------------------------------------


def _exists(types: Sequence[DataType]) -> Resolved:
    return (*_check(types, "JSON_EXISTS"), types[2]), BooleanType()


def _emit_exists(call: Call, operands: list[str]) -> str:
    json, path = operands[0], _Path(call)
    otherwise = {
        "TRUE": "TRUE",
        "FALSE": "FALSE",
        "UNKNOWN": "NULL",
        "ERROR": f"CAST({_failing(call, f'there is nothing at {path.path}')} AS boolean)",
    }[str(constant(call.operands[2]))]
    if path.is_wild:
        found = path.is_readable(json) if path.is_lax else f"{path.texts(json)} IS NOT NULL"
        return f"CASE WHEN {json} IS NULL THEN NULL WHEN {found} THEN TRUE ELSE {otherwise} END"
    if path.is_lax:
        otherwise = "FALSE"
    return f"CASE WHEN {json} IS NULL THEN NULL WHEN {path.text(json)} IS NOT NULL THEN TRUE ELSE {otherwise} END"


JSON.add_shape(
    "JSON_EXISTS",
    "JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
    "Whether there is a value at a path of a JSON string. What a strict path does not find is an error.",
    _exists,
    _emit_exists,
    is_form=True,
)


def _emit_length(call: Call, operands: list[str]) -> str:
    json = operands[0]
    value = _Path(call).value(json) if len(operands) > 1 else f"try_parse_json({json})"
    counted = (
        "CASE WHEN value IS NULL THEN NULL "
        "WHEN schema_of_variant(value) LIKE 'ARRAY%' THEN size(CAST(value AS array<variant>)) "
        "WHEN schema_of_variant(value) LIKE 'OBJECT%' THEN size(CAST(value AS map<string, variant>)) ELSE 1 END"
    )
    return let("value", value, counted)


JSON.add(
    "JSON_LENGTH(json STRING [, path STRING])",
    DataTypes.INT(),
    _emit_length,
    "How many elements an array has, or members an object, at a path of a JSON string or as a whole; 1 for a scalar, "
    "NULL where there is nothing.",
    nulls=Nulls.ALWAYS,
)

_SHAPES: Final = {
    "OBJECT": "RLIKE '^\\\\s*\\\\{'",
    "ARRAY": "RLIKE '^\\\\s*\\\\['",
    "SCALAR": "RLIKE '^\\\\s*[^\\\\s\\\\[{]'",
}


def _emit_is_json(call: Call, operands: list[str]) -> str:
    kind = str(constant(call.operands[1]))
    valid = f"(try_parse_json({operands[0]}) IS NOT NULL)"
    if kind in _SHAPES:
        valid = f"({valid} AND {operands[0]} {_SHAPES[kind]})"
    return f"(NOT {valid})" if call.function == "IS_NOT_JSON" else valid


for _name, _shown in (("IS_JSON", "IS JSON"), ("IS_NOT_JSON", "IS NOT JSON")):
    JSON.add(
        f"{_name}(text STRING, kind ANY)",
        BooleanType(),
        _emit_is_json,
        f"`text {_shown} [VALUE | SCALAR | ARRAY | OBJECT]`: whether a string is JSON of this kind.",
        nulls=Nulls.NEVER,
    )
