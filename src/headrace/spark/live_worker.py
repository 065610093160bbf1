"""What runs in Spark's python workers for live jobs: one subtask, from the start of a run to its end."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.serializers import pack_long

from headrace.errors import ClusterError
from headrace.graph.regions import part_of_job
from headrace.runtime.control.messages import SubtaskFailure
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan
from headrace.runtime.task.level import GC_THRESHOLD, JobCode
from headrace.runtime.task.live_settings import LiveSettings
from headrace.runtime.task.live_subtask import LiveSubtask
from headrace.spark.failures import carry
from headrace.spark.main_script import enter_program
from headrace.spark.user_code import unpack_job
from headrace.spark.worker_log import log_as

if TYPE_CHECKING:
    from pyspark import Broadcast


class LiveFunction:
    """The function of one level's stage. Small: the job's code comes once, as a broadcast."""

    def __init__(
        self,
        code: Broadcast[bytes],
        vertices: frozenset[str],
        plan: bytes,
        settings: LiveSettings,
        level: int,
        *,
        is_last: bool,
    ) -> None:
        self._code = code
        #: Those of the region that the stage belongs to.
        self._vertices = vertices
        self._plan = plan
        self._settings = settings
        self._level = level
        self._is_last = is_last

    def __call__(self, partition: int, incoming: Iterable[Any]) -> Iterator[bytes]:
        """Yield, for the shuffle, a partition number before every buffer; from the last level nothing."""
        subtask: LiveSubtask | None = None
        try:
            code = unpack_job(self._code.value)
            code = replace(code, job=part_of_job(code.job, self._vertices))
            layout = Layout(code.job)
            log_as(_task_name(code, layout, self._level, partition), code.settings.log_level)
            enter_program(code.job.main_classes or {})
            gc.set_threshold(GC_THRESHOLD)
            plan: EpochPlan = pickle.loads(self._plan)
            context = TaskContext.get()
            attempt = context.attemptNumber() if context is not None else 0
            subtask = LiveSubtask(code, layout, self._level, partition, plan, self._settings, attempt)
            subtask.connect()
            for target, buffer in subtask.run(incoming if self._level else None):
                yield pack_long(target)
                yield buffer
        except (Exception, SystemExit) as error:  # whatever it was, the driver must be able to say it
            carried = carry(error)
            _tell(subtask, str(carried))
            raise carried from error
        finally:
            if subtask is not None:
                subtask.disconnect()


def _tell(subtask: LiveSubtask | None, text: str) -> None:
    """Tell the driver before Spark does: its report may name a consequence first."""
    if subtask is not None and subtask.connection is not None:
        with suppress(OSError, ClusterError):
            subtask.connection.send(SubtaskFailure(text))


def _task_name(code: JobCode, layout: Layout, level: int, partition: int) -> str:
    subtask = layout.levels[level][partition]
    vertex = code.job.vertex(subtask.vertex_id)
    return f"{vertex.name} ({subtask.subtask + 1}/{vertex.parallelism})"
