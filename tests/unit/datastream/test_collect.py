from __future__ import annotations

from typing import Any

import pytest

from headrace.connectors import collect
from headrace.connectors.collect import CollectSink
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.data_stream import CloseableIterator
from headrace.errors import InvalidTopologyError, JobDefinitionError, JobExecutionError
from headrace.operators.io import SinkDeclaration
from tests.unit.datastream.fakes import FakeJob, RecordingExecutor, stream_graph


@pytest.fixture(autouse=True)
def _jobs_go_on(monkeypatch: pytest.MonkeyPatch, jobs: list[FakeJob]) -> None:
    monkeypatch.setattr(RecordingExecutor, "finishes", False)


def collector_of(job: FakeJob) -> collect.Collector:
    """Find the collector a job's sink writes to."""
    declaration: Any = job.job_graph.vertices[-1].operators[-1].declaration
    assert isinstance(declaration, SinkDeclaration)
    assert isinstance(declaration.sink, CollectSink)
    return collect._registry[declaration.sink.collect_id]


def collecting(env: StreamExecutionEnvironment) -> CloseableIterator:
    rows = env.from_collection([1]).map(str).execute_and_collect("job")
    assert isinstance(rows, CloseableIterator)
    return rows


def test_rows_come_while_the_job_runs(env: StreamExecutionEnvironment, jobs: list[FakeJob]) -> None:
    rows = collecting(env)
    (job,) = jobs
    assert (job.job_graph.name, job.job_graph.vertices[-1].parallelism) == ("job", 1)

    collector_of(job).put([1, 2])
    assert (rows.next(), next(rows)) == (1, 2)
    collector_of(job).put([3])
    job.finish()

    assert list(rows) == [3]
    assert not job.is_cancelled
    assert collect._registry == {}


def test_the_jobs_error_comes_after_its_rows(env: StreamExecutionEnvironment, jobs: list[FakeJob]) -> None:
    rows = collecting(env)
    collector_of(jobs[0]).put([1])
    jobs[0].future.set_exception(JobExecutionError("boom"))

    assert next(rows) == 1
    with pytest.raises(JobExecutionError, match="boom"):
        next(rows)
    assert list(rows) == []


def test_closing_early_cancels_the_job(env: StreamExecutionEnvironment, jobs: list[FakeJob]) -> None:
    with collecting(env) as rows:
        collector_of(jobs[0]).put([1, 2])
        assert next(rows) == 1

    assert jobs[0].is_cancelled
    assert list(rows) == []
    assert collect._registry == {}
    rows.close()


def test_closing_after_the_end_cancels_nothing(env: StreamExecutionEnvironment, jobs: list[FakeJob]) -> None:
    rows = collecting(env)
    jobs[0].finish()
    rows.close()
    assert not jobs[0].is_cancelled


def test_a_limit_gives_a_list_and_stops_the_job(
    env: StreamExecutionEnvironment, jobs: list[FakeJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit_and_write(self: RecordingExecutor, job_graph: Any, configuration: Any) -> FakeJob:
        job = FakeJob(job_graph, configuration)
        jobs.append(job)
        collector_of(job).put([1, 2, 3, 4])
        return job

    monkeypatch.setattr(RecordingExecutor, "submit", submit_and_write)

    assert env.from_collection([1]).map(str).execute_and_collect(limit=2) == [1, 2]
    assert jobs[0].is_cancelled


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_must_be_positive(env: StreamExecutionEnvironment, limit: int) -> None:
    with pytest.raises(JobDefinitionError, match=f"the limit must be positive, got {limit}"):
        env.from_collection([1]).execute_and_collect(limit=limit)


def test_a_job_that_cannot_be_submitted_leaves_nothing_behind(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1]).map(str)
    broken = stream.set_parallelism(2).forward()

    with pytest.raises(InvalidTopologyError, match="forward"):
        broken.execute_and_collect()

    assert collect._registry == {}
    assert [node.name for node in stream_graph(env).nodes] == ["Source: Collection Source", "Map"]
