"""Checkpoints on storage: whole or not there, found again, and never taken for what they are not."""

from __future__ import annotations

import errno
import logging
import shutil
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from headrace.errors import CheckpointError, StateError
from headrace.runtime.checkpoint import storage
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.checkpoint.savepoints import delete_savepoint, write_savepoint
from headrace.runtime.checkpoint.storage import (
    CheckpointDirectory,
    check_files,
    load_checkpoint,
)
from headrace.storage.files import list_directory, write_new_file
from headrace.storage.paths import join_path
from tests.unit.runtime.checkpoint.snapshots import checkpoint, written
from tests.unit.storage.remote import mount

JOB = "a" * 32


@pytest.fixture(params=["local", "remote"])
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CheckpointDirectory:
    place = str(tmp_path / "checkpoints") if request.param == "local" else mount(monkeypatch)
    return CheckpointDirectory(place, JOB)


def state_file(home: CheckpointDirectory, name: str) -> str:
    path = join_path(home.shared_directory, name)
    write_new_file(path, b"abc")
    return path


def complete(home: CheckpointDirectory, checkpoint_id: int) -> CheckpointMetadata:
    metadata = checkpoint(checkpoint_id, state_file(home, f"{checkpoint_id}.change"))
    home.write(metadata)
    return metadata


def paths(metadata: CheckpointMetadata) -> list[str]:
    return [file.path for file in metadata.files()]


# --- checkpoints ----------------------------------------------------------------------------------


def test_a_checkpoint_has_flinks_place(home: CheckpointDirectory) -> None:
    metadata = complete(home, 7)
    assert list_directory(home.path) == ["chk-7", "shared"]
    assert list_directory(home.checkpoint_directory(7)) == ["_metadata"]
    assert load_checkpoint(home.checkpoint_directory(7)).metadata == metadata


def test_checkpoints_are_listed_newest_first_by_number(home: CheckpointDirectory) -> None:
    for number in (2, 10, 9):
        complete(home, number)
    write_new_file(join_path(home.path, "chk-x", "_metadata"), b"")
    assert [number for number, _ in home.list_checkpoints()] == [10, 9, 2]
    assert home.highest_id() == 10


def test_nothing_is_there_before_the_first(home: CheckpointDirectory) -> None:
    assert home.list_checkpoints() == []
    assert home.highest_id() == 0
    assert home.latest_valid() == storage.Recovery(None)


def test_a_checkpoint_never_replaces_another(home: CheckpointDirectory) -> None:
    first = complete(home, 1)
    with pytest.raises(CheckpointError, match=r"checkpoint 1 of job a+ already exists") as caught:
        home.write(checkpoint(1))
    assert "another process" in (caught.value.hint or "")
    assert load_checkpoint(home.checkpoint_directory(1)).metadata == first


def test_a_checkpoint_that_names_a_missing_file_is_not_written(tmp_path: Path) -> None:
    home = CheckpointDirectory(str(tmp_path), JOB)
    with pytest.raises(CheckpointError, match=r"checkpoint 1 could not be written") as caught:
        home.write(checkpoint(1, join_path(home.shared_directory, "gone")))
    assert caught.value.reason == "FINALIZE_CHECKPOINT_FAILURE"
    assert home.latest_valid().checkpoint is None


def test_a_full_disk_fails_the_checkpoint_and_leaves_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = CheckpointDirectory(str(tmp_path), JOB)
    complete(home, 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "publish_file", full)
        with pytest.raises(CheckpointError, match="no space left"):
            complete(home, 2)
    found = home.latest_valid().checkpoint
    assert found is not None
    assert found.metadata.checkpoint_id == 1


def test_a_deleted_checkpoint_leaves_shared_files_alone(home: CheckpointDirectory) -> None:
    complete(home, 1)
    [stored] = home.valid()
    home.discard([stored], ())
    home.discard([stored], ())
    assert home.list_checkpoints() == []
    assert list_directory(home.shared_directory) == ["1.change"]


def test_a_withdrawn_checkpoint_that_cannot_be_deleted_does_not_count_and_is_named(
    home: CheckpointDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(home, 1)
    complete(home, 2)
    newest = home.latest_valid().checkpoint
    assert newest is not None

    def refuse(paths: Iterable[str]) -> None:
        raise PermissionError("no")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "delete_for_good", refuse)
        home.withdraw([newest])
    assert home.withdrawn == (newest,)
    found = home.latest_valid().checkpoint
    assert found is not None
    assert found.metadata.checkpoint_id == 1
    home.withdraw([found])
    assert home.withdrawn == (newest,), "the other one is gone"


def test_files_stay_with_a_checkpoint_that_cannot_be_deleted(
    home: CheckpointDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(home, 1)
    [stored] = home.valid()
    named = [file.path for file in stored.metadata.files()]

    def refuse(paths: Iterable[str]) -> None:
        raise PermissionError("no")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "delete_files", refuse)
        assert home.discard([stored], named) == ()
    assert home.valid() == [stored]
    assert home.discard([stored], named) == (stored,)
    assert home.list_checkpoints() == []
    assert list_directory(home.shared_directory) == []


def test_a_checkpoint_is_kept_if_its_deletion_cannot_be_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = CheckpointDirectory(str(tmp_path), JOB, leader=3)
    complete(home, 1)
    [stored] = home.valid()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(storage, "announce_drops", full)
        assert home.discard([stored], [file.path for file in stored.metadata.files()]) == ()
    assert home.valid() == [stored]


def test_all_of_a_job_is_deleted(home: CheckpointDirectory) -> None:
    complete(home, 1)
    home.delete_all()
    assert list_directory(home.path) == []


def test_files_that_no_checkpoint_names_are_orphans(home: CheckpointDirectory) -> None:
    named = complete(home, 1)
    lost = state_file(home, "2.change")
    assert home.orphans(paths(named)) == [lost]


def test_a_copy_that_is_half_written_is_not_an_orphan(home: CheckpointDirectory) -> None:
    begun, lost = state_file(home, "a.copy.1234.part"), state_file(home, "b.copy.1234.part")
    copy = begun.removesuffix(".1234.part")
    assert home.orphans([copy], being_written=[copy]) == [lost]
    assert home.orphans([copy]) == [begun, lost]


# --- loading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/_metadata", "file:{}", "file://{}/_metadata"])
def test_a_checkpoint_is_loaded_by_directory_or_file_with_or_without_scheme(
    tmp_path: Path, spelling: str
) -> None:
    home = CheckpointDirectory(tmp_path.as_uri(), JOB)
    metadata = complete(home, 3)
    stored = load_checkpoint(spelling.format(home.checkpoint_directory(3)))
    assert stored == storage.StoredCheckpoint(str(tmp_path / JOB / "chk-3"), metadata)


def test_a_missing_one_is_named_with_a_way_to_a_present_one(home: CheckpointDirectory) -> None:
    complete(home, 3)
    with pytest.raises(StateError, match="no checkpoint or savepoint found at") as caught:
        load_checkpoint(home.path)
    assert "chk-3" in (caught.value.hint or "")
    with pytest.raises(StateError) as caught:
        load_checkpoint(home.shared_directory)
    assert "not completed" in (caught.value.hint or "")
    with pytest.raises(StateError) as caught:
        load_checkpoint(join_path(home.path, "nowhere"))
    assert "check the path" in (caught.value.hint or "")


# --- recovery -------------------------------------------------------------------------------------


def test_the_newest_whole_checkpoint_is_found(home: CheckpointDirectory) -> None:
    complete(home, 1)
    newest = complete(home, 2)
    recovery = home.latest_valid()
    assert recovery.checkpoint == storage.StoredCheckpoint(home.checkpoint_directory(2), newest)
    assert recovery.skipped == ()


def test_damaged_and_unfinished_checkpoints_are_skipped_and_said_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = CheckpointDirectory(str(tmp_path), JOB)
    good = complete(home, 1)
    for number in (2, 3, 4, 5):
        complete(home, number)
    root = tmp_path / JOB
    (root / "shared" / "2.change").unlink()
    (root / "shared" / "3.change").write_bytes(b"ab")
    data = (root / "chk-4" / "_metadata").read_bytes()
    (root / "chk-4" / "_metadata").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (root / "chk-5" / "_metadata").write_bytes(data[:30])
    (root / "chk-6").mkdir()
    with caplog.at_level(logging.WARNING):
        recovery = home.latest_valid()
    assert recovery.checkpoint is not None
    assert recovery.checkpoint.metadata == good
    expected = {
        "chk-6": "no _metadata",
        "chk-5": "truncated",
        "chk-4": "checksum",
        "chk-3": "2 bytes instead of 3",
        "chk-2": "is missing",
    }
    assert [Path(each.path).name for each in recovery.skipped] == list(expected)
    for each in recovery.skipped:
        assert expected[Path(each.path).name] in each.reason
    assert "recovery goes back to checkpoint 1" in caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING", *["ERROR"] * 5]
    assert [stored.metadata.checkpoint_id for stored in home.valid()] == [1]


def test_storage_that_does_not_answer_is_not_a_reason_to_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = CheckpointDirectory(str(tmp_path), JOB)
    complete(home, 1)
    complete(home, 2)

    def away(_: str) -> bytes:
        raise OSError(errno.EIO, "the store is away")

    monkeypatch.setattr(storage, "read_file", away)
    with pytest.raises(StateError, match="the store is away") as caught:
        home.latest_valid()
    assert caught.value.retryable


def test_a_checkpoint_of_a_later_headrace_is_not_a_reason_to_go_back(tmp_path: Path) -> None:
    home = CheckpointDirectory(str(tmp_path), JOB)
    complete(home, 1)
    prefix = struct.pack(">8sI", b"HRCKPT\r\n", 9)
    newer = prefix + struct.pack(">I", zlib.crc32(prefix)) + bytes(40)
    write_new_file(join_path(home.checkpoint_directory(2), "_metadata"), newer)
    with pytest.raises(StateError, match="is in format 9"):
        home.latest_valid()


def test_many_missing_files_are_counted(home: CheckpointDirectory) -> None:
    metadata = checkpoint(1, *(join_path(home.shared_directory, str(n)) for n in range(5)))
    with pytest.raises(StateError, match=r"/0 is missing.*and 2 more"):
        check_files(storage.StoredCheckpoint(home.path, metadata))


# --- savepoints -----------------------------------------------------------------------------------


def test_a_savepoint_stands_alone_and_can_be_moved(tmp_path: Path) -> None:
    files = written(tmp_path / "shared", "x", "y")
    stored = write_savepoint(checkpoint(4, *files, files[0]), str(tmp_path / "saved"))
    assert Path(stored.path).parent == tmp_path / "saved"
    assert Path(stored.path).name.startswith("savepoint-aaaaaa-")
    shutil.rmtree(tmp_path / "shared")
    moved = tmp_path / "elsewhere"
    shutil.move(stored.path, moved)
    found = load_checkpoint(str(moved))
    check_files(found)
    assert found.metadata.is_savepoint
    assert [Path(path).name for path in paths(found.metadata)] == ["000000-x", "000001-y", "000000-x"]
    assert all(path.startswith(str(moved)) for path in paths(found.metadata))


def test_a_savepoint_goes_to_other_storage_than_the_checkpoints(
    home: CheckpointDirectory, tmp_path: Path
) -> None:
    stored = write_savepoint(complete(home, 1), tmp_path.as_uri())
    check_files(load_checkpoint(stored.path))
    back = write_savepoint(stored.metadata, join_path(home.path, "back"))
    check_files(load_checkpoint(back.path))


def test_nothing_is_left_of_a_savepoint_that_failed(tmp_path: Path) -> None:
    [there] = written(tmp_path / "shared", "x")
    with pytest.raises(CheckpointError, match="the savepoint could not be written"):
        write_savepoint(checkpoint(1, there, str(tmp_path / "gone")), str(tmp_path / "saved"))
    assert list((tmp_path / "saved").iterdir()) == []


def test_a_state_file_of_the_wrong_size_does_not_get_into_a_savepoint(tmp_path: Path) -> None:
    [short] = written(tmp_path / "shared", "x", content=b"ab")
    with pytest.raises(CheckpointError, match="2 bytes instead of 3"):
        write_savepoint(checkpoint(1, short), str(tmp_path / "saved"))


def test_only_savepoints_are_disposed_of(home: CheckpointDirectory) -> None:
    metadata = complete(home, 1)
    saved = write_savepoint(metadata, join_path(home.path, "saved"))
    with pytest.raises(StateError, match="is a checkpoint"):
        delete_savepoint(home.checkpoint_directory(1))
    delete_savepoint(saved.path)
    with pytest.raises(StateError, match="no checkpoint or savepoint"):
        delete_savepoint(saved.path)
    assert home.latest_valid().checkpoint is not None


# --- before the job starts ------------------------------------------------------------------------


def test_a_directory_that_can_be_written_is_left_as_it_was(home: CheckpointDirectory) -> None:
    home.ensure_writable()
    assert list_directory(home.shared_directory) == []


def test_one_that_cannot_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="file/checkpoints cannot be written") as caught:
        CheckpointDirectory(str(tmp_path / "file" / "checkpoints"), JOB).ensure_writable()
    assert "execution.checkpointing.dir" in (caught.value.hint or "")
    assert not caught.value.retryable


def test_an_unknown_kind_of_storage_is_refused() -> None:
    with pytest.raises(CheckpointError, match="nosuch://x cannot be written"):
        CheckpointDirectory("nosuch://x", JOB).ensure_writable()


def test_a_checkpoint_that_a_former_leader_completes_later_does_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = CheckpointDirectory(str(tmp_path), "a" * 32, leader=1)
    first.take_over()
    first.write(checkpoint(1))
    second = CheckpointDirectory(str(tmp_path), "a" * 32, leader=2)
    second.take_over()
    first.write(checkpoint(2))  # it was stopped in the middle of this
    with caplog.at_level(logging.WARNING):
        found = second.latest_valid().checkpoint
    assert found is not None
    assert found.metadata.checkpoint_id == 1
    assert "checkpoint 2 was written by a driver that no longer led" in caplog.text
    assert [stored.metadata.checkpoint_id for stored in second.valid()] == [1]

    second.write(checkpoint(3))
    third = CheckpointDirectory(str(tmp_path), "a" * 32, leader=3)
    third.take_over()
    assert [stored.metadata.checkpoint_id for stored in third.valid()] == [3, 1]
    fences = [path.name for path in (tmp_path / ("a" * 32)).glob("fence-*")]
    assert fences == [f"fence-{3:020d}"]


def test_a_checkpoint_that_failed_behind_its_last_step_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = (CheckpointDirectory(str(tmp_path), JOB, leader=leader) for leader in (1, 2))
    publish = storage.publish_file

    def fail_late(path: str, data: bytes) -> None:
        publish(path, data)
        raise OSError(errno.EIO, "the directory cannot be synced")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "publish_file", fail_late)
        with pytest.raises(CheckpointError, match="cannot be synced"):
            mine.write(checkpoint(1))
    assert mine.list_checkpoints() == []

    # Under the same number there may be one of another leader by now: that stays.
    other.write(checkpoint(2))
    monkeypatch.setattr(storage, "sync_files", lambda _: (_ for _ in ()).throw(FileNotFoundError("gone")))
    with pytest.raises(CheckpointError, match="gone"):
        mine.write(checkpoint(2))
    assert load_checkpoint(other.checkpoint_directory(2)).metadata.leader == 2
