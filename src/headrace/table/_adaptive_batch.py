"""Adaptive batch: how many tasks a stage of a batch query has follows from its data, and skewed joins are split.

Flink's adaptive batch scheduler decides that between stages; Spark's adaptive query execution does the same for the one
statement that a batch query is. The last exchange, to the subtasks of the sinks, keeps their number.
"""

from __future__ import annotations

from headrace.config import Configuration
from headrace.config.options.execution import PARALLELISM
from headrace.config.options.scheduler import SCHEDULER, SchedulerType

_AQE = "spark.sql.adaptive."
#: Flink's defaults; Spark's are 64 MB, and as many tasks as `spark.sql.shuffle.partitions`.
_VOLUME_PER_TASK = str(16 << 20)
_MAX_PARALLELISM = 128


def adaptive_settings(configuration: Configuration) -> dict[str, str]:
    """Return the settings of the Spark session of a batch query; none if it is not to be adaptive.

    It is if the scheduler is AdaptiveBatch, or if a key is set that only counts then.
    """
    asked = {key: value for key, value in configuration.spark_settings().items() if key.startswith(_AQE)}
    if not asked and configuration.get(SCHEDULER) is not SchedulerType.AdaptiveBatch:
        return {}
    return {
        f"{_AQE}enabled": "true",
        f"{_AQE}advisoryPartitionSizeInBytes": _VOLUME_PER_TASK,
        f"{_AQE}coalescePartitions.initialPartitionNum": str(
            configuration.get(PARALLELISM) or _MAX_PARALLELISM
        ),
        # The volume decides, as in Flink, not the number of cores.
        f"{_AQE}coalescePartitions.parallelismFirst": "false",
        **asked,
    }
