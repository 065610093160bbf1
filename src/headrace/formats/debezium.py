"""Debezium's JSON: what happened to a row of a database, as rows with their kinds.

    {"before": null, "after": {...}, "op": "c"}      +I     also op r, the first snapshot
    {"before": {...}, "after": {...}, "op": "u"}     -U +U
    {"before": {...}, "after": null, "op": "d"}      -D

Written are c and d only, as Flink does: an update is a d of what was and a c of what is.
"""

from __future__ import annotations

from typing import Any

from headrace.common.serialization import SerializationSchema
from headrace.common.typeinfo import RowTypeInfo
from headrace.common.types import Row, RowKind
from headrace.errors import FormatError
from headrace.formats._json_writers import TIMESTAMP_FORMATS, dump_json, writer_for
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess, row_type
from headrace.formats.json import decoder_for, load_json, reader_for

_REPLICA_HINT = (
    "for PostgreSQL, set the table's REPLICA IDENTITY to FULL so that updates and deletes contain the old row"
)


class DebeziumJsonDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads change events as rows with kinds: none, one or two for a message.

    Args:
        type_info: The type of the rows.
        schema_include: Whether messages carry their schema, and the event is in `payload`.
        fail_on_missing_field: Whether a row that lacks a field is an error; by default it is None.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> row_type = Types.ROW_NAMED(["id"], [Types.INT()])
        >>> schema = DebeziumJsonDeserializationSchema(row_type)
        >>> for row in schema.parse(b'{"before": {"id": 1}, "after": {"id": 2}, "op": "u"}'):
        ...     print(row.get_row_kind(), row)
        -U Row(id=1)
        +U Row(id=2)
    """

    yields_many = True

    made_here = ("_decode", "_read_row")

    def __init__(
        self,
        type_info: RowTypeInfo,
        *,
        schema_include: bool = False,
        fail_on_missing_field: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        super().__init__(row_type(type_info, "debezium-json"), ignore_parse_errors=ignore_parse_errors)
        self._schema_include = schema_include
        self._fails_on_missing = fail_on_missing_field
        self._prepare()

    def _prepare(self) -> None:
        self._decode = decoder_for(self._type_info)
        self._read_row = reader_for(self._type_info, fail_on_missing=self._fails_on_missing)

    def parse(self, message: bytes) -> list[Row]:
        """Return the rows of an event; none for a tombstone.

        Raises:
            FormatError: It is not such an event, or a row is not of the type.
        """
        if not message:
            return []
        event = load_json(self._decode, message)
        if self._schema_include and isinstance(event, dict):
            event = event.get("payload")
        if not isinstance(event, dict) or "op" not in event:
            hint = "set schema_include if messages carry their schema" if not self._schema_include else None
            raise FormatError(
                "debezium-json: expected an event with before, after and op", example=message, hint=hint
            )
        operation = event["op"]
        if operation in ("c", "r"):
            return [self._row(event, "after", RowKind.INSERT, message)]
        if operation == "u":
            before = self._row(event, "before", RowKind.UPDATE_BEFORE, message)
            return [before, self._row(event, "after", RowKind.UPDATE_AFTER, message)]
        if operation == "d":
            return [self._row(event, "before", RowKind.DELETE, message)]
        raise FormatError(
            f"debezium-json: expected an op of c, r, u or d; got {operation!r}", example=message
        )

    def parse_leniently(self, message: bytes) -> list[Row]:
        """Return nothing: half an event would be a wrong table."""
        return []

    def _row(self, event: dict[str, Any], field: str, kind: RowKind, message: bytes) -> Row:
        node = event.get(field)
        if node is None:
            raise FormatError(
                f'debezium-json: the "{field}" field of a {kind.name} event is null',
                example=message,
                hint=_REPLICA_HINT if field == "before" else None,
            )
        try:
            row: Row = self._read_row(node)
        except ValueError as error:
            raise FormatError(f"debezium-json: {field}: {error}", example=message) from None
        except RecursionError:
            raise FormatError(f"debezium-json: {field} is nested too deeply", example=message) from None
        row.set_row_kind(kind)
        return row


class DebeziumJsonSerializationSchema(SerializationSchema):
    """Writes rows with kinds as change events.

    Args:
        type_info: The type of the rows.
        timestamp_format: As in `JsonRowSerializationSchema`.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> schema = DebeziumJsonSerializationSchema(Types.ROW_NAMED(["id"], [Types.INT()]))
        >>> schema.serialize(Row.of_kind(RowKind.DELETE, 1))
        b'{"before":{"id":1},"after":null,"op":"d"}'
    """

    def __init__(self, type_info: RowTypeInfo, *, timestamp_format: str = TIMESTAMP_FORMATS[0]) -> None:
        self._type_info = row_type(type_info, "debezium-json")
        self._timestamp_format = timestamp_format
        self._write_row = writer_for(type_info, timestamp_format)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_serializer, (self._type_info, self._timestamp_format)

    def serialize(self, element: Row) -> bytes:
        """Return the event.

        Raises:
            FormatError: The row is not of the type.
        """
        return dump_json(self._event, element)

    def _event(self, row: Row) -> dict[str, Any]:
        node = self._write_row(row)
        if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            return {"before": None, "after": node, "op": "c"}
        return {"before": node, "after": None, "op": "d"}


def _make_serializer(type_info: RowTypeInfo, timestamp_format: str) -> DebeziumJsonSerializationSchema:
    return DebeziumJsonSerializationSchema(type_info, timestamp_format=timestamp_format)
