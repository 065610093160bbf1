"""A job on a mini cluster behind the REST application, without a socket."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import pytest

from headrace.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream.functions import KeyedProcessFunction, RuntimeContext
from headrace.datastream.state import ValueStateDescriptor
from headrace.graph.job_graph import JobGraph
from headrace.metrics.executor_usage import ExecutorUsage
from headrace.rest.application import RestApplication, archive
from headrace.rest.context import Executor, RestContext
from headrace.rest.http import Response
from headrace.rest.operations import Operations
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import Dispatcher, LiveJob
from headrace.runtime.job.history import JobHistory
from headrace.runtime.run.job_run import EpochSummary
from headrace.testing.mini_cluster import MiniJob
from headrace.util.application_log import ApplicationLog, LogFile
from tests.unit.runtime.jobs import BASE, job_graph, make_env

OPTIONS = {key: value for key, value in BASE.items() if key != "execution.target"}
ENDLESS = 10**12
#: After every epoch: jobs that are only looked at leave the processor to those who look.
PAUSE_S = 0.02


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))
        self.processed = runtime_context.get_int_counter("processed")
        metrics = runtime_context.get_metrics_group()
        self.seen = metrics.counter("seen")
        self.sizes = metrics.distribution("sizes")
        metrics.gauge("level", lambda: 7)
        self.rate = metrics.meter("rate")
        self.digits = metrics.add_group("tables").add_group("table", 'the "big" one').histogram("digits")

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == getattr(self, "poison", None):
            raise ValueError("poisoned")
        self.seen.inc()
        self.processed.add(1)
        self.sizes.update(value % 10)
        self.rate.mark_event()
        self.digits.update(value % 10)
        self.count.update((self.count.value() or 0) + 1)
        yield value


class Poisoned(Count):
    poison = 50


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def counting(last: int, function: type[Count] = Count) -> JobGraph:
    env = make_env(parallelism=2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    numbers = env.from_source(NumberSequenceSource(0, last), strategy, "numbers")
    numbers.key_by(lambda n: n % 7).process(function()).sink_to(BlackholeSink())
    return replace(job_graph(env, "counting"), job_id=uuid4().hex)


class OneExecutor:
    """A cluster of one."""

    is_elastic = False

    def executors(self) -> list[Executor]:
        return [
            Executor(
                "driver",
                "here",
                7078,
                slots=2,
                max_memory=2**30,
                used_memory=2**20,
                is_elastic=self.is_elastic,
                usage=ExecutorUsage(heap_used=2**22, heap_max=2**30, python_used=2**23, gc_count=3),
                managed_memory=2**24,
            )
        ]

    def logs_of(self, executor_id: str) -> list[LogFile]:
        return [LogFile("stderr", 5, 1), LogFile("stdout", 4, 1)]

    def threads_of(self, executor_id: str) -> list[tuple[str, str]]:
        return [("main", '"main" Id=1 RUNNABLE')]

    def read_log(self, executor_id: str, name: str) -> bytes | None:
        return {"stderr": b"said\n", "stdout": b"out\n"}.get(name)


class RestCluster:
    """A dispatcher over mini clusters, and the application in front of it."""

    def __init__(self, options: dict[str, str] | None = None, settings: RestSettings | None = None) -> None:
        self.jobs: list[MiniJob] = []
        self._folder = mkdtemp()
        self.log = ApplicationLog(Path(self._folder))
        self.log.path("headrace.log").write_text("begun\n")
        configuration = Configuration(options or {})
        self.dispatcher = Dispatcher(archive=self._archive, start=self._start, history=JobHistory())
        self.context = RestContext(self.dispatcher, configuration, Operations(), OneExecutor(), self.log)
        self.application = RestApplication(self.context, settings or RestSettings())

    def _archive(self, job: LiveJob) -> dict[str, str]:
        return dict(archive(job, self.context))

    def _start(self, graph: JobGraph, configuration: Configuration) -> MiniJob:
        job = MiniJob(graph, configuration, on_epoch=partial(self._observe, graph), workers=1)
        self.jobs.append(job)
        return job

    def _observe(self, graph: JobGraph, summary: EpochSummary) -> None:
        self.dispatcher.observe(graph, summary)
        time.sleep(PAUSE_S)

    def submit(self, graph: JobGraph, options: dict[str, str] | None = None) -> LiveJob:
        small = {"headrace.epoch.max-records": "50"}
        return self.dispatcher.submit(graph, Configuration({**OPTIONS, **small, **(options or {})}))

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        data = b"" if body is None else json.dumps(body).encode()
        return self.application.answer(method, path, data, {"content-type": "application/json", **headers})

    def get(self, path: str) -> Any:
        response = self.ask("GET", path)
        assert response.status == 200, (path, response)
        return json.loads(response.body)

    def result_of(self, path: str) -> Any:
        """Ask for an operation until it is over."""
        wait_until(lambda: self.get(path)["status"]["id"] == "COMPLETED", path)
        return self.get(path)["operation"]

    def close(self) -> None:
        for job in self.jobs:
            job.cancel().result(30)
            job._thread.join(30)
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    __del__ = _remove  # of those that have no jobs, and are not closed


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


@pytest.fixture
def cluster() -> Iterator[RestCluster]:
    """A cluster without jobs."""
    made = RestCluster()
    yield made
    made.close()


@pytest.fixture
def running(cluster: RestCluster, tmp_path: Path) -> LiveJob:
    """A job that runs on the cluster, has completed a checkpoint, and does not end."""
    options = {
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
    }
    job = cluster.submit(counting(ENDLESS), options)
    statistics = job.master.checkpoints.coordinator.statistics
    wait_until(lambda: statistics().counts.completed > 0 and len(job.monitor.epochs()) > 2, "a checkpoint")
    return job
