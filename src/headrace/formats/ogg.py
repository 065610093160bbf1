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
    text_list,
    whole_text,
)
from headrace.types import DataTypes

__all__ = ["OggJsonDeserializationSchema", "OggJsonFormat", "OggJsonSerializationSchema"]

_BEFORE_HINT = "let GoldenGate log all columns: ALTER TABLE ... ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS"

_CHANGES = {"I": RowKind.INSERT, "U": RowKind.UPDATE_AFTER, "D": RowKind.DELETE}


def _time(text: str | None) -> datetime.datetime | None:
    if text is None:
        return None
    time = datetime.datetime.fromisoformat(text)
    # Times in rows have no zone.
    return time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)


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
        "primary-keys": EventMetadata(STRINGS, lambda event: text_list(event.get("primary_keys"))),
        "ingestion-timestamp": EventMetadata(
            DataTypes.TIMESTAMP_LTZ(6), lambda event: _time(event.get("current_ts"))
        ),
        "event-timestamp": EventMetadata(INSTANT, lambda event: _time(event.get("op_ts"))),
    }

    def _changes(self, event: ChangeEvent, message: bytes) -> list[Row]:
        operation = event.get("op_type")
        if operation not in ("I", "U", "D"):
            raise self._error(f"expected an op_type of I, U or D; got {operation!r}", message)
        return self._of_images(event, _CHANGES[operation], message, _BEFORE_HINT)


class OggJsonSerializationSchema(ChangelogJsonSerializationSchema):
    """Writes rows with kinds as change events of Oracle GoldenGate.

    Args:
        type_info: The type of the rows.
        encoding: How rows are written.

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
    """Tables with 'format' = 'ogg-json'."""

    reading = OggJsonDeserializationSchema
    writing = OggJsonSerializationSchema
