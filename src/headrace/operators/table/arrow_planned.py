"""Spark SQL that the planner writes for one function, understood as a whole: JSON_VALUE, and CAST of texts.

They are computed of values about which nobody can be of two minds. Of documents only texts, whole numbers and BOOLEAN
values are taken out of objects: what is no JSON, names a key twice, or has anything else under the path is left to
Spark, and so are numbers with signs, blanks or fractions that a CAST may or may not take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import ColumnExpression, Columns, NotComputedError

__all__ = ["planned"]

#: What the planner writes for JSON_VALUE(column, 'path') as STRING, with NULL where there is no value.
_JSON_VALUE: Final = re.compile(
    r"element_at\(transform\(array\(get_json_object\((?P<text>`(?:[^`]|``)*`), '(?P<path>\$(?:\.[A-Za-z_]\w*)+)'\)\), "
    r"__text -> CASE WHEN (?P=text) IS NULL THEN NULL WHEN __text IS NULL OR \(\(startswith\(__text, '\{'\) OR "
    r"startswith\(__text, '\['\)\) AND coalesce\(schema_of_variant\(try_variant_get\(try_parse_json\((?P=text)\), "
    r"'(?P=path)', 'variant'\)\) RLIKE '\^\(OBJECT\|ARRAY\)', FALSE\)\) THEN CAST\(NULL AS string\) ELSE "
    r"CAST\(__text AS string\) END\), 1\)",
    re.ASCII,
)
#: What it writes for CAST(column AS a whole number).
_WHOLE: Final = re.compile(
    r"coalesce\(CAST\((?P<text>`(?:[^`]|``)*`) AS (?P<kind>bigint|int|smallint|tinyint)\), "
    r"IF\((?P=text) IS NULL, NULL, "
    r"CAST\(raise_error\(concat\('cannot CAST a string to [A-Z]+: ', (?P=text)\)\) AS (?P=kind)\)\)\)"
)
_KINDS: Final = {"bigint": pa.int64(), "int": pa.int32(), "smallint": pa.int16(), "tinyint": pa.int8()}
#: Whole numbers that are written in one way only.
_PLAIN_NUMBER: Final = "^(0|-?[1-9][0-9]{0,17})$"


def planned(sql: str, types: Mapping[str, pa.DataType]) -> ColumnExpression | None:
    """Understand such a text over a column; None for everything else."""
    found = _JSON_VALUE.fullmatch(sql) or _WHOLE.fullmatch(sql)
    if found is None:
        return None
    name = found["text"][1:-1].replace("``", "`")
    if types.get(name) != pa.string():
        return None
    if found.re is _WHOLE:
        kind = _KINDS[found["kind"]]
        return ColumnExpression(kind, lambda columns, rows: _whole_numbers(columns[name], kind))
    keys = found["path"].split(".")[1:]

    def compute(columns: Columns, rows: int) -> pa.Array:
        return pa.array([_value(text, keys) for text in columns[name].to_pylist()], pa.string())

    return ColumnExpression(pa.string(), compute)


def _whole_numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pc.all(pc.match_substring_regex(texts, _PLAIN_NUMBER)).as_py() is False:
        raise NotComputedError("CAST: a text that is no plain number")
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid as error:
        raise NotComputedError(f"CAST: {error}") from error


def _value(text: str | None, keys: Sequence[str]) -> str | None:
    if text is None:
        return None
    try:
        value: Any = json.loads(
            text, object_pairs_hook=_object, parse_constant=_unclear, parse_float=_Odd, parse_int=_int
        )
    except (ValueError, RecursionError) as error:
        raise NotComputedError(f"JSON_VALUE: {error}") from error
    for key in keys:
        if not isinstance(value, dict):
            raise NotComputedError("JSON_VALUE: a path through what is no object")
        if key not in value:
            return None
        value = value[key]
    return _as_text(value)


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if type(value) is str and not any("\ud800" <= letter <= "\udfff" for letter in value):
        return value
    if isinstance(value, dict | list):
        return None  # JSON_VALUE is for single values
    raise NotComputedError("JSON_VALUE: a value that is written in several ways")


class _Odd(str):
    """A number that can be written in other ways, too."""

    __slots__ = ()


def _int(text: str) -> int | _Odd:
    return int(text) if re.fullmatch(_PLAIN_NUMBER, text) else _Odd(text)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotComputedError("JSON_VALUE: a key that comes twice")
    return found


def _unclear(text: str) -> Any:
    raise NotComputedError(f"JSON_VALUE: {text}")
