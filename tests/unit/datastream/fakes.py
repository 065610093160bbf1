"""An executor that runs nothing: it records what was submitted and lets the test say how the job ends."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from headrace.common.configuration import Configuration as ProgramConfiguration
from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus
from headrace.config import Configuration
from headrace.datastream import StreamExecutionEnvironment
from headrace.errors import JobCancelledError
from headrace.graph.job_graph import JobGraph
from headrace.graph.stream_graph import StreamGraph, StreamNode

TARGET = "tests.unit.datastream.fakes:RecordingExecutor"


class FakeJob:
    """A job whose end the test decides."""

    def __init__(self, job_graph: JobGraph, configuration: Configuration) -> None:
        self.job_graph = job_graph
        self.configuration = configuration
        self.future: Future[JobExecutionResult] = Future()
        self.is_cancelled = False

    @property
    def job_id(self) -> JobID:
        return JobID(self.job_graph.job_id)

    def status(self) -> JobStatus:
        return JobStatus.FINISHED if self.future.done() else JobStatus.RUNNING

    def finish(self) -> None:
        self.future.set_result(JobExecutionResult(self.job_id, 1))

    def cancel(self) -> Future[None]:
        self.is_cancelled = True
        self.future.set_exception(JobCancelledError("cancelled"))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def result_future(self) -> Future[JobExecutionResult]:
        return self.future

    def accumulators(self) -> dict[str, Any]:
        return {}

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        raise NotImplementedError

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        raise NotImplementedError


class RecordingExecutor:
    """Keeps the jobs it was given; with ``finishes`` they are over at once."""

    jobs: list[FakeJob] = []  # noqa: RUF012  # made again for each test by a fixture
    finishes = True

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> FakeJob:
        job = FakeJob(job_graph, configuration)
        self.jobs.append(job)
        if self.finishes:
            job.finish()
        return job


def make_env(**settings: str) -> StreamExecutionEnvironment:
    """Make an environment that submits to the recording executor."""
    values = {"execution.target": TARGET, "parallelism.default": "2", **settings}
    return StreamExecutionEnvironment.get_execution_environment(ProgramConfiguration.from_dict(values))


def stream_graph(env: StreamExecutionEnvironment) -> StreamGraph:
    """Build the graph of what the program has so far."""
    return env._build_stream_graph()


def last_node(env: StreamExecutionEnvironment) -> StreamNode:
    """Return the operator that was added last."""
    return stream_graph(env).nodes[-1]
