"""Text of PostgreSQL as values of the types that a table declares."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from headrace.errors import FormatError
from headrace.types import DataType, logical

__all__ = ["TextColumns", "can_read"]


def _truth(text: str) -> bool:
    return {"t": True, "f": False}[text]


def _bytes(text: str) -> bytes:
    if not text.startswith(r"\x"):
        raise ValueError("not in hexadecimal form")
    return bytes.fromhex(text[2:])


def _moment(text: str) -> datetime.datetime:
    # Sessions of ours are in UTC; moments in rows have no zone.
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


_READ: Final[Mapping[type[DataType], Callable[[str], Any]]] = {
    **dict.fromkeys((logical.TinyIntType, logical.SmallIntType, logical.IntType, logical.BigIntType), int),
    **dict.fromkeys((logical.FloatType, logical.DoubleType), float),
    **dict.fromkeys((logical.CharType, logical.VarCharType), str),
    **dict.fromkeys((logical.BinaryType, logical.VarBinaryType), _bytes),
    **dict.fromkeys((logical.TimestampType, logical.LocalZonedTimestampType), _moment),
    logical.BooleanType: _truth,
    logical.DecimalType: Decimal,
    logical.DateType: datetime.date.fromisoformat,
    logical.TimeType: datetime.time.fromisoformat,
}


def can_read(data_type: DataType) -> bool:
    """Whether columns of PostgreSQL can be read as this type."""
    return type(data_type) in _READ


class TextColumns:
    """Reads columns of a table.

    Args:
        table: Its name, for messages.
        columns: Names and types.
    """

    def __init__(self, table: str, columns: Sequence[tuple[str, DataType]]) -> None:
        self._table = table
        self._columns = [(name, kind, _READ[type(kind)]) for name, kind in columns]

    def read(self, texts: Sequence[str | None]) -> list[Any]:
        """Return values of the declared types.

        Raises:
            FormatError: A text is none of its type.
        """
        values = []
        for (name, kind, read), text in zip(self._columns, texts, strict=True):
            try:
                values.append(None if text is None else read(text))
            except (ValueError, KeyError, ArithmeticError):
                raise FormatError(
                    f"postgres-cdc: {self._table}, column {name!r}: cannot read {text!r} as "
                    f"{kind.summary_without_null()}",
                    example=text,
                    hint="declare the column with the type it has in the database, or as STRING",
                ) from None
        return values
