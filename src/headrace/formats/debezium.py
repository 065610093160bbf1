"""Debezium's JSON: what happened to a row of a database, as rows with their kinds.

{"before": null, "after": {...}, "op": "c"}      +I     also op r, the first snapshot
{"before": {...}, "after": {...}, "op": "u"}     -U +U
{"before": {...}, "after": null, "op": "d"}      -D
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.common.typeinfo import RowTypeInfo
from headrace.common.types import Row, RowKind
from headrace.errors import UnsupportedFeatureError
from headrace.formats.changelog_json import (
    INSTANT,
    STRING,
    ChangeEvent,
    ChangelogJsonDeserializationSchema,
    ChangelogJsonFormat,
    ChangelogJsonSerializationSchema,
    EventMetadata,
    instant,
    text_map,
    whole_text,
)
from headrace.types import DataTypes

__all__ = ["DebeziumJsonDeserializationSchema", "DebeziumJsonFormat", "DebeziumJsonSerializationSchema"]

_REPLICA_HINT = (
    "for PostgreSQL, set the table's REPLICA IDENTITY to FULL so that updates and deletes contain the old row"
)

_CHANGES = {"c": RowKind.INSERT, "r": RowKind.INSERT, "u": RowKind.UPDATE_AFTER, "d": RowKind.DELETE}


def _source(event: ChangeEvent, field: str) -> Any:
    return (_payload(event).get("source") or {}).get(field)


def _payload(event: ChangeEvent) -> ChangeEvent:
    # A message with its schema has the event in `payload`.
    return event["payload"] if "op" not in event and isinstance(event.get("payload"), dict) else event


class DebeziumJsonDeserializationSchema(ChangelogJsonDeserializationSchema):
    """Reads change events as rows with kinds: none, one or two for a message.

    Args:
        type_info: The type of the rows.
        schema_include: Whether messages carry their schema, and the event is in `payload`.
        metadata: Keys of metadata whose values follow the fields of a row.
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

    name = "debezium-json"
    known_metadata = {  # noqa: RUF012 - a constant of the class
        "schema": EventMetadata(STRING, lambda event: whole_text(event.get("schema"))),
        "ingestion-timestamp": EventMetadata(INSTANT, lambda event: instant(_payload(event).get("ts_ms"))),
        "source.timestamp": EventMetadata(INSTANT, lambda event: instant(_source(event, "ts_ms"))),
        "source.database": EventMetadata(STRING, lambda event: whole_text(_source(event, "db"))),
        "source.schema": EventMetadata(STRING, lambda event: whole_text(_source(event, "schema"))),
        "source.table": EventMetadata(STRING, lambda event: whole_text(_source(event, "table"))),
        "source.properties": EventMetadata(
            DataTypes.MAP(STRING, STRING), lambda event: text_map(_payload(event).get("source"))
        ),
    }

    def __init__(
        self,
        type_info: RowTypeInfo,
        *,
        schema_include: bool = False,
        metadata: Sequence[str] = (),
        fail_on_missing_field: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        self._schema_include = schema_include
        super().__init__(
            type_info,
            metadata=metadata,
            fail_on_missing_field=fail_on_missing_field,
            ignore_parse_errors=ignore_parse_errors,
        )

    def _changes(self, event: ChangeEvent, message: bytes) -> list[Row]:
        payload: Any = event.get("payload") if self._schema_include else event
        if not isinstance(payload, dict) or "op" not in payload:
            hint = "set schema_include if messages carry their schema" if not self._schema_include else None
            raise self._error("expected an event with before, after and op", message, hint)
        operation = payload["op"]
        if operation not in ("c", "r", "u", "d"):
            raise self._error(f"expected an op of c, r, u or d; got {operation!r}", message)
        return self._of_images(payload, _CHANGES[operation], message, _REPLICA_HINT)


class DebeziumJsonSerializationSchema(ChangelogJsonSerializationSchema):
    """Writes rows with kinds as change events.

    Args:
        type_info: The type of the rows.
        encoding: How rows are written.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> schema = DebeziumJsonSerializationSchema(Types.ROW_NAMED(["id"], [Types.INT()]))
        >>> schema.serialize(Row.of_kind(RowKind.DELETE, 1))
        b'{"before":{"id":1},"after":null,"op":"d"}'
    """

    name = "debezium-json"

    def _event(self, node: Any, *, is_insert: bool) -> ChangeEvent:
        if is_insert:
            return {"before": None, "after": node, "op": "c"}
        return {"before": node, "after": None, "op": "d"}


class DebeziumJsonFormat(ChangelogJsonFormat):
    """Tables with 'format' = 'debezium-json'."""

    reading = DebeziumJsonDeserializationSchema
    writing = DebeziumJsonSerializationSchema

    def _reading_options(self) -> dict[str, Any]:
        return {"schema_include": self._options.boolean("schema-include", default=False)}

    def writer(self, row_type: Any) -> ChangelogJsonSerializationSchema:
        if self._options.boolean("schema-include", default=False):
            raise UnsupportedFeatureError(
                f"table {self._options.table!r}: events cannot be written with their schema, as in Flink",
                feature="debezium-json.schema-include",
                hint="leave the option 'debezium-json.schema-include' out of a table that is written",
            )
        return super().writer(row_type)
