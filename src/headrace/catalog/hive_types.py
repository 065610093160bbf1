"""Types of Hive's columns: how the metastore writes them, and what they are in SQL."""

from __future__ import annotations

import re
from typing import Final

from headrace.errors import CatalogError
from headrace.types import DataTypes
from headrace.types import logical as t

__all__ = ["from_hive_type", "to_hive_type"]

_SIMPLE: Final[dict[str, t.DataType]] = {
    "boolean": t.BooleanType(),
    "tinyint": t.TinyIntType(),
    "smallint": t.SmallIntType(),
    "int": t.IntType(),
    "bigint": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "string": DataTypes.STRING(),
    "binary": DataTypes.BYTES(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(6),
}
_NAMES: Final = {
    type(each): name for name, each in _SIMPLE.items() if name not in ("string", "binary", "timestamp")
}
_DEFAULT_DECIMAL: Final = (10, 0)
#: Hive's longest VARCHAR; a longer one is a string.
_LONGEST: Final = 65_535
_TOKEN: Final = re.compile(r"\s*([\w$]+|`[^`]*`|[<>(),:])")


def to_hive_type(column: str, data_type: t.DataType) -> str:
    """Write a type as the metastore does.

    Raises:
        CatalogError: Hive has no such type.

    Example:
        >>> to_hive_type("c", t.ArrayType(t.DecimalType(10, 2)))
        'array<decimal(10,2)>'
    """
    name: str | None
    match data_type:
        case t.DecimalType():
            name = f"decimal({data_type.precision},{data_type.scale})"
        case t.CharType():
            name = f"char({data_type.length})"
        case t.VarCharType():
            name = "string" if data_type.length > _LONGEST else f"varchar({data_type.length})"
        case t.BinaryType() | t.VarBinaryType():
            name = "binary"
        case t.TimestampType():
            name = "timestamp"
        case t.ArrayType():
            name = f"array<{to_hive_type(column, data_type.element_type)}>"
        case t.MapType():
            key, value = (to_hive_type(column, each) for each in (data_type.key_type, data_type.value_type))
            name = f"map<{key},{value}>"
        case t.RowType():
            fields = ",".join(f"{each.name}:{to_hive_type(column, each.data_type)}" for each in data_type)
            name = f"struct<{fields}>"
        case _:
            name = _NAMES.get(type(data_type))
    if name is None:
        raise CatalogError(
            f"column {column!r}: Hive has no type for {data_type.summary()}",
            hint="declare another type, or use another connector: Hive does not interpret the columns of its tables",
        )
    return name


def from_hive_type(column: str, text: str) -> t.DataType:
    """Read a type that the metastore has written.

    Raises:
        CatalogError: There is no such type here.

    Example:
        >>> from_hive_type("c", "struct<a:int,b:map<string,varchar(5)>>").summary()
        'ROW<`a` INT, `b` MAP<STRING, VARCHAR(5)>>'
    """
    tokens = _TOKEN.findall(text)
    try:
        found, rest = _read(tokens)
    except (KeyError, IndexError, ValueError):
        found, rest = None, []
    if found is None or rest:
        raise CatalogError(f"column {column!r}: the type {text!r} of Hive is not supported")
    return found


def _read(tokens: list[str]) -> tuple[t.DataType, list[str]]:
    name, rest = tokens[0].lower(), tokens[1:]
    if name == "array":
        element, rest = _read(_after(rest, "<"))
        return t.ArrayType(element), _after(rest, ">")
    if name == "map":
        key, rest = _read(_after(rest, "<"))
        value, rest = _read(_after(rest, ","))
        return t.MapType(key, value), _after(rest, ">")
    if name == "struct":
        return _read_struct(rest)
    if name in ("decimal", "char", "varchar"):
        numbers, rest = _numbers(rest)
        if name == "decimal":
            return t.DecimalType(*(numbers or _DEFAULT_DECIMAL)), rest
        [length] = numbers
        return (t.CharType(length) if name == "char" else t.VarCharType(length)), rest
    return _SIMPLE[name], rest


def _read_struct(tokens: list[str]) -> tuple[t.DataType, list[str]]:
    fields, separator = [], "<"
    while tokens[0] == separator:
        name, rest = tokens[1].strip("`"), _after(tokens[2:], ":")
        kind, tokens = _read(rest)
        fields.append(t.RowField(name, kind))
        separator = ","
    return t.RowType(fields), _after(tokens, ">")


def _numbers(tokens: list[str]) -> tuple[list[int], list[str]]:
    if not tokens or tokens[0] != "(":
        return [], tokens
    end = tokens.index(")")
    return [int(each) for each in tokens[1:end] if each != ","], tokens[end + 1 :]


def _after(tokens: list[str], expected: str) -> list[str]:
    if tokens[0] != expected:
        raise ValueError(expected)
    return tokens[1:]
