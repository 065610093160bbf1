"""What the tests on Spark share: running jobs and looking at what they did."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from headrace.common import WatermarkStrategy
from headrace.common.job_client import JobClient
from headrace.connectors.base import Source
from headrace.connectors.collect import CollectSink, open_collector
from headrace.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.closeable_iterator import CloseableIterator
from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.messages import SubtaskReport
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners
from headrace.testing.mini_cluster import MiniJob
from tests.watching import EXECUTOR


class EpochRecorder:
    """Keeps what the epochs of all jobs of the fixture `env` reported, by job id."""

    def __init__(self) -> None:
        self._epochs: dict[str, list[EpochSummary]] = defaultdict(list)

    def __call__(self, job: JobGraph, summary: EpochSummary) -> None:
        self._epochs[job.job_id].append(summary)

    def of(self, client: JobClient) -> list[EpochSummary]:
        """Return a job's epochs so far."""
        return self._epochs[str(client.get_job_id())]


RECORDER = EpochRecorder()
EXECUTOR.listeners.append(Listeners(epoch_completed=RECORDER))


class Outcome:
    """What came out of a job, and how it ran."""

    def __init__(self, client: JobClient, rows: list[Any]) -> None:
        self.client = client
        self.rows = rows

    @property
    def epochs(self) -> list[EpochSummary]:
        job = self.client._handle
        return job.epochs if isinstance(job, MiniJob) else RECORDER.of(self.client)

    @property
    def reports(self) -> Iterator[SubtaskReport]:
        return (report for epoch in self.epochs for report in epoch.reports)

    @property
    def retried_tasks(self) -> int:
        """Tasks of which Spark needed more than one attempt."""
        return sum(report.spark_attempt > 0 for report in self.reports)


def run(stream: DataStream) -> Outcome:
    """Run the job to its end."""
    with cast(CloseableIterator, stream.execute_and_collect()) as rows:
        return Outcome(rows._client, list(rows))


def run_and_collect(stream: DataStream) -> list[Any]:
    """Run the job to its end and return the stream's records, in the order they came."""
    return run(stream).rows


def run_and_gather(environment: StreamExecutionEnvironment, *streams: DataStream) -> list[list[Any]]:
    """Run one job and return the records of several of its streams."""
    collectors = []
    for stream in streams:
        collect_id = uuid4().hex
        collectors.append(open_collector(collect_id))
        stream.sink_to(CollectSink(collect_id)).set_parallelism(1)
    environment.execute()
    gathered = []
    for collector in collectors:
        collector.finish()
        gathered.append(list(collector))
        collector.close()
    return gathered


def read(environment: StreamExecutionEnvironment, source: Source, name: str = "Test") -> DataStream:
    """Read a source without event time."""
    return environment.from_source(source, WatermarkStrategy.no_watermarks(), name)


def kill_workers(client: JobClient, *, with_daemon: bool = False) -> int:
    """Kill the python workers that have run a job's tasks, as far as they still live; returns how many.

    Args:
        client: The job.
        with_daemon: Whether to kill the process that Spark forks workers from, too.
    """
    # A subtask that had ended is reported without a worker, as 0, and that would mean this whole process group.
    pids = {report.pid for epoch in RECORDER.of(client) for report in epoch.reports if report.pid > 0}
    lines = {pid: _ancestors(pid) for pid in pids}
    # Worker, daemon, Java process, this process: only what this process has started.
    ours = {pid: line for pid, line in lines.items() if len(line) >= 3 and line[2] == os.getpid()}
    daemons = {line[0] for line in ours.values()} if with_daemon else set()
    for pid in [*daemons, *ours]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(ours)


def _ancestors(pid: int) -> list[int]:
    """Return the processes above one, the nearest first; nothing if it has ended."""
    above: list[int] = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except FileNotFoundError:
            return []
        above.append(pid)
    return above


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0, *, must: bool = True) -> None:
    """Wait for a condition; fail when it does not come true, if it must."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            assert not must, "it did not happen in time"
            return
        time.sleep(0.01)


def in_threads(*calls: Callable[[], Any], timeout_s: float = 60.0) -> list[Any]:
    """Make calls at the same time; return what they returned, or raise what one of them raised."""
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []

    def call(index: int) -> None:
        try:
            results[index] = calls[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s)
    if errors:
        raise errors[0]
    return results


def by_key(rows: Iterable[Sequence[Any]]) -> dict[Any, list[Any]]:
    """Group rows by their first field, in the order they came."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return dict(groups)


def running(pairs: Iterable[tuple[Any, Any]], step: Callable[[Any, Any], Any]) -> dict[Any, list[Any]]:
    """Fold the values of each key, and return all intermediate values by key."""
    values: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        values[key].append(value)
    return {key: list(itertools.accumulate(each, step)) for key, each in values.items()}


class WithSubtask(MapFunction):
    """Puts the index of the subtask before each record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._index = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> tuple[int, Any]:
        return self._index, value
