"""Scans and sinks of a table job in a worker: readers and writers are treated as those of a stream job."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headrace.connectors.base import ReaderContext, Sink, SinkWriter, Slice, WriterContext
from headrace.connectors.collection import CollectionSource
from headrace.elements import Batch
from headrace.errors import UserFunctionError
from headrace.graph.table_job import TableInput, TableNode, build_table_job
from headrace.metrics.reports import CounterReport, MetricName
from headrace.operators.table.declarations import TableScanDeclaration, TableSinkDeclaration
from headrace.operators.table.steps import Fragment, StepColumn
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.task.kept_tasks import KeptTasks
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.table_time import VertexTime
from headrace.spark import table_worker

COLUMN = StepColumn("n", "BIGINT", pa.int64())

#: What readers and writers were told, in order.
LOG: list[str] = []


class LoggedReader:
    """A reader that counts what it reads, and logs how it is treated."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._context: ReaderContext | None = None
        LOG.append("made")

    def open(self, context: ReaderContext) -> None:
        LOG.append("opened")
        self._context = context
        self._seen = context.metrics.counter("seen")

    def read(self, piece: Slice) -> Iterator[Batch]:
        assert self._context is not None
        LOG.append(f"attempt {self._context.attempt}")
        for batch in self._reader.read(piece):
            self._seen.inc(len(batch))
            yield batch

    def progress(self) -> Any:
        return self._reader.progress()

    def close(self) -> None:
        LOG.append("closed")


class LoggedSource(CollectionSource):
    def create_reader(self) -> Any:
        return LoggedReader(super().create_reader())


class LoggedWriter(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        LOG.append(f"writer of epoch {context.epoch}, subtask {context.subtask} of {context.parallelism}")
        self._written: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        if value[0] < 0:
            raise ValueError("negative")
        self._written.append(value[0])

    def prepare_commit(self) -> Sequence[Any]:
        return [sum(self._written)]

    def abort(self) -> None:
        LOG.append("aborted")

    def close(self) -> None:
        LOG.append("closed")


class LoggedSink(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LoggedWriter(context)

    def create_committer(self, *_: Any) -> Any:
        raise NotImplementedError


@dataclass
class Worker:
    """A worker with one job, from a collection to a sink."""

    values: Sequence[Any] = ((1,), (2,), (3,))
    told: list[SubtaskReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = LoggedSource(list(self.values))
        [self.split] = self.source.create_enumerator(1).discover()
        scan = TableNode(TableScanDeclaration(self.source, schema=(COLUMN,)), "numbers")
        sink = TableNode(
            TableSinkDeclaration(LoggedSink(), schema=(COLUMN,)),
            "total",
            (TableInput(0, Fragment((), (COLUMN,))),),
        )
        self.job = build_table_job([scan, sink], job_id="0" * 32, name="sums", parallelism=1)
        code = JobCode(self.job, "line", TaskSettings(scratch_name="scratch"))
        self._code = SimpleNamespace(value=code)

    def functions(self, vertex: int, plan: SubtaskPlan) -> tuple[str, table_worker.TableFunctions]:
        vertex_id = self.job.vertices[vertex].vertex_id
        messages = SimpleNamespace(tell=self.told.append)
        epoch = EpochPlan("job", 7, 0, "", {SubtaskId(vertex_id, 0): plan})
        return vertex_id, table_worker.TableFunctions("job", self._code, messages, epoch)  # type: ignore[arg-type]

    def read(self, *positions: int, **plan: Any) -> list[Any]:
        """Read from position to position, a slice each, as the scan of a table does in an epoch."""
        slices = tuple(Slice(self.split, start, end) for start, end in pairwise(positions))
        own = SubtaskPlan(slices, open_splits=frozenset({self.split.split_id}), **plan)
        vertex_id, functions = self.functions(0, own)
        seed = pa.RecordBatch.from_pydict({"id": [0]})
        rows = functions.reading(vertex_id, None)([seed])
        return [value for batch in rows for value in batch.column(0).to_pylist()]

    def write(self, *values: int) -> SubtaskReport:
        vertex_id, functions = self.functions(1, SubtaskPlan())
        batch = pa.RecordBatch.from_pydict({"n": pa.array(values, pa.int64())})
        [out] = functions.writing(vertex_id, VertexTime(0, 0, is_final=False), has_packets=False)([batch])
        report: SubtaskReport = pickle.loads(out.column(0)[0].as_py())
        return report


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    LOG.clear()
    monkeypatch.setattr(table_worker, "_scans", KeptTasks())
    monkeypatch.setattr(table_worker, "_codes", {})
    monkeypatch.setattr(table_worker, "unpack_job", lambda code: code)
    task = SimpleNamespace(attemptNumber=lambda: 2, partitionId=lambda: 0)
    monkeypatch.setattr(table_worker, "TaskContext", SimpleNamespace(get=lambda: task))


def test_a_reader_is_opened_once_and_kept_for_the_next_epoch() -> None:
    worker = Worker()
    assert worker.read(0, 2) == [1, 2]
    assert worker.read(2, 3) == [3]
    assert LOG == ["made", "opened", "attempt 2", "attempt 2"]


def test_a_reader_is_closed_when_its_subtask_has_ended() -> None:
    worker = Worker()
    worker.read(0, 2, may_get_more_splits=False)
    assert "closed" not in LOG
    worker.read(2, 3, may_get_more_splits=False)
    assert [report.has_ended for report in worker.told] == [False, True]
    assert LOG[-1] == "closed"


def test_a_reader_that_has_failed_is_closed() -> None:
    worker = Worker([(1,), ("no number",)])
    for _ in range(2):
        with pytest.raises(Exception, match="no number"):
            worker.read(1, 2)
    assert worker.read(0, 1) == [1]
    life = [each for each in LOG if "attempt" not in each]
    assert life == ["made", "opened", "closed"] * 2 + ["made", "opened"]


def test_a_reader_whose_rows_are_no_longer_wanted_is_closed() -> None:
    worker = Worker()
    vertex_id, functions = worker.functions(0, SubtaskPlan((Slice(worker.split, 0, 3),)))
    rows = functions.reading(vertex_id, None)([pa.RecordBatch.from_pydict({"id": [0]})])
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert LOG[-1] == "closed"
    assert not worker.told


def test_what_a_reader_counts_is_reported_once() -> None:
    worker = Worker()
    worker.read(0, 2)
    worker.read(2, 3)
    operator_id = worker.job.vertices[0].head.operator_id
    seen = [report.user_metrics[operator_id][MetricName("seen")] for report in worker.told]
    assert seen == [CounterReport(2), CounterReport(1)]


def test_an_epoch_reads_no_more_than_it_may() -> None:
    worker = Worker()
    assert worker.read(0, 2, 3, max_records=2) == [1, 2]
    [report] = worker.told
    assert (report.records_in, report.progress[worker.split.split_id].position) == (2, 2)
    assert report.spark_attempt == 2
    assert report.epoch == (7, 0)


def test_the_error_of_a_reader_names_operator_and_attempt() -> None:
    with pytest.raises(Exception, match="no number") as raised:
        Worker([("no number",)]).read(0, 1)
    error = raised.value.__cause__
    assert isinstance(error, UserFunctionError)
    assert (error.job, error.operator, error.subtask, error.attempt) == ("sums", "numbers", 0, 2)


def test_a_writer_is_of_one_epoch() -> None:
    worker = Worker()
    report = worker.write(1, 2)
    assert report.committables == {worker.job.vertices[1].head.operator_id: (3,)}
    assert report.records_in == 2
    assert LOG == ["writer of epoch 7, subtask 0 of 1", "closed"]


def test_an_epoch_without_rows_has_no_writer() -> None:
    assert Worker().write().committables == {}
    assert LOG == []


def test_a_writer_that_fails_is_aborted_and_closed() -> None:
    with pytest.raises(Exception, match="negative") as raised:
        Worker().write(1, -1)
    error = raised.value.__cause__
    assert isinstance(error, UserFunctionError)
    assert (error.operator, error.attempt) == ("total", 2)
    assert LOG[1:] == ["aborted", "closed"]
