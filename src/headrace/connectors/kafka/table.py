"""Records of Kafka as rows of a table, and back: columns are parts of the value, of the key, or metadata.

topic, partition, offset, timestamp, headers | key: bytes -> row | value: bytes -> row
                 metadata columns              key columns         value columns
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from headrace.common.serialization import DeserializationSchema, SerializationSchema
from headrace.common.types import Row
from headrace.connectors.file._columns import arrow_converter
from headrace.connectors.kafka.records import (
    KafkaConsumerRecord,
    KafkaProducerRecord,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
)
from headrace.types import DataType

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of no zone, as all timestamps in rows
_MILLISECOND = datetime.timedelta(milliseconds=1)


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
}
#: Those that can be written.
WRITABLE_METADATA: Final = ("timestamp", "headers")


@dataclass(frozen=True)
class ColumnPlace:
    """Where a column is: a field of the key or the value, or metadata."""

    part: Literal["key", "value", "metadata"]
    #: The number of the field, or the key of the metadata.
    at: int | str
    #: Of a field: rows and maps within it are turned into what Arrow takes.
    data_type: DataType | None = None


class TableRows(KafkaRecordDeserializationSchema):
    """Makes rows of records. One without a value, a tombstone, is none.

    Args:
        columns: Where each column is.
        value: Reads values.
        key: Reads keys; None if no column is in them.
    """

    def __init__(
        self,
        columns: Sequence[ColumnPlace],
        value: DeserializationSchema,
        key: DeserializationSchema | None = None,
    ) -> None:
        self._columns = tuple(columns)
        self._value = value
        self._key = key
        self._prepare()

    def _prepare(self) -> None:
        self._converters = [
            None if place.data_type is None else arrow_converter(place.data_type) for place in self._columns
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_converters"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def deserialize(self, record: KafkaConsumerRecord) -> Sequence[tuple[Any, ...]]:
        """Return the row, or nothing.

        Raises:
            FormatError: Key or value cannot be read.
        """
        if record.value is None:
            return ()
        value = self._value.deserialize(record.value)
        if value is None:
            return ()
        key = None if self._key is None or record.key is None else self._key.deserialize(record.key)
        found = (_value_of(place, record, key, value) for place in self._columns)
        return [
            tuple(
                each if convert is None else convert(each)
                for each, convert in zip(found, self._converters, strict=True)
            )
        ]


def _value_of(place: ColumnPlace, record: KafkaConsumerRecord, key: Any, value: Any) -> Any:
    if isinstance(place.at, str):
        return METADATA[place.at](record)
    row = key if place.part == "key" else value
    return None if row is None else row[place.at]


class TableRecords(KafkaRecordSerializationSchema):
    """Makes records of rows.

    Args:
        topic: The topic.
        value: Writes the value columns.
        value_columns: Their positions in the row.
        key: Writes the key columns; None writes no key.
        key_columns: Their positions.
        metadata: Positions of metadata columns, by key.
    """

    def __init__(
        self,
        topic: str,
        value: SerializationSchema,
        value_columns: Sequence[int],
        key: SerializationSchema | None = None,
        key_columns: Sequence[int] = (),
        metadata: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(topic, value, key_schema=key)
        self._value = value
        self._value_columns = tuple(value_columns)
        self._key = key
        self._key_columns = tuple(key_columns)
        self._metadata = dict(metadata or {})

    def to_record(
        self, element: Any, timestamp: int | None, partitions_of: Callable[[str], int]
    ) -> KafkaProducerRecord:
        """Return what is written for a row."""
        assert self.topic is not None
        key = None if self._key is None else self._key.serialize(_some(element, self._key_columns))
        value = self._value.serialize(_some(element, self._value_columns))
        at = element[self._metadata["timestamp"]] if "timestamp" in self._metadata else None
        headers = element[self._metadata["headers"]] if "headers" in self._metadata else None
        return KafkaProducerRecord(
            self.topic,
            value,
            key,
            None,
            None if at is None else (at.replace(tzinfo=None) - _EPOCH) // _MILLISECOND,
            tuple(dict(headers or {}).items()),
        )


def _some(row: Any, columns: Sequence[int]) -> Row:
    return Row(*(row[column] for column in columns))
