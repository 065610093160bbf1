"""Statistics of checkpoints: what REST will be asked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.checkpoint.statistics import (
    CheckpointRecord,
    CheckpointStatistics,
    CheckpointStatus,
    Percentiles,
    RestoredRecord,
    SnapshotType,
    SubtaskStatistics,
    Summary,
    TaskStatistics,
    percentile,
)

CHECKPOINT, SAVEPOINT = SnapshotType.CHECKPOINT, SnapshotType.SAVEPOINT


def run(
    statistics: CheckpointStatistics, number: int, *, kind: SnapshotType = CHECKPOINT, size: int = 10
) -> None:
    statistics.started(CheckpointRecord(number, kind, 1_000 * number, 4))
    statistics.completed(
        number, 1_000 * number + 50, path=f"/chk-{number}", state_size=size, checkpointed_size=1
    )


def ids(statistics: CheckpointStatistics) -> list[int]:
    return [record.id for record in statistics.snapshot().history]


def test_nothing_has_happened_yet() -> None:
    found = CheckpointStatistics(10).snapshot()
    assert found.counts.total == 0
    assert found.history == ()
    assert found.summary["state_size"].min == 0
    assert math.isnan(found.summary["state_size"].p50)
    assert found.latest_completed is found.latest_failed is found.latest_savepoint is None


def test_a_completed_checkpoint_has_all_that_flinks_answer_has() -> None:
    statistics = CheckpointStatistics(10)
    task = TaskStatistics(
        "v", (SubtaskStatistics(0, 1_040, 3, 7, processed_data=5), SubtaskStatistics(1, 1_030, 4, 8))
    )
    statistics.started(CheckpointRecord(1, CHECKPOINT, 1_000, 2, epoch=9))
    statistics.completed(1, 1_050, path="/chk-1", state_size=15, checkpointed_size=7, tasks=[task])
    [record] = statistics.snapshot().history
    assert record == CheckpointRecord(
        id=1,
        checkpoint_type=CHECKPOINT,
        trigger_timestamp=1_000,
        num_subtasks=2,
        status=CheckpointStatus.COMPLETED,
        epoch=9,
        num_acknowledged_subtasks=2,
        latest_ack_timestamp=1_050,
        checkpointed_size=7,
        state_size=15,
        processed_data=5,
        end_to_end_duration=50,
        external_path="/chk-1",
        tasks={"v": task},
    )
    assert (record.class_name, record.is_savepoint) == ("completed", False)
    assert (task.latest_ack_timestamp, task.checkpointed_size, task.state_size) == (1_040, 7, 15)


def test_a_failed_one_says_when_and_why() -> None:
    statistics = CheckpointStatistics(10)
    statistics.started(CheckpointRecord(1, CHECKPOINT, 1_000, 2))
    statistics.failed(1, 1_700, "no space left")
    found = statistics.snapshot()
    assert found.latest_failed == found.history[0]
    record = found.history[0]
    assert (record.class_name, record.failure_timestamp, record.failure_message) == (
        "failed",
        1_700,
        "no space left",
    )
    assert record.end_to_end_duration == 700
    assert (found.counts.failed, found.counts.in_progress, found.counts.total) == (1, 0, 1)
    assert math.isnan(found.summary["end_to_end_duration"].p50)


def test_savepoints_and_checkpoints_have_their_own_latest() -> None:
    statistics = CheckpointStatistics(10)
    run(statistics, 1)
    run(statistics, 2, kind=SAVEPOINT)
    found = statistics.snapshot()
    assert found.latest_completed is not None
    assert found.latest_savepoint is not None
    assert (found.latest_completed.id, found.latest_savepoint.id) == (1, 2)
    assert found.counts.completed == 2


def test_history_forgets_the_oldest_but_none_under_way() -> None:
    statistics = CheckpointStatistics(3)
    statistics.started(CheckpointRecord(1, CHECKPOINT, 0, 1))
    for number in range(2, 7):
        run(statistics, number)
    assert ids(statistics) == [6, 5, 1]
    statistics.failed(1, 9_000, "late")
    assert ids(statistics) == [6, 5, 1]
    run(statistics, 7)
    assert ids(statistics) == [7, 6, 5]
    assert statistics.snapshot().counts.total == 7


def test_no_history_is_possible() -> None:
    statistics = CheckpointStatistics(0)
    run(statistics, 1)
    assert ids(statistics) == []
    assert statistics.snapshot().latest_completed is not None


def test_a_deleted_checkpoint_is_marked() -> None:
    statistics = CheckpointStatistics(10)
    run(statistics, 1)
    run(statistics, 2)
    statistics.discarded(1)
    statistics.discarded(77)
    assert [record.discarded for record in statistics.snapshot().history] == [False, True]
    latest = statistics.snapshot().latest_completed
    assert latest is not None
    assert not latest.discarded


def test_restored_checkpoints_are_counted_and_the_last_one_is_kept() -> None:
    statistics = CheckpointStatistics(10)
    statistics.restored(RestoredRecord(3, 100, False, "/chk-3"))
    statistics.restored(RestoredRecord(4, 200, True, "/sp"))
    found = statistics.snapshot()
    assert found.counts.restored == 2
    assert found.latest_restored == RestoredRecord(4, 200, True, "/sp")


# --- percentiles ----------------------------------------------------------------------------------


def test_a_summary_of_real_durations_is_what_flink_says() -> None:
    series = Summary()
    for duration in (241, 57, 54, 38, 44, 57, 51, 61):
        series.add(duration)
    assert series.percentiles() == Percentiles(38, 241, 75, 55.5, 241.0, 241.0, 241.0, 241.0)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.floats(0.01, 0.999))
def test_a_percentile_lies_between_the_ends_and_splits_the_values(values: list[int], point: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, point)
    assert ordered[0] <= found <= ordered[-1]
    assert sum(value < found for value in ordered) <= point * (len(ordered) + 1)
    assert sum(value > found for value in ordered) <= (1 - point) * (len(ordered) + 1) + 1e-6


def test_old_values_leave_percentiles_and_stay_in_the_extremes() -> None:
    series = Summary()
    series.add(10**6)
    for _ in range(10_000):
        series.add(1)
    found = series.percentiles()
    assert (found.max, found.p999) == (10**6, 1.0)


def test_no_values_have_no_percentile() -> None:
    assert math.isnan(percentile([], 0.5))
    with pytest.raises(KeyError):
        CheckpointStatistics(1).failed(9, 0, "never started")
