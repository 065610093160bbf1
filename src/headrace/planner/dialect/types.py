"""The grammar of types: `DECIMAL(10, 2) NOT NULL`, `ROW<a INT, b ARRAY<STRING>>`."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final

from headrace import types as t
from headrace.errors import TypeInferenceError
from headrace.planner.dialect.cursor import Cursor
from headrace.planner.dialect.tokens import TokenKind

__all__ = ["parse_type"]

_COLLECTIONS: Final = ("ARRAY", "MULTISET", "MAP")
_PLAIN: Final[dict[str, Callable[[], t.DataType]]] = {
    "BOOLEAN": t.BooleanType,
    "TINYINT": t.TinyIntType,
    "SMALLINT": t.SmallIntType,
    "INT": t.IntType,
    "INTEGER": t.IntType,
    "BIGINT": t.BigIntType,
    "FLOAT": t.FloatType,
    "DATE": t.DateType,
    "STRING": t.DataTypes.STRING,
    "BYTES": t.DataTypes.BYTES,
    "VARIANT": t.VariantType,
}
_LENGTHS: Final[dict[str, Callable[[int], t.DataType]]] = {
    "CHAR": t.CharType,
    "CHARACTER": t.CharType,
    "VARCHAR": t.VarCharType,
    "BINARY": t.BinaryType,
    "VARBINARY": t.VarBinaryType,
}
#: What is as long as it can be where no length is given, as in Flink; the others have length 1.
_UNLIMITED: Final[dict[str, Callable[[], t.DataType]]] = {
    "VARCHAR": t.DataTypes.STRING,
    "VARBINARY": t.DataTypes.BYTES,
}
_FOREIGN: Final = {
    "TEXT": "STRING",
    "LONG": "BIGINT",
    "INT64": "BIGINT",
    "INT32": "INT",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP(3)",
    "STRUCT": "ROW<...>",
    "LIST": "ARRAY<...>",
    "BLOB": "BYTES",
    "REAL": "FLOAT",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
_UNSUPPORTED: Final = frozenset({"RAW", "BITMAP", "STRUCTURED", "DESCRIPTOR"})


def parse_type(cursor: Cursor) -> t.DataType:
    """A type, with NOT NULL or NULL after it, and ARRAY or MULTISET after that."""
    start = cursor.token
    try:
        found = cursor.deeper(lambda: _base(cursor))
        found = _nullability(cursor, found)
        while cursor.sees_any("ARRAY", "MULTISET"):
            made = t.ArrayType(found) if cursor.advance().upper == "ARRAY" else t.MultisetType(found)
            found = _nullability(cursor, made)
    except TypeInferenceError as wrong:
        raise cursor.error(wrong.message, cursor.span_from(start)) from wrong
    return found


def _nullability(cursor: Cursor, found: t.DataType) -> t.DataType:
    # NOT ENFORCED may follow a PRIMARY KEY, but never a type.
    if cursor.accept("NOT", "NULL"):
        return found.not_null()
    # RETURNING STRING NULL ON EMPTY: there, NULL is what is returned.
    if not cursor.sees("NULL", "ON") and cursor.accept("NULL"):
        return found.nullable()
    return found


def _similar(word: str) -> str | None:
    """Say which type was probably meant."""
    close = difflib.get_close_matches(word, [*_PLAIN, *_LENGTHS, *_READERS, *_COLLECTIONS], n=1)
    return f"did you mean {close[0]}?" if close else None


def _base(cursor: Cursor) -> t.DataType:
    start = cursor.token
    if start.kind is not TokenKind.WORD:
        cursor.expected("a type")
    word = cursor.advance().upper
    if word in _PLAIN:
        return _PLAIN[word]()
    if word in _LENGTHS:
        if word in {"CHAR", "CHARACTER"} and cursor.accept("VARYING"):
            word = "VARCHAR"
        if word in _UNLIMITED and not cursor.sees("("):
            return _UNLIMITED[word]()
        return _LENGTHS[word](_length(cursor))
    if word in _READERS:
        return _READERS[word](cursor)
    if word in _COLLECTIONS:
        return _collection(cursor, word)
    if word in _UNSUPPORTED:
        cursor.unsupported(f"type {word}", start.span)
    hint = f"in Flink it is {_FOREIGN[word]}" if word in _FOREIGN else _similar(word)
    cursor.fail(f"unknown type {start.text!r}", start.span, hint=hint)


def _length(cursor: Cursor) -> int:
    if not cursor.accept("("):
        return 1
    start = cursor.token
    length = cursor.integer("a length")
    if length < 1:
        cursor.fail("a length must be at least 1", start.span)
    cursor.expect(")")
    return length


def _precision(cursor: Cursor, default: int) -> int:
    if not cursor.accept("("):
        return default
    precision = cursor.integer("a precision")
    cursor.expect(")")
    return precision


def _decimal(cursor: Cursor) -> t.DataType:
    precision, scale = 10, 0
    if cursor.accept("("):
        precision = cursor.integer("a precision")
        if cursor.accept(","):
            scale = cursor.integer("a scale")
        cursor.expect(")")
    return t.DecimalType(precision, scale)


def _timestamp(cursor: Cursor) -> t.DataType:
    precision = _precision(cursor, 6)
    if cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return t.LocalZonedTimestampType(precision)
    if cursor.sees("WITH"):
        cursor.unsupported("TIMESTAMP WITH TIME ZONE", hint="use TIMESTAMP_LTZ")
    cursor.accept("WITHOUT", "TIME", "ZONE")
    return t.TimestampType(precision)


def _interval(cursor: Cursor) -> t.DataType:
    def unit() -> t.Resolution:
        word = cursor.choose("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
        made = getattr(t.DataTypes, word)
        resolution: t.Resolution = (
            made(_precision(cursor, 3 if word == "SECOND" else 2))
            if word
            in {
                "YEAR",
                "DAY",
                "SECOND",
            }
            else made()
        )
        return resolution

    upper = unit()
    return t.DataTypes.INTERVAL(upper, unit() if cursor.accept("TO") else None)


def _collection(cursor: Cursor, word: str) -> t.DataType:
    cursor.expect("<")
    first = parse_type(cursor)
    if word == "MAP":
        cursor.expect(",")
        made: t.DataType = t.MapType(first, parse_type(cursor))
    else:
        made = t.ArrayType(first) if word == "ARRAY" else t.MultisetType(first)
    cursor.expect(">")
    return made


def _row(cursor: Cursor) -> t.DataType:
    close = {"<": ">", "(": ")"}.get(cursor.token.upper)
    if close is None:
        cursor.expected("<")
    cursor.advance()
    if cursor.accept(close):
        return t.RowType()

    def field() -> t.RowField:
        name = cursor.identifier("a field's name")
        data_type = parse_type(cursor)
        comment = cursor.string() if cursor.token.kind is TokenKind.STRING else None
        return t.RowField(name.name, data_type, comment)

    fields = cursor.commas(field)
    cursor.expect(close)
    return t.RowType(fields)


def _double(cursor: Cursor) -> t.DataType:
    cursor.accept("PRECISION")
    return t.DoubleType()


def _time(cursor: Cursor) -> t.DataType:
    precision = _precision(cursor, 0)
    cursor.accept("WITHOUT", "TIME", "ZONE")
    return t.TimeType(precision)


_READERS: Final[dict[str, Callable[[Cursor], t.DataType]]] = {
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "DEC": _decimal,
    "NUMERIC": _decimal,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": lambda cursor: t.LocalZonedTimestampType(_precision(cursor, 6)),
    "INTERVAL": _interval,
    "ROW": _row,
}
