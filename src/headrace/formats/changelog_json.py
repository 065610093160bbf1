"""What the JSON formats of change events share: debezium-json, canal-json, maxwell-json and ogg-json.

    a message --> an event, a JSON object --> rows with their kinds, and metadata of the event after their fields

Written are inserts and deletes only, as Flink does: an update is a delete of what was and an insert of what is.
"""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar

from headrace.common.changelog import ALL, ChangelogMode
from headrace.common.serialization import SerializationSchema
from headrace.common.typeinfo import RowTypeInfo
from headrace.common.types import Row, RowKind, make_row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError
from headrace.formats._json_decoding import JsonDecoding, decoder_for, load_json
from headrace.formats._json_writers import JsonEncoding, dump_json, json_encoding, text_of, writer_for
from headrace.formats.base import FormatDeserializationSchema, MadeInEachProcess, row_type
from headrace.formats.json import reader_for
from headrace.types import DataType, DataTypes
from headrace.types.logical import RowType
from headrace.types.type_information import type_information

__all__ = [
    "ChangeEvent",
    "ChangelogJsonDeserializationSchema",
    "ChangelogJsonFormat",
    "ChangelogJsonSerializationSchema",
    "EventMetadata",
    "instant",
    "number_map",
    "text_list",
    "text_map",
    "whole_text",
]

#: A change event: the object in a message.
ChangeEvent = dict[str, Any]
_INT_END = 1 << 31
#: Characters of a wrong value that a message shows.
_SHOWN = 100
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of no zone, as all timestamps in rows


@dataclass(frozen=True)
class EventMetadata:
    """What a metadata column reads from an event.

    Args:
        type: The type of the column.
        read: Returns its value; raises ValueError or TypeError if the event has another type there.
    """

    type: DataType
    read: Callable[[ChangeEvent], Any]


def instant(number: Any, per_second: int = 1_000) -> datetime.datetime | None:
    """Return the time of a number since 1970, in UTC."""
    return None if number is None else _EPOCH + datetime.timedelta(seconds=int(number)) / per_second


def whole_text(value: Any) -> str | None:
    """Return a value as text: strings as they are, anything else as JSON."""
    return None if value is None else value if isinstance(value, str) else text_of(value)


def text_map(node: Any) -> dict[str, str | None] | None:
    """Return an object with all its values as texts."""
    return None if node is None else {key: whole_text(value) for key, value in dict(node).items()}


def text_list(node: Any) -> list[str | None] | None:
    """Return an array with all its values as texts."""
    if node is not None and not isinstance(node, list):
        raise TypeError(f"expected an array; got {text_of(node)[:_SHOWN]}")
    return None if node is None else [whole_text(value) for value in node]


def number_map(node: Any) -> dict[str, int | None] | None:
    """Return an object whose values are numbers."""
    if node is None:
        return None
    if not isinstance(node, dict) or any(type(value) not in (int, NoneType) for value in node.values()):
        raise TypeError(f"expected an object of numbers; got {text_of(node)[:_SHOWN]}")
    if any(value is not None and not -_INT_END <= value < _INT_END for value in node.values()):
        raise ValueError("a number does not fit INT")
    return node


class ChangelogJsonDeserializationSchema(MadeInEachProcess, FormatDeserializationSchema):
    """Reads change events as rows with kinds: none, one or several for a message.

    Args:
        type_info: The type of the rows.
        metadata: Keys of metadata whose values follow the fields of a row.
        fail_on_missing_field: Whether a row that lacks a field is an error; by default it is None.
        ignore_parse_errors: Whether messages that cannot be read are left out.
    """

    #: Flink's name of the format.
    name: ClassVar[str]
    #: What can be read beside the row, by Flink's keys.
    known_metadata: ClassVar[Mapping[str, EventMetadata]] = {}

    yields_many = True

    made_here = ("_decode", "_read_row", "_read_leniently")

    def __init__(
        self,
        type_info: RowTypeInfo,
        *,
        metadata: Sequence[str] = (),
        fail_on_missing_field: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        super().__init__(row_type(type_info, self.name), ignore_parse_errors=ignore_parse_errors)
        self._fails_on_missing = fail_on_missing_field
        self._metadata = tuple(metadata)
        self._prepare()

    def _prepare(self) -> None:
        self._decode = decoder_for(self._type_info)
        missing, tree = self._fails_on_missing, JsonDecoding.TREE  # as in Flink
        self._read_row = reader_for(self._type_info, fail_on_missing=missing, decoding=tree)
        self._read_leniently = reader_for(self._type_info, is_lenient=True, decoding=tree)

    @abstractmethod
    def _changes(self, event: ChangeEvent, message: bytes) -> list[Row]:
        """Return the rows of an event; raises FormatError if it is none of the format."""

    def parse(self, message: bytes) -> list[Row]:
        """Return the rows of an event; none for a tombstone.

        Raises:
            FormatError: It is not such an event, or a row is not of the type.
        """
        if not message:
            return []
        event = load_json(self._decode, message)
        if not isinstance(event, dict):
            raise self._error("expected a change event, which is a JSON object", message)
        try:
            rows = self._changes(event, message)
            return self._with_metadata(rows, event, message) if self._metadata else rows
        except RecursionError:
            raise self._error("the event is nested too deeply", message) from None

    def _with_metadata(self, rows: Sequence[Row], event: ChangeEvent, message: bytes) -> list[Row]:
        try:
            found = [self.known_metadata[key].read(event) for key in self._metadata]
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise self._error(f"metadata {', '.join(self._metadata)}: {error}", message) from None
        return [make_row(None, (*row, *found), row.get_row_kind().value) for row in rows]

    def parse_leniently(self, message: bytes) -> list[Row]:
        """Return rows with None for fields that cannot be parsed, as Flink does; no rows if it is not an event."""
        strict, self._read_row = self._read_row, self._read_leniently
        try:
            return self.parse(message)
        except FormatError:
            return []
        finally:
            self._read_row = strict

    def _row(self, node: Any, what: str, kind: RowKind, message: bytes, hint: str | None = None) -> Row:
        """Read a row of an event, which has to be there."""
        if node is None:
            raise self._error(f'the "{what}" field of a {kind.name} event is null', message, hint)
        try:
            row: Row = self._read_row(node)
        except ValueError as error:
            raise self._error(f"{what}: {error}", message) from None
        row.set_row_kind(kind)
        return row

    def _of_images(
        self, event: ChangeEvent, change: RowKind, message: bytes, hint: str | None = None
    ) -> list[Row]:
        """Return the rows of an event that has the row before and after the change.

        Args:
            event: The event.
            change: INSERT, UPDATE_AFTER or DELETE.
            message: What it was read from.
            hint: What to do if the event lacks the row before the change.
        """
        before, after = event.get("before"), event.get("after")
        if change is RowKind.INSERT:
            return [self._row(after, "after", change, message)]
        if change is RowKind.DELETE:
            return [self._row(before, "before", change, message, hint)]
        old = self._row(before, "before", RowKind.UPDATE_BEFORE, message, hint)
        return [old, self._row(after, "after", change, message)]

    def _of_differences(self, node: Any, old: Any, change: RowKind, message: bytes) -> list[Row]:
        """Return the rows of a change for which the event has a row and, of an update, the old values that differ."""
        row = self._row(node, "data", change, message)
        return [self._before(old, row, message), row] if change is RowKind.UPDATE_AFTER else [row]

    def _before(self, old: Any, after: Row, message: bytes) -> Row:
        """Return the row before an update of which the event has only the fields that have changed."""
        if not isinstance(old, dict):
            raise self._error('the "old" field of an update is null', message)
        names = after._fields or ()
        try:
            before: Row = self._read_row({name: old.get(name) for name in names})
        except ValueError as error:
            raise self._error(f"old: {error}", message) from None
        values = [value if name in old else after[name] for name, value in zip(names, before, strict=True)]
        return make_row(tuple(names), values, RowKind.UPDATE_BEFORE.value)

    def _error(self, problem: str, message: bytes, hint: str | None = None) -> FormatError:
        return FormatError(f"{self.name}: {problem}", example=message, hint=hint)


class ChangelogJsonSerializationSchema(SerializationSchema):
    """Writes rows with kinds as change events.

    Args:
        type_info: The type of the rows.
        encoding: How rows are written.
    """

    #: Flink's name of the format.
    name: ClassVar[str]

    def __init__(self, type_info: RowTypeInfo, *, encoding: JsonEncoding = JsonEncoding()) -> None:  # noqa: B008 - frozen
        self._type_info = row_type(type_info, self.name)
        self._encoding = encoding
        self._write_row = writer_for(type_info, encoding)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_serializer, (type(self), self._type_info, self._encoding)

    def serialize(self, element: Row) -> bytes:
        """Return the event.

        Raises:
            FormatError: The row is not of the type.
        """
        return dump_json(self._written, element)

    def _written(self, row: Row) -> ChangeEvent:
        is_there = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        event = self._event(self._write_row(row), is_insert=is_there)
        if self._encoding.ignores_null:
            return {name: value for name, value in event.items() if value is not None}
        return event

    @abstractmethod
    def _event(self, node: Any, *, is_insert: bool) -> ChangeEvent:
        """Return the event that inserts or deletes a row."""


def _make_serializer(
    kind: type[ChangelogJsonSerializationSchema], type_info: RowTypeInfo, encoding: JsonEncoding
) -> ChangelogJsonSerializationSchema:
    return kind(type_info, encoding=encoding)


class ChangelogJsonFormat:
    """A format of change events, for tables.

    Args:
        options: Those of the format.
    """

    #: Which kinds of rows it reads.
    mode: ChangelogMode = ALL
    reading: ClassVar[type[ChangelogJsonDeserializationSchema]]
    writing: ClassVar[type[ChangelogJsonSerializationSchema]]

    def __init__(self, options: TableOptions) -> None:
        self._options = options

    @property
    def metadata(self) -> Mapping[str, DataType]:
        """The types of what can be read beside the row, by Flink's keys."""
        return {key: each.type for key, each in self.reading.known_metadata.items()}

    def reader(self, row_type: RowType, metadata: Sequence[str] = ()) -> ChangelogJsonDeserializationSchema:
        json_encoding(self._options)  # the table may be written, too
        return self.reading(
            _row_information(row_type),
            metadata=metadata,
            ignore_parse_errors=self._options.boolean("ignore-parse-errors", default=False),
            **self._reading_options(),
        )

    def writer(self, row_type: RowType) -> ChangelogJsonSerializationSchema:
        self._options.boolean("ignore-parse-errors", default=False)
        self._reading_options()
        return self.writing(_row_information(row_type), encoding=json_encoding(self._options))

    def _reading_options(self) -> dict[str, Any]:
        """Read the options that only this format has."""
        return {}


def _row_information(columns: RowType) -> RowTypeInfo:
    found = type_information(columns)
    assert isinstance(found, RowTypeInfo)
    return found


#: The types of metadata that several formats have.
STRING = DataTypes.STRING()
STRINGS = DataTypes.ARRAY(STRING)
INSTANT = DataTypes.TIMESTAMP_LTZ(3)
