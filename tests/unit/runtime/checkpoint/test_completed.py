"""Which checkpoints stay, which files they hold, and what goes at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.job_status import JobStatus
from headrace.config.options.checkpointing import ExternalizedCheckpointRetention as Retention
from headrace.errors import InvariantViolation
from headrace.runtime.checkpoint.completed import CompletedCheckpointStore, Freed
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint
from tests.unit.runtime.checkpoint.snapshots import checkpoint, written


def stored(number: int, *files: str) -> StoredCheckpoint:
    return StoredCheckpoint(f"/d/chk-{number}", checkpoint(number, *files))


def store(
    retained: int = 1, retention: Retention = Retention.RETAIN_ON_CANCELLATION
) -> CompletedCheckpointStore:
    return CompletedCheckpointStore(retained=retained, retention=retention)


# --- retaining ------------------------------------------------------------------------------------


def test_as_many_stay_as_are_asked_for() -> None:
    kept = store(retained=2)
    assert kept.latest is None
    first, second, third = stored(1, "/a"), stored(2, "/a", "/b"), stored(3, "/c")
    assert kept.add(first) == Freed()
    assert kept.add(second) == Freed()
    assert kept.add(third) == Freed((first,))
    kept.deleted([first])
    assert kept.checkpoints == (third, second)
    assert kept.latest == third


def test_a_file_is_free_when_the_last_checkpoint_that_names_it_goes() -> None:
    kept = store(retained=2)
    kept.add(stored(1, "/base", "/1"))
    kept.add(stored(2, "/base", "/1", "/2"))
    freed = kept.add(stored(3, "/merged"))
    assert freed.files == ()
    kept.deleted(freed.checkpoints)
    assert kept.named_files() == {"/base", "/1", "/2", "/merged"}
    assert kept.add(stored(4, "/merged", "/4")).files == ("/1", "/2", "/base")


def test_files_of_a_withdrawn_checkpoint_that_may_be_there_stay_until_a_later_one_is_complete() -> None:
    kept = store()
    kept.add(stored(1, "/base"))
    withdrawn = stored(2, "/base", "/2")
    kept.hold([withdrawn])
    assert kept.retire(["/base", "/2"]) == ()
    assert kept.latest == stored(1, "/base")
    freed = kept.add(stored(3, "/merged"))
    assert freed == Freed((stored(1, "/base"), withdrawn), ("/2", "/base"))
    kept.deleted(freed.checkpoints)
    assert kept.named_files() == {"/merged"}


def test_a_checkpoint_that_could_not_be_deleted_holds_its_files_until_it_can() -> None:
    kept = store()
    first, second, third = stored(1, "/base", "/1"), stored(2, "/base", "/2"), stored(3, "/merged")
    kept.add(first)
    assert kept.add(second) == Freed((first,), ("/1",))
    # It is still there: nobody has said otherwise.
    assert kept.named_files() == {"/base", "/1", "/2"}
    assert kept.retire(["/1"]) == ()
    assert kept.add(third) == Freed((first, second), ("/1", "/2", "/base"))
    kept.deleted([first])
    assert kept.named_files() == {"/base", "/2", "/merged"}
    kept.deleted([second])
    assert kept.named_files() == {"/merged"}


def test_a_checkpoint_does_not_come_after_a_later_one() -> None:
    kept = store()
    kept.add(stored(5))
    with pytest.raises(InvariantViolation, match="checkpoint 5 completed after a later one"):
        kept.add(stored(5))


def test_files_released_by_live_state_wait_for_the_checkpoints() -> None:
    kept = store()
    kept.add(stored(1, "/a", "/b"))
    assert kept.retire(["/a", "/never-in-a-checkpoint"]) == ("/never-in-a-checkpoint",)
    assert kept.add(stored(2, "/b")).files == ("/a",)


def test_a_checkpoint_being_written_holds_its_files() -> None:
    kept = store()
    kept.pin(1, ["/a"])
    assert kept.named_files() == {"/a"}
    assert kept.retire(["/a"]) == ()
    assert kept.unpin(1).files == ("/a",)
    assert kept.unpin(1).files == ()


def test_a_checkpoint_that_failed_frees_nothing_the_live_state_needs() -> None:
    kept = store()
    kept.pin(1, ["/a"])
    assert kept.unpin(1) == Freed()


# --- starting from something ----------------------------------------------------------------------


def test_what_a_job_starts_from_without_claiming_it_is_never_deleted() -> None:
    kept = store()
    kept.start_from(stored(9, "/theirs"), claim=False)
    assert kept.latest is None
    kept.add(stored(10, "/theirs", "/ours"))
    assert kept.retire(["/theirs"]) == ()
    freed = kept.add(stored(11))
    assert freed.files == ("/ours",)
    kept.deleted(freed.checkpoints)
    assert kept.end(JobStatus.FINISHED).files == ()


def test_a_claimed_savepoint_is_deleted_like_own_checkpoints() -> None:
    kept = store()
    claimed = stored(9, "/taken", "/old")
    kept.start_from(claimed, claim=True)
    assert kept.latest == claimed
    assert kept.add(stored(10, "/taken")) == Freed((claimed,), ("/old",))
    kept.deleted([claimed])
    assert kept.add(stored(11)).files == ("/taken",)


def test_a_restarted_master_finds_its_checkpoints() -> None:
    kept = store(retained=2)
    kept.pin(3, ["/lost"])
    kept.recover([stored(2, "/b"), stored(1, "/a")])
    assert [each.metadata.checkpoint_id for each in kept.checkpoints] == [2, 1]
    assert kept.named_files() == {"/a", "/b"}
    assert kept.add(stored(3)) == Freed((stored(1, "/a"),), ("/a",))


# --- ending ---------------------------------------------------------------------------------------

#: As in Flink's CheckpointProperties: policy, how the job ended, whether the checkpoint stays.
KEPT = [
    (Retention.RETAIN_ON_CANCELLATION, JobStatus.FINISHED, False),
    (Retention.RETAIN_ON_CANCELLATION, JobStatus.CANCELED, True),
    (Retention.RETAIN_ON_CANCELLATION, JobStatus.FAILED, True),
    (Retention.RETAIN_ON_CANCELLATION, JobStatus.SUSPENDED, True),
    (Retention.DELETE_ON_CANCELLATION, JobStatus.FINISHED, False),
    (Retention.DELETE_ON_CANCELLATION, JobStatus.CANCELED, False),
    (Retention.DELETE_ON_CANCELLATION, JobStatus.FAILED, True),
    (Retention.DELETE_ON_CANCELLATION, JobStatus.SUSPENDED, False),
    (Retention.NO_EXTERNALIZED_CHECKPOINTS, JobStatus.FINISHED, False),
    (Retention.NO_EXTERNALIZED_CHECKPOINTS, JobStatus.CANCELED, False),
    (Retention.NO_EXTERNALIZED_CHECKPOINTS, JobStatus.FAILED, False),
    (Retention.NO_EXTERNALIZED_CHECKPOINTS, JobStatus.SUSPENDED, False),
]


@pytest.mark.parametrize(("retention", "status", "stays"), KEPT)
def test_the_policy_says_what_stays_when_a_job_ends(
    retention: Retention, status: JobStatus, stays: bool
) -> None:
    kept = store(retention=retention)
    kept.add(stored(1, "/a"))
    freed = kept.end(status)
    assert freed == (Freed() if stays else Freed((stored(1, "/a"),), ("/a",)))
    kept.deleted(freed.checkpoints)
    assert kept.named_files() == ({"/a"} if stays else frozenset())


@pytest.mark.parametrize("retention", list(Retention))
@pytest.mark.parametrize("status", [JobStatus.SUSPENDED, JobStatus.FAILED])
def test_everything_stays_if_the_next_start_continues_from_it(
    retention: Retention, status: JobStatus
) -> None:
    kept = store(retention=retention)
    kept.add(stored(1, "/a"))
    kept.pin(2, ["/b"])
    assert kept.end(status, stays=True) == Freed()


def test_a_job_that_runs_has_not_ended() -> None:
    with pytest.raises(InvariantViolation, match="the job has not ended: it is RUNNING"):
        store().end(JobStatus.RUNNING)


# --- any order ------------------------------------------------------------------------------------


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["add", "fail", "compact"]), st.integers(0, 5)), max_size=40),
)
def test_needed_files_are_kept_and_all_others_are_deleted_in_the_end(
    retained: int, steps: list[tuple[str, int]]
) -> None:
    """Play a job: its live chain grows by a file a step and is compacted; some checkpoints fail."""
    kept = store(retained=retained)
    live, deleted, everything = ["/0"], set[str](), {"/0"}
    for number, (step, size) in enumerate(steps, start=1):
        live = [*live, f"/{number}"]
        everything.add(f"/{number}")
        kept.pin(number, live)
        before = list(live)
        if step == "compact" and size:
            merged, live = live[:size], [f"/m{number}", *live[size:]]
            everything.add(f"/m{number}")
            deleted |= set(kept.retire(merged))
        freed = kept.unpin(number) if step == "fail" else kept.add(stored(number, *before))
        kept.deleted(freed.checkpoints)
        assert not deleted & set(freed.files), "deleted twice"
        deleted |= set(freed.files)
        needed = set(live) | kept.named_files()
        assert not deleted & needed
        assert everything - deleted == needed
    kept.deleted(kept.end(JobStatus.FINISHED).checkpoints)
    assert kept.named_files() == frozenset()


# --- on storage -----------------------------------------------------------------------------------


def test_a_claimed_savepoint_goes_file_by_file_and_then_as_a_whole(tmp_path: Path) -> None:
    savepoint = write_savepoint(checkpoint(1, *written(tmp_path / "s", "x", "y")), str(tmp_path / "saved"))
    first, second = (file.path for file in savepoint.metadata.files())
    kept = store()
    kept.start_from(savepoint, claim=True)
    home = CheckpointDirectory(str(tmp_path / "own"), "a" * 32)
    freed = kept.add(home.write(checkpoint(2, second)))
    kept.deleted(home.discard(freed.checkpoints, freed.files))
    assert [path.name for path in Path(savepoint.path).iterdir()] == [Path(second).name]
    freed = kept.add(home.write(checkpoint(3)))
    kept.deleted(home.discard(freed.checkpoints, freed.files))
    assert list(Path(savepoint.path).iterdir()) == []
    assert [number for number, _ in home.list_checkpoints()] == [3]
    assert not Path(first).exists()
