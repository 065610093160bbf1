"""Messages of PostgreSQL's output plugin `pgoutput`, version 1 of its protocol, as transactions of changes.

    begin | relation, insert, update, delete ... | commit        each begins with its first letter

Values are the text that PostgreSQL would print. A relation describes the columns of the changes that follow it.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from headrace.errors import ConnectorError

__all__ = ["UNCHANGED", "Change", "Transaction", "Tuple", "Unchanged", "transactions"]

_EPOCH: Final = datetime.datetime(2000, 1, 1)  # noqa: DTZ001 - UTC, as all timestamps in rows


class Unchanged(Enum):
    """The value of a large column that an update has left alone, and that PostgreSQL does not repeat."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
#: Values of a row by column: a text, None for NULL.
Tuple = dict[str, "str | Unchanged | None"]


@dataclass(frozen=True)
class Change:
    """One row: inserted (no ``old``), deleted (no ``new``) or updated.

    Attributes:
        schema: Of the table.
        table: Its name.
        old: The row as it was, or only its key; None of an update that leaves the key alone, where the table keeps no
            more (REPLICA IDENTITY DEFAULT).
        new: The row as it is.
        is_old_whole: Whether ``old`` has all columns.
        is_update: Whether the row was there before.
    """

    schema: str
    table: str
    old: Tuple | None
    new: Tuple | None
    is_old_whole: bool
    is_update: bool = False


@dataclass(frozen=True)
class Transaction:
    """What a transaction has changed, known once it is committed.

    Attributes:
        xid: Its number, of 32 bits.
        end: Where the log continues after its commit.
        time: When it was committed, in UTC.
        changes: In order.
    """

    xid: int
    end: int
    time: datetime.datetime
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class _Relation:
    schema: str
    table: str
    columns: tuple[str, ...]


@dataclass
class _Open:
    """The transaction whose messages come."""

    xid: int
    time: datetime.datetime
    changes: list[Change] = field(default_factory=list)


class _Bytes:
    """Reads a message from its beginning on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise ConnectorError(
                f"postgres-cdc: a pgoutput message is truncated: {self._data[:20]!r}...", retryable=False
            )
        self._at += count
        return piece

    def byte(self) -> str:
        return chr(self.take(1)[0])

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found


def transactions(messages: Iterable[bytes]) -> Iterator[Transaction]:
    """Put messages together to transactions, in the order of their commits.

    Raises:
        ConnectorError: A message is none of pgoutput's.
    """
    relations: dict[int, _Relation] = {}
    current: _Open | None = None
    for data in messages:
        message = _Bytes(data)
        match message.byte():
            case "B":
                current = _begin(message)
            case "R":
                oid, relation = _relation(message)
                relations[oid] = relation
            case "I" | "U" | "D" as kind if current is not None:
                current.changes.append(_change(kind, message, relations))
            case "C" if current is not None:
                message.take(9)
                yield Transaction(current.xid, message.number(">Q"), current.time, tuple(current.changes))
                current = None
            case "T" | "Y" | "O" | "M":
                # TRUNCATE has no rows that could be retracted; types, origins and messages are not changes.
                continue
            case other:
                raise ConnectorError(
                    f"postgres-cdc: unexpected message {other!r} of pgoutput", retryable=False
                )


def _begin(message: _Bytes) -> _Open:
    message.take(8)
    time = _EPOCH + datetime.timedelta(microseconds=message.number(">q"))
    return _Open(message.number(">I"), time)


def _relation(message: _Bytes) -> tuple[int, _Relation]:
    oid, schema, table = message.number(">I"), message.text(), message.text()
    message.take(1)
    columns = []
    for _ in range(message.number(">H")):
        message.take(1)
        columns.append(message.text())
        message.take(8)
    return oid, _Relation(schema or "pg_catalog", table, tuple(columns))


def _change(kind: str, message: _Bytes, relations: dict[int, _Relation]) -> Change:
    relation = relations[message.number(">I")]
    old: Tuple | None = None
    new: Tuple | None = None
    is_old_whole = False
    part = message.byte()
    if part in "KO":
        old, is_old_whole = _tuple(message, relation), part == "O"
        part = message.byte() if kind == "U" else ""
    if part == "N":
        new = _tuple(message, relation)
    return Change(relation.schema, relation.table, old, new, is_old_whole, kind == "U")


def _tuple(message: _Bytes, relation: _Relation) -> Tuple:
    values: Tuple = {}
    for name in relation.columns[: message.number(">H")]:
        match message.byte():
            case "n":
                values[name] = None
            case "u":
                values[name] = UNCHANGED
            case "t":
                values[name] = message.take(message.number(">I")).decode()
            case other:
                raise ConnectorError(
                    f"postgres-cdc: column {name!r} has the format {other!r}, not as text", retryable=False
                )
    return values
