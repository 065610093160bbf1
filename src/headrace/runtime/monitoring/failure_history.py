"""Why a job failed, in words: what REST shows as exception history. Bounded, and kept through restarts."""

from __future__ import annotations

import traceback
from collections import deque
from dataclasses import dataclass

from headrace.errors import HeadraceError, JobExecutionError
from headrace.graph.job_graph import JobGraph


@dataclass(frozen=True)
class Failure:
    """One failure of a job."""

    #: The class of the error.
    name: str
    #: For people: the traceback of the user's function where there is one.
    text: str
    timestamp_ms: int
    #: The task, as far as known: ``Source: clicks -> Map (2/4)``.
    task: str | None = None
    #: Where it ran, as far as known.
    host: str | None = None
    executor: str | None = None
    #: Those of other subtasks that failed with it.
    concurrent: tuple[Failure, ...] = ()

    @classmethod
    def of(cls, error: BaseException, timestamp_ms: int, job: JobGraph | None = None) -> Failure:
        """Describe an error of a job."""
        text = str(error) if isinstance(error, HeadraceError) else "".join(traceback.format_exception(error))
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        if not isinstance(error, JobExecutionError):
            return cls(name, text, timestamp_ms)
        concurrent = tuple(cls.of(other, timestamp_ms, job) for other in error.concurrent)
        return cls(name, text, timestamp_ms, _task_of(error, job), error.host, error.executor, concurrent)


def _task_of(error: JobExecutionError, job: JobGraph | None) -> str | None:
    """Name the task of the operator that failed, as Flink does."""
    if error.operator is None:
        return None
    subtask = error.subtask or 0
    for vertex in () if job is None or error.subtask is None else job.vertices:
        if subtask < vertex.parallelism and any(node.name == error.operator for node in vertex.operators):
            return f"{vertex.name} ({subtask + 1}/{vertex.parallelism})"
    return error.operator


class FailureHistory:
    """The last failures of a job, newest first."""

    def __init__(self, size: int) -> None:
        self._failures: deque[Failure] = deque(maxlen=size)
        #: How many there were in all.
        self.count = 0

    def add(self, error: BaseException, timestamp_ms: int, job: JobGraph | None = None) -> None:
        """Note a failure of a job in its present shape."""
        self.count += 1
        self._failures.appendleft(Failure.of(error, timestamp_ms, job))

    def latest(self, most: int | None = None) -> tuple[Failure, ...]:
        """Return the last ones, the newest first."""
        return tuple(self._failures)[:most]
