"""The type in SQL of a database's column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.errors import CatalogError
from headrace.types import logical as t

__all__ = ["type_of_column"]

#: What Flink's JDBC catalog makes of NUMERIC without digits.
_ANY_NUMERIC: Final = t.DecimalType(38, 18)


def type_of_column(table: str, column: Mapping[str, Any]) -> t.DataType:
    """Return the type of a column, as SQLAlchemy's inspector describes it.

    Args:
        table: The table, for errors.
        column: Its ``name``, ``type`` and ``nullable``.

    Raises:
        CatalogError: No type corresponds to it.
    """
    found = _TYPES.get(type(column["type"]).__name__.upper())
    made = found(column["type"]) if found is not None else None
    if made is None:
        raise CatalogError(
            f"table {table}: column {column['name']!r} has the type {column['type']}, which has no SQL type here",
            hint="declare the columns that you need with CREATE TABLE and 'connector' = 'jdbc'",
        )
    return made.with_nullability(bool(column["nullable"]))


def _integer(bits: int) -> Callable[[Any], t.DataType]:
    """Map an integer of a database; one without sign needs the next larger type."""
    sizes: dict[int, t.DataType] = {
        8: t.TinyIntType(),
        16: t.SmallIntType(),
        32: t.IntType(),
        64: t.BigIntType(),
    }
    unsigned: dict[int, t.DataType] = {
        8: t.SmallIntType(),
        16: t.IntType(),
        24: t.IntType(),
        32: t.BigIntType(),
        64: t.DecimalType(20, 0),
    }

    def map_integer(kind: Any) -> t.DataType:
        if bits == 8 and getattr(kind, "display_width", None) == 1:
            return t.BooleanType()
        return unsigned[bits] if getattr(kind, "unsigned", False) else sizes[32 if bits == 24 else bits]

    return map_integer


def _numeric(kind: Any) -> t.DataType | None:
    if kind.precision is None:
        return _ANY_NUMERIC
    return t.DecimalType(kind.precision, kind.scale or 0) if kind.precision <= 38 else None


def _text(kind: Any) -> t.DataType:
    return t.VarCharType(kind.length) if getattr(kind, "length", None) else t.VarCharType(t.MAX_LENGTH)


def _precision(kind: Any) -> int:
    """Return how many digits of a second a time has: PostgreSQL has six unless it says less, MySQL none."""
    if hasattr(kind, "fsp"):
        return kind.fsp or 0
    precision = getattr(kind, "precision", None)
    return 6 if precision is None else int(precision)


def _timestamp(kind: Any) -> t.DataType:
    if getattr(kind, "timezone", False):
        return t.LocalZonedTimestampType(_precision(kind))
    return t.TimestampType(_precision(kind))


def _bytes(_kind: Any) -> t.DataType:
    return t.VarBinaryType(t.MAX_LENGTH)


#: By the class of SQLAlchemy's type.
_TYPES: Final[dict[str, Callable[[Any], t.DataType | None]]] = {
    "BOOLEAN": lambda _: t.BooleanType(),
    "BIT": lambda kind: t.BooleanType() if kind.length in (None, 1) else None,
    "TINYINT": _integer(8),
    "SMALLINT": _integer(16),
    "MEDIUMINT": _integer(24),
    "INTEGER": _integer(32),
    "BIGINT": _integer(64),
    "REAL": lambda _: t.FloatType(),
    "FLOAT": lambda _: t.FloatType(),
    "DOUBLE": lambda _: t.DoubleType(),
    "DOUBLE_PRECISION": lambda _: t.DoubleType(),
    "NUMERIC": _numeric,
    "DECIMAL": _numeric,
    "CHAR": lambda kind: t.CharType(kind.length or 1),
    "VARCHAR": _text,
    **dict.fromkeys(("TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT"), lambda _: t.VarCharType(t.MAX_LENGTH)),
    **dict.fromkeys(("BYTEA", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "BINARY", "VARBINARY"), _bytes),
    "DATE": lambda _: t.DateType(),
    "TIME": lambda kind: t.TimeType(_precision(kind)),
    "TIMESTAMP": _timestamp,
    "DATETIME": _timestamp,
}
