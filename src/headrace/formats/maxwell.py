"""Maxwell's JSON: changes of MySQL's tables.

{"data": {...}, "type": "insert"}                            +I
{"data": {...}, "old": {changed fields}, "type": "update"}   -U +U
{"data": {...}, "type": "delete"}                            -D
"""

from __future__ import annotations

from typing import Any

from headrace.common.types import Row, RowKind
from headrace.formats.changelog_json import (
    INSTANT,
    STRING,
    STRINGS,
    ChangeEvent,
    ChangelogJsonDeserializationSchema,
    ChangelogJsonFormat,
    ChangelogJsonSerializationSchema,
    EventMetadata,
    instant,
    text_list,
    whole_text,
)

__all__ = ["MaxwellJsonDeserializationSchema", "MaxwellJsonFormat", "MaxwellJsonSerializationSchema"]

_CHANGES = {"insert": RowKind.INSERT, "update": RowKind.UPDATE_AFTER, "delete": RowKind.DELETE}


class MaxwellJsonDeserializationSchema(ChangelogJsonDeserializationSchema):
    """Reads change events of Maxwell as rows with kinds: one, or two of an update.

    Args:
        type_info: The type of the rows.
        metadata: Keys of metadata whose values follow the fields of a row.
        fail_on_missing_field: Whether a row that lacks a field is an error; by default it is None.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> schema = MaxwellJsonDeserializationSchema(Types.ROW_NAMED(["id", "n"], [Types.INT(), Types.INT()]))
        >>> event = b'{"data": {"id": 1, "n": 3}, "old": {"n": 2}, "type": "update"}'
        >>> [str(row.get_row_kind()) + str(list(row)) for row in schema.parse(event)]
        ['-U[1, 2]', '+U[1, 3]']
    """

    name = "maxwell-json"
    known_metadata = {  # noqa: RUF012 - a constant of the class
        "database": EventMetadata(STRING, lambda event: whole_text(event.get("database"))),
        "table": EventMetadata(STRING, lambda event: whole_text(event.get("table"))),
        "primary-key-columns": EventMetadata(
            STRINGS, lambda event: text_list(event.get("primary_key_columns"))
        ),
        # Maxwell writes seconds.
        "ingestion-timestamp": EventMetadata(INSTANT, lambda event: instant(event.get("ts"), per_second=1)),
    }

    def _changes(self, event: ChangeEvent, message: bytes) -> list[Row]:
        operation = event.get("type")
        if operation not in ("insert", "update", "delete"):
            raise self._error(f"expected a type of insert, update or delete; got {operation!r}", message)
        return self._of_differences(event.get("data"), event.get("old"), _CHANGES[operation], message)


class MaxwellJsonSerializationSchema(ChangelogJsonSerializationSchema):
    """Writes rows with kinds as change events of Maxwell.

    Args:
        type_info: The type of the rows.
        encoding: How rows are written.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> MaxwellJsonSerializationSchema(Types.ROW_NAMED(["id"], [Types.INT()])).serialize(Row(1))
        b'{"data":{"id":1},"type":"insert"}'
    """

    name = "maxwell-json"

    def _event(self, node: Any, *, is_insert: bool) -> ChangeEvent:
        return {"data": node, "type": "insert" if is_insert else "delete"}


class MaxwellJsonFormat(ChangelogJsonFormat):
    """Tables with 'format' = 'maxwell-json'."""

    reading = MaxwellJsonDeserializationSchema
    writing = MaxwellJsonSerializationSchema
