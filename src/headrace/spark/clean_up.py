"""The end of a job on the hosts of a cluster: its copies of state are removed while there are still executors.

Spark has no way to call every executor. But it offers the tasks of a stage to all that are idle, one each in turn; so a
small stage reaches them all, and who took part says whether it did. What is missed, as on a host that is lost, is swept
by whoever starts next there (`util/host_directories.py`).
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from functools import partial

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from headrace.runtime.task.scratch import remove_scratch
from headrace.runtime.task.settings import TaskSettings
from headrace.spark.cluster import spark_executors
from headrace.spark.masters import is_local

_log = logging.getLogger(__name__)

_TRIES = 3
_TASKS_PER_EXECUTOR = 2


def remove_copies(context: SparkContext | None, settings: TaskSettings, timeout_s: float) -> None:
    """Remove a job's copies of state from all hosts of a cluster, as far as that is done in time.

    Args:
        context: The Spark that ran the job; None if the job did not get so far.
        settings: The job's.
        timeout_s: How long to wait for executors that are busy.
    """
    if context is None or context._jsc is None or is_local(context.master or ""):
        return  # a local Spark has its copies on this host
    group = f"{settings.scratch_name}-clean-up"
    worker = threading.Thread(target=_remove_all, args=(context, settings, group), daemon=True, name=group)
    worker.start()
    worker.join(timeout_s)
    if worker.is_alive():
        _log.warning("executors were too busy to remove state copies of %s", settings.scratch_name)
        try:
            context.cancelJobGroup(group)
        except (Py4JError, OSError):  # Spark is going down
            return


def _remove_all(context: SparkContext, settings: TaskSettings, group: str) -> None:
    reached: set[tuple[str, int]] = set()
    try:
        context.setJobGroup(group, "remove state copies", interruptOnCancel=True)
        for _ in range(_TRIES):
            executors = len(spark_executors())
            if len(reached) >= executors:
                return
            tasks = executors * _TASKS_PER_EXECUTOR
            work = context.parallelize(range(tasks), tasks).mapPartitions(partial(_remove_here, settings))
            reached.update(work.collect())
    except (Py4JError, PySparkException, OSError) as error:
        _log.warning(
            "state copies of %s may remain on other hosts: %s",
            settings.scratch_name,
            str(error).partition("\n")[0],
        )


def _remove_here(settings: TaskSettings, _: object) -> Iterator[tuple[str, int]]:
    remove_scratch(settings)
    # All workers of an executor are forked by the same process.
    yield socket.gethostname(), os.getppid()
