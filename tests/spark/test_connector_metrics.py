"""The metrics of a source and a sink on REST: a table job shows what a stream job shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from headrace.common import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.base import (
    Boundedness,
    Committable,
    Committer,
    KnownSplits,
    ReaderContext,
    Sink,
    SinkWriter,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.elements import MIN_WATERMARK, Batch
from headrace.graph.job_graph import JobGraph
from headrace.graph.table_job import TableInput, TableNode, build_table_job
from headrace.operators.table.declarations import TableScanDeclaration, TableSinkDeclaration
from headrace.rest.resources.metrics import scope_name
from headrace.runtime.job.dispatcher import LiveJob
from headrace.spark.executor import Listeners, SparkExecutor
from tests.conftest import BASE
from tests.spark.table_jobs import bigint, straight
from tests.unit.rest.conftest import RestCluster, wait_until
from tests.unit.runtime.jobs import job_graph, make_env

pytestmark = pytest.mark.spark

RECORDS = 6


class Numbers(Source):
    """0 to 5, two in each epoch. It does not end. Every other number counts as an error, all of them as waiting."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return _Enumerator()

    def create_reader(self) -> SourceReader:
        return _Reader()


class _Enumerator(KnownSplits):
    def __init__(self) -> None:
        super().__init__([SourceSplit("numbers")])

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        return None if position >= RECORDS else Slice(split, position, position + 2)


class _Reader(SourceReader):
    _end = 0

    def open(self, context: ReaderContext) -> None:
        self._errors = context.metrics.counter("numRecordsInErrors")
        context.metrics.gauge("pendingRecords", lambda: RECORDS - self._end)
        context.metrics.add_group("reader").meter("reads")

    def read(self, piece: Slice) -> Iterator[Batch]:
        self._errors.inc()
        self._end = piece.end
        yield Batch([(number,) for number in range(piece.start, piece.end)])

    def progress(self) -> SplitProgress:
        return SplitProgress(self._end, is_finished=False)


class Nowhere(Sink, SinkWriter, Committer):
    def create_writer(self, context: Any) -> SinkWriter:
        return self

    def create_committer(self, *context: Any) -> Committer:
        return self

    def write(self, value: Any, timestamp: int | None) -> None:
        pass

    def prepare_commit(self) -> Sequence[Any]:
        return ()

    def commit(self, committables: Sequence[Committable]) -> None:
        pass

    def close(self) -> None:
        pass


class OnSpark(RestCluster):
    """The same application in front of jobs on Spark."""

    def _start(self, graph: JobGraph, configuration: Configuration) -> Any:
        listeners = Listeners(epoch_completed=self.dispatcher.observe)
        return SparkExecutor(listeners=[listeners]).submit(graph, configuration)


def stream_job() -> JobGraph:
    env = make_env(parallelism=1)
    numbers = env.from_source(Numbers(), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.sink_to(Nowhere())
    return job_graph(env, "numbers")


def table_job() -> JobGraph:
    schema = (bigint("n"),)
    scan = TableNode(TableScanDeclaration(Numbers(), schema=schema), "numbers")
    sink = TableNode(
        TableSinkDeclaration(Nowhere(), schema=schema), "nowhere", (TableInput(0, straight(schema)),)
    )
    return build_table_job([scan, sink], job_id=uuid4().hex, name="numbers", parallelism=1)


def metrics(rest: RestCluster, job: LiveJob) -> list[dict[str, str]]:
    """Return the metrics of each operator, as REST shows them, but for rates: they depend on the clock."""
    found = []
    for vertex in job.master.job.vertices:
        path = f"/jobs/{job.job_id}/vertices/{vertex.vertex_id}/subtasks/0/metrics"
        names = [each["id"] for each in rest.get(path) if not each["id"].endswith("PerSecond")]
        values = {each["id"]: each["value"] for each in rest.get(f"{path}?get={','.join(names)}")}
        for node in vertex.operators:
            prefix = f"{scope_name(node.name)}."
            found.append(
                {name.removeprefix(prefix): values[name] for name in names if name.startswith(prefix)}
            )
    return found


def test_a_table_job_shows_the_metrics_of_its_connectors_as_a_stream_job_does(spark_session: Any) -> None:
    streams = RestCluster()
    stream = streams.submit(stream_job())
    wait_until(lambda: len(stream.monitor.epochs()) == RECORDS // 2, "all records of the stream")
    expected = metrics(streams, stream)
    streams.close()
    no_time = {"currentInputWatermark": str(MIN_WATERMARK), "currentOutputWatermark": str(MIN_WATERMARK)}
    assert expected == [
        {
            "numRecordsIn": "6",
            "numRecordsOut": "6",
            "numRecordsInErrors": "3",
            "pendingRecords": "0",
            "reader.reads": "0.0",
            "reader.reads_count": "0",
            **no_time,
        },
        {"numRecordsIn": "6", "numRecordsOut": "0", **no_time},
    ]

    tables = OnSpark()
    table = tables.submit(table_job(), BASE)
    wait_until(lambda: len(table.monitor.epochs()) == RECORDS // 2, "all rows of the table", seconds=120)
    found = metrics(tables, table)
    table.master.cancel()
    wait_until(lambda: table.ended_ms is not None, "the end of the job")

    assert found == expected
