"""The worker's half of a Kafka source: reads slices, with consumers that are kept between epochs.

    partition   ... 41 42 43 | 44 45 46 47 | 48 49 ...
                             ^start        ^end
    consumer    delivers 44 45 46 47, and has 48 49 ... read ahead for the next epoch

Offsets have gaps: transaction markers, aborted and compacted records. A slice is over when its last offset came, or a
record after it, or word that the partition ends there.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, Final, cast

from headrace.connectors.base import BATCH_RECORDS, ReaderContext, Slice, SourceReader, SplitProgress
from headrace.connectors.kafka._clients import failure, is_refusal, make_client
from headrace.connectors.kafka._enumerator import PartitionFacts
from headrace.connectors.kafka._properties import kafka_library
from headrace.connectors.kafka._settings import KafkaPartitionSplit, KafkaSourceSettings
from headrace.connectors.kafka.offsets import KafkaTopicPartition
from headrace.connectors.kafka.records import KafkaConsumerRecord, KafkaRecordDeserializationSchema
from headrace.elements import Batch
from headrace.errors import ConnectorError
from headrace.formats.base import FormatDeserializationSchema
from headrace.formats.dead_letter import ERRORS_METRIC, RecordDecoder
from headrace.metrics.metricbase import MetricGroup

_WHO = "KafkaSource"
#: Consumers that a reader keeps; with more partitions they take turns.
_MOST_CONSUMERS = 16
_POLL_S = 1.0


class KafkaReader(SourceReader):
    """Reads a slice of a partition, from one offset up to another."""

    def __init__(self, source: KafkaSourceSettings) -> None:
        self._source = source
        self._consumers: OrderedDict[KafkaTopicPartition, PartitionConsumer] = OrderedDict()
        self._progress = SplitProgress(0, is_finished=False)
        self._lend(ReaderContext())

    def open(self, context: ReaderContext) -> None:
        self._lend(context)

    def _lend(self, context: ReaderContext) -> None:
        tag = self._source.dead_letter_tag
        emit = None if tag is None else lambda letter: context.emit_side(tag, letter)
        self._decoder = _decoder_for(self._source, context.metrics, emit)
        self._gauges = LagGauges(context.metrics)

    def read(self, piece: Slice) -> Iterator[Batch]:
        split = cast(KafkaPartitionSplit, piece.split)
        partition = split.topic_partition
        end = piece.end if piece.max_records is None else min(piece.end, piece.start + piece.max_records)
        if end > piece.start:
            for messages in self._consumer_for(partition).read(piece.start, end):
                batch = self._decoder.decode(messages, partition)
                if batch:
                    yield batch
        self._gauges.note(partition, end, piece.payload)
        self._progress = SplitProgress(end, is_finished=split.stop is not None and end >= split.stop)

    def progress(self) -> SplitProgress:
        return self._progress

    def close(self) -> None:
        while self._consumers:
            self._consumers.popitem()[1].close()

    def _consumer_for(self, partition: KafkaTopicPartition) -> PartitionConsumer:
        """Return the consumer that has the partition, or the one that was not used for longest."""
        consumer = self._consumers.pop(partition, None)
        if consumer is None:
            if len(self._consumers) < _MOST_CONSUMERS:
                consumer = PartitionConsumer(self._source)
            else:
                consumer = self._consumers.popitem(last=False)[1]
            consumer.take(partition)
        self._consumers[partition] = consumer
        return consumer


class PartitionConsumer:
    """A consumer that reads one partition at a time."""

    def __init__(self, source: KafkaSourceSettings) -> None:
        self._properties = source.properties
        self._library = kafka_library()
        self._client, self._trouble = make_client(
            self._library.Consumer, source.consumer_config(), source.properties, _WHO
        )
        self._partition = KafkaTopicPartition("", -1)
        #: Where the consumer stands: what it delivers next, but for what waits.
        self._position: int | None = None
        #: Records that were delivered and belong to a later slice.
        self._waiting: deque[Any] = deque()
        #: How far the partition is known to go.
        self._end_seen = -1

    def take(self, partition: KafkaTopicPartition) -> None:
        """Read this partition from now on."""
        self._partition, self._position = partition, None

    def read(self, start: int, end: int) -> Iterator[list[Any]]:
        """Yield the records from one offset up to, not including, another.

        Raises:
            ConnectorError: They cannot be had.
        """
        if self._position != start:
            self._go_to(start)
        position = start
        try:
            while position < end:
                messages = self._take_waiting(end)
                if not messages:
                    if self._waiting or self._end_seen >= end:
                        break
                    messages = self._fetch(position, end)
                if messages:
                    position = messages[-1].offset() + 1
                    yield messages
        except BaseException:
            self._position = None  # whatever has been delivered meanwhile, begin again
            raise
        # The offsets up to the end may be gaps; there is nothing in them to be read.
        self._position = end

    def _go_to(self, offset: int) -> None:
        self._waiting.clear()
        self._end_seen = -1
        self._position = None
        here = self._library.TopicPartition(self._partition.topic, self._partition.partition, offset)
        try:
            self._client.assign([here])
        except self._library.KafkaException as error:
            raise self._failure(error.args[0], offset) from None

    def _take_waiting(self, end: int) -> list[Any]:
        taken = []
        while self._waiting and self._waiting[0].offset() < end:
            taken.append(self._waiting.popleft())
        return taken

    def _fetch(self, position: int, end: int) -> list[Any]:
        """Wait for records of the slice and return those that are there; none if it turns out to be over."""
        deadline = time.monotonic() + self._properties.api_timeout_s
        while time.monotonic() < deadline:
            messages = self._client.consume(min(BATCH_RECORDS, end - position), 0)
            if not messages:
                message = self._client.poll(_POLL_S)
                messages = [] if message is None else [message]
            records = self._sorted_out(messages, position, end)
            if records or self._waiting or self._end_seen >= end:
                return records
        raise self._failure(None, position)

    def _sorted_out(self, messages: list[Any], position: int, end: int) -> list[Any]:
        """Keep records of the slice; put by those after it, and heed what is not a record."""
        errors = self._library.KafkaError
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                if message.offset() < end:
                    records.append(message)
                else:
                    self._waiting.append(message)
            elif error.code() == errors._PARTITION_EOF:
                self._end_seen = max(self._end_seen, message.offset())
            elif error.code() == errors._AUTO_OFFSET_RESET:
                raise ConnectorError(
                    f"{_WHO}: {self._partition}: offset {position} no longer exists",
                    hint="the topic's retention deleted records before they were read; when the job restarts, "
                    "auto.offset.reset decides where it continues",
                )
            elif is_refusal(problem := self._failure(error, position)):
                raise problem
            else:
                self._trouble.note(
                    error
                )  # the client tries again by itself, and so do we until it takes too long
        return records

    def _failure(self, error: Any, position: int) -> ConnectorError:
        what = f"reading {self._partition}, offset {position}"
        return failure(_WHO, what, error, self._properties, self._trouble, was_there=True)

    def close(self) -> None:
        self._client.close()


# --- messages -> records ------------------------------------------------------------------------------


class _MessageDecoder:
    """Makes the job's records of values."""

    def __init__(self, decoder: RecordDecoder) -> None:
        self._decoder = decoder

    def decode(self, messages: list[Any], partition: KafkaTopicPartition) -> Batch:
        return self._decoder.decode(
            [message.value() for message in messages],
            _timestamps(messages),
            position_of=lambda index: f"{partition}, offset {messages[index].offset()}",
        )


class _WholeRecordDecoder:
    """Makes the job's records of whole records of Kafka."""

    def __init__(self, decoder: RecordDecoder) -> None:
        self._decoder = decoder

    def decode(self, messages: list[Any], partition: KafkaTopicPartition) -> Batch:
        timestamps = _timestamps(messages)
        records = [_consumer_record(each, at) for each, at in zip(messages, timestamps, strict=True)]
        return self._decoder.decode(
            records,
            timestamps,
            position_of=lambda index: f"{partition}, offset {messages[index].offset()}",
        )


class _WholeRecords(FormatDeserializationSchema):
    """A record schema in the shape of a format, which a decoder can use."""

    yields_many = True

    def __init__(self, schema: KafkaRecordDeserializationSchema) -> None:
        super().__init__(schema.get_produced_type(), ignore_parse_errors=schema.ignores_parse_errors)
        self._schema = schema

    def parse(self, message: Any) -> list[Any]:
        return list(self._schema.parse(message))

    def parse_leniently(self, message: Any) -> list[Any]:
        return list(self._schema.parse_leniently(message))


def _decoder_for(
    source: KafkaSourceSettings, metrics: MetricGroup, emit: Any
) -> _MessageDecoder | _WholeRecordDecoder:
    errors = metrics.counter(ERRORS_METRIC)
    schema = source.deserializer
    if isinstance(schema, KafkaRecordDeserializationSchema):
        decoder = RecordDecoder(
            _WholeRecords(schema),
            errors=errors,
            emit_dead_letter=emit,
            data_of=lambda record: record.value or b"",
        )
        return _WholeRecordDecoder(decoder)
    return _MessageDecoder(RecordDecoder(schema, errors=errors, emit_dead_letter=emit))


#: By librdkafka's numbers.
_TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")


def _timestamps(messages: list[Any]) -> list[int | None]:
    return [at if kind else None for kind, at in (message.timestamp() for message in messages)]


def _consumer_record(message: Any, timestamp: int | None) -> KafkaConsumerRecord:
    return KafkaConsumerRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        timestamp,
        tuple(message.headers() or ()),
        message.leader_epoch(),
        _TIMESTAMP_TYPES[message.timestamp()[0]],
    )


# --- metrics ------------------------------------------------------------------------------------------


class LagGauges:
    """How far reading is, under Flink's names."""

    def __init__(self, metrics: MetricGroup) -> None:
        self._metrics = metrics
        self._own = metrics.add_group("KafkaSourceReader")
        #: What is left to be read of each partition, as the driver has seen it.
        self._pending: dict[KafkaTopicPartition, int] = {}
        self._positions: dict[KafkaTopicPartition, int] = {}
        self._facts: dict[KafkaTopicPartition, PartitionFacts] = {}
        metrics.gauge("pendingRecords", lambda: sum(self._pending.values()))
        self._own.add_group("KafkaConsumer").gauge(
            "records-lag-max", lambda: max(self._pending.values(), default=0)
        )
        self._own.gauge("commitsSucceeded", lambda: self._commits("commits_succeeded"))
        self._own.gauge("commitsFailed", lambda: self._commits("commits_failed"))

    def note(self, partition: KafkaTopicPartition, position: int, facts: PartitionFacts | None) -> None:
        """A slice was read up to here."""
        if partition not in self._positions:
            group = self._own.add_group("topic", partition.topic).add_group(
                "partition", str(partition.partition)
            )
            group.gauge("currentOffset", lambda: self._positions[partition] - 1)
            group.gauge("committedOffset", lambda: self._committed(partition))
        self._positions[partition] = position
        if facts is not None:
            self._facts[partition] = facts
            self._pending[partition] = max(0, facts.log_end - position)

    def _committed(self, partition: KafkaTopicPartition) -> int:
        facts = self._facts.get(partition)
        # Flink shows -1 while nothing is committed.
        return -1 if facts is None or facts.committed is None else facts.committed

    def _commits(self, name: str) -> int:
        return max((getattr(facts, name) for facts in self._facts.values()), default=0)
