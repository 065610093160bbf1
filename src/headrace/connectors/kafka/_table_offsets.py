"""Where the tables of Kafka begin and end to be read: `scan.startup.*` and `scan.bounded.*`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from headrace.config.table_options import TableOptions
from headrace.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from headrace.connectors.kafka._table_topics import TableTopics
from headrace.errors import SqlValidationError

__all__ = ["offsets_of"]

#: The modes, and the default.
_MODES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "startup": (
        ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
        "group-offsets",
    ),
    "bounded": (
        ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
        "unbounded",
    ),
}
_WITHOUT_GROUP: Final[Mapping[str, str]] = {"startup": "earliest-offset", "bounded": "latest-offset"}


def offsets_of(
    options: TableOptions,
    which: Literal["startup", "bounded"],
    topics: TableTopics,
    properties: dict[str, str],
) -> KafkaOffsetsInitializer | None:
    """Return the offsets of ``scan.startup.mode`` or ``scan.bounded.mode``; None if the table is unbounded."""
    key = f"scan.{which}.mode"
    match options.choice(key, *_MODES[which]):
        case "unbounded":
            return None
        case "earliest-offset":
            return KafkaOffsetsInitializer.earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            if "group.id" not in properties:
                raise SqlValidationError(
                    f"table {options.table!r}: {key!r} is 'group-offsets', which needs 'properties.group.id'",
                    hint=f"or set {key!r} = {_WITHOUT_GROUP[which]!r}",
                )
            reset = properties.get("auto.offset.reset", "none").upper()
            if reset not in KafkaOffsetResetStrategy.__members__:
                raise options.wrong("properties.auto.offset.reset", "earliest, latest or none")
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[reset])
        case "timestamp":
            options.required(f"scan.{which}.timestamp-millis")
            return KafkaOffsetsInitializer.timestamp(options.integer(f"scan.{which}.timestamp-millis") or 0)
    if topics.single is None:
        raise SqlValidationError(
            f"table {options.table!r}: {key!r} is 'specific-offsets', which is possible with one 'topic' only"
        )
    return KafkaOffsetsInitializer.offsets(_offsets(options, which, topics.single))


def _offsets(options: TableOptions, which: str, topic: str) -> dict[KafkaTopicPartition, int]:
    """Parse start offsets such as ``partition:0,offset:42;partition:1,offset:300``."""
    key = f"scan.{which}.specific-offsets"
    found = {}
    for pair in options.required(key).strip("; ").split(";"):
        parts = dict(part.strip().partition(":")[::2] for part in pair.split(","))
        try:
            found[KafkaTopicPartition(topic, int(parts["partition"]))] = int(parts["offset"])
        except (KeyError, ValueError):
            raise options.wrong(
                key, "partitions with offsets such as 'partition:0,offset:42;partition:1,offset:300'"
            ) from None
    return found
