"""What handlers work with: the dispatcher, the cluster under it, and what was set up with the server."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from headrace.config.configuration import Configuration
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.metrics.executor_usage import ExecutorUsage
from headrace.rest.errors import RestError
from headrace.rest.http import Request
from headrace.rest.operations import Operations
from headrace.rest.program_runner import ProgramRunner
from headrace.runtime.job.dispatcher import Dispatcher, LiveJob
from headrace.util.application_log import ApplicationLog, LogFile

if TYPE_CHECKING:
    # Only for a gateway: it brings the planner of SQL along, which most programs start without.
    from headrace.gateway.sessions import Sessions

#: How long the list of executors is good for, s.
_EXECUTORS_TTL_S = 2.0
#: The garbage collection of an executor per second is that of the last so many seconds, as in Flink.
_GC_SPAN_S = 60.0


@dataclass(frozen=True)
class Executor:
    """A process that runs tasks: Flink's task manager."""

    executor_id: str
    host: str
    port: int
    slots: int
    #: Bytes of Java's heap for what Spark keeps, and how many of them it has taken.
    max_memory: int = 0
    used_memory: int = 0
    active_tasks: int = 0
    #: Milliseconds of garbage collection so far.
    gc_ms: int = 0
    #: The same per second of the last minute.
    gc_ms_per_s: float = 0.0
    #: Whether jobs may take more slots than it has.
    is_elastic: bool = False
    #: As many as it has slots, if None.
    cores: int | None = None
    #: Milliseconds that its tasks took so far, of all its cores.
    task_ms: int = 0
    usage: ExecutorUsage = field(default_factory=ExecutorUsage)
    #: Bytes for Python workers and RocksDB, if the sizes of executors are said.
    managed_memory: int | None = None


class Cluster(Protocol):
    """What runs the tasks."""

    def executors(self) -> Sequence[Executor]:
        """Return the executors that are there now; may take a while."""

    def logs_of(self, executor_id: str) -> Sequence[LogFile]:
        """Return the log files of an executor; may take a while.

        Raises:
            ClusterError: If they cannot be had from here.
        """

    def read_log(self, executor_id: str, name: str) -> bytes | None:
        """Return what is in one of them, None if there is none of that name; raises as `logs_of` does."""

    def threads_of(self, executor_id: str) -> Sequence[tuple[str, str]]:
        """Return the names of an executor's threads and what they do; may take a while."""


@dataclass(frozen=True)
class JobPages:
    """Addresses of Spark's user interface for one job: its own, and that of each level's stage."""

    url: str
    stages: Sequence[str]


class SparkPages(Protocol):
    """Knows Spark's user interface."""

    def of_job(self, job_id: str, lineage: str) -> JobPages | None:
        """Return the pages of a job; None where the user interface is off; may take a while."""


class NoSparkPages:
    """Answers for processes that run no Spark."""

    def of_job(self, job_id: str, lineage: str) -> JobPages | None:
        return None


class NoCluster:
    """Nothing runs tasks yet."""

    def executors(self) -> Sequence[Executor]:
        return ()

    def logs_of(self, executor_id: str) -> Sequence[LogFile]:
        return ()

    def read_log(self, executor_id: str, name: str) -> bytes | None:
        return None

    def threads_of(self, executor_id: str) -> Sequence[tuple[str, str]]:
        return ()


class CachedCluster:
    """Remembers the executors for a moment, so that watching a cluster costs it nothing.

    Args:
        cluster: Where they come from.
        clock: Seconds.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known: Sequence[Executor] = ()
        self._collections: dict[str, deque[tuple[float, int]]] = {}
        self._asked_s = float("-inf")
        self._lock = threading.Lock()

    def executors(self) -> Sequence[Executor]:
        """Return what was known last, and look again beside that if it is old."""
        if self._clock() - self._asked_s >= _EXECUTORS_TTL_S and self._lock.acquire(blocking=False):
            is_first = self._asked_s == float("-inf")
            self._asked_s = self._clock()
            worker = threading.Thread(target=self._look, name="headrace-executors", daemon=True)
            worker.start()
            if is_first:
                worker.join(1.0)
        return self._known

    def logs_of(self, executor_id: str) -> Sequence[LogFile]:
        return self._cluster.logs_of(executor_id)

    def read_log(self, executor_id: str, name: str) -> bytes | None:
        return self._cluster.read_log(executor_id, name)

    def threads_of(self, executor_id: str) -> Sequence[tuple[str, str]]:
        return self._cluster.threads_of(executor_id)

    def _look(self) -> None:
        try:
            found = tuple(self._cluster.executors())
            known = {each.executor_id: self._collections.get(each.executor_id, deque()) for each in found}
            self._collections = known
            now_s = self._clock()
            self._known = tuple(
                replace(each, gc_ms_per_s=_rate(known[each.executor_id], now_s, each.gc_ms)) for each in found
            )
        finally:
            self._lock.release()


def _rate(seen: deque[tuple[float, int]], now_s: float, value: int) -> float:
    """Note what a counter shows now, and return how much it goes up per second."""
    seen.append((now_s, value))
    while len(seen) > 2 and now_s - seen[1][0] >= _GC_SPAN_S:
        seen.popleft()
    since_s, before = seen[0]
    return (value - before) / (now_s - since_s) if now_s > since_s else 0.0


@dataclass
class RestContext:
    """Given to every handler."""

    dispatcher: Dispatcher
    configuration: Configuration
    operations: Operations
    cluster: Cluster = field(default_factory=NoCluster)
    #: The log files of this process; None if it keeps none.
    log: ApplicationLog | None = None
    #: Reads a job that was submitted; None where none are taken.
    unpack: Callable[[bytes], JobGraph] | None = None
    #: Runs programs that submit jobs; None where none are taken.
    programs: ProgramRunner | None = None
    spark_pages: SparkPages = field(default_factory=NoSparkPages)
    #: The sessions of the SQL gateway; None where there is none.
    gateway: Sessions | None = None
    #: Ends the process; None where it ends with its program.
    shut_down: Callable[[], None] | None = None
    #: Where files go that submitted jobs bring along, each job's below its id.
    artifact_directory: str = ""
    #: As clients see it, such as `http://localhost:8081`.
    url: str = ""

    def live(self, request: Request) -> LiveJob:
        """Find the job that a request is about.

        Raises:
            UnknownJobError: If it does not run.
        """
        return self.dispatcher.live(request.params["jobid"])

    def vertex(self, request: Request) -> tuple[LiveJob, JobVertex]:
        """Find the vertex that a request is about.

        Raises:
            UnknownJobError: If the job does not run.
            RestError: If the job has no such vertex.
        """
        live = self.live(request)
        vertex_id = request.params["vertexid"]
        for vertex in live.master.job.vertices:
            if vertex.vertex_id == vertex_id:
                return live, vertex
        raise RestError(404, f"Job vertex {vertex_id} not found in job {live.job_id}.")

    def subtask(self, request: Request) -> tuple[LiveJob, JobVertex, int]:
        """Find the subtask that a request is about; raises as `vertex` does."""
        live, vertex = self.vertex(request)
        index = int(request.params["subtaskindex"])
        if index >= vertex.parallelism:
            raise RestError(404, f"Subtask {index} not found: the vertex has {vertex.parallelism} subtasks.")
        return live, vertex, index

    def executor_of(self, host: str) -> Executor | None:
        """Find the executor of a host; the only one where there is one."""
        executors = self.cluster.executors()
        for executor in executors:
            if executor.host == host:
                return executor
        return executors[0] if len(executors) == 1 else None
