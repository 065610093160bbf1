from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest

from headrace.runtime.epoch.log import EpochLog, EpochNumbers
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport


def plan(epoch: int, attempt: int = 0) -> EpochPlan:
    return EpochPlan("job", epoch, attempt, "dir", {SubtaskId("a", 0): SubtaskPlan()})


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("epochs-run/*"))


def test_the_input_and_output_of_an_epoch_are_logged(tmp_path: Path) -> None:
    log = EpochLog(str(tmp_path), "run")
    log.plan(plan(1))
    log.complete(1, [SubtaskReport(SubtaskId("a", 0), attempt_id="x")])
    stored = [pickle.loads((tmp_path / "epochs-run" / name).read_bytes()) for name in names(tmp_path)]
    assert stored == [plan(1), (SubtaskReport(SubtaskId("a", 0), attempt_id="x"),)]


def test_every_try_at_an_epoch_has_its_own_entry(tmp_path: Path) -> None:
    log = EpochLog(str(tmp_path), "run")
    log.plan(plan(1))
    log.plan(plan(1, attempt=1))
    assert names(tmp_path) == ["0000000001-0.plan", "0000000001-1.plan"]


def test_the_log_does_not_grow(tmp_path: Path) -> None:
    log = EpochLog(str(tmp_path), "run")
    for epoch in range(1, 30):
        log.plan(plan(epoch))
        log.complete(epoch, [])
        assert len(names(tmp_path)) <= 2
    assert names(tmp_path) == ["0000000029-0.plan", "0000000029.done"]


def test_the_last_completed_epoch_stays_until_the_next_one_is_complete(tmp_path: Path) -> None:
    log = EpochLog(str(tmp_path), "run")
    log.plan(plan(1))
    log.complete(1, [])
    log.plan(plan(2))
    log.plan(plan(2, attempt=1))
    assert "0000000001.done" in names(tmp_path)


def test_a_later_run_knows_which_numbers_are_taken_and_drops_the_log_of_the_earlier(tmp_path: Path) -> None:
    first = EpochLog(str(tmp_path), "first")
    assert EpochNumbers(str(tmp_path)).highest == 0
    first.plan(plan(7))
    first.complete(7, [])
    first.plan(plan(8))
    assert EpochNumbers(str(tmp_path)).highest == 8
    second = EpochLog(str(tmp_path), "run")
    second.plan(plan(9))
    assert (tmp_path / "epochs-first").exists()
    second.complete(9, [])
    assert [path.name for path in tmp_path.iterdir()] == ["epochs-run"]


def test_numbers_are_reserved_many_at_a_time_and_never_used_again(tmp_path: Path) -> None:
    numbers = EpochNumbers(str(tmp_path))
    for epoch in range(1, 66):
        numbers.use(epoch)
        assert numbers.highest == epoch
    assert [path.name for path in tmp_path.iterdir()] == ["reserved-0000000128"]
    # All that is known after a power loss is what was synced.
    assert EpochNumbers(str(tmp_path)).highest == 128


def test_a_number_is_reserved_again_if_the_reservation_could_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = EpochNumbers(str(tmp_path))
    synced: list[str] = []

    def fail(path: str) -> None:
        raise OSError(errno.EIO, "the disk fails")

    monkeypatch.setattr("headrace.storage.local.sync_directory", fail)
    with pytest.raises(OSError, match="the disk fails"):
        numbers.use(1)
    monkeypatch.setattr("headrace.storage.local.sync_directory", synced.append)
    numbers.use(1)
    assert synced == [str(tmp_path)]


def test_a_driver_that_wakes_takes_no_numbers_from_the_one_that_has_taken_over(tmp_path: Path) -> None:
    former = EpochNumbers(str(tmp_path))
    successor = EpochNumbers(str(tmp_path))
    successor.use(500)
    former.use(1)
    assert EpochNumbers(str(tmp_path)).highest >= 500
