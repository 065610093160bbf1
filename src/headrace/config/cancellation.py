"""How long cancelled tasks may take to end, from Flink's keys: Spark's task reaper.

It watches tasks that were cancelled, interrupts them again from time to time, and ends the executor of one that does
not end, as Flink ends the task manager. On a local Spark, where the executor is the driver, it only logs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from headrace.config.memory_account import Values
from headrace.config.options.execution import TASK_CANCELLATION_INTERVAL, TASK_CANCELLATION_TIMEOUT

_REAPER = "spark.task.reaper."
_MS = timedelta(milliseconds=1)


def cancellation_settings(configuration: Values) -> Iterator[tuple[str, str]]:
    """Yield the Spark settings for these keys; none if neither is set."""
    if not any(map(configuration.contains, (TASK_CANCELLATION_INTERVAL, TASK_CANCELLATION_TIMEOUT))):
        return
    timeout_ms = configuration.get(TASK_CANCELLATION_TIMEOUT) // _MS
    yield f"{_REAPER}enabled", "true"
    yield f"{_REAPER}pollingInterval", f"{configuration.get(TASK_CANCELLATION_INTERVAL) // _MS}ms"
    yield f"{_REAPER}killTimeout", f"{timeout_ms}ms" if timeout_ms else "-1"
