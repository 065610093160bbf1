"""Records of Kafka as rows of a table, and back: columns are parts of the value, of the key, or metadata.

topic, partition, offset, timestamp, headers | key: bytes -> row | value: bytes -> row
                 metadata columns              key columns         value columns
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, Literal

from headrace.common.serialization import DeserializationSchema, SerializationSchema
from headrace.common.types import Row, RowKind
from headrace.connectors.kafka._table_topics import TableTopics
from headrace.connectors.kafka.records import (
    KafkaConsumerRecord,
    KafkaProducerRecord,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
)
from headrace.errors import FormatError
from headrace.formats.base import FormatDeserializationSchema
from headrace.formats.columns import arrow_converter
from headrace.types import DataType
from headrace.types.logical import MAX_DECIMAL_PRECISION, DecimalType

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of no zone, as all timestamps in rows
_MILLISECOND = datetime.timedelta(milliseconds=1)
#: Room for every number that fits a DECIMAL.
_DIGITS = Context(prec=MAX_DECIMAL_PRECISION + 1)


def _time(record: KafkaConsumerRecord) -> datetime.datetime | None:
    return None if record.timestamp is None else _EPOCH + record.timestamp * _MILLISECOND


def _headers(record: KafkaConsumerRecord) -> list[tuple[str, bytes | None]]:
    # Of headers with one name the last is taken, as in Flink.
    return list(dict(record.headers).items())


#: Flink's keys of metadata that a table of Kafka can be read with.
METADATA: Final[Mapping[str, Callable[[KafkaConsumerRecord], Any]]] = {
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "offset": lambda record: record.offset,
    "timestamp": _time,
    "headers": _headers,
    "leader-epoch": lambda record: record.leader_epoch,
    "timestamp-type": lambda record: record.timestamp_type,
}
#: Those that can be written.
WRITABLE_METADATA: Final = ("timestamp", "headers", "topic")


#: Flink's names of what chooses the partition of a record.
Partitioner = Literal["default", "fixed", "round-robin"]


@dataclass(frozen=True)
class ColumnPlace:
    """Where a column is: a field of the key or the value, or metadata."""

    part: Literal["key", "value", "metadata"]
    #: The number of the field, or the key of the metadata.
    at: int | str
    #: Of a field: rows and maps within it are turned into what Arrow takes.
    data_type: DataType | None = None


class KafkaRows(KafkaRecordDeserializationSchema):
    """Makes rows of records. One without a value, a tombstone, is none, unless records are upserts.

    Args:
        columns: Where each column is.
        value: Reads values.
        key: Reads keys, even if all columns are in the value; None if the table has no format for them.
        is_upsert: Whether a record replaces the one before it with the same key, and a tombstone deletes it.
    """

    def __init__(
        self,
        columns: Sequence[ColumnPlace],
        value: DeserializationSchema,
        key: DeserializationSchema | None = None,
        *,
        is_upsert: bool = False,
    ) -> None:
        self._columns = tuple(columns)
        self._value = value
        self._key = key
        self._is_upsert = is_upsert
        self._prepare()

    def _prepare(self) -> None:
        self._converters = [_converter(place.data_type) for place in self._columns]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_converters"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def deserialize(self, record: KafkaConsumerRecord) -> Sequence[Any]:
        """Return the row, or nothing; what cannot be read raises, unless parse errors are ignored.

        Raises:
            FormatError: Key or value cannot be read.
        """
        try:
            return self.parse(record)
        except FormatError:
            if not self.ignores_parse_errors:
                raise
            return self.parse_leniently(record)

    @property
    def ignores_parse_errors(self) -> bool:
        """Whether the format of the value ignores them, or that of the key."""
        return any(
            isinstance(each, FormatDeserializationSchema) and each.ignores_parse_errors
            for each in (self._value, self._key)
        )

    def parse(self, record: KafkaConsumerRecord) -> Sequence[Any]:
        """Return the row, or nothing.

        Raises:
            FormatError: Key or value cannot be read.
        """
        return self._rows(record, _strictly)

    def parse_leniently(self, record: KafkaConsumerRecord) -> Sequence[Any]:
        """Return the row with None for what cannot be read, or nothing.

        Raises:
            FormatError: Key or value cannot be read, and its format does not ignore that.
        """
        return self._rows(record, _leniently)

    def _rows(self, record: KafkaConsumerRecord, read: _Read) -> Sequence[Any]:
        key = None
        if self._key is not None and record.key is not None:
            key = read(self._key, record.key)
            if key is None:  # it cannot be read, and its format ignores that
                return ()
        if record.value is None:
            if not self._is_upsert or key is None:
                return ()
            return [Row.of_kind(RowKind.DELETE, *self._row(record, key, None, read))]
        value = read(self._value, record.value)
        if value is None:
            return ()
        if self._is_upsert:
            return [Row.of_kind(RowKind.UPDATE_AFTER, *self._row(record, key, value, read))]
        if getattr(self._value, "yields_many", False):
            return [Row.of_kind(each.get_row_kind(), *self._row(record, key, each, read)) for each in value]
        return [self._row(record, key, value, read)]

    def _row(self, record: KafkaConsumerRecord, key: Any, value: Any, read: _Read) -> tuple[Any, ...]:
        row = []
        for place, convert in zip(self._columns, self._converters, strict=True):
            try:
                found = _value_of(place, record, key, value)
                row.append(found if convert is None else convert(found))
            except (ValueError, OverflowError) as error:
                if read is _strictly:
                    raise FormatError(f"{place.part} {place.at}: {error}", example=record.value) from None
                row.append(None)
        return tuple(row)


#: Reads a key or a value with its format.
_Read = Callable[[DeserializationSchema, bytes], Any]


def _strictly(schema: DeserializationSchema, data: bytes) -> Any:
    return schema.parse(data) if isinstance(schema, FormatDeserializationSchema) else schema.deserialize(data)


def _leniently(schema: DeserializationSchema, data: bytes) -> Any:
    return schema.deserialize(data)


def _converter(data_type: DataType | None) -> Callable[[Any], Any] | None:
    """Return what brings the values of a column into the form and the range of its type."""
    if isinstance(data_type, DecimalType):
        return partial(_rounded, data_type)
    return None if data_type is None else arrow_converter(data_type)


def _rounded(data_type: DecimalType, value: Decimal | None) -> Decimal | None:
    """Return a number with the digits after the point that its type has, rounded as Flink does.

    Raises:
        ValueError: It has too many before the point.
    """
    if value is None:
        return None
    try:
        found = value.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP, _DIGITS)
    except InvalidOperation:
        found = None
    if found is None or (found and found.adjusted() >= data_type.precision - data_type.scale):
        raise ValueError(f"{value} does not fit {data_type.summary_without_null()}")
    return found


def _value_of(place: ColumnPlace, record: KafkaConsumerRecord, key: Any, value: Any) -> Any:
    if isinstance(place.at, str):
        return METADATA[place.at](record)
    row = key if place.part == "key" else value
    return None if row is None else row[place.at]


class TableRecords(KafkaRecordSerializationSchema):
    """Makes records of rows.

    Args:
        topics: The topic, or those among which the metadata column `topic` of a row chooses.
        value: Writes the value columns.
        value_columns: Their positions in the row.
        key: Writes the key columns; None writes no key.
        key_columns: Their positions.
        metadata: Positions of metadata columns, by key.
        is_upsert: Whether a row that is deleted is written as a tombstone: a key without a value.
        partitioner: Whether the key says to which partition a record goes, each subtask writes to one partition, or to
            one after the other.
    """

    def __init__(
        self,
        topics: TableTopics,
        value: SerializationSchema,
        value_columns: Sequence[int],
        key: SerializationSchema | None = None,
        key_columns: Sequence[int] = (),
        metadata: Mapping[str, int] | None = None,
        *,
        is_upsert: bool = False,
        partitioner: Partitioner = "default",
    ) -> None:
        super().__init__(topics.single, value, key_schema=key)
        self._topics = topics
        self._is_upsert = is_upsert
        self._partitioner_name = partitioner
        #: The partition of the next record, modulo their number.
        self._count = 0
        self._value = value
        self._value_columns = tuple(value_columns)
        self._key = key
        self._key_columns = tuple(key_columns)
        self._metadata = dict(metadata or {})

    def in_subtask(self, subtask: int, epoch: int) -> TableRecords:
        """Return a copy that begins with the partition of the subtask; round-robin, each epoch begins one further."""
        made = copy.copy(self)
        made._count = subtask + (epoch if self._partitioner_name == "round-robin" else 0)
        return made

    def to_record(
        self, element: Any, timestamp: int | None, partitions_of: Callable[[str], int]
    ) -> KafkaProducerRecord:
        """Return what is written for a row."""
        topic = self.topic or self._topics.checked(element[self._metadata["topic"]])
        key = None if self._key is None else self._key.serialize(_some(element, self._key_columns))
        value: bytes | None = None
        if not self._is_upsert or _kind(element) not in (RowKind.DELETE, RowKind.UPDATE_BEFORE):
            value = self._value.serialize(_some(element, self._value_columns))
        partition = None
        if self._partitioner_name != "default":
            partition = self._count % partitions_of(topic)
        if self._partitioner_name == "round-robin":
            self._count += 1
        at = element[self._metadata["timestamp"]] if "timestamp" in self._metadata else None
        headers = element[self._metadata["headers"]] if "headers" in self._metadata else None
        return KafkaProducerRecord(
            topic,
            value,
            key,
            partition,
            None if at is None else (at.replace(tzinfo=None) - _EPOCH) // _MILLISECOND,
            tuple(dict(headers or {}).items()),
        )


def _kind(row: Any) -> RowKind:
    return row.get_row_kind() if isinstance(row, Row) else RowKind.INSERT


def _some(row: Any, columns: Sequence[int]) -> Row:
    return Row.of_kind(_kind(row), *(row[column] for column in columns))
