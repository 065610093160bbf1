"""Where reading of a partition begins, and where it ends: PyFlink's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from headrace.errors import JobDefinitionError


class KafkaOffsetResetStrategy(Enum):
    """What to do when an offset is not known, or no longer there."""

    LATEST = 0
    EARLIEST = 1
    #: Fail.
    NONE = 2


@dataclass(frozen=True)
class KafkaTopicPartition:
    """A partition of a topic.

    Example:
        >>> KafkaTopicPartition("clicks", 3) == KafkaTopicPartition("clicks", 3)
        True
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}"


Kind = Literal["earliest", "latest", "committed", "timestamp", "offsets"]


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Chooses the offset of each partition where reading starts or ends. Create one with its static methods.

    Example:
        >>> KafkaOffsetsInitializer.timestamp(1_600_000_000_000).kind
        'timestamp'
    """

    kind: Kind
    reset: KafkaOffsetResetStrategy
    timestamp_ms: int | None = None
    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Begin where the group has committed.

        Args:
            offset_reset_strategy: What to do with partitions that it has not.
        """
        return KafkaOffsetsInitializer("committed", _strategy(offset_reset_strategy))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Start at the first record of this time or later; at the end if no record is that late.

        Args:
            timestamp: Milliseconds since 1970.
        """
        if type(timestamp) is not int or timestamp < 0:
            raise JobDefinitionError(
                f"KafkaOffsetsInitializer.timestamp: expected milliseconds since 1970-01-01 UTC; got {timestamp!r}"
            )
        return KafkaOffsetsInitializer("timestamp", KafkaOffsetResetStrategy.LATEST, timestamp)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Begin with the first record that is there."""
        return KafkaOffsetsInitializer("earliest", KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Begin after the last record that is there."""
        return KafkaOffsetsInitializer("latest", KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Begin at given offsets.

        Args:
            offsets: Partition -> offset.
            offset_reset_strategy: What to do with partitions that are not named, and offsets that are not there.
        """
        for partition, offset in offsets.items():
            if type(partition) is not KafkaTopicPartition or type(offset) is not int or offset < 0:
                raise JobDefinitionError(
                    "KafkaOffsetsInitializer.offsets: expected a dict from KafkaTopicPartition to an offset;  "
                    f"got {partition!r}: {offset!r}"
                )
        return KafkaOffsetsInitializer(
            "offsets", _strategy(offset_reset_strategy), given=tuple(offsets.items())
        )


def _strategy(given: object) -> KafkaOffsetResetStrategy:
    if not isinstance(given, KafkaOffsetResetStrategy):
        raise JobDefinitionError(f"expected a KafkaOffsetResetStrategy; got {given!r}")
    return given
