"""Runs an epoch of a job with tables: its parts, one after the other.

    part 0, streams   levels, as ever; rows for tables come out beside the reports, and Spark keeps them
    part 1, tables    a DataFrame over those rows, with the time that the reports of part 0 say
    part 2, streams   levels again; subtasks of the first one get the table's rows, and the time that stands after them

A job of tables alone has one part. To everybody else an epoch is one whatever its parts: one plan, and one report of
each subtask. If any part fails, all of it is run again.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer

from headrace.elements import MAX_WATERMARK
from headrace.errors import FormatError, TaskLostError
from headrace.graph.mixed_job import Part, part_job, parts_of
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.runtime.epoch.messages import (
    Crossing,
    EpochPlan,
    SubtaskId,
    SubtaskReport,
    TableTime,
    rows_producer,
)
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.table_time import border_time
from headrace.spark.artifacts import WorkerKind
from headrace.spark.epoch_runner import SparkEpochRunner
from headrace.spark.table_epochs import TableEpoch, TableEpochs
from headrace.spark.table_frames import empty_buffers
from headrace.state.key_secret import KeySecret

_ENDED = TableTime(MAX_WATERMARK, is_final=True)


class PartsRunner:
    """Runs the epochs of one job with tables on a Spark context."""

    def __init__(
        self, context: SparkContext, code: JobCode, secret: KeySecret, workers: WorkerKind | None = None
    ) -> None:
        self._context = context
        self._tables = TableEpochs(context, code, secret, workers)
        self._parts: list[tuple[Part, SparkEpochRunner | None]] = []
        for number, part in enumerate(parts_of(code.job), start=1):
            own = replace(code, job=code.job if part.is_table else part_job(code.job, part), part=number)
            self._parts.append((part, None if part.is_table else SparkEpochRunner(context, own, workers)))

    def packed_job(self) -> bytes:
        """Return the job as workers get it."""
        return self._tables.packed_job()

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        try:
            return self._run(plan)
        except FormatError:
            # Files that workers cannot read as columns, Spark may read; if not, it knows the record.
            if not self._tables.stop_reading_columns():
                raise
            return self._run(plan)

    def _run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        epoch = self._tables.begin(plan)
        streamed: list[SubtaskReport] = []
        try:
            for part, streams in self._parts:
                if streams is None:
                    epoch.run(part.vertices)
                else:
                    streamed += self._run_streams(part, streams, plan, epoch)
            reports = epoch.reports()
            check_crossings(streamed, epoch.crossings())
            streamed = [epoch.with_timer(_without_rows(report)) for report in streamed]
            return epoch.with_metrics([*streamed, *reports])
        except (Py4JError, PySparkException, OSError, pickle.PicklingError) as error:
            raise self._tables.recovered(error) from None
        finally:
            epoch.close()
            for streams in self._streams():
                streams.free()

    def _run_streams(
        self, part: Part, streams: SparkEpochRunner, plan: EpochPlan, epoch: TableEpoch
    ) -> Sequence[SubtaskReport]:
        table_rows, plan = self._rows_for(part, streams, plan, epoch)
        reports, out = streams.run_part(plan, table_rows)
        for vertex in part.vertices:
            own = [report for report in reports if report.subtask.vertex_id == vertex.vertex_id]
            for node in vertex.operators:
                if isinstance(node.declaration, StreamToTable):
                    times = [report.table_times.get(node.operator_id) for report in own]
                    time = border_time([each or _ENDED for each in times])
                    # A subtask that had ended before has nothing to say.
                    rows = out._jrdd if any(times) else None
                    epoch.take_from_stream(node, vertex.vertex_id, rows, time)
        return reports

    def _rows_for(
        self, part: Part, streams: SparkEpochRunner, plan: EpochPlan, epoch: TableEpoch
    ) -> tuple[RDD[Any] | None, EpochPlan]:
        """Return what the first level of streams gets of tables, a partition each, and the plan with their times."""
        readers = [each for each in part.vertices if isinstance(each.head.declaration, TableToStream)]
        if not readers:
            return None, plan
        handed = {vertex.vertex_id: epoch.hand_to_stream(vertex) for vertex in readers}
        subtasks = {
            subtask: replace(own, table_time=handed[subtask.vertex_id][1])
            if subtask.vertex_id in handed
            else own
            for subtask, own in plan.subtasks.items()
        }
        widths: dict[str, int] = defaultdict(int)
        for subtask in streams.first_level():
            widths[subtask.vertex_id] += 1
        rdds = [
            handed[vertex_id][0] if vertex_id in handed else empty_buffers(self._context, width)
            for vertex_id, width in widths.items()
        ]
        united = rdds[0]
        for rdd in rdds[1:]:
            united = united.union(rdd)
        return RDD(united, self._context, NoOpSerializer()), replace(plan, subtasks=subtasks)

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        """Merge state files in a Spark job beside the epochs."""
        return self._tables.compact(work)

    def call(self, functions: Sequence[Callable[[], Any]]) -> list[Any] | None:
        """Call functions in workers, a task each."""
        return self._tables.call(functions)

    def cancel(self) -> None:
        """Interrupt the running epoch: all parts are of one group."""
        self._tables.cancel()

    def close(self) -> None:
        """Free what Spark keeps for the job."""
        for streams in self._streams():
            streams.close()
        self._tables.close()

    def _streams(self) -> list[SparkEpochRunner]:
        return [streams for _, streams in self._parts if streams is not None]


def check_crossings(reports: Iterable[SubtaskReport], crossings: Iterable[Crossing]) -> None:
    """Make sure that what was read on the border is what the reporting attempts wrote.

    Spark keeps what crosses it, but computes it again where a host is lost; see `check_consistent` of job runs.

    Raises:
        TaskLostError: Something was computed twice.
    """
    reports, crossings = list(reports), list(crossings)
    made: dict[SubtaskId, set[str]] = defaultdict(set)
    for report in reports:
        made[report.subtask].add(report.attempt_id)
    for each in crossings:
        if each.is_made:
            made[each.producer].add(each.attempt_id)
    read = [(each.producer, each.attempt_id) for each in crossings if not each.is_made]
    read += [
        (producer, attempt)
        for report in reports
        for producer, attempt in report.consumed.items()
        if producer == rows_producer(report.subtask.vertex_id, report.subtask.subtask)
    ]
    for producer, attempt in read:
        if made[producer] != {attempt}:
            raise TaskLostError(
                "a part of the epoch was computed twice: rows between a stream and a table come from another attempt "
                "than the one that was kept"
            )


def _without_rows(report: SubtaskReport) -> SubtaskReport:
    """Return a report that names subtasks of the job only."""
    rows = rows_producer(report.subtask.vertex_id, report.subtask.subtask)
    if rows not in report.consumed:
        return report
    consumed = {producer: attempt for producer, attempt in report.consumed.items() if producer != rows}
    return replace(report, consumed=consumed)
