"""The JSON of Oracle GoldenGate.

{"before": null, "after": {...}, "op_type": "I"}      +I
{"before": {...}, "after": {...}, "op_type": "U"}     -U +U
{"before": {...}, "after": null, "op_type": "D"}      -D
"""

from __future__ import annotations

import datetime
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
    whole_text,
)
from headrace.types import DataTypes

__all__ = ["OggJsonDeserializationSchema", "OggJsonFormat", "OggJsonSerializationSchema"]

_BEFORE_HINT = "let GoldenGate log all columns: ALTER TABLE ... ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS"


def _time(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)


class OggJsonDeserializationSchema(ChangelogJsonDeserializationSchema):
    """Reads change events of Oracle GoldenGate as rows with kinds: one, or two of an update.

    Args:
        type_info: The type of the rows.
        metadata: Keys of metadata whose values follow the fields of a row.
        fail_on_missing_field: Whether a row that lacks a field is an error; by default it is None.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> schema = OggJsonDeserializationSchema(Types.ROW_NAMED(["id"], [Types.INT()]))
        >>> [str(row.get_row_kind()) for row in schema.parse(b'{"before": {"id": 1}, "op_type": "D"}')]
        ['-D']
    """

    name = "ogg-json"
    known_metadata = {  # noqa: RUF012 - a constant of the class
        "table": EventMetadata(STRING, lambda event: whole_text(event.get("table"))),
        "primary-keys": EventMetadata(STRINGS, lambda event: event.get("primary_keys")),
        "ingestion-timestamp": EventMetadata(
            DataTypes.TIMESTAMP_LTZ(6), lambda event: _time(event.get("current_ts"))
        ),
        "event-timestamp": EventMetadata(INSTANT, lambda event: _time(event.get("op_ts"))),
    }

    def _changes(self, event: ChangeEvent, message: bytes) -> list[Row]:
        operation, after = event.get("op_type"), event.get("after")
        match operation:
            case "I":
                return [self._row(after, "after", RowKind.INSERT, message)]
            case "U":
                before = self._row(
                    event.get("before"), "before", RowKind.UPDATE_BEFORE, message, _BEFORE_HINT
                )
                return [before, self._row(after, "after", RowKind.UPDATE_AFTER, message)]
            case "D":
                return [self._row(event.get("before"), "before", RowKind.DELETE, message, _BEFORE_HINT)]
        raise self._error(f"expected an op_type of I, U or D; got {operation!r}", message)


class OggJsonSerializationSchema(ChangelogJsonSerializationSchema):
    """Writes rows with kinds as change events of Oracle GoldenGate.

    Args:
        type_info: The type of the rows.
        timestamp_format: As in `JsonRowSerializationSchema`.
        ignore_null_fields: Whether fields without a value are left out.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> OggJsonSerializationSchema(Types.ROW_NAMED(["id"], [Types.INT()])).serialize(Row(1))
        b'{"before":null,"after":{"id":1},"op_type":"I"}'
    """

    name = "ogg-json"

    def _event(self, node: Any, *, is_insert: bool) -> ChangeEvent:
        if is_insert:
            return {"before": None, "after": node, "op_type": "I"}
        return {"before": node, "after": None, "op_type": "D"}


class OggJsonFormat(ChangelogJsonFormat):
    """'format' = 'ogg-json'."""

    reading = OggJsonDeserializationSchema
    writing = OggJsonSerializationSchema
