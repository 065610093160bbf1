"""Adaptive batch: how many tasks a stage of a batch query has follows from its data, and skewed joins are split.

Flink's adaptive batch scheduler decides that between stages; Spark's adaptive query execution does the same for the one
statement that a batch query is. The last exchange, to the subtasks of the sinks, keeps their number.
"""

from __future__ import annotations

from headrace.config import Configuration
from headrace.config.options.execution import PARALLELISM
from headrace.config.options.scheduler import SCHEDULER, SchedulerType

_AQE = "spark.sql.adaptive."
#: Settings that a session has of its own: another job on the same Spark may have others.
_OPTIMIZER = (
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.cbo.joinReorder.",
    "spark.sql.optimizer.dynamicPartitionPruning.",
    "spark.sql.optimizer.runtime.bloomFilter.",
)
#: Flink's defaults; Spark's are 64 MB, and as many tasks as `spark.sql.shuffle.partitions`.
_VOLUME_PER_TASK = str(16 << 20)
_MAX_PARALLELISM = 128


def batch_settings(configuration: Configuration) -> dict[str, str]:
    """Return what the Spark session of a batch query has set: for its joins, and for adaptive execution.

    Execution is adaptive if the scheduler is AdaptiveBatch, or if a key is set that only counts then.
    """
    given = configuration.spark_settings()
    optimizer = {key: value for key, value in given.items() if key.startswith(_OPTIMIZER)}
    asked = {key: value for key, value in given.items() if key.startswith(_AQE)}
    if not asked and configuration.get(SCHEDULER) is not SchedulerType.AdaptiveBatch:
        return optimizer
    return {
        **optimizer,
        f"{_AQE}enabled": "true",
        f"{_AQE}advisoryPartitionSizeInBytes": _VOLUME_PER_TASK,
        f"{_AQE}coalescePartitions.initialPartitionNum": str(
            configuration.get(PARALLELISM) or _MAX_PARALLELISM
        ),
        # The volume decides, as in Flink, not the number of cores.
        f"{_AQE}coalescePartitions.parallelismFirst": "false",
        **asked,
    }
