"""The two ends of a table job where a connector runs in Python: subtasks of scans and of sinks.

    slices of the plan --SliceReader--> batches --> Arrow --> the job's rows
    the job's rows --> Arrow --> batches --EpochWriter--> committables

They read and write as sources and sinks of streams do; what is theirs is the way between records and columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from headrace.common.types import Row
from headrace.elements import Batch, ColumnBatch
from headrace.formats.columns import ArrowRows
from headrace.graph.job_graph import JobGraph
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.context import OperatorContext
from headrace.operators.epoch_writer import EpochWriter
from headrace.operators.located import locating
from headrace.operators.slice_reader import SliceReader
from headrace.operators.table.bridge import rows_of
from headrace.operators.table.declarations import TableScanDeclaration, TableSinkDeclaration
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import KIND, Schema
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.task.attempt import TaskAttempt, task_place
from headrace.runtime.task.kept_tasks import close_quietly
from headrace.runtime.task.table_time import VertexTime


class ScanTask:
    """One subtask of a scan. Its reader, which may have connections, stays open from epoch to epoch.

    Args:
        job: The job.
        subtask: Which one.
    """

    def __init__(self, job: JobGraph, subtask: SubtaskId) -> None:
        node = job.vertex(subtask.vertex_id).head
        assert isinstance(node.declaration, TableScanDeclaration)
        self._scan = node.declaration
        self._subtask = subtask
        self._schema = as_spark_gives(self._scan.schema)
        self._context = OperatorContext(task_place(job, subtask, node), InMemoryMetricGroup())
        self._reader: SliceReader | None = None
        #: Whether all its splits have been read to their ends, and none can follow.
        self.has_ended = False

    def run(
        self, plan: EpochPlan, split: str | None = None, spark_attempt: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Read the subtask's slices of an epoch.

        Args:
            plan: The epoch.
            split: The column in which rows say which of the subtask's slices they are of; None if it is not needed.
            spark_attempt: How often Spark has tried the task before.
        """
        self._attempt = TaskAttempt(plan, spark_attempt)
        self._plan = plan.subtasks[self._subtask]
        self._context.attempt = spark_attempt
        self._context.metrics.begin_epoch()  # before open(), which may count as well
        reader = self._opened()
        reader.begin_epoch(self._plan.max_records)
        with locating(self._context):
            for number, piece in enumerate(self._plan.slices):
                if not reader.has_room:
                    break
                for batch in reader.read(piece):
                    rows = _to_arrow(batch, self._schema, has_kinds=self._scan.has_kinds)
                    if split is not None:
                        numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
                        rows = rows.append_column(split, numbers)
                    yield rows
        self.has_ended = self._plan.ends_with(reader.progress)

    def report(self) -> SubtaskReport:
        """Say what was read; how far event time came is known to Spark only."""
        reader, metrics = self._opened(), self._context.metrics.reports()
        return self._attempt.stamped(
            SubtaskReport(
                self._subtask,
                progress=reader.progress,
                has_ended=self.has_ended,
                records_in=reader.records,
                records_out=reader.records,
                user_metrics={self._context.place.operator_id: metrics} if metrics else {},
            )
        )

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _opened(self) -> SliceReader:
        if self._reader is None:
            self._reader = SliceReader(self._scan.source, self._context)
        return self._reader


def write_rows(
    job: JobGraph,
    subtask: SubtaskId,
    plan: EpochPlan,
    at: VertexTime,
    batches: Iterable[pa.RecordBatch],
    spark_attempt: int = 0,
) -> SubtaskReport:
    """Write a sink's rows of an epoch, as one of its subtasks.

    Args:
        job: The job.
        subtask: Which one.
        plan: The epoch.
        at: Where event time stands after the rows.
        batches: The rows.
        spark_attempt: How often Spark has tried the task before.
    """
    node = job.vertex(subtask.vertex_id).head
    declaration = node.declaration
    assert isinstance(declaration, TableSinkDeclaration)
    attempt = TaskAttempt(plan, spark_attempt)
    place = task_place(job, subtask, node)
    context = OperatorContext(place, InMemoryMetricGroup(), attempt=spark_attempt)
    names = [column.name for column in declaration.schema]
    writer = EpochWriter(declaration.sink, context)
    writer.begin_epoch(attempt.place)
    records = 0
    try:
        with locating(context):
            for batch in batches:
                if batch.num_rows:
                    writer.write(Batch(rows_of(batch, names, names)))
                    records += batch.num_rows
            committables = writer.prepare_commit()
    except BaseException:
        close_quietly(writer)
        raise
    return attempt.stamped(
        SubtaskReport(
            subtask,
            committables={node.operator_id: committables} if committables else {},
            has_ended=at.is_final,
            watermark=at.after,
            records_in=records,
        )
    )


def _to_arrow(batch: Batch, schema: Schema, *, has_kinds: bool) -> pa.RecordBatch:
    if isinstance(batch, ColumnBatch) and isinstance(batch.columns, ArrowRows) and not has_kinds:
        columns = zip(batch.columns.arrays, schema, strict=True)
        return pa.RecordBatch.from_arrays(
            [array.cast(column.arrow) for array, column in columns], names=[column.name for column in schema]
        )
    arrays = [
        pa.array([value[index] for value in batch.values], column.arrow)
        for index, column in enumerate(schema)
    ]
    names = [column.name for column in schema]
    if has_kinds:
        kinds = [value.get_row_kind().value if isinstance(value, Row) else 0 for value in batch.values]
        arrays.append(pa.array(kinds, pa.int8()))
        names.append(KIND)
    return pa.RecordBatch.from_arrays(arrays, names=names)
