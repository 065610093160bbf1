"""Spark: where and how Spark carries the job."""

from __future__ import annotations

from headrace.config.option import option

MASTER = (
    option("headrace.spark.master", str)
    .default("local[*]")
    .describe(
        "The Spark master: `local[4]` in this process, or that of a cluster, such as `spark://host:7077`."
    )
)
TASK_RETRIES = (
    option("headrace.spark.task-retries", int)
    .default(3)
    .describe("How often a failed task is retried within its epoch before the epoch fails.")
    .at_least(0)
)
