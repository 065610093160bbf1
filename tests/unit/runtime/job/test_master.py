from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.common.job_status import JobStatus
from headrace.common.typeinfo import Types
from headrace.connectors.base import Committable, Committer, CommitterContext, Sink
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import MapFunction
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import (
    ConnectorError,
    JobCancelledError,
    LeadershipError,
    TaskLostError,
    UserFunctionError,
)
from headrace.graph.execution_graph import ExecutionState
from headrace.graph.operator_ids import hash_of_uid
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport, lowest_watermark
from headrace.state.compaction import compact
from headrace.state.descriptors import ValueStateDescriptor
from headrace.testing.mini_cluster import Fault, TaskAttempt, random_faults
from headrace.testing.sources import ScriptedSource, Stop
from tests.unit.runtime.fakes import ListSink, published
from tests.unit.runtime.jobs import Run, make_env, run, start
from tests.unit.runtime.test_whole_jobs import NO_TIME

WORDS = "to be or not to be that is the question".split()


def counting(env: StreamExecutionEnvironment) -> DataStream:
    """level 0: source -> map      level 1: sum -> sink"""
    pairs = env.from_collection(WORDS).map(lambda word: (word, 1)).set_parallelism(1)
    return pairs.key_by(lambda pair: pair[0]).sum(1)


EXPECTED = sorted((word, n + 1) for word, count in Counter(WORDS).items() for n in range(count))


def endless(env: StreamExecutionEnvironment, directory: Path) -> DataStream:
    """Two words, then nothing until somebody resumes it."""
    source = ScriptedSource(["a", "b", Stop(), "c"], directory=directory)
    return env.from_source(source, NO_TIME, "script").key_by(str).map(str.upper)


# --- to the end -----------------------------------------------------------------------------------


def test_a_bounded_job_ends_by_itself() -> None:
    finished = run(counting, parallelism=2, max_records=3)
    assert sorted(finished.output) == EXPECTED
    job = finished.job
    assert job.status() is JobStatus.FINISHED
    assert set(job.master.execution.state_counts().items()) >= {(ExecutionState.FINISHED, 3)}
    assert finished.results.is_closed


def test_epochs_are_as_large_as_they_may_be_and_their_number_rises() -> None:
    job = run(counting, max_records=4).job
    assert [summary.epoch for summary in job.epochs] == [1, 2, 3]
    assert [summary.records for summary in job.epochs] == [4, 4, 2]
    assert (job.progress.epochs, job.progress.records) == (3, 10)


def test_a_job_without_input_ends_at_once() -> None:
    finished = run(lambda env: env.from_collection([], Types.INT()).map(lambda n: n))
    assert (finished.output, len(finished.job.epochs)) == ([], 1)


def test_nothing_of_a_job_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(counting, max_records=3)
    assert not any(tmp_path.iterdir())


def test_an_idle_job_waits_and_continues(tmp_path: Path) -> None:
    second_epoch = threading.Event()
    script = ScriptedSource(["a", "b", Stop(), "c"], directory=tmp_path)

    def program(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_source(script, NO_TIME, "script").map(str.upper)

    started = start(program, on_epoch=lambda summary: second_epoch.set())
    assert second_epoch.wait(10)
    assert started.job.status() is JobStatus.RUNNING
    script.resume()
    started.job.wait()
    assert started.output == ["A", "B", "C"]


# --- sinks ----------------------------------------------------------------------------------------


def test_every_epoch_is_published_once_and_in_order() -> None:
    faults = {
        TaskAttempt(1, 1, 0): Fault.AFTER,
        TaskAttempt(2, 1, 1): Fault.WORKER_KILLED,
        TaskAttempt(3, 0, 0): Fault.HOST_LOST,
        TaskAttempt(4, 0, 0): Fault.RECOMPUTED,
    }
    finished = run(counting, parallelism=2, max_records=3, faults=faults)
    # `ListSink` fails where something is published twice or out of order.
    assert sorted(finished.output) == EXPECTED
    assert finished.results.epochs == sorted(finished.results.epochs)
    assert len(finished.job.cluster.failures) == 3


def test_two_sinks_get_all_records_each() -> None:
    names = ["left", "right"]

    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(range(10))
        for name in names:
            numbers.map(lambda n: n).sink_to(ListSink(name))
        return numbers

    finished = run(program, max_records=3, faults=random_faults(3, 0.1))
    assert [sorted(published[name].records) for name in names] == [list(range(10))] * 2
    assert sorted(finished.output) == list(range(10))


def test_an_epoch_is_written_down_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a driver that is lost in between would publish it again, under another number."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []

    class Looking(Committer):
        def commit(self, committables: Sequence[Committable]) -> None:
            [log] = tmp_path.rglob("epochs-*")
            seen.append((committables[0].epoch, sorted(path.name for path in log.glob("*.done"))))

    class LookingSink(ListSink):
        def create_committer(self) -> Committer:
            return Looking()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(range(4))
        numbers.sink_to(LookingSink("looking"))
        return numbers

    run(program, max_records=2)
    assert seen == [(1, ["0000000001.done"]), (2, ["0000000002.done"])]


def test_committers_know_their_operator_and_are_notified_at_the_end() -> None:
    story: list[Any] = []

    class Telling(Committer):
        def commit(self, committables: Sequence[Committable]) -> None:
            story.append("commit")

        def finish(self) -> None:
            story.append("finish")

        def close(self) -> None:
            story.append("close")

    class TellingSink(ListSink):
        def create_committer(self, context: CommitterContext) -> Committer:  # type: ignore[override]
            story.append(context)
            return Telling()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(range(4))
        numbers.sink_to(TellingSink("telling")).uid("orders")
        return numbers

    run(program, max_records=2)
    assert story[1:] == ["commit", "commit", "finish", "close"]
    assert len(story[0].job_id) == 32
    assert story[0].sink_id == hash_of_uid("orders")
    assert story[0].staging_dir.endswith("/sinks")
    assert not story[0].is_checkpointed


def test_an_idle_job_publishes_by_the_clock(tmp_path: Path) -> None:
    """Files get old enough while nothing comes."""
    has_published = threading.Event()

    class Patient(Committer):
        def __init__(self) -> None:
            self.holds = False

        def commit(self, committables: Sequence[Committable]) -> None:
            if not committables:
                has_published.set()
            self.holds = bool(committables)

        def next_commit_ms(self) -> int | None:
            return 1 if self.holds else None

    class PatientSink(ListSink):
        def create_committer(self) -> Committer:
            return Patient()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        words = endless(env, tmp_path)
        words.sink_to(PatientSink("patient"))
        return words

    started = start(program)
    assert has_published.wait(10)
    started.job.cancel().result(10)


def test_a_sink_that_cannot_publish_fails_the_job() -> None:
    class Full(Committer):
        def commit(self, committables: Sequence[Committable]) -> None:
            raise ConnectorError("disk full")

    class FullSink(ListSink):
        def create_committer(self) -> Committer:
            return Full()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(range(10))
        numbers.sink_to(FullSink("full"))
        return numbers

    started = start(program)
    with pytest.raises(ConnectorError, match="disk full"):
        started.job.wait()
    assert started.job.status() is JobStatus.FAILED


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.WORKER_KILLED])
def test_a_task_that_fails_is_tried_again_within_the_epoch(fault: Fault) -> None:
    faults = {TaskAttempt(2, level, 0, attempt): fault for level in (0, 1) for attempt in (0, 1)}
    finished = run(counting, parallelism=2, max_records=3, faults=faults)
    assert sorted(finished.output) == EXPECTED
    assert len(finished.job.cluster.failures) == 4
    assert [plan.attempt for plan in finished.job.cluster.plans] == [0, 0, 0, 0]


@pytest.mark.parametrize("fault", [Fault.HOST_LOST, Fault.RECOMPUTED])
def test_an_epoch_that_was_lost_is_run_again_with_the_same_slices(fault: Fault) -> None:
    faults = {TaskAttempt(2, 0, 0): fault, TaskAttempt(2, 0, 0, epoch_attempt=1): fault}
    finished = run(counting, parallelism=2, max_records=3, faults=faults)
    assert sorted(finished.output) == EXPECTED
    plans = finished.job.cluster.plans
    assert [(plan.epoch, plan.attempt) for plan in plans] == [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (4, 0)]
    assert plans[1].subtasks == plans[2].subtasks == plans[3].subtasks


def test_an_epoch_that_is_lost_again_and_again_fails_the_job() -> None:
    started = start(
        counting,
        options={"headrace.epoch.retries": 2},
        faults=lambda place: Fault.HOST_LOST if place.epoch == 2 else None,
        max_records=3,
    )
    with pytest.raises(TaskLostError, match="host was lost"):
        started.job.wait()
    assert [plan.attempt for plan in started.job.cluster.plans] == [0, 0, 1, 2]
    assert started.job.status() is JobStatus.FAILED
    assert started.results.epochs == [1]


def test_a_task_that_always_fails_fails_the_job_with_its_first_reason() -> None:
    def divide(value: int) -> float:
        return 1 / (value - 5)

    started = start(lambda env: env.from_collection(range(10)).map(divide).name("Divide"), max_records=3)
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        started.job.wait()
    assert (caught.value.operator, caught.value.record, caught.value.attempt) == ("Divide", "5", 3)
    assert len(started.job.cluster.failures) == 4, "one try and three retries"
    execution = started.job.master.execution
    assert (execution.status, execution.failure_cause) == (JobStatus.FAILED, caught.value)
    assert {subtask.current.state for _, subtask in execution.subtasks()} == {ExecutionState.FAILED}
    assert started.output == [1 / (n - 5) for n in range(3)], "the epochs before stay published"
    assert started.results.is_closed


def test_an_error_that_goes_away_is_survived(tmp_path: Path) -> None:
    marker = tmp_path / "tried"

    def sometimes(value: int) -> int:
        if value == 5 and not marker.exists():
            marker.touch()
            raise OSError("not now")
        return value

    finished = run(lambda env: env.from_collection(range(10)).map(sometimes), max_records=3)
    assert finished.output == list(range(10))


def test_an_error_in_the_middle_of_a_batch_leaves_nothing_of_it_behind(tmp_path: Path) -> None:
    marker = tmp_path / "tried"

    class Sometimes(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.sum = runtime_context.get_state(ValueStateDescriptor("sum", None))

        def map(self, value: int) -> int:
            total: int = (self.sum.value() or 0) + value
            self.sum.update(total)
            if value == 7 and not marker.exists():
                marker.touch()
                raise OSError("not now")
            return total

    finished = run(
        lambda env: env.from_collection(range(10)).key_by(lambda n: 0).map(Sometimes()), max_records=4
    )
    assert finished.output == [sum(range(n + 1)) for n in range(10)]


# --- cancelling -----------------------------------------------------------------------------------


def test_an_idle_job_is_cancelled(tmp_path: Path) -> None:
    has_run = threading.Event()
    started = start(lambda env: endless(env, tmp_path), on_epoch=lambda summary: has_run.set())
    assert has_run.wait(10)
    started.job.cancel().result(10)
    with pytest.raises(JobCancelledError):
        started.job.wait()
    assert started.job.status() is JobStatus.CANCELED
    states = {subtask.current.state for _, subtask in started.job.master.execution.subtasks()}
    assert states == {ExecutionState.CANCELED}
    assert started.results.is_closed
    assert sorted(started.output) == ["A", "B"]


def test_a_job_is_cancelled_between_two_epochs() -> None:
    has_started = threading.Event()

    def cancel(summary: Any) -> None:
        assert has_started.wait(10)
        if summary.epoch == 2:
            started.job.cancel()

    started = start(lambda env: env.from_collection(range(100)), max_records=1, on_epoch=cancel)
    has_started.set()
    with pytest.raises(JobCancelledError, match="'test' was cancelled"):
        started.job.wait()
    assert started.results.epochs == [1, 2]


def test_a_job_cancelled_in_its_last_epoch_is_cancelled_and_not_failed() -> None:
    has_started = threading.Event()

    def cancel(summary: Any) -> None:
        assert has_started.wait(10)
        started.job.cancel()

    started = start(lambda env: env.from_collection(range(3)).map(str), on_epoch=cancel)
    has_started.set()
    with pytest.raises(JobCancelledError):
        started.job.wait()
    assert started.job.status() is JobStatus.CANCELED
    assert started.output == ["0", "1", "2"]


def waiting_for_its_restart() -> Run:
    """A job that has failed, and would start again in an hour."""

    def fail(_: Any) -> None:
        raise RuntimeError("the observer is broken")

    options = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "1 h",
    }
    started = start(lambda env: env.from_collection(range(9)), options=options, on_epoch=fail)
    deadline = time.monotonic() + 10
    while started.job.status() is not JobStatus.RESTARTING and time.monotonic() < deadline:
        time.sleep(0.001)
    assert started.job.status() is JobStatus.RESTARTING
    return started


def test_a_job_that_waits_for_its_restart_is_cancelled_at_once() -> None:
    started = waiting_for_its_restart()
    started.job.cancel()
    with pytest.raises(JobCancelledError):
        started.job.wait(10)
    assert started.job.status() is JobStatus.CANCELED
    assert started.job.progress.restarts == 0


def test_a_job_that_waits_for_its_restart_is_handed_over_at_once() -> None:
    started = waiting_for_its_restart()
    started.job.master.step_down(LeadershipError("another process leads"))
    with pytest.raises(LeadershipError):
        started.job.wait(10)
    assert started.job.status() is JobStatus.SUSPENDED
    assert started.job.progress.restarts == 0


def test_cancelling_twice_or_too_late_changes_nothing() -> None:
    finished = run(counting)
    finished.job.cancel().result(10)
    finished.job.cancel().result(10)
    assert finished.job.status() is JobStatus.FINISHED


def test_an_epoch_at_work_is_interrupted(tmp_path: Path) -> None:
    at_work, cancelled = threading.Event(), threading.Event()

    def slow(value: Any) -> Any:
        at_work.set()
        assert cancelled.wait(10)
        return value

    # The first level is at work when the job is cancelled; the second is not begun.
    started = start(
        lambda env: env.from_collection([1]).map(slow).rebalance().map(str).set_parallelism(2), parallelism=1
    )
    assert at_work.wait(10)
    future = started.job.cancel()
    cancelled.set()
    future.result(10)
    with pytest.raises(JobCancelledError):
        started.job.wait()
    assert started.output == []


# --- state files ----------------------------------------------------------------------------------


def test_chains_are_compacted_and_old_files_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    most = []

    def count_files(summary: Any) -> None:
        files = [name for _, _, names in os.walk(tmp_path) for name in names]
        most.append(sum(name.endswith((".change", ".merged")) for name in files))

    finished = run(
        lambda env: env.from_collection(range(200)).key_by(lambda n: n % 5).reduce(lambda a, b: a + b),
        max_records=2,
        options={"headrace.state.compaction.max-changes": 4},
        on_epoch=count_files,
    )
    assert len(finished.job.epochs) == 100
    assert finished.job.cluster.compactions > 10
    assert max(most) <= 16
    assert finished.output[-1] == sum(range(4, 200, 5))


def test_a_failed_compaction_is_logged_and_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[str] = []

    def sometimes(files: Any, path: str) -> int:
        if not failures:
            failures.append(path)
            raise OSError("storage is away")
        return compact(files, path)

    monkeypatch.setattr("headrace.testing.mini_cluster.compact", sometimes)
    with caplog.at_level(logging.WARNING, logger="headrace"):
        finished = run(
            lambda env: env.from_collection(range(20)).key_by(lambda n: 0).reduce(lambda a, b: a + b),
            max_records=1,
            options={"headrace.state.compaction.max-changes": 3},
        )
    assert finished.output[-1] == sum(range(20))
    assert finished.job.cluster.compactions > 1
    assert "storage is away" in caplog.text


# --- warnings, progress ---------------------------------------------------------------------------


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Counts(MapFunction):
        last: Any = None

        def map(self, value: Any) -> Any:
            self.last = threading.Lock()
            return value

    with caplog.at_level(logging.WARNING, logger="headrace"):
        run(lambda env: env.from_collection(range(10)).map(Counts()), max_records=2)
    assert sum("its own field last" in record.message for record in caplog.records) == 1


def report(
    vertex: str, subtask: int = 0, watermark: int | None = None, attempt_id: str = "", **more: Any
) -> SubtaskReport:
    return SubtaskReport(SubtaskId(vertex, subtask), attempt_id=attempt_id, watermark=watermark, **more)


def test_the_watermark_of_a_job_is_that_of_its_slowest_subtask() -> None:
    assert lowest_watermark([report("a", watermark=7), report("b", watermark=5)]) == 5
    assert lowest_watermark([report("a", watermark=7), report("b", watermark=None)]) is None
    assert lowest_watermark([report("a", watermark=7), report("b", watermark=MIN_WATERMARK)]) is None
    assert lowest_watermark([report("a", watermark=7), report("b", has_ended=True)]) == 7
    assert lowest_watermark([report("a", watermark=MAX_WATERMARK)]) is None
    assert lowest_watermark([]) is None


def test_a_sink_without_a_committer_publishes_by_itself() -> None:
    class Direct(ListSink):
        def create_committer(self) -> None:  # type: ignore[override]
            return None

    env = make_env()
    sink: Sink = Direct("direct")
    env.from_collection([1]).sink_to(sink)
    env.execute("test")
