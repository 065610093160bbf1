"""When checkpoints are due and what follows from their end. Time is a number; nothing sleeps."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.errors import CheckpointError, ConfigurationError, InvariantViolation
from headrace.runtime.checkpoint.coordinator import CheckpointCoordinator, DueSnapshot, PendingCheckpoint
from headrace.runtime.checkpoint.failure_reason import CheckpointFailureReason as Reason
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.checkpoint.statistics import CheckpointStatus, SavepointFormat, SnapshotType

CHECKPOINT, SAVEPOINT, STOP = SnapshotType.CHECKPOINT, SnapshotType.SAVEPOINT, SnapshotType.SYNC_SAVEPOINT


def running(last_id: int = 0, **options: Any) -> CheckpointCoordinator:
    """A coordinator of a job that runs since 0, with a checkpoint every 100 ms unless told otherwise."""
    values = {"interval_ms": 100, "timeout_ms": 1_000, "savepoint_directory": "/saved", **options}
    coordinator = CheckpointCoordinator(CheckpointSettings(**values), job="visits", last_id=last_id)
    coordinator.job_running(0)
    return coordinator


def types(due: tuple[DueSnapshot, ...]) -> list[SnapshotType]:
    return [each.type for each in due]


def start(coordinator: CheckpointCoordinator, now_ms: int, **options: Any) -> PendingCheckpoint:
    [due] = coordinator.due(now_ms, **options)
    pending = coordinator.start(due, now_ms, epoch=now_ms, num_subtasks=4)
    assert pending is not None
    return pending


def run(coordinator: CheckpointCoordinator, start_ms: int, end_ms: int) -> int:
    number = start(coordinator, start_ms).checkpoint_id
    assert coordinator.complete(number, end_ms, path=f"/chk-{number}")
    return number


def failure(future: Future[Any]) -> CheckpointError:
    error = future.exception(timeout=0)
    assert isinstance(error, CheckpointError)
    return error


# --- the interval ---------------------------------------------------------------------------------


def test_the_first_checkpoint_is_due_after_one_interval() -> None:
    coordinator = running()
    assert coordinator.due(99) == ()
    assert coordinator.next_due_ms() == 100
    assert coordinator.due(100) == (DueSnapshot(CHECKPOINT, is_periodic=True),)


def test_checkpoints_keep_their_rate() -> None:
    coordinator = running()
    for expected in (100, 200, 300):
        assert coordinator.next_due_ms() == expected
        run(coordinator, expected + 30, expected + 40)


def test_missed_checkpoints_are_not_made_up_for() -> None:
    coordinator = running()
    run(coordinator, 450, 460)
    assert coordinator.next_due_ms() == 500


def test_asking_changes_nothing() -> None:
    coordinator = running()
    assert coordinator.due(100) == coordinator.due(100)
    assert coordinator.next_id == 1


def test_without_an_interval_only_requests_are_served() -> None:
    coordinator = running(interval_ms=None)
    assert coordinator.next_due_ms() is None
    assert coordinator.due(10**9) == ()
    coordinator.trigger_checkpoint(5)
    assert coordinator.next_due_ms() == 5
    assert types(coordinator.due(5)) == [CHECKPOINT]


def test_nothing_is_due_before_the_job_runs() -> None:
    coordinator = CheckpointCoordinator(CheckpointSettings(interval_ms=100))
    assert coordinator.due(10**9) == ()
    assert coordinator.next_due_ms() is None


@pytest.mark.parametrize(("allowed", "expected"), [(True, [CHECKPOINT]), (False, [])])
def test_checkpoints_after_tasks_finish_may_be_switched_off(
    allowed: bool, expected: list[SnapshotType]
) -> None:
    coordinator = running(after_tasks_finish=allowed)
    assert types(coordinator.due(100, some_ended=True)) == expected
    assert types(coordinator.due(100)) == [CHECKPOINT]


# --- pause and concurrency ------------------------------------------------------------------------


def test_the_pause_counts_from_the_end_of_the_last_one() -> None:
    #   start 100 ........ end 180   pause 50   230
    coordinator = running(min_pause_ms=50)
    run(coordinator, 100, 180)
    assert coordinator.next_due_ms() == 230
    assert coordinator.due(229) == ()
    assert types(coordinator.due(230)) == [CHECKPOINT]


def test_a_checkpoint_that_failed_is_followed_by_the_pause_too() -> None:
    coordinator = running(min_pause_ms=50, tolerable_failures=9)
    coordinator.fail(start(coordinator, 100).checkpoint_id, 190, Reason.IO_EXCEPTION)
    assert coordinator.next_due_ms() == 240


def test_no_more_checkpoints_are_under_way_than_may_be() -> None:
    coordinator = running(max_concurrent=2)
    first = start(coordinator, 100)
    start(coordinator, 200)
    assert coordinator.due(300) == ()
    assert coordinator.next_due_ms() == first.deadline_ms
    coordinator.complete(first.checkpoint_id, 310, path="/chk-1")
    assert types(coordinator.due(310)) == [CHECKPOINT]


def test_a_request_waits_for_its_turn_but_not_for_the_pause() -> None:
    coordinator = running(min_pause_ms=80)
    first = start(coordinator, 100)
    coordinator.trigger_checkpoint(110)
    assert coordinator.due(110) == ()
    coordinator.complete(first.checkpoint_id, 120, path="/chk-1")
    [due] = coordinator.due(121)
    assert (due.type, due.is_periodic, len(due.requests)) == (CHECKPOINT, False, 1)


def test_savepoints_wait_for_nothing() -> None:
    coordinator = running(min_pause_ms=80)
    start(coordinator, 100)
    coordinator.trigger_savepoint(101)
    coordinator.trigger_savepoint(102, "/other", SavepointFormat.NATIVE)
    due = coordinator.due(102)
    assert [(each.type, each.target, each.format) for each in due] == [
        (SAVEPOINT, "/saved", SavepointFormat.CANONICAL),
        (SAVEPOINT, "/other", SavepointFormat.NATIVE),
    ]
    assert coordinator.next_due_ms() == 101


def test_a_savepoint_under_way_keeps_checkpoints_waiting() -> None:
    coordinator = running()
    coordinator.trigger_savepoint(10)
    start(coordinator, 10)
    assert coordinator.due(100) == ()


# --- requests -------------------------------------------------------------------------------------


def test_one_checkpoint_serves_all_who_wait_for_one() -> None:
    coordinator = running()
    futures = [coordinator.trigger_checkpoint(10), coordinator.trigger_checkpoint(20)]
    pending = start(coordinator, 100)
    assert pending.due.is_periodic
    late = coordinator.trigger_checkpoint(101)
    coordinator.complete(pending.checkpoint_id, 110, path="/chk-1")
    assert [future.result(0) for future in futures] == [1, 1]
    assert not late.done()


def test_a_savepoint_answers_with_its_path() -> None:
    coordinator = running()
    future = coordinator.trigger_savepoint(10, "/saved")
    pending = start(coordinator, 10)
    completion = coordinator.complete(pending.checkpoint_id, 20, path="/saved/savepoint-1")
    assert completion is not None
    assert not completion.stops_job
    assert future.result(0) == "/saved/savepoint-1"


def test_a_savepoint_needs_a_place() -> None:
    coordinator = running(savepoint_directory=None)
    with pytest.raises(
        ConfigurationError, match="no directory is given for a savepoint of job 'visits'"
    ) as caught:
        coordinator.trigger_savepoint(0)
    assert "execution.checkpointing.savepoint-dir" in (caught.value.hint or "")


def test_a_request_that_was_taken_back_is_not_served() -> None:
    coordinator = running()
    future = coordinator.trigger_savepoint(10)
    assert future.cancel()
    [due] = coordinator.due(10)
    assert coordinator.start(due, 10, epoch=1) is None
    assert coordinator.due(10) == ()
    assert coordinator.next_id == 1


def test_whoever_waits_may_ask_again_at_once() -> None:
    coordinator = running()
    again: list[Future[int]] = []
    future = coordinator.trigger_checkpoint(10)
    future.add_done_callback(lambda _: again.append(coordinator.trigger_checkpoint(30)))
    run(coordinator, 20, 30)
    assert len(coordinator.due(30)) == len(again) == 1


def test_what_is_not_due_cannot_be_started() -> None:
    coordinator = running()
    coordinator.trigger_checkpoint(1)
    [due] = coordinator.due(1)
    coordinator.start(due, 1, epoch=1)
    with pytest.raises(InvariantViolation, match="not due"):
        coordinator.start(due, 1, epoch=1)


# --- stopping -------------------------------------------------------------------------------------


def test_a_stop_ends_the_job_when_its_savepoint_is_complete() -> None:
    coordinator = running()
    future = coordinator.stop_with_savepoint(10)
    pending = start(coordinator, 500)
    assert pending.due.stops_job
    completion = coordinator.complete(pending.checkpoint_id, 510, path="/saved/s")
    assert completion is not None
    assert completion.stops_job
    # Whoever asked hears of it when the end of the job is written down.
    assert not future.done()
    completion.stopped()
    assert future.result(0) == "/saved/s"
    assert coordinator.due(10_000) == ()


def test_a_stop_that_cannot_be_recorded_is_reported() -> None:
    coordinator = running()
    future = coordinator.stop_with_savepoint(10)
    completion = coordinator.complete(start(coordinator, 500).checkpoint_id, 510, path="/saved/s")
    assert completion is not None
    completion.not_stopped(OSError("the disk fails"))
    with pytest.raises(OSError, match="the disk fails"):
        future.result(0)


def test_a_stop_with_drain_waits_until_the_sources_have_ended() -> None:
    coordinator = running()
    coordinator.stop_with_savepoint(10, drain=True)
    assert coordinator.stop_requested is not None
    assert coordinator.stop_requested.drain
    assert coordinator.due(500) == ()
    assert types(coordinator.due(500, drained=True)) == [STOP]


def test_while_a_job_stops_nothing_new_is_taken_but_what_waits_is_served_first() -> None:
    coordinator = running()
    coordinator.trigger_savepoint(5)
    coordinator.trigger_checkpoint(6)
    coordinator.stop_with_savepoint(10)
    refused = coordinator.trigger_savepoint(20)
    assert "being stopped" in failure(refused).message
    assert types(coordinator.due(500)) == [CHECKPOINT, SAVEPOINT, STOP]
    assert not coordinator.due(500)[0].is_periodic


def test_a_job_continues_when_its_stop_failed() -> None:
    coordinator = running()
    future = coordinator.stop_with_savepoint(10)
    pending = start(coordinator, 20)
    verdict = coordinator.fail(pending.checkpoint_id, 30, Reason.IO_EXCEPTION, OSError("no space left"))
    assert verdict.fail_over is None
    assert "no space left" in failure(future).message
    assert coordinator.stop_requested is None
    assert types(coordinator.due(100)) == [CHECKPOINT]


def test_a_stop_that_was_taken_back_leaves_the_job_running() -> None:
    coordinator = running()
    coordinator.stop_with_savepoint(10).cancel()
    [due] = coordinator.due(20)
    assert coordinator.start(due, 20, epoch=1) is None
    assert coordinator.stop_requested is None


# --- failures -------------------------------------------------------------------------------------


def test_failures_are_tolerated_up_to_a_number_in_a_row() -> None:
    coordinator = running(tolerable_failures=2)
    times = iter(range(100, 10_000, 100))

    def fail() -> CheckpointError | None:
        now = next(times)
        return coordinator.fail(start(coordinator, now).checkpoint_id, now, Reason.IO_EXCEPTION).fail_over

    assert [fail(), fail()] == [None, None]
    run(coordinator, next(times), 350)
    assert [fail(), fail()] == [None, None]
    error = fail()
    assert error is not None
    assert "3 consecutive checkpoints failed, more than" in error.message
    assert fail() is None, "counting starts over"


def test_by_default_the_first_failure_is_one_too_many() -> None:
    coordinator = running()
    cause = OSError("no space left")
    verdict = coordinator.fail(
        start(coordinator, 100).checkpoint_id, 110, Reason.FINALIZE_CHECKPOINT_FAILURE, cause
    )
    assert verdict.failed == (1,)
    assert verdict.fail_over is not None
    assert verdict.fail_over.__cause__ is cause


def test_a_savepoint_that_fails_does_not_count() -> None:
    coordinator = running()
    future = coordinator.trigger_savepoint(10)
    assert coordinator.fail(start(coordinator, 10).checkpoint_id, 20, Reason.IO_EXCEPTION).fail_over is None
    assert failure(future).reason == "IO_EXCEPTION"


def test_a_checkpoint_that_takes_too_long_is_given_up() -> None:
    coordinator = running()
    pending = start(coordinator, 100)
    assert coordinator.expire(1_099).failed == ()
    assert coordinator.next_due_ms() == 1_100
    verdict = coordinator.expire(1_100)
    assert verdict.failed == (1,)
    assert verdict.fail_over is not None
    assert verdict.fail_over.reason == "CHECKPOINT_EXPIRED"
    assert coordinator.complete(pending.checkpoint_id, 1_101, path="/late") is None
    assert coordinator.fail(pending.checkpoint_id, 1_102, Reason.IO_EXCEPTION).failed == ()


def test_a_completed_checkpoint_makes_older_ones_useless_but_not_savepoints() -> None:
    coordinator = running(max_concurrent=3)
    waiting = coordinator.trigger_checkpoint(1)
    start(coordinator, 1)
    coordinator.trigger_savepoint(2)
    start(coordinator, 2)
    third = start(coordinator, 100)
    completion = coordinator.complete(third.checkpoint_id, 110, path="/chk-3")
    assert completion is not None
    assert completion.subsumed == (1,)
    assert failure(waiting).reason == "CHECKPOINT_SUBSUMED"
    assert [each.checkpoint_id for each in coordinator.pending] == [2]


# --- the job's life -------------------------------------------------------------------------------


def test_a_failing_job_gives_up_what_is_under_way_and_what_waits() -> None:
    coordinator = running()
    under_way = coordinator.trigger_savepoint(1)
    start(coordinator, 1)
    waiting = coordinator.stop_with_savepoint(2)
    assert coordinator.job_failed(50, ValueError("bad record")) == (1,)
    for future in (under_way, waiting):
        assert failure(future).reason == "JOB_FAILURE"
        assert "bad record" in failure(future).message
    assert coordinator.due(10_000) == ()
    coordinator.job_running(10_000)
    assert coordinator.next_due_ms() == 10_100


def test_numbers_continue_after_a_recovery() -> None:
    coordinator = running(last_id=7)
    assert run(coordinator, 100, 110) == 8
    coordinator.job_failed(150)
    coordinator.restored(8, 160, path="/chk-8", is_savepoint=False)
    coordinator.job_running(200)
    assert run(coordinator, 300, 310) == 9
    fresh = running()
    fresh.restored(41, 0, path="/saved/s", is_savepoint=True)
    assert run(fresh, 100, 110) == 42


def test_after_the_end_nothing_is_due_and_nothing_is_taken() -> None:
    coordinator = running()
    waiting = coordinator.trigger_checkpoint(1)
    coordinator.shutdown(2)
    assert failure(waiting).reason == "CHECKPOINT_COORDINATOR_SHUTDOWN"
    assert "the job has ended" in failure(coordinator.trigger_savepoint(3)).message
    assert coordinator.due(10_000) == ()
    assert coordinator.next_due_ms() is None


def test_at_the_end_of_the_input_only_requested_checkpoints_are_due() -> None:
    coordinator = running()
    coordinator.input_ended()
    assert coordinator.due(1_000) == ()

    coordinator.trigger_checkpoint(1_000)
    [due] = coordinator.due(1_000)
    assert not due.is_periodic


def test_statistics_follow_what_happens() -> None:
    coordinator = running(tolerable_failures=5)
    coordinator.restored(3, 0, path="/chk-3", is_savepoint=False, state_size=9)
    run(coordinator, 100, 150)
    coordinator.trigger_savepoint(160)
    run(coordinator, 160, 190)
    coordinator.fail(start(coordinator, 200).checkpoint_id, 210, Reason.IO_EXCEPTION)
    start(coordinator, 300)
    coordinator.discarded([4])
    found = coordinator.statistics()
    assert (found.counts.restored, found.counts.total, found.counts.in_progress) == (1, 4, 1)
    assert (found.counts.completed, found.counts.failed) == (2, 1)
    assert [(r.id, r.status, r.discarded) for r in found.history] == [
        (7, CheckpointStatus.IN_PROGRESS, False),
        (6, CheckpointStatus.FAILED, False),
        (5, CheckpointStatus.COMPLETED, False),
        (4, CheckpointStatus.COMPLETED, True),
    ]
    assert found.summary["end_to_end_duration"].max == 50
    assert found.latest_savepoint is not None
    assert found.latest_savepoint.savepoint_format is SavepointFormat.CANONICAL
    assert found.latest_restored is not None
    assert found.latest_restored.state_size == 9


# --- any order ------------------------------------------------------------------------------------


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens in whatever order: numbers rise, limits hold, nobody waits forever."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.settings = CheckpointSettings(
            interval_ms=100,
            timeout_ms=300,
            min_pause_ms=0,
            max_concurrent=2,
            tolerable_failures=1,
            savepoint_directory="/s",
            history_size=4,
        )
        self.coordinator = CheckpointCoordinator(self.settings)
        self.coordinator.job_running(0)
        self.numbers: list[int] = []
        self.futures: list[Future[Any]] = []

    @rule(by=st.integers(0, 150))
    def time_passes(self, by: int) -> None:
        self.now += by

    @rule(kind=st.sampled_from(["checkpoint", "savepoint", "stop"]), drain=st.booleans())
    def somebody_asks(self, kind: str, drain: bool) -> None:
        coordinator = self.coordinator
        if kind == "checkpoint":
            self.futures.append(coordinator.trigger_checkpoint(self.now))
        elif kind == "savepoint":
            self.futures.append(coordinator.trigger_savepoint(self.now))
        else:
            self.futures.append(coordinator.stop_with_savepoint(self.now, drain=drain))

    @precondition(lambda self: self.futures)
    @rule(data=st.data())
    def somebody_gives_up(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.futures)).cancel()

    @rule(drained=st.booleans())
    def an_epoch_ends(self, drained: bool) -> None:
        for due in self.coordinator.due(self.now, drained=drained):
            pending = self.coordinator.start(due, self.now, epoch=self.now)
            if pending is not None:
                assert not self.numbers or pending.checkpoint_id > self.numbers[-1]
                self.numbers.append(pending.checkpoint_id)

    @precondition(lambda self: self.coordinator.pending)
    @rule(data=st.data(), reason=st.sampled_from(list(Reason)), good=st.booleans())
    def a_snapshot_ends(self, data: st.DataObject, reason: Reason, good: bool) -> None:
        number = data.draw(st.sampled_from(self.coordinator.pending)).checkpoint_id
        if good:
            completion = self.coordinator.complete(number, self.now, path=f"/{number}")
            assert completion is not None
            if completion.stops_job:
                completion.stopped()
        else:
            assert self.coordinator.fail(number, self.now, reason).failed == (number,)

    @rule()
    def late_ones_are_given_up(self) -> None:
        self.coordinator.expire(self.now)
        assert all(each.deadline_ms > self.now for each in self.coordinator.pending)

    @rule()
    def the_job_fails_over(self) -> None:
        self.coordinator.job_failed(self.now)
        assert all(future.done() for future in self.futures)
        self.coordinator.job_running(self.now)

    @invariant()
    def limits_hold(self) -> None:
        checkpoints = [each for each in self.coordinator.pending if each.due.type is CHECKPOINT]
        assert len(checkpoints) <= self.settings.max_concurrent
        counts = self.coordinator.statistics().counts
        assert counts.in_progress == len(self.coordinator.pending)
        assert counts.total == counts.in_progress + counts.completed + counts.failed == len(self.numbers)
        ended = [
            r for r in self.coordinator.statistics().history if r.status is not CheckpointStatus.IN_PROGRESS
        ]
        assert len(ended) <= self.settings.history_size

    @invariant()
    def what_is_due_was_announced(self) -> None:
        if self.coordinator.due(self.now):
            announced = self.coordinator.next_due_ms()
            assert announced is not None
            assert announced <= self.now

    def teardown(self) -> None:
        self.coordinator.shutdown(self.now)
        assert all(future.done() for future in self.futures)


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
