"""Functions of JSON strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.planner.expressions import Call
from headrace.planner.functions.registry import Registry
from headrace.planner.functions.signature import Nulls, WrongArguments
from headrace.planner.functions.text import constant, quoted, string_constant
from headrace.types import BooleanType, DataType, DataTypes

__all__ = ["JSON"]

JSON: Final = Registry("JSON")
_STRING: Final = DataTypes.STRING()
_ALWAYS: Final = Nulls.ALWAYS


def _path(call: Call) -> str:
    path = string_constant(call, 1)
    if path is None:
        raise WrongArguments(f"{call.function} takes a constant path")
    if path.strip().startswith("strict"):
        raise WrongArguments("strict paths are not in headrace yet", "leave out `strict`")
    return quoted(path.strip().removeprefix("lax").strip())


def _returned(types: Sequence[DataType]) -> DataType:
    return types[2] if len(types) > 2 else _STRING


def _emit_json_value(call: Call, operands: list[str]) -> str:
    # A scalar only: an object or array would come out as its text.
    found = f"get_json_object({operands[0]}, {_path(call)})"
    text = f"IF(startswith({found}, '{{') OR startswith({found}, '['), NULL, {found})"
    return f"CAST({text} AS {call.type.spark_name()})"


JSON.add(
    "JSON_VALUE(json STRING, path STRING [, returning ANY])",
    _returned,
    _emit_json_value,
    "A scalar at a path of a JSON string; `RETURNING type` converts it.",
    nulls=_ALWAYS,
)
JSON.add(
    "JSON_QUERY(json STRING, path STRING)",
    _STRING,
    lambda call, each: (
        f"IF(startswith(get_json_object({each[0]}, {_path(call)}), '{{') OR "
        f"startswith(get_json_object({each[0]}, {_path(call)}), '['), get_json_object({each[0]}, {_path(call)}), NULL)"
    ),
    "An object or array at a path of a JSON string, as JSON.",
    nulls=_ALWAYS,
)
JSON.add(
    "JSON_EXISTS(json STRING, path STRING)",
    BooleanType(),
    lambda call, each: f"(get_json_object({each[0]}, {_path(call)}) IS NOT NULL)",
    "Whether there is a value at a path of a JSON string.",
    nulls=_ALWAYS,
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
