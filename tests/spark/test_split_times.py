"""Splits of a table that continue side by side: the slowest says what time it is, so that nothing in order is late."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from headrace.connectors.base import (
    Boundedness,
    KnownSplits,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.elements import Batch
from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table.declarations import (
    AggSpec,
    TableScanDeclaration,
    TableWatermarkSpec,
    TableWindowSpec,
    WindowAggregateDeclaration,
    WindowKind,
)
from headrace.operators.table.steps import Fragment, Select, StepColumn
from tests.spark.table_jobs import bigint, collect, straight, string

pytestmark = pytest.mark.spark

#: Both are in order; in each epoch one comes ten times as far as the other.
TIMES = {"slow": range(10), "fast": range(0, 100, 10)}
NAME, TIME, COUNT = string("name"), bigint("ts"), bigint("n")


class SideBySide(Source):
    concurrent_splits = None
    has_split_watermarks = True

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return _Enumerator()

    def create_reader(self) -> SourceReader:
        return _Reader()


class _Enumerator(KnownSplits):
    def __init__(self) -> None:
        super().__init__(SourceSplit(name) for name in TIMES)

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice:
        # One record at a time, whatever an epoch may have.
        return Slice(split, position, position + 1)


class _Reader(SourceReader):
    def read(self, piece: Slice) -> Iterator[Batch]:
        name = piece.split.split_id
        self._end, self._count = piece.end, len(TIMES[name])
        yield Batch([(name, ms) for ms in TIMES[name][piece.start : piece.end]])

    def progress(self) -> SplitProgress:
        return SplitProgress(self._end, self._end >= self._count)


def test_rows_of_the_slower_split_are_not_late() -> None:
    scan = TableScanDeclaration(
        SideBySide(),
        schema=(NAME, TIME),
        fragment=Fragment((Select((("ts + 0", "ts"), ("name", "name"))),), (TIME, NAME)),
        watermark=TableWatermarkSpec("ts", "{} - 1"),
    )
    start = StepColumn("window_start", "TIMESTAMP_NTZ", pa.timestamp("us"))
    node = TableNode(
        WindowAggregateDeclaration(
            (NAME, COUNT, start),
            window=TableWindowSpec(WindowKind.TUMBLE, "ts", size_ms=5),
            keys=("name",),
            calls=(AggSpec("COUNT", (), COUNT),),
            properties=("window_start",),
            is_insert_only=True,
        ),
        "windows",
        (TableInput(0, straight((TIME, NAME))),),
        uid="windows",
    )
    rows = collect([TableNode(scan, "scan", uid="scan"), node], (NAME, COUNT, start), parallelism=1)
    counted = sorted((name, count, begin.microsecond // 1000) for name, count, begin in map(tuple, rows))
    assert counted == [*(("fast", 1, ms) for ms in TIMES["fast"]), ("slow", 5, 0), ("slow", 5, 5)]
