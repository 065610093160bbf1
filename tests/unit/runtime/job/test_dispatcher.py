"""The dispatcher: jobs come in once, are found, and are remembered when they have ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.common.job_status import JobStatus
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.errors import JobSubmissionError, UnknownJobError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.high_availability.job_results import Ending, FileJobResults, JobResult
from headrace.runtime.high_availability.job_store import JobStore
from headrace.runtime.high_availability.lease import HighAvailabilitySettings, LeaderLease
from headrace.runtime.job.dispatcher import Dispatcher, JobRecovery, LiveJob
from headrace.runtime.job.history import EndedJob, JobHistory
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.jobs import BASE, job_graph, make_env

FIRST, SECOND = "1" * 32, "2" * 32
OPTIONS = {key: value for key, value in BASE.items() if key != "execution.target"}


def numbers(last: int, job_id: str = FIRST) -> JobGraph:
    env = make_env(parallelism=2)
    source = NumberSequenceSource(1, last)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").sink_to(BlackholeSink())
    return replace(job_graph(env, "numbers"), job_id=job_id)


ENDLESS = 10**12


def render(job: LiveJob) -> Mapping[str, str]:
    line = {"jid": job.job_id, "end-time": job.ended_ms, "state": job.status.name}
    return {"/jobs/overview": json.dumps({"jobs": [line]})}


class Cluster:
    """A dispatcher over mini clusters."""

    def __init__(self, *, results: FileJobResults | None = None, **settings: Any) -> None:
        self.jobs: list[MiniJob] = []
        self._results = results
        self.dispatcher = Dispatcher(archive=render, start=self._start, **settings)

    def _start(self, graph: JobGraph, configuration: Configuration) -> MiniJob:
        job = MiniJob(
            graph,
            configuration,
            on_epoch=lambda summary: self.dispatcher.observe(graph, summary),
            workers=1,
            results=self._results,
        )
        self.jobs.append(job)
        return job

    def submit(self, graph: JobGraph, options: dict[str, str] | None = None) -> LiveJob:
        small = {"headrace.epoch.max-records": "100"}
        return self.dispatcher.submit(graph, Configuration({**OPTIONS, **small, **(options or {})}))

    def end(self) -> None:
        for job in self.jobs:
            job.cancel().result(30)


def test_a_job_that_has_ended_is_found_in_the_history() -> None:
    cluster = Cluster()
    live = cluster.submit(numbers(10))
    cluster.jobs[0].wait()
    cluster.dispatcher.close()
    assert cluster.dispatcher.live_jobs() == ()
    ended = cluster.dispatcher.history.get(live.job_id)
    assert ended is not None
    assert json.loads(ended.overview)["jobs"][0]["state"] == "FINISHED"
    with pytest.raises(UnknownJobError, match="has ended"):
        cluster.dispatcher.live(live.job_id)


def test_two_jobs_run_side_by_side_and_one_can_be_cancelled() -> None:
    cluster = Cluster()
    first, second = cluster.submit(numbers(ENDLESS)), cluster.submit(numbers(ENDLESS, SECOND))
    assert [job.job_id for job in cluster.dispatcher.live_jobs()] == [FIRST, SECOND]
    first.job.cancel().result(30)
    assert first.status is JobStatus.CANCELED
    assert not second.status.is_terminal_state()
    cluster.end()


def test_an_id_that_runs_or_has_ended_is_refused() -> None:
    cluster = Cluster()
    cluster.submit(numbers(ENDLESS))
    with pytest.raises(JobSubmissionError, match="already"):
        cluster.submit(numbers(5))
    cluster.end()
    cluster.dispatcher.close()
    with pytest.raises(JobSubmissionError, match="already"):
        cluster.submit(numbers(5))
    assert len(cluster.jobs) == 1


def test_epochs_are_counted() -> None:
    cluster = Cluster()
    live = cluster.submit(numbers(1000))
    cluster.jobs[0].wait()
    subtasks = live.monitor.subtasks()
    assert sum(view.records_in for view in subtasks.values()) == 1000
    assert all(view.busy_ms > 0 for view in subtasks.values())
    epochs = live.monitor.epochs()
    assert [epoch.epoch for epoch in epochs] == list(range(1, len(epochs) + 1))
    assert sum(epoch.records for epoch in epochs) == 1000


def test_history_is_bounded_and_survives_a_restart(tmp_path: Path) -> None:
    history = JobHistory(str(tmp_path), capacity=2)
    for number in range(3):
        job_id = f"{number:032x}"
        line = json.dumps({"jobs": [{"jid": job_id, "end-time": number}]})
        history.add(EndedJob(job_id, number, {"/jobs/overview": line}))
    again = JobHistory(str(tmp_path), capacity=2)
    assert [job.job_id for job in again.jobs()] == [f"{1:032x}", f"{2:032x}"]
    assert len(list(tmp_path.iterdir())) == 2


def test_an_archive_is_of_the_form_that_flinks_history_server_reads(tmp_path: Path) -> None:
    line = json.dumps({"jobs": [{"jid": FIRST, "end-time": 7}]})
    JobHistory(str(tmp_path)).add(EndedJob(FIRST, 7, {"/jobs/overview": line}))
    assert json.loads((tmp_path / FIRST).read_text()) == {
        "archive": [{"path": "/jobs/overview", "json": line}]
    }


def test_a_damaged_archive_is_left_out(tmp_path: Path) -> None:
    (tmp_path / FIRST).write_text("{")
    assert JobHistory(str(tmp_path)).jobs() == ()


class Graphs:
    """Packs graphs by number."""

    def __init__(self) -> None:
        self.packed: dict[bytes, JobGraph] = {}

    def pack(self, graph: JobGraph) -> bytes:
        key = graph.job_id.encode()
        self.packed[key] = graph
        return key

    def unpack(self, data: bytes) -> JobGraph:
        return self.packed[data]


def test_a_job_is_persisted_before_it_runs_and_recovered_by_the_next_leader(tmp_path: Path) -> None:
    lease = LeaderLease(HighAvailabilitySettings(str(tmp_path), "test", 60_000))
    lease.acquire(5)
    store, graphs = JobStore(str(tmp_path / "jobs"), lease), Graphs()
    recovery = JobRecovery(store, FileJobResults(str(tmp_path / "results")), graphs.pack, graphs.unpack)
    first = Cluster(recovery=recovery)
    first.submit(numbers(ENDLESS))
    assert [job.job_id for job in store.jobs()] == [FIRST]

    second = Cluster(recovery=recovery)
    assert [job.job_id for job in second.dispatcher.recover()] == [FIRST]
    second.end()
    second.dispatcher.close()
    assert store.jobs() == []
    first.end()
    lease.release()


@pytest.mark.parametrize("is_dirty", [True, False])
@pytest.mark.parametrize("status", ["FINISHED", "FAILED", "CANCELED"])
def test_a_job_that_has_ended_is_not_run_again_by_the_next_leader(
    tmp_path: Path, status: Ending, is_dirty: bool
) -> None:
    """The leader was lost before it had removed the job from its store."""
    lease = LeaderLease(HighAvailabilitySettings(str(tmp_path), "test", 60_000))
    lease.acquire(5)
    store, graphs = JobStore(str(tmp_path / "jobs"), lease), Graphs()
    results = FileJobResults(str(tmp_path / "results"), continues_failed=False)
    recovery = JobRecovery(store, results, graphs.pack, graphs.unpack)
    first = Cluster(recovery=recovery)
    first.submit(numbers(ENDLESS))
    results.add_dirty(JobResult(FIRST, "numbers", status, 1))
    if not is_dirty:
        results.mark_clean(FIRST, JobStatus[status])

    second = Cluster(recovery=recovery, results=results)
    for live in second.dispatcher.recover():  # to be cleaned up, no more
        assert live.job.result_future().result(30) is not None
        assert live.master.progress.records == 0
    second.dispatcher.close()
    assert store.jobs() == []
    assert results.dirty() == []
    assert all(job.progress.records == 0 for job in second.jobs)
    with pytest.raises(JobSubmissionError, match="already"):
        second.submit(numbers(5))
    first.end()
    lease.release()


def test_results_of_jobs_that_the_store_has_forgotten_become_clean(tmp_path: Path) -> None:
    lease = LeaderLease(HighAvailabilitySettings(str(tmp_path), "test", 60_000))
    lease.acquire(5)
    store, graphs = JobStore(str(tmp_path / "jobs"), lease), Graphs()
    results = FileJobResults(str(tmp_path / "results"), delete_on_commit=True)
    results.add_dirty(JobResult(FIRST, "numbers", "FAILED", 1))
    cluster = Cluster(recovery=JobRecovery(store, results, graphs.pack, graphs.unpack))
    assert cluster.dispatcher.recover() == []
    assert results.find(FIRST) is None
    lease.release()


def test_a_job_that_does_not_start_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    lease = LeaderLease(HighAvailabilitySettings(str(tmp_path), "test", 60_000))
    lease.acquire(5)
    store, graphs = JobStore(str(tmp_path / "jobs"), lease), Graphs()

    def refuse(graph: JobGraph, configuration: Configuration) -> MiniJob:
        raise JobSubmissionError("no room")

    dispatcher = Dispatcher(
        archive=render,
        start=refuse,
        recovery=JobRecovery(store, FileJobResults(str(tmp_path / "results")), graphs.pack, graphs.unpack),
    )
    with pytest.raises(JobSubmissionError, match="no room"):
        dispatcher.submit(numbers(5), Configuration(OPTIONS))
    assert store.jobs() == []
    lease.release()
