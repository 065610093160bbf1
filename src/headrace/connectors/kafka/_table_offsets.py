"""Where the tables of Kafka begin and end to be read: `scan.startup.*` and `scan.bounded.*`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.config.table_options import TableOptions
from headrace.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from headrace.errors import SqlValidationError

__all__ = ["BOUNDED", "STARTUP", "offsets_of"]

STARTUP: Final = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
BOUNDED: Final = STARTUP[1:]


def offsets_of(
    options: TableOptions, which: str, modes: Sequence[str], topic: str, properties: dict[str, str]
) -> KafkaOffsetsInitializer:
    """Return the offsets of ``scan.startup.mode`` or ``scan.bounded.mode``."""
    key = f"scan.{which}.mode"
    mode = options.text(key, "group-offsets")
    if mode not in modes:
        raise options.wrong(key, f"one of {', '.join(modes)}")
    match mode:
        case "earliest-offset":
            return KafkaOffsetsInitializer.earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            if "group.id" not in properties:
                raise SqlValidationError(
                    f"table {options.table!r}: {key!r} is 'group-offsets', which needs 'properties.group.id'",
                    hint="or set 'scan.startup.mode' = 'earliest-offset'",
                )
            reset = properties.get("auto.offset.reset", "none").upper()
            if reset not in KafkaOffsetResetStrategy.__members__:
                raise options.wrong("properties.auto.offset.reset", "earliest, latest or none")
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[reset])
        case "timestamp":
            options.required(f"scan.{which}.timestamp-millis")
            return KafkaOffsetsInitializer.timestamp(options.integer(f"scan.{which}.timestamp-millis") or 0)
    return KafkaOffsetsInitializer.offsets(_offsets(options, which, topic))


def _offsets(options: TableOptions, which: str, topic: str) -> dict[KafkaTopicPartition, int]:
    """Parse start offsets such as ``partition:0,offset:42;partition:1,offset:300``."""
    key = f"scan.{which}.specific-offsets"
    found = {}
    for pair in options.required(key).strip("; ").split(";"):
        parts = dict(part.strip().partition(":")[::2] for part in pair.split(","))
        try:
            found[KafkaTopicPartition(topic, int(parts["partition"]))] = int(parts["offset"])
        except (KeyError, ValueError):
            raise options.wrong(key, "such as 'partition:0,offset:42;partition:1,offset:300'") from None
    return found
