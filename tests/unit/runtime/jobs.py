"""Jobs for tests: programs written with the API, and ways to run them on a MiniCluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any
from uuid import uuid4

from headrace.common.configuration import Configuration as ProgramConfiguration
from headrace.config import Configuration
from headrace.connectors.base import Sink
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.fakes import ListSink, Published, published

Program = Callable[[StreamExecutionEnvironment], DataStream]

#: Epochs are cut by max-records alone, however slow the machine is.
BASE = {
    "headrace.epoch.target-duration": "1 h",
    "headrace.epoch.idle-poll-interval": "1 ms",
    "execution.target": "tests.unit.runtime.jobs:Executor",
}


class Executor:
    """Found by name when a program is executed; runs it with the settings of the test."""

    settings: dict[str, Any] = {}  # noqa: RUF012 - set by `start`, read by the next submission
    jobs: list[MiniJob] = []  # noqa: RUF012

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> MiniJob:
        job = MiniJob(job_graph, configuration, **self.settings)
        self.jobs.append(job)
        return job


def make_env(parallelism: int = 1, options: dict[str, Any] | None = None) -> StreamExecutionEnvironment:
    values = {key: str(value) for key, value in {**BASE, **(options or {})}.items()}
    configuration = ProgramConfiguration.from_dict(values)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def job_graph(env: StreamExecutionEnvironment, name: str = "test") -> JobGraph:
    """Return what would be submitted."""
    return build_job_graph(env._build_stream_graph(), job_id="0" * 32, name=name)


class Run:
    """A program on its way through a MiniCluster."""

    def __init__(self, job: MiniJob, results: Published) -> None:
        self.job = job
        self.results = results

    @property
    def output(self) -> list[Any]:
        """What the sink published, in order."""
        return self.results.records


def start(
    program: Program,
    *,
    parallelism: int = 1,
    max_records: int = 1000,
    options: dict[str, Any] | None = None,
    sink: Sink | None = None,
    **job_settings: Any,
) -> Run:
    """Start a program whose last stream is published into a list, or goes to a sink of the test's own."""
    env = make_env(parallelism, {"headrace.epoch.max-records": max_records, **(options or {})})
    name = uuid4().hex
    program(env).sink_to(sink or ListSink(name))
    results = published.setdefault(name, Published())
    Executor.settings = job_settings
    env.execute_async("test")
    return Run(Executor.jobs.pop(), results)


def run(program: Program, **settings: Any) -> Run:
    """Run a program to its end."""
    started = start(program, **settings)
    started.job.wait()
    return started


def start_watched(program: Program, watch: Callable[[MiniJob], None], **settings: Any) -> Run:
    """Start a program; the function is called after every epoch, in the job's thread.

    However slow the machine is, a checkpoint that was begun after an epoch is written by the end of the next.
    """
    started: Future[Run] = Future()

    def after_epoch(_: object) -> None:
        job = started.result(10).job
        wait_for_checkpoints(job)
        watch(job)

    run = start(program, on_epoch=after_epoch, **settings)
    started.set_result(run)
    return run


def wait_for_checkpoints(job: MiniJob) -> None:
    """Wait until all checkpoints that were begun are written; the job takes note of them after its epoch."""
    wait([writing.future for writing in job.master.checkpoints._writing.values()], timeout=10)
