"""The executors of the process's Spark, as far as there is one."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from headrace.metrics.executor_usage import ExecutorUsage
from headrace.spark.executor_memory import local_usage, reported_usage
from headrace.spark.masters import is_local


class SparkExecutorInfo(NamedTuple):
    """One executor, as Spark's own status store knows it."""

    executor_id: str
    host: str
    port: int
    cores: int
    max_memory: int
    used_memory: int
    active_tasks: int
    gc_ms: int
    #: Time that tasks took so far, of all its cores.
    task_ms: int = 0
    usage: ExecutorUsage = ExecutorUsage()


def spark_executors() -> list[SparkExecutorInfo]:
    """Ask Spark for its executors; none while it does not run. Takes a conversation with Java."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return []
    try:
        found = context._jsc.sc().statusStore().executorList(True)
        executors = [_read(found.apply(index)) for index in range(found.size())]
        if is_local(context.master or ""):
            executors = [each._replace(usage=local_usage(context, each.usage)) for each in executors]
        else:
            heap = int(context._jsc.sc().executorMemory()) << 20
            executors = [each._replace(usage=replace(each.usage, heap_max=heap)) for each in executors]
    except (Py4JError, OSError):  # Spark is going down
        return []
    return task_executors(executors, context.master or "")


def task_executors(executors: Sequence[SparkExecutorInfo], master: str) -> list[SparkExecutorInfo]:
    """Leave out who runs no tasks: the driver of a cluster, which is listed also while no executor has registered."""
    if is_local(master):
        return [_local(executor, master) for executor in executors]
    return [executor for executor in executors if executor.executor_id != "driver"]


def _read(summary: Any) -> SparkExecutorInfo:
    host, _, port = str(summary.hostPort()).rpartition(":")
    return SparkExecutorInfo(
        str(summary.id()),
        host,
        int(port) if port.isdigit() else -1,
        int(summary.totalCores()),
        int(summary.maxMemory()),
        int(summary.memoryUsed()),
        int(summary.activeTasks()),
        int(summary.totalGCTime()),
        int(summary.totalDuration()),
        reported_usage(summary.peakMemoryMetrics()),
    )


def _local(executor: SparkExecutorInfo, master: str) -> SparkExecutorInfo:
    """Fill in what a local Spark does not say: its workers call the host by its name."""
    cores = executor.cores
    if cores == 0 and (told := re.match(r"local\[(\d+)", master)):
        cores = int(told[1])
    return executor._replace(host=socket.gethostname(), cores=cores)
