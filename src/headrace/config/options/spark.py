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
CLASS_ARCHIVE = (
    option("headrace.spark.class-archive", bool)
    .default(True)
    .describe(
        "Whether a Spark on this machine starts with an archive of its classes, which saves half of the processor "
        "time. Java writes it when the first program has ended, to the user's cache directory (70 to 170 MB); in "
        "containers, and where the variable CI is set, the second one."
    )
)
TASK_RETRIES = (
    option("headrace.spark.task-retries", int)
    .default(3)
    .describe("How often a failed task is retried within its epoch before the epoch fails.")
    .at_least(0)
)
