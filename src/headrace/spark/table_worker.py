"""What runs in Spark's python workers for a table job: stateful nodes, python sources and writers of sinks.

Rows go from stage to stage as Arrow batches; reports go to the driver beside them (`task_messages.py`). Behind a sink
there are no rows: there the report is what comes out.
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext

from headrace.common.types import Row
from headrace.connectors.base import ReaderContext, Slice, SourceReader, SplitProgress, WriterContext
from headrace.elements import Batch
from headrace.errors import HeadraceError, InvariantViolation, UserFunctionError
from headrace.graph.job_graph import JobVertex, OperatorNode
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.table.bridge import from_bytes, rows_of, to_bytes
from headrace.operators.table.declarations import KIND, Schema, TableScan, TableSink
from headrace.operators.table.factory import as_spark_gives
from headrace.runtime.epoch.messages import (
    Crossing,
    EpochPlan,
    SubtaskId,
    SubtaskReport,
    rows_producer,
    sink_staging_dir,
)
from headrace.runtime.exchange.buffers import (
    TABLE_EDGE,
    Header,
    pack_table_rows,
    read_header,
    unpack_table_rows,
)
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.table_task import KeptTasks
from headrace.runtime.task.table_time import VertexTime
from headrace.spark.failures import carry
from headrace.spark.python_calls import CallSite
from headrace.spark.table_frames import Sides, split_sides
from headrace.spark.user_code import unpack_job
from headrace.util import clock

if TYPE_CHECKING:
    from pyspark import Broadcast

    from headrace.spark.task_messages import TaskMessages

Batches = Iterable[pa.RecordBatch]
#: Rows in a batch that goes back to Spark.
_OUT_ROWS = 1 << 16

_codes: dict[str, JobCode] = {}
_KEPT_JOBS = 4
#: Readers of python sources, by job, vertex and subtask. They have connections, which are dear to make anew.
_readers: dict[tuple[str, SubtaskId], tuple[SourceReader, _ScanContext]] = {}
_tasks = KeptTasks()


class TableFunctions:
    """The functions of one epoch's stages; small: the job's code comes once, as a broadcast."""

    def __init__(self, job_key: str, code: Broadcast[bytes], messages: TaskMessages, plan: EpochPlan) -> None:
        self._job_key = job_key
        self._code = code
        self._messages = messages
        self._plan = plan

    def site(self, vertex: JobVertex, node: OperatorNode) -> CallSite:
        """Say where functions are that are called with the rows of an operator."""
        return CallSite(
            vertex.vertex_id,
            node.operator_id,
            vertex.name,
            vertex.parallelism,
            vertex.max_parallelism,
            self._messages,
        )

    def stateful(
        self, vertex_id: str, at: VertexTime, sides: Sides
    ) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stateful node's stage, behind an `exchange` of its inputs."""
        job_key, code, messages = self._job_key, self._code, self._messages
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                subtask, inputs = split_sides(list(batches), sides)
                if subtask is None:
                    raise InvariantViolation("a subtask of a table job got no control row")
                known = _job_code(job_key, code)
                with _tasks.task(job_key, known, SubtaskId(vertex_id, subtask)) as task:
                    output, report = task.run(pickle.loads(plan), at, inputs, _attempt())
                messages.tell(report)
            yield from output.combine_chunks().to_batches(_OUT_ROWS)

        return run

    def writing(self, vertex_id: str, at: VertexTime) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a sink's stage: what comes out of a partition is the report of its subtask."""
        job_key, code = self._job_key, self._code
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                context = TaskContext.get()
                assert context is not None
                known = _job_code(job_key, code)
                subtask = SubtaskId(vertex_id, context.partitionId())
                report = _write(known, subtask, pickle.loads(plan), at, batches)
            packed = pa.array([pickle.dumps(report, protocol=5)], pa.binary())
            yield pa.RecordBatch.from_arrays([packed], names=["report"])

        return run

    def receiving(self, vertex_id: str, operator_id: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stage that takes what came out of streams, and gives one operator's rows of it."""
        messages = self._messages

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                read: set[Crossing] = set()
                for batch in batches:
                    for buffer in batch.column(0).to_pylist():
                        header = read_header(buffer)
                        if header.edge_id != TABLE_EDGE:
                            continue
                        owner, rows = unpack_table_rows(buffer)
                        if owner == operator_id:
                            producer = SubtaskId(vertex_id, header.producer)
                            read.add(Crossing(producer, f"{header.attempt:016x}", is_made=False))
                            yield from_bytes(rows)
                messages.tell(*read)

        return run

    def handing_over(self, vertex_id: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a stage that makes buffers of rows, for the subtasks of a stream."""
        messages = self._messages

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                context = TaskContext.get()
                assert context is not None
                partition, attempt_id = context.partitionId(), uuid4().hex[:16]
                full = (batch for batch in batches if batch.num_rows)
                for sequence, batch in enumerate(full):
                    header = Header(0, partition, TABLE_EDGE, partition, int(attempt_id, 16), sequence)
                    buffer = pack_table_rows(header, vertex_id, to_bytes(batch))
                    yield pa.RecordBatch.from_arrays([pa.array([buffer], pa.binary())], names=["value"])
                made = Crossing(rows_producer(vertex_id, partition), attempt_id, is_made=True)
                messages.tell(made)

        return run

    def reading(self, vertex_id: str, split: str | None) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Return the function of a python source's stage; its input is a row with the number of the subtask.

        Args:
            vertex_id: The scan.
            split: The column in which rows say which of the subtask's slices they are of; None if nobody asks.
        """
        job_key, code, messages = self._job_key, self._code, self._messages
        plan = pickle.dumps(_part(self._plan, vertex_id), protocol=5)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            with _carried():
                known = _job_code(job_key, code)
                for batch in batches:
                    for number in batch.column(0).to_pylist():
                        subtask = SubtaskId(vertex_id, number)
                        reader = _ScanReader(job_key, known, subtask, pickle.loads(plan))
                        yield from reader.run(split)
                        messages.tell(reader.report())

        return run


class _ScanContext(ReaderContext):
    """Lends a reader its metrics, as long as the reader is kept."""

    @property
    def metrics(self) -> InMemoryMetricGroup:
        return self._metrics


class _ScanReader:
    """Reads the slices of one subtask of a python source."""

    def __init__(self, job_key: str, code: JobCode, subtask: SubtaskId, plan: EpochPlan) -> None:
        vertex = code.job.vertex(subtask.vertex_id)
        declaration = vertex.head.declaration
        assert isinstance(declaration, TableScan)
        self._key = (job_key, subtask)
        self._scan = declaration
        self._name = vertex.name
        self._operator_id = vertex.head.operator_id
        self._job_name = code.job.name
        self._subtask = subtask
        self._plan = plan.subtasks[subtask]
        self._schema = as_spark_gives(declaration.schema)
        self._progress: dict[str, SplitProgress] = {}
        self._records = 0
        self._started, self._started_ms = time.perf_counter_ns(), clock.now_ms()

    def run(self, split: str | None) -> Iterator[pa.RecordBatch]:
        kept = _readers.pop(self._key, None)
        reader, self._context = kept or self._open_reader()
        is_done = False
        try:
            for number, piece in enumerate(self._plan.slices):
                left = None if self._plan.max_records is None else self._plan.max_records - self._records
                if left is not None and left <= 0:
                    break
                for batch in reader.read(_capped(piece, left)):
                    self._records += len(batch)
                    rows = _to_arrow(batch, self._schema, has_kinds=self._scan.has_kinds)
                    if split is not None:
                        rows = rows.append_column(
                            split, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
                        )
                    yield rows
                self._progress[piece.split.split_id] = reader.progress()
            is_done = True
        except HeadraceError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(
                error, job=self._job_name, operator=self._name, subtask=self._subtask.subtask
            ) from error
        finally:
            if is_done:
                _readers[self._key] = reader, self._context
            else:
                reader.close()

    def _open_reader(self) -> tuple[SourceReader, _ScanContext]:
        reader, context = self._scan.source.create_reader(), _ScanContext()
        reader.open(context)
        return reader, context

    def report(self) -> SubtaskReport:
        metrics = self._context.metrics.reports()
        finished = {name for name, progress in self._progress.items() if progress.is_finished}
        return SubtaskReport(
            subtask=self._subtask,
            attempt_id=uuid4().hex[:16],
            progress=self._progress,
            has_ended=not self._plan.may_get_more_splits and self._plan.open_splits <= finished,
            records_in=self._records,
            records_out=self._records,
            user_metrics={self._operator_id: metrics} if metrics else {},
            **_place(self._started, self._started_ms),
        )


def _write(
    code: JobCode, subtask: SubtaskId, plan: EpochPlan, at: VertexTime, batches: Batches
) -> SubtaskReport:
    """Hand rows to a sink's writer."""
    started, started_ms = time.perf_counter_ns(), clock.now_ms()
    vertex = code.job.vertex(subtask.vertex_id)
    declaration = vertex.head.declaration
    assert isinstance(declaration, TableSink)
    attempt_id = uuid4().hex[:16]
    context = WriterContext(
        subtask=subtask.subtask,
        parallelism=vertex.parallelism,
        epoch=plan.epoch,
        attempt_id=attempt_id,
        job_id=plan.job_id,
        sink_id=vertex.head.operator_id,
        staging_dir=sink_staging_dir(plan.state_dir),
    )
    names = [column.name for column in declaration.schema]
    writer = None
    records = 0
    committables: tuple[Any, ...] = ()
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            if writer is None:  # an epoch without records stages nothing
                writer = declaration.sink.create_writer(context)
            writer.write_batch(Batch(rows_of(batch, names, names)))
            records += batch.num_rows
        if writer is not None:
            committables = tuple(writer.prepare_commit())
    except BaseException as error:
        if writer is not None:
            writer.abort()
        if isinstance(error, HeadraceError) or not isinstance(error, Exception):
            raise
        raise UserFunctionError.from_exception(
            error, job=code.job.name, operator=vertex.name, subtask=subtask.subtask
        ) from error
    finally:
        if writer is not None:
            writer.close()
    return SubtaskReport(
        subtask=subtask,
        attempt_id=attempt_id,
        committables={vertex.head.operator_id: committables} if committables else {},
        has_ended=at.is_final,
        watermark=at.after,
        records_in=records,
        **_place(started, started_ms),
    )


def _place(started: int, started_ms: int) -> dict[str, Any]:
    return {
        "busy_ns": time.perf_counter_ns() - started,
        "started_ms": started_ms,
        "ended_ms": clock.now_ms(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "spark_attempt": _attempt(),
    }


def _to_arrow(batch: Batch, schema: Schema, *, has_kinds: bool) -> pa.RecordBatch:
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


def _capped(piece: Slice, max_records: int | None) -> Slice:
    if max_records is None or (piece.max_records is not None and piece.max_records <= max_records):
        return piece
    return replace(piece, max_records=max_records)


def _part(plan: EpochPlan, vertex_id: str) -> EpochPlan:
    """Return what subtasks of one vertex must know of a plan."""
    own = {subtask: part for subtask, part in plan.subtasks.items() if subtask.vertex_id == vertex_id}
    return replace(plan, subtasks=own)


def _job_code(job_key: str, code: Broadcast[bytes]) -> JobCode:
    known = _codes.get(job_key)
    if known is None:
        known = _codes[job_key] = unpack_job(code.value)
        while len(_codes) > _KEPT_JOBS:
            gone = next(iter(_codes))
            _codes.pop(gone)
            for key in [key for key in _readers if key[0] == gone]:
                _readers.pop(key)[0].close()
    return known


@contextmanager
def _carried() -> Iterator[None]:
    """Have the driver hear what a worker failed with."""
    try:
        yield
    except (Exception, SystemExit) as error:  # whatever it was, the driver must be able to say it
        raise carry(error) from error


def _attempt() -> int:
    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0
