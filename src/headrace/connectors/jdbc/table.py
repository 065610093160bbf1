"""`JdbcTableSource`: rows of a database with values of the types that a table declares.

Drivers differ in what they return: SQLite has no dates and no truth values, MySQL returns times as spans, and numbers
come as wide as the database has them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headrace.connectors.base import Slice, SourceReader, SplitProgress
from headrace.connectors.jdbc.source import JdbcSource
from headrace.elements import Batch
from headrace.errors import FormatError
from headrace.types import DataType, logical


def _integer(value: Any) -> int:
    if int(value) != value:
        raise ValueError("it is not a whole number")
    return int(value)


def _truth(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError("it is neither true nor false")
    return bool(value)


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):
        return (datetime.datetime(1, 1, 1) + value).time()  # noqa: DTZ001 - a time of no zone
    return value if isinstance(value, datetime.time) else datetime.time.fromisoformat(value)


def _timestamp(value: Any) -> datetime.datetime:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(value)


_CONVERT: Final[dict[type[DataType], Callable[[Any], Any]]] = {
    **dict.fromkeys(
        (logical.TinyIntType, logical.SmallIntType, logical.IntType, logical.BigIntType), _integer
    ),
    **dict.fromkeys((logical.FloatType, logical.DoubleType), float),
    **dict.fromkeys((logical.CharType, logical.VarCharType), str),
    **dict.fromkeys((logical.BinaryType, logical.VarBinaryType), bytes),
    **dict.fromkeys((logical.TimestampType, logical.LocalZonedTimestampType), _timestamp),
    logical.BooleanType: _truth,
    logical.DecimalType: lambda value: Decimal(str(value)),
    logical.DateType: _date,
    logical.TimeType: _time,
}


def can_hold(data_type: DataType) -> bool:
    """Whether columns of databases can be read as this type."""
    return type(data_type) in _CONVERT


@dataclass(frozen=True)
class JdbcTableSource(JdbcSource):
    """Reads a table once, as rows of declared types.

    Args:
        types: Of the columns.
    """

    types: Sequence[DataType] = ()

    def create_reader(self) -> SourceReader:
        """Make the worker's half."""
        return _TypedReader(super().create_reader(), self)


class _TypedReader(SourceReader):
    def __init__(self, reader: SourceReader, source: JdbcTableSource) -> None:
        self._reader = reader
        self._rows = TypedRows(source.table, tuple(source.columns), tuple(source.types))

    def read(self, piece: Slice) -> Iterator[Batch]:
        for batch in self._reader.read(piece):
            yield Batch([self._rows.typed(row) for row in batch.values])

    def progress(self) -> SplitProgress:
        return self._reader.progress()

    def close(self) -> None:
        self._reader.close()


@dataclass(frozen=True)
class TypedRows:
    """Gives values of a database the types that a table declares."""

    table: str
    columns: tuple[str, ...]
    types: tuple[DataType, ...]

    def typed(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return a row with values of the declared types.

        Raises:
            FormatError: One is of another type.
        """
        values = []
        for index, kind in enumerate(self.types):
            value = row[index]
            try:
                values.append(None if value is None else _CONVERT[type(kind)](value))
            except (TypeError, ValueError, ArithmeticError) as error:
                raise FormatError(
                    f"JDBC: {self.table}: cannot convert {value!r} to "
                    f"{kind.summary_without_null()} (column {self.columns[index]!r}): {error}",
                    example=row,
                    hint="declare the column with the type it has in the database",
                ) from None
        return tuple(values)
