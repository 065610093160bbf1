"""The other tasks of an epoch that failed. Spark's error reports the one that failed once too often."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from headrace.errors import JobExecutionError
from headrace.spark.failures import recover

#: Tasks that are looked at in each stage.
_MOST_TASKS = 1_000
#: How long Spark may take to write down what it has heard, ms.
_HEARD_MS = 1_000


class TaskTry(NamedTuple):
    """One try of a task, as Spark remembers it."""

    task: int
    attempt: int
    #: Spark's word: SUCCESS, FAILED, KILLED, ...
    status: str
    #: What it failed with.
    error: str | None
    host: str
    executor: str


def concurrent_failures(
    context: SparkContext, group: str, first: JobExecutionError
) -> tuple[JobExecutionError, ...]:
    """Return what else failed in the last epoch of a job.

    Args:
        context: Where it ran.
        group: Spark's name for the epochs of the job.
        first: What the epoch failed with.
    """
    if context._jsc is None:
        return ()
    try:
        spark = context._jsc.sc()
        with suppress(Py4JError):  # it took too long
            # Spark's memory of tasks is filled beside the work.
            spark.listenerBus().waitUntilEmpty(_HEARD_MS)
        tracker = context.statusTracker()
        jobs = tracker.getJobIdsForGroup(group)
        newest = tracker.getJobInfo(max(jobs)) if jobs else None
        stages = sorted(newest.stageIds) if newest is not None else []
        return tuple(error for stage in stages for error in failed_beside(_tries_of(spark, stage), first))
    except (Py4JError, OSError):  # Spark is going down
        return ()


def failed_beside(tries: Sequence[TaskTry], first: JobExecutionError) -> list[JobExecutionError]:
    """Return the last error of every task of a stage that failed and did not succeed later, but for the first one's."""
    done = {each.task for each in tries if each.status == "SUCCESS"}
    last: dict[int, TaskTry] = {}
    for each in sorted(tries, key=lambda each: (each.task, each.attempt)):
        if each.status == "FAILED" and each.error and each.task not in done:
            last[each.task] = each
    errors = [_error_of(each) for each in last.values()]
    return [error for error in errors if error is not None and not _is_same_subtask(error, first)]


def _error_of(failed: TaskTry) -> JobExecutionError | None:
    error = recover(failed.error or "")
    if not isinstance(error, JobExecutionError):
        return None
    error.host, error.executor = failed.host, failed.executor
    return error


def _is_same_subtask(error: JobExecutionError, first: JobExecutionError) -> bool:
    if error.subtask is None or first.subtask is None:
        return error.message == first.message
    return (error.operator, error.subtask) == (first.operator, first.subtask)


def _tries_of(spark: Any, stage: int) -> list[TaskTry]:
    found = spark.statusStore().taskList(stage, 0, _MOST_TASKS)
    return [_try_of(found.apply(number)) for number in range(found.size())]


def _try_of(task: Any) -> TaskTry:
    error = task.errorMessage()
    return TaskTry(
        task.index(),
        task.attempt(),
        task.status(),
        error.get() if error.isDefined() else None,
        task.host(),
        task.executorId(),
    )
