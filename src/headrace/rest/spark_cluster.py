"""Spark's executors as the cluster that REST shows."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.config.configuration import Configuration
from headrace.rest.context import Executor
from headrace.spark.slots import offered_slots


class SparkCluster:
    """The executors of this process's Spark; none before it has started.

    Args:
        configuration: Says how many slots each of them offers.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def executors(self) -> Sequence[Executor]:
        """Ask Spark."""
        return [
            Executor(
                each.executor_id,
                each.host,
                each.port,
                slots,
                each.max_memory,
                each.used_memory,
                each.active_tasks,
                each.gc_ms,
                is_elastic=is_elastic,
                cores=each.cores,
            )
            for each, slots, is_elastic in offered_slots(self._configuration)
        ]
