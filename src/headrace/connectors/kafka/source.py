"""`KafkaSource`: topics as a stream, exactly once, even if epochs run again.

    driver   enumerator: which partitions are there, how far do they go -> a slice [start, end) of each, an epoch
    worker   reader: a consumer per partition, kept between epochs; reads the slice, prefetches the next

A slice names its offsets, so an epoch that runs again reads the same records. The job's own checkpoints say how far it
is; offsets are committed to Kafka besides, for whoever watches the group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.common.serialization import DeserializationSchema, produced_type_of
from headrace.common.typeinfo import TypeInformation
from headrace.connectors.base import Boundedness, Source, SourceReader, SplitEnumerator
from headrace.connectors.kafka._clients import make_client
from headrace.connectors.kafka._enumerator import KafkaEnumerator
from headrace.connectors.kafka._properties import (
    API_TIMEOUT,
    CLIENT_ID_PREFIX,
    COMMIT_ON_CHECKPOINT,
    DISCOVERY_INTERVAL,
    RESET,
    KafkaProperties,
    kafka_library,
)
from headrace.connectors.kafka._reader import KafkaReader
from headrace.connectors.kafka._settings import Deserializer, KafkaSourceSettings, Subscription
from headrace.connectors.kafka.offsets import (
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from headrace.connectors.kafka.records import KafkaRecordDeserializationSchema
from headrace.errors import ConfigurationError, JobDefinitionError, require


@dataclass(frozen=True)
class KafkaSource(KafkaSourceSettings, Source):
    """Reads topics. Build one with `KafkaSource.builder()`.

    Example:
        >>> from headrace.common.serialization import SimpleStringSchema
        >>> source = (
        ...     KafkaSource.builder()
        ...     .set_bootstrap_servers("localhost:9092")
        ...     .set_topics("clicks")
        ...     .set_group_id("counts")
        ...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        ...     .set_value_only_deserializer(SimpleStringSchema())
        ...     .build()
        ... )
        >>> source.boundedness
        <Boundedness.CONTINUOUS_UNBOUNDED: 'CONTINUOUS_UNBOUNDED'>
    """

    # Every partition has its part in every epoch, and its own watermark.
    concurrent_splits = None
    has_split_watermarks = True

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Begin without settings; servers, topics and a deserializer are needed."""
        return KafkaSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        """Bounded, if `set_bounded` was called."""
        return Boundedness.BOUNDED if self.ends else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Make the driver's half."""
        return KafkaEnumerator(self)

    def create_reader(self) -> SourceReader:
        """Make the worker's half."""
        return KafkaReader(self)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, which is that of the deserializer."""
        return produced_type_of(self.deserializer)


class KafkaSourceBuilder:
    """Collects the settings of a source."""

    def __init__(self) -> None:
        self._properties: dict[str, object] = {}
        self._subscriptions: list[Subscription] = []
        self._deserializer: Deserializer | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._ends = False
        self._dead_letter_tag: str | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Say where the brokers are: `host:port`, several with commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the group that offsets are committed for; it does not share partitions with other members."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read all partitions of topics."""
        self._subscriptions.append(Subscription(topics=tuple(topics)))
        return self

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all partitions of the topics whose whole name matches a regular expression."""
        try:
            re.compile(topic_pattern)
        except re.error as error:
            raise JobDefinitionError(
                f"KafkaSource: {topic_pattern!r} is not a regular expression: {error}"
            ) from None
        self._subscriptions.append(Subscription(pattern=topic_pattern))
        return self

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read only the given partitions; partitions added to their topics later are not read."""
        ordered = sorted(partitions, key=lambda each: (each.topic, each.partition))
        self._subscriptions.append(Subscription(partitions=tuple(ordered)))
        return self

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Set where to start if the job is not restored from a checkpoint; by default, at the earliest record."""
        self._starting = _initializer(starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop reading at offsets that are found when the job starts, in a job that counts as unbounded."""
        self._stopping, self._ends = _initializer(stopping_offsets_initializer), False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End at offsets that are found when the job starts."""
        self._stopping, self._ends = _initializer(stopping_offsets_initializer), True
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """Make records of values alone; tombstones are left out."""
        require(
            isinstance(deserialization_schema, DeserializationSchema),
            "KafkaSource",
            "a DeserializationSchema",
            deserialization_schema,
        )
        self._deserializer = deserialization_schema
        return self

    def set_deserializer(self, deserializer: Deserializer) -> KafkaSourceBuilder:
        """Make records of whole records of Kafka: key, headers, offset, time."""
        require(
            isinstance(deserializer, KafkaRecordDeserializationSchema | DeserializationSchema),
            "KafkaSource",
            "a KafkaRecordDeserializationSchema",
            deserializer,
        )
        self._deserializer = deserializer
        return self

    def set_dead_letter_tag(self, tag: Any) -> KafkaSourceBuilder:
        """Send records that cannot be read to a side output, as `DeadLetter`s. Not in Flink.

        Args:
            tag: An OutputTag; the stream's `get_side_output(tag)` has the dead letters.
        """
        name = getattr(tag, "tag_id", tag)
        require(isinstance(name, str) and bool(name), "KafkaSource", "an OutputTag", tag)
        self._dead_letter_tag = name
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set how clients call themselves."""
        return self.set_property(CLIENT_ID_PREFIX, prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Set a property of the clients."""
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Set properties of the clients."""
        self._properties.update(props)
        return self

    def build(self) -> KafkaSource:
        """Make the source.

        Raises:
            JobDefinitionError: Servers, topics or the deserializer are missing, or topics are named in two ways.
            ConfigurationError: A property is not known, or cannot be honoured.
            ConnectorError: confluent-kafka is not installed.
        """
        if not self._properties.get("bootstrap.servers"):
            raise JobDefinitionError(
                "KafkaSource: no bootstrap servers are set", hint="call set_bootstrap_servers(...)"
            )
        if len(self._subscriptions) != 1 or self._subscriptions[0] == Subscription():
            raise JobDefinitionError(
                "KafkaSource: set the topics in exactly one way",
                hint="call one of set_topics(...), set_topic_pattern(...) and set_partitions(...), once",
            )
        if self._deserializer is None:
            raise JobDefinitionError(
                "KafkaSource: no deserializer is set",
                hint="call set_value_only_deserializer(...) or set_deserializer(...)",
            )
        properties = KafkaProperties.of(self._properties, "KafkaSource")
        needs_group = "committed" in (self._starting.kind, self._stopping.kind if self._stopping else "")
        if needs_group and properties.get("group.id") is None:
            raise JobDefinitionError(
                "KafkaSource: committed offsets belong to a consumer group, and no group id is set",
                hint="call set_group_id(...)",
            )
        source = KafkaSource(
            *(
                self._subscriptions[0],
                properties,
                self._deserializer,
                self._starting,
                self._stopping,
                self._ends,
            ),
            dead_letter_tag=self._dead_letter_tag,
        )
        _check_properties(source)
        return source


def _initializer(given: Any) -> KafkaOffsetsInitializer:
    require(isinstance(given, KafkaOffsetsInitializer), "KafkaSource", "a KafkaOffsetsInitializer", given)
    checked: KafkaOffsetsInitializer = given
    return checked


def _check_properties(source: KafkaSource) -> None:
    """Fail now, not in a worker: see whether a client takes the properties. It does not connect."""
    properties = source.properties
    for name in (DISCOVERY_INTERVAL, API_TIMEOUT):
        _check(properties, name, lambda text: int(text) >= -1, "milliseconds")
    _check(properties, RESET, lambda text: text in ("earliest", "latest", "none"), "earliest, latest or none")
    _check(properties, COMMIT_ON_CHECKPOINT, lambda text: text in ("true", "false"), "true or false")
    client, _ = make_client(kafka_library().Consumer, source.consumer_config(), properties, "KafkaSource")
    client.close()


def _check(properties: KafkaProperties, name: str, is_right: Callable[[str], bool], expected: str) -> None:
    value = properties.get(name)
    try:
        if value is None or is_right(value):
            return
    except ValueError:
        pass
    raise ConfigurationError(f"KafkaSource: {name} must be {expected}; got {value!r}")
