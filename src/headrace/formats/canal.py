"""Canal's JSON: changes of MySQL's tables, several rows in a message.

{"data": [{...}, {...}], "type": "INSERT"}                   +I +I
{"data": [{...}], "old": [{changed fields}], "type": "UPDATE"}    -U +U
{"data": [{...}], "type": "DELETE"}                          -D
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headrace.common.typeinfo import RowTypeInfo
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
    number_map,
    text_list,
    whole_text,
)
from headrace.types import DataTypes

__all__ = ["CanalJsonDeserializationSchema", "CanalJsonFormat", "CanalJsonSerializationSchema"]

_CHANGES = {"INSERT": RowKind.INSERT, "UPDATE": RowKind.UPDATE_AFTER, "DELETE": RowKind.DELETE}


class CanalJsonDeserializationSchema(ChangelogJsonDeserializationSchema):
    """Reads change events of Canal as rows with kinds.

    Args:
        type_info: The type of the rows.
        database_include: A regular expression; events of other databases are left out.
        table_include: The same for tables.
        metadata: Keys of metadata whose values follow the fields of a row.
        fail_on_missing_field: Whether a row that lacks a field is an error; by default it is None.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> schema = CanalJsonDeserializationSchema(Types.ROW_NAMED(["id", "n"], [Types.INT(), Types.INT()]))
        >>> event = b'{"data": [{"id": 1, "n": 3}], "old": [{"n": 2}], "type": "UPDATE"}'
        >>> [str(row.get_row_kind()) + str(list(row)) for row in schema.parse(event)]
        ['-U[1, 2]', '+U[1, 3]']
    """

    name = "canal-json"
    known_metadata = {  # noqa: RUF012 - a constant of the class
        "database": EventMetadata(STRING, lambda event: whole_text(event.get("database"))),
        "table": EventMetadata(STRING, lambda event: whole_text(event.get("table"))),
        "sql-type": EventMetadata(
            DataTypes.MAP(STRING, DataTypes.INT()), lambda event: number_map(event.get("sqlType"))
        ),
        "pk-names": EventMetadata(STRINGS, lambda event: text_list(event.get("pkNames"))),
        "ingestion-timestamp": EventMetadata(INSTANT, lambda event: instant(event.get("ts"))),
        "event-timestamp": EventMetadata(INSTANT, lambda event: instant(event.get("es"))),
    }

    def __init__(
        self,
        type_info: RowTypeInfo,
        *,
        database_include: str | None = None,
        table_include: str | None = None,
        metadata: Sequence[str] = (),
        fail_on_missing_field: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        self._filters = {"database": database_include, "table": table_include}
        super().__init__(
            type_info,
            metadata=metadata,
            fail_on_missing_field=fail_on_missing_field,
            ignore_parse_errors=ignore_parse_errors,
        )

    def _changes(self, event: ChangeEvent, message: bytes) -> list[Row]:
        for field, pattern in self._filters.items():
            if pattern is not None and not re.fullmatch(pattern, str(event.get(field))):
                return []
        operation = event.get("type")
        if operation == "CREATE":
            return []  # a statement of DDL
        if operation not in ("INSERT", "UPDATE", "DELETE"):
            raise self._error(
                f"expected a type of INSERT, UPDATE, DELETE or CREATE; got {operation!r}", message
            )
        nodes = event.get("data")
        if not isinstance(nodes, list):
            raise self._error("expected an event with an array of rows in 'data'", message)
        old = event.get("old") if operation == "UPDATE" else [None] * len(nodes)
        if not isinstance(old, list) or len(old) != len(nodes):
            raise self._error("expected an update with as many rows in 'old' as in 'data'", message)
        rows = []
        for node, changed in zip(nodes, old, strict=True):
            rows += self._of_differences(node, changed, _CHANGES[operation], message)
        return rows


class CanalJsonSerializationSchema(ChangelogJsonSerializationSchema):
    """Writes rows with kinds as change events of Canal.

    Args:
        type_info: The type of the rows.
        encoding: How rows are written.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> CanalJsonSerializationSchema(Types.ROW_NAMED(["id"], [Types.INT()])).serialize(Row(1))
        b'{"data":[{"id":1}],"type":"INSERT"}'
    """

    name = "canal-json"

    def _event(self, node: Any, *, is_insert: bool) -> ChangeEvent:
        return {"data": [node], "type": "INSERT" if is_insert else "DELETE"}


class CanalJsonFormat(ChangelogJsonFormat):
    """Tables with 'format' = 'canal-json'."""

    reading = CanalJsonDeserializationSchema
    writing = CanalJsonSerializationSchema

    def _reading_options(self) -> dict[str, Any]:
        found = {}
        for key in ("database.include", "table.include"):
            given = self._options.text(key)
            try:
                re.compile(given or "")
            except re.error as error:
                raise self._options.wrong(key, f"a regular expression ({error})") from None
            found[key.replace(".", "_")] = given
        return found
