"""How long Spark waits for heartbeats of executors, from Flink's key for those of task managers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from headrace.config.memory_account import Values
from headrace.config.options.live import LOST_AFTER


def heartbeat_settings(configuration: Values) -> Iterator[tuple[str, str]]:
    """Yield the Spark setting for the key; none if it is not set."""
    if configuration.contains(LOST_AFTER):
        yield "spark.network.timeout", f"{configuration.get(LOST_AFTER) // timedelta(milliseconds=1)}ms"
