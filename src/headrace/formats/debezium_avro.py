"""Debezium's events in Avro with a schema registry: what happened to a row of a database, as rows with their kinds.

A message is a record with the fields `before`, `after` and `op`, in Confluent's wire format: see `avro_confluent`.
Inserts and deletes only are written, as with `debezium-json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.common.changelog import ALL, ChangelogMode
from headrace.common.serialization import SerializationSchema
from headrace.common.types import Row, RowKind, make_row
from headrace.errors import FormatError
from headrace.formats.avro_confluent import (
    AvroConfluentFormat,
    ConfluentRegistryAvroRowDeserializationSchema,
    ConfluentRegistryAvroRowSerializationSchema,
)
from headrace.formats.base import FormatDeserializationSchema
from headrace.types import DataType, DataTypes
from headrace.types.logical import RowType
from headrace.types.type_information import type_information

__all__ = ["DebeziumAvroFormat"]

_CHANGES = {"c": RowKind.INSERT, "r": RowKind.INSERT, "u": RowKind.UPDATE_AFTER, "d": RowKind.DELETE}


class DebeziumAvroDeserializationSchema(FormatDeserializationSchema):
    """Reads change events as rows with kinds: none, one or two for a message.

    Args:
        row_type: The fields of the rows.
        events: Reads an event as a row of `before`, `after` and `op`.
    """

    yields_many = True

    def __init__(self, row_type: RowType, events: ConfluentRegistryAvroRowDeserializationSchema) -> None:
        super().__init__(type_information(row_type))
        self._events = events

    def parse(self, message: bytes) -> list[Row]:
        """Return the rows of an event; none for a tombstone.

        Raises:
            FormatError: It is no such event.
            ConnectorError: The registry cannot be asked.
        """
        if not message:
            return []
        before, after, operation = self._events.parse(message)
        change = _CHANGES.get(operation)
        if change is None:
            raise self._error(f"expected an op of c, r, u or d; got {operation!r}", message)
        if change is RowKind.INSERT:
            return [self._row(after, "after", change, message)]
        if change is RowKind.DELETE:
            return [self._row(before, "before", change, message)]
        return [
            self._row(before, "before", RowKind.UPDATE_BEFORE, message),
            self._row(after, "after", change, message),
        ]

    def _row(self, row: Row | None, what: str, kind: RowKind, message: bytes) -> Row:
        if row is None:
            hint = "for PostgreSQL, set the table's REPLICA IDENTITY to FULL" if what == "before" else None
            raise self._error(f'the "{what}" field of a {kind.name} event is null', message, hint)
        row.set_row_kind(kind)
        return row

    def _error(self, problem: str, message: bytes, hint: str | None = None) -> FormatError:
        return FormatError(f"{DebeziumAvroFormat.name}: {problem}", example=message, hint=hint)


class DebeziumAvroSerializationSchema(SerializationSchema):
    """Writes rows with kinds as change events.

    Args:
        events: Writes a row of `before`, `after` and `op`.
    """

    def __init__(self, events: ConfluentRegistryAvroRowSerializationSchema) -> None:
        self._events = events

    def serialize(self, element: Row) -> bytes:
        """Return the event.

        Raises:
            FormatError: The row is not as the schema says.
            ConnectorError: The registry cannot be asked, or refuses the schema.
        """
        is_there = element.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        event: tuple[Any, ...] = (None, element, "c") if is_there else (element, None, "d")
        return self._events.serialize(make_row(None, event, 0))


class DebeziumAvroFormat(AvroConfluentFormat):
    """Tables with 'format' = 'debezium-avro-confluent'."""

    name = "debezium-avro-confluent"
    #: Which kinds of rows it reads.
    mode: ChangelogMode = ALL
    #: It reads nothing beside the row.
    metadata: Mapping[str, DataType] = {}

    def reader(  # type: ignore[override]  # of another class, with the same methods
        self, row_type: RowType, metadata: Sequence[str] = ()
    ) -> DebeziumAvroDeserializationSchema:
        return DebeziumAvroDeserializationSchema(row_type, super().reader(_event_type(row_type)))

    def writer(self, row_type: RowType) -> DebeziumAvroSerializationSchema:  # type: ignore[override]  # as above
        return DebeziumAvroSerializationSchema(super().writer(_event_type(row_type)))


def _event_type(row_type: RowType) -> RowType:
    row = row_type.nullable()
    fields = [("before", row), ("after", row), ("op", DataTypes.STRING())]
    found = DataTypes.ROW([DataTypes.FIELD(name, each) for name, each in fields])
    assert isinstance(found, RowType)
    return found
