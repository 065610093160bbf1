"""One attempt at a subtask in an epoch: where it runs, for what, and what its report says about that."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from headrace.graph.job_graph import JobGraph, OperatorNode
from headrace.operators.base import EpochPlace
from headrace.operators.context import TaskPlace
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport, sink_staging_dir
from headrace.util import clock

#: An attempt is named by this many hex digits, which fit a buffer's header.
ATTEMPT_DIGITS = 16

_HOST = socket.gethostname()


def new_attempt_id() -> str:
    """Return a name that no other attempt has."""
    return uuid4().hex[:ATTEMPT_DIGITS]


class TaskAttempt:
    """Starts its clock when it is made.

    Args:
        plan: The epoch.
        number: How often Spark has tried the task before.
        now_ms: The clock.
        attempt_id: Its name; a new one if None.
    """

    def __init__(
        self,
        plan: EpochPlan,
        number: int = 0,
        *,
        now_ms: Callable[[], int] = clock.now_ms,
        attempt_id: str | None = None,
    ) -> None:
        self.attempt_id = attempt_id or new_attempt_id()
        self.number = number
        self.started_ms = now_ms()
        self._started_ns = time.perf_counter_ns()
        self._plan = plan

    @property
    def place(self) -> EpochPlace:
        """The epoch, as operators see it."""
        return EpochPlace(
            epoch=self._plan.epoch,
            attempt_id=self.attempt_id,
            job_id=self._plan.job_id,
            staging_dir=sink_staging_dir(self._plan.state_dir),
            asks_for_watermarks=True,
        )

    def stamped(self, report: SubtaskReport) -> SubtaskReport:
        """Return a report that says which attempt it is of, where that ran, and how long it took until now."""
        return replace(
            report,
            attempt_id=self.attempt_id,
            epoch=self._plan.identity,
            busy_ns=time.perf_counter_ns() - self._started_ns,
            started_ms=self.started_ms,
            ended_ms=clock.now_ms(),
            host=_HOST,
            pid=os.getpid(),
            spark_attempt=self.number,
        )


def task_place(job: JobGraph, subtask: SubtaskId, node: OperatorNode) -> TaskPlace:
    """Return which subtask of which operator this is."""
    vertex = job.vertex(subtask.vertex_id)
    number, width = subtask.subtask, vertex.parallelism
    return TaskPlace(
        job.name, vertex.name, node.name, node.operator_id, number, width, vertex.max_parallelism
    )
