"""The settings of a Kafka source: frozen, shipped to workers, shared by enumerator and reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.common.serialization import DeserializationSchema
from headrace.connectors.base import SourceSplit
from headrace.connectors.kafka._properties import (
    CLIENT_ID_PREFIX,
    COMMIT_ON_CHECKPOINT,
    DISCOVERY_INTERVAL,
    RESET,
    KafkaProperties,
)
from headrace.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from headrace.connectors.kafka.records import KafkaRecordDeserializationSchema

Deserializer = DeserializationSchema | KafkaRecordDeserializationSchema


@dataclass(frozen=True)
class KafkaPartitionSplit(SourceSplit):
    """A partition, up to an offset if the source is to end there."""

    topic: str
    partition: int
    stop: int | None = None

    @staticmethod
    def of(partition: KafkaTopicPartition, stop: int | None = None) -> KafkaPartitionSplit:
        """Make the split of a partition."""
        split_id = f"{partition.topic}-{partition.partition}"
        return KafkaPartitionSplit(split_id, partition.topic, partition.partition, stop)

    @property
    def topic_partition(self) -> KafkaTopicPartition:
        return KafkaTopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class Subscription:
    """Which partitions are read: those of topics, of topics that a pattern matches, or given ones."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern!r}"
        return ", ".join(self.topics) or ", ".join(map(str, self.partitions))


@dataclass(frozen=True)
class KafkaSourceSettings:
    """Everything the builder has collected."""

    subscription: Subscription
    properties: KafkaProperties
    deserializer: Deserializer
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None = None
    ends: bool = False
    dead_letter_tag: str | None = None

    @property
    def group_id(self) -> str | None:
        """The group that offsets are committed for; None: they are not committed."""
        return self.properties.get("group.id")

    @property
    def commits_offsets(self) -> bool:
        """Whether offsets are committed with checkpoints."""
        return self.group_id is not None and self.properties.get(COMMIT_ON_CHECKPOINT) != "false"

    @property
    def discovery_interval_s(self) -> float | None:
        """Seconds between two looks for new partitions; None: no second one."""
        if self.stopping is not None:
            return None
        interval = int(self.properties.get(DISCOVERY_INTERVAL) or 300_000) / 1000
        return interval if interval > 0 else None

    @property
    def reset(self) -> KafkaOffsetResetStrategy:
        """What to do about offsets that are not there any more."""
        given = self.properties.get(RESET)
        return self.starting.reset if given is None else KafkaOffsetResetStrategy[given.upper()]

    def consumer_config(self) -> dict[str, Any]:
        """Return what consumers are made with, in the driver and in workers."""
        prefix = self.properties.get(CLIENT_ID_PREFIX)
        config = self.properties.client_config(
            # librdkafka wants a group even where none is used.
            group_id="headrace",
            # As Java's client, which programs come from.
            isolation_level="read_uncommitted",
            # What one consumer may read ahead; there may be one for each partition.
            queued_max_messages_kbytes=16_384,
            fetch_queue_backoff_ms=10,
            # Where a partition ends with a transaction's marker, an epoch waits this long to hear of it.
            fetch_wait_max_ms=100,
            **({} if prefix is None else {"client_id": f"{prefix}-headrace"}),
        )
        return config | {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
