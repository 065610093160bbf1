"""Spark's executors as the cluster that REST shows."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.rest.context import Executor
from headrace.spark.cluster import spark_executors


class SparkCluster:
    """The executors of this process's Spark; none before it has started."""

    def executors(self) -> Sequence[Executor]:
        """Ask Spark."""
        return [
            Executor(
                each.executor_id,
                each.host,
                each.port,
                each.cores,
                each.max_memory,
                each.used_memory,
                each.active_tasks,
                each.gc_ms,
            )
            for each in spark_executors()
        ]
