"""Records of Kafka: how a source's become the job's, and the job's become a sink's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.serialization import DeserializationSchema, SerializationSchema
from headrace.common.typeinfo import TypeInformation, Types
from headrace.errors import JobDefinitionError

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class KafkaConsumerRecord:
    """A record of a partition, as Kafka returns it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    #: None is a tombstone.
    value: bytes | None
    #: Milliseconds since 1970; None if the record has none.
    timestamp: int | None
    headers: Headers = ()
    #: The term of the partition's leader that took the record; None if brokers do not say.
    leader_epoch: int | None = None
    #: Who has set the timestamp: `CreateTime` or `LogAppendTime`; `NoTimestampType` if there is none.
    timestamp_type: str = "NoTimestampType"


class KafkaRecordDeserializationSchema(ABC):
    """Makes records of the job from those of Kafka, key, headers and all. Subclass it.

    Example:
        >>> class KeyAndValue(KafkaRecordDeserializationSchema):
        ...     def deserialize(self, record):
        ...         return [(record.key, record.value)]
    """

    @abstractmethod
    def deserialize(self, record: KafkaConsumerRecord) -> Sequence[Any]:
        """Return what the record becomes: none, one or several.

        Raises:
            FormatError: The record cannot be read.
        """

    @property
    def ignores_parse_errors(self) -> bool:
        """Whether `parse_leniently` is asked what is left of a record that `parse` refuses."""
        return False

    def parse(self, record: KafkaConsumerRecord) -> Sequence[Any]:
        """Return what the record becomes, whether or not errors are ignored.

        Raises:
            FormatError: The record cannot be read.
        """
        return self.deserialize(record)

    def parse_leniently(self, record: KafkaConsumerRecord) -> Sequence[Any]:
        """Return what is left of a record that `parse` refused."""
        return ()

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the job's records."""
        return Types.PICKLED_BYTE_ARRAY()

    @staticmethod
    def value_only(deserialization_schema: DeserializationSchema) -> DeserializationSchema:
        """Return a schema that deserializes the value of a record and ignores its key and headers."""
        return deserialization_schema


@dataclass(frozen=True, slots=True)
class KafkaProducerRecord:
    """A record that is to be written."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    #: None leaves it to the key, and to chance if there is none.
    partition: int | None = None
    #: Milliseconds since 1970; None leaves it to the broker.
    timestamp: int | None = None
    headers: Headers = ()


class KafkaTopicSelector(ABC):
    """Says which topic a record goes to."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the name of the topic that the record is written to."""


#: (record, key, value, topic, number of partitions) -> partition.
Partitioner = Callable[[Any, bytes | None, bytes | None, str, int], int]
#: record -> headers, as a dictionary or as pairs.
HeaderProvider = Callable[[Any], Mapping[str, bytes | None] | Headers]


class KafkaRecordSerializationSchema(SerializationSchema):
    """Makes records of Kafka from those of the job. Use `builder()`, or subclass it and override `to_record`."""

    def __init__(
        self,
        topic: str | None = None,
        value_schema: SerializationSchema | None = None,
        *,
        topic_selector: Callable[[Any], str] | None = None,
        key_schema: SerializationSchema | None = None,
        partitioner: Partitioner | None = None,
        header_provider: HeaderProvider | None = None,
    ) -> None:
        self.topic = topic
        self._topic_selector = topic_selector
        self._key_schema = key_schema
        self._value_schema = value_schema
        self._partitioner = partitioner
        self._header_provider = header_provider

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begin without settings; a topic and a schema for values are needed."""
        return KafkaRecordSerializationSchemaBuilder()

    def in_subtask(self, subtask: int, epoch: int) -> KafkaRecordSerializationSchema:
        """Return the schema for records that a subtask writes in an epoch."""
        return self

    def to_record(
        self, element: Any, timestamp: int | None, partitions_of: Callable[[str], int]
    ) -> KafkaProducerRecord | None:
        """Return what is written for a record of the job; None writes nothing.

        Args:
            element: The record.
            timestamp: Its event time.
            partitions_of: Returns how many partitions a topic has; asked only if a partitioner needs it.
        """
        topic = self.topic if self._topic_selector is None else self._topic_selector(element)
        assert topic is not None
        assert self._value_schema is not None
        key = None if self._key_schema is None else self._key_schema.serialize(element)
        value = self._value_schema.serialize(element)
        partition = None
        if self._partitioner is not None:
            count = partitions_of(topic)
            partition = self._partitioner(element, key, value, topic, count)
            if not 0 <= partition < count:
                raise ValueError(
                    f"the partitioner chose partition {partition}, but topic {topic} has {count} partitions"
                )
        headers: Headers = ()
        if self._header_provider is not None:
            given = self._header_provider(element)
            headers = tuple(given.items() if isinstance(given, Mapping) else given)
        time = timestamp if timestamp is not None and timestamp >= 0 else None
        return KafkaProducerRecord(topic, value, key, partition, time, headers)


class KafkaRecordSerializationSchemaBuilder:
    """Builder for `KafkaRecordSerializationSchema`: topic, partitioner, key and value schemas."""

    def __init__(self) -> None:
        self._topic: str | None = None
        self._topic_selector: Callable[[Any], str] | None = None
        self._key_schema: SerializationSchema | None = None
        self._value_schema: SerializationSchema | None = None
        self._partitioner: Partitioner | None = None
        self._header_provider: HeaderProvider | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write everything to one topic."""
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the topic by the record."""
        is_selector = isinstance(topic_selector, KafkaTopicSelector)
        self._topic_selector = topic_selector.apply if is_selector else topic_selector  # type: ignore[union-attr, assignment]  # mypy does not follow
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Write a key, made of the record; records of the same key go to the same partition."""
        self._key_schema = key_serialization_schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Say how the value is written."""
        self._value_schema = value_serialization_schema
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the partition: `partitioner(record, key, value, topic, number of partitions)`."""
        self._partitioner = partitioner
        return self

    def set_header_provider(self, header_provider: HeaderProvider) -> KafkaRecordSerializationSchemaBuilder:
        """Write headers: `header_provider(record)` returns a dictionary, or pairs, of names and bytes."""
        self._header_provider = header_provider
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Make the schema.

        Raises:
            JobDefinitionError: There is no topic, or a topic and a selector; or no schema for values.
        """
        if (self._topic is None) == (self._topic_selector is None):
            raise JobDefinitionError(
                "KafkaRecordSerializationSchema: set a topic or a topic selector",
                hint="call set_topic(...) or set_topic_selector(...)",
            )
        if not isinstance(self._value_schema, SerializationSchema):
            raise JobDefinitionError(
                "KafkaRecordSerializationSchema: no schema for values is set",
                hint="call set_value_serialization_schema(...)",
            )
        return KafkaRecordSerializationSchema(
            self._topic,
            self._value_schema,
            topic_selector=self._topic_selector,
            key_schema=self._key_schema,
            partitioner=self._partitioner,
            header_provider=self._header_provider,
        )
