"""`KafkaSink`: records into topics.

    none, at-least-once   the worker writes as records come, and waits for the brokers at the end of the epoch
    exactly-once          the worker stages records; after the checkpoint, each subtask's are written in a transaction

How and by whom: `_publisher`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.connectors.base import (
    BatchSinkWriter,
    Committer,
    CommitterContext,
    DeliveryGuarantee,
    SinkWriter,
    WriterContext,
)
from headrace.connectors.kafka._clients import Trouble, failure, make_client
from headrace.connectors.kafka._properties import KafkaProperties, kafka_library
from headrace.connectors.kafka._publisher import KafkaPublisher
from headrace.connectors.kafka._reducing import FlushMode, ReducingWriter
from headrace.connectors.kafka._transactions import Staged, _produce_one
from headrace.connectors.kafka.records import KafkaRecordSerializationSchema
from headrace.connectors.write_ahead import Publisher, WriteAheadSink
from headrace.elements import Batch
from headrace.errors import ConnectorError, HeadraceError, JobDefinitionError, UserFunctionError, require

_WHO = "KafkaSink"
_METADATA_S = 20.0
#: Transactions longer than this are given up by the brokers. They refuse more than their transaction.max.timeout.ms,
#: which is 15 minutes unless it was changed.
_TRANSACTION_MS = 600_000

#: The producers of this process. By process, too: a forked one must not use its parent's.
_producers: dict[tuple[int, KafkaProperties], _Producer] = {}


@dataclass(frozen=True)
class KafkaSink(WriteAheadSink):
    """Writes records to topics. Build one with `KafkaSink.builder()`.

    Example:
        >>> from headrace.common.serialization import SimpleStringSchema
        >>> serializer = (
        ...     KafkaRecordSerializationSchema.builder()
        ...     .set_topic("counts")
        ...     .set_value_serialization_schema(SimpleStringSchema())
        ...     .build()
        ... )
        >>> sink = (
        ...     KafkaSink.builder()
        ...     .set_bootstrap_servers("localhost:9092")
        ...     .set_record_serializer(serializer)
        ...     .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        ...     .build()
        ... )
    """

    serializer: KafkaRecordSerializationSchema
    properties: KafkaProperties
    guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    transactional_id_prefix: str | None = None
    #: Set: writers keep the last row of each key and write it later.
    flush_mode: FlushMode | None = None

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begin without settings; servers and a record serializer are needed."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> None:
        """Rows need no preparation: the serializer asks for the topic of each record itself."""

    @property
    def delivery_guarantee(self) -> DeliveryGuarantee:
        """What was asked for."""
        return self.guarantee

    @property
    def waits_for_barriers(self) -> bool:
        """Records leave by themselves, unless they are of a transaction or wait in a buffer."""
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE or self.flush_mode is not None

    def producer_config(self) -> dict[str, Any]:
        """Return what producers are made with."""
        is_exact = self.guarantee is DeliveryGuarantee.EXACTLY_ONCE
        # As Java's client: writing twice is prevented, unless the user wants fewer acknowledgements than that takes.
        is_idempotent = self.properties.get("acks") in (None, "all", "-1")
        config = self.properties.client_config(
            # Keys go where Java's client sends them.
            partitioner="murmur2_random",
            linger_ms=20,
            # How long a topic may be unknown before it counts as missing.
            topic_metadata_propagation_max_ms=5_000,
            **(
                {"transaction_timeout_ms": _TRANSACTION_MS}
                if is_exact
                else {"enable_idempotence": is_idempotent}
            ),
        )
        return config | {"delivery.report.only.error": True}

    def convert_batch(self, batch: Batch) -> list[Staged]:
        """Make Kafka's records, in the worker."""
        return list(_serialized(self, batch, lambda topic: _producer_for(self).partitions_of(topic)))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Make the worker's half."""
        sink = replace(self, serializer=self.serializer.in_subtask(context.subtask, context.epoch))
        is_exact = self.guarantee is DeliveryGuarantee.EXACTLY_ONCE
        writer = super(KafkaSink, sink).create_writer(context) if is_exact else _ProducingWriter(sink)
        return writer if self.flush_mode is None else ReducingWriter(writer, self.flush_mode)

    def create_committer(self, context: CommitterContext | None = None) -> Committer | None:  # type: ignore[override]  # none, where workers publish
        """Make the driver's half, if it publishes."""
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return super().create_committer(context)
        return None

    def create_publisher(self, context: CommitterContext) -> Publisher:
        """Make what writes transactions."""
        return KafkaPublisher(
            self.properties,
            self.producer_config(),
            id_prefix=f"{self.transactional_id_prefix}-{context.sink_id or 'sink'}",
            topic=self.serializer.topic,
            run_in_workers=context.run_in_workers,
        )


class KafkaSinkBuilder:
    """Collects the settings of a sink."""

    def __init__(self) -> None:
        self._properties: dict[str, object] = {}
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Say where the brokers are: `host:port`, several with commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Say what is promised of each record; `NONE` by default."""
        require(
            isinstance(delivery_guarantee, DeliveryGuarantee),
            "KafkaSink",
            "a DeliveryGuarantee",
            delivery_guarantee,
        )
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set what the ids of transactions begin with; no other job may use the same."""
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Say how records are written, and to which topic."""
        require(
            isinstance(record_serializer, KafkaRecordSerializationSchema),
            "KafkaSink",
            "a KafkaRecordSerializationSchema",
            record_serializer,
            hint="KafkaRecordSerializationSchema.builder()",
        )
        self._serializer = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of the producers."""
        self._properties[key] = value
        return self

    def build(self) -> KafkaSink:
        """Make the sink.

        Raises:
            JobDefinitionError: Servers or the serializer are missing, or the prefix that exactly-once needs.
            ConfigurationError: A property is not known, or cannot be honoured.
            ConnectorError: confluent-kafka is not installed.
        """
        if not self._properties.get("bootstrap.servers"):
            raise JobDefinitionError(
                "KafkaSink: no bootstrap servers are set", hint="call set_bootstrap_servers(...)"
            )
        if self._serializer is None:
            raise JobDefinitionError(
                "KafkaSink: no record serializer is set", hint="call set_record_serializer(...)"
            )
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and not self._prefix:
            raise JobDefinitionError(
                "KafkaSink: EXACTLY_ONCE needs a transactional id prefix",
                hint="call set_transactional_id_prefix(...) with a prefix that no other job uses",
            )
        properties = KafkaProperties.of(self._properties, _WHO)
        sink = KafkaSink(self._serializer, properties, self._guarantee, self._prefix)
        # Fail now, not in a worker: see whether a client takes the properties. It does not connect.
        make_client(kafka_library().Producer, sink.producer_config(), properties, _WHO)
        return sink


def _serialized(sink: KafkaSink, batch: Batch, partitions_of: Callable[[str], int]) -> Any:
    serializer = sink.serializer
    timestamps = batch.timestamps or [None] * len(batch)
    for value, timestamp in zip(batch.values, timestamps, strict=True):
        try:
            record = serializer.to_record(value, timestamp, partitions_of)
        except HeadraceError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        if record is not None:
            yield (record.topic, record.partition, record.key, record.value, record.timestamp, record.headers)


# --- none, at least once ------------------------------------------------------------------------------


class _ProducingWriter(BatchSinkWriter):
    """Writes at once; the end of the epoch waits until the brokers have everything."""

    def __init__(self, sink: KafkaSink) -> None:
        self._sink = sink
        self._producer = _producer_for(sink)

    def write_batch(self, batch: Batch) -> None:
        producer = self._producer
        for record in _serialized(self._sink, batch, producer.partitions_of):
            producer.produce(record)
        producer.check()

    def prepare_commit(self) -> Sequence[Any]:
        self._producer.flush()
        return ()

    def abort(self) -> None:
        """What was sent is sent: it comes again."""
        self._producer.forget_errors()


class _Producer:
    """A producer that a process keeps between epochs."""

    def __init__(self, sink: KafkaSink) -> None:
        self._properties = sink.properties
        #: The first delivery that failed since this was last looked at.
        self._failed: tuple[Any, str] | None = None
        self._partitions: dict[str, int] = {}
        library = kafka_library()
        config = sink.producer_config() | {"on_delivery": self._delivered}
        self._trouble: Trouble
        self._client, self._trouble = make_client(library.Producer, config, sink.properties, _WHO)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._failed is None:
            self._failed = (error, message.topic())

    def produce(self, record: Staged) -> None:
        try:
            _produce_one(self._client, record)
        except kafka_library().KafkaException as error:
            what = f"writing to topic {record[0]}"
            self._retire()
            raise failure(_WHO, what, error.args[0], self._properties, self._trouble) from None

    def check(self) -> None:
        """Serve callbacks, and raise what went wrong with a delivery."""
        self._client.poll(0)
        if self._failed is not None:
            (error, topic), self._failed = self._failed, None
            self._retire()
            raise failure(_WHO, f"writing to topic {topic}", error, self._properties, self._trouble)

    def flush(self) -> None:
        """Wait until the brokers have everything."""
        deadline = time.monotonic() + self._properties.api_timeout_s
        while waiting := self._client.flush(1.0):
            self.check()
            if time.monotonic() > deadline:
                self._retire()
                what = f"writing {waiting} records"
                raise failure(_WHO, what, None, self._properties, self._trouble)
        self.check()

    def forget_errors(self) -> None:
        self._client.poll(0)
        self._failed = None

    def _retire(self) -> None:
        """Have the next writer begin with a new one: a producer may be past repair, and what waits in it is old."""
        self._client.purge()
        for key in [key for key, producer in _producers.items() if producer is self]:
            del _producers[key]

    def partitions_of(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        if topic not in self._partitions:
            try:
                metadata = self._client.list_topics(topic, _METADATA_S).topics[topic]
            except kafka_library().KafkaException as error:
                what = f"looking up topic {topic}"
                raise failure(_WHO, what, error.args[0], self._properties, self._trouble) from None
            if metadata.error is not None:
                raise failure(_WHO, f"looking up topic {topic}", metadata.error, self._properties)
            self._partitions[topic] = len(metadata.partitions)
        return self._partitions[topic]


def _producer_for(sink: KafkaSink) -> _Producer:
    """Return the producer of this process for these properties."""
    key = (os.getpid(), sink.properties)
    producer = _producers.get(key)
    if producer is None:
        for old in [each for each in _producers if each[0] != key[0]]:
            del _producers[old]
        producer = _producers[key] = _Producer(sink)
    return producer


def close_producers() -> None:
    """Close the producers of this process."""
    while _producers:
        _, producer = _producers.popitem()
        try:
            producer.flush()
        except ConnectorError:
            continue
