"""One partition of a level: the subtask that runs there, and the buffers that it only passes on.

What comes out is for the next level, as (partition, buffer); from the last level, bare reports for the driver.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.exchange.buffers import REPORT_EDGE, Header, pack, payload_of, read_header
from headrace.runtime.task.kept_tasks import KeptTasks
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.stack_sampling import StackSampler
from headrace.runtime.task.stream_task import StreamTask

T = TypeVar("T")

#: A task makes very many short-lived objects and few cycles: look for cycles seldom.
GC_THRESHOLD = 100_000


@dataclass(frozen=True)
class JobCode:
    """What is shipped once per job."""

    job: JobGraph
    lineage: str
    settings: TaskSettings
    #: Which part of a program of streams and tables it is.
    part: int = 0


class LevelRunner:
    """A worker's place for the tasks of one job."""

    def __init__(self, code: JobCode) -> None:
        self._code = code
        self._layout = Layout(code.job)
        self._kept: KeptTasks[SubtaskId, StreamTask] = KeptTasks()

    @property
    def job(self) -> JobGraph:
        """The job whose tasks these are."""
        return self._code.job

    def run(
        self, plan: EpochPlan, level: int, partition: int, incoming: Iterable[bytes], spark_attempt: int
    ) -> Iterator[tuple[int, bytes]]:
        """Run a partition's subtask over its input; yields (partition of the next level, buffer)."""
        outbox: list[tuple[int, bytes]] = []
        is_last = level + 1 == self._layout.depth
        own: list[tuple[Header, bytes]] = []
        for buffer in incoming:
            header = read_header(buffer)
            if header.level == level:
                own.append((header, buffer))
            else:
                yield self._onward(header.level, header.partition, buffer, level, is_last=is_last)

        def send(target_level: int, target_partition: int, buffer: bytes) -> None:
            outbox.append(self._onward(target_level, target_partition, buffer, level, is_last=False))

        subtask = self._layout.levels[level][partition]
        if plan.subtasks[subtask].has_ended:
            # Its functions are closed, and are not opened again to do nothing.
            report = SubtaskReport(subtask, epoch=plan.identity, has_ended=True)
        else:
            gc.set_threshold(GC_THRESHOLD)
            with self._kept.task(subtask, lambda: self._make_task(subtask)) as task:
                with _sampler(plan, subtask) as sampler:
                    task.begin(plan, spark_attempt, send)
                    with task.traced():
                        for _ in task.process(_handed_over(own)):
                            if outbox:
                                yield from outbox
                                outbox.clear()
                        report = task.report()
                if sampler is not None:
                    report = replace(report, samples=sampler.samples())
            yield from outbox
        header = Header(self._layout.depth, partition, REPORT_EDGE, partition, 0, level)
        yield self._onward(
            header.level, partition, pack(header, pickle.dumps(report, protocol=5)), level, is_last=is_last
        )

    @property
    def settings(self) -> TaskSettings:
        """The options of the job's tasks."""
        return self._code.settings

    def task_name(self, level: int, partition: int) -> str:
        """Name what runs in a partition, as Flink names its tasks: `Map -> Sink (1/2)`."""
        subtask = self._layout.levels[level][partition]
        vertex = self._code.job.vertex(subtask.vertex_id)
        return f"{vertex.name} ({subtask.subtask + 1}/{vertex.parallelism})"

    def close(self) -> None:
        """Close every task that was kept."""
        self._kept.close()

    def _onward(
        self, target_level: int, target_partition: int, buffer: bytes, level: int, *, is_last: bool
    ) -> tuple[int, bytes]:
        if is_last:
            return 0, buffer
        return self._layout.next_hop(target_level, target_partition, from_level=level), buffer

    def _make_task(self, subtask: SubtaskId) -> StreamTask:
        code = self._code
        return StreamTask(code.job, self._layout, subtask, code.lineage, code.settings)


def _handed_over(buffers: list[T]) -> Iterator[T]:
    """Yield what is in a list, in no order, and take it out: an epoch's input is in memory once, and less and less."""
    while buffers:
        yield buffers.pop()


def _sampler(plan: EpochPlan, subtask: SubtaskId) -> AbstractContextManager[StackSampler | None]:
    sampling = plan.sampling
    if sampling is None or subtask.vertex_id not in sampling.vertices:
        return nullcontext()
    return StackSampler(sampling.delay_s, sampling.depth)


def is_report(buffer: bytes) -> bool:
    """Whether what comes out of the last level is a report; else it is rows for a table."""
    return read_header(buffer).edge_id == REPORT_EDGE


def read_report(buffer: bytes) -> SubtaskReport:
    """Decode what the last level hands to the driver."""
    report = pickle.loads(payload_of(buffer))
    assert isinstance(report, SubtaskReport)
    return report
