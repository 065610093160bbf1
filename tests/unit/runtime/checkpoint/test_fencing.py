"""A leader that was stopped and wakes up: its writes replace nothing, do not count, and delete nothing that is needed.

    first    look at the lease: ok .... (stopped) ......................... wakes, and does what it was about to
    second                              takes over, continues, writes

Each test stops the first leader right after its look at the lease or at the store, at any of these moments. On local
files, on a store of pyarrow in memory, and on an S3 server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import DamagedStateError, LeadershipError
from headrace.runtime.checkpoint.fence import CheckpointName, announced_drops
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint, load_checkpoint
from headrace.storage import files
from headrace.storage.files import file_sizes, list_directory, read_file, write_new_file
from headrace.storage.paths import join_path
from headrace.storage.remote import RemoteFiles
from headrace.storage.store import Entry
from tests.unit.runtime.checkpoint.snapshots import checkpoint
from tests.unit.storage.remote import mount

JOB = "a" * 32


@pytest.fixture(params=["local", "remote", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("s3"))
    return str(tmp_path / "checkpoints") if request.param == "local" else mount(monkeypatch)


class Lease:
    """Who leads, as the storage sees it; the first leader is stopped when it has looked so many times."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.token = 1
        self._looks_left: int | None = None
        self._meanwhile: Callable[[], object] = lambda: None

    def directory(self, token: int) -> CheckpointDirectory:
        return CheckpointDirectory(self._place, JOB, token, ensure_leader=lambda: self._ensure(token))

    def stop_after(self, looks: int, meanwhile: Callable[[], object]) -> None:
        """Have the first leader stopped right after a look at the lease, while something else happens."""
        self._looks_left, self._meanwhile = looks, meanwhile

    def _ensure(self, token: int) -> None:
        if token < self.token:
            raise LeadershipError("another process has become the leader")
        if self._looks_left is not None and token == 1:
            self._looks_left -= 1
            if self._looks_left == 0:
                self._looks_left = None
                self._meanwhile()

    def pass_on(self) -> CheckpointDirectory:
        """Let the second leader take over."""
        self.token = 2
        second = self.directory(2)
        second.take_over()
        return second


@pytest.fixture
def lease(place: str) -> Lease:
    return Lease(place)


def complete(home: CheckpointDirectory, number: int, name: str = "") -> StoredCheckpoint:
    path = join_path(home.shared_directory, name or f"{number}.change")
    if file_sizes([path])[path] is None:
        write_new_file(path, b"abc")
    return home.write(checkpoint(number, path))


def ids(home: CheckpointDirectory) -> list[int]:
    return [stored.metadata.checkpoint_id for stored in home.valid()]


# -- writes --------------------------------------------------------------------------------------------


def test_a_leader_that_wakes_replaces_no_checkpoint_of_its_successor(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    before = complete(first, 1)
    second = lease.pass_on()
    theirs = complete(second, 2, "second.change")
    mine = complete(first, 2, "first.change")
    assert mine.path != theirs.path
    assert load_checkpoint(theirs.path).metadata == theirs.metadata
    found = second.latest_valid().checkpoint
    assert found is not None
    assert found.metadata == theirs.metadata
    # Nor for those who come later.
    third = lease.directory(3)
    third.take_over()
    assert [stored.path for stored in third.valid()] == [theirs.path, before.path]


@pytest.mark.parametrize("moment", ["before the look", "between look and PUT"])
def test_a_leader_that_is_stopped_while_it_writes_replaces_nothing(
    lease: Lease, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store that is used is looked at first, then written: between the two another leader comes."""
    first = lease.directory(1)
    first.take_over()
    complete(first, 1)
    theirs: list[StoredCheckpoint] = []
    publish, look = files.publish_file, RemoteFiles.look_up

    def take_over_once() -> None:
        if lease.token == 1:
            theirs.append(complete(lease.pass_on(), 2, "second.change"))

    def look_then_stop(store: RemoteFiles, paths: list[str]) -> list[Entry]:
        found = look(store, paths)
        if paths[0].endswith("/_metadata"):
            take_over_once()
        return found

    def stop_then_publish(path: str, data: bytes) -> None:
        if path.endswith("/_metadata"):
            take_over_once()
        publish(path, data)

    write_new_file(join_path(first.shared_directory, "first.change"), b"abc")
    with monkeypatch.context() as patch:
        if moment == "between look and PUT":
            patch.setattr(RemoteFiles, "look_up", look_then_stop)
        else:
            patch.setattr("headrace.runtime.checkpoint.storage.publish_file", stop_then_publish)
        complete(first, 2, "first.change")
        if not theirs:  # local files are linked, in one step: there is nothing between
            take_over_once()
    second = lease.directory(2)
    assert load_checkpoint(theirs[0].path).metadata.leader == 2
    assert second.latest_valid().checkpoint == theirs[0]


def test_a_directory_without_leaders_has_flinks_names(tmp_path: Path) -> None:
    assert CheckpointDirectory(str(tmp_path), JOB).checkpoint_directory(7).endswith("/chk-7")
    assert CheckpointDirectory(str(tmp_path), JOB, 3).checkpoint_directory(7).endswith("/chk-7-3")
    assert sorted(filter(None, map(CheckpointName.parse, ["chk-10", "chk-9-2", "chk-9-10", "chk-x"]))) == [
        (9, 2),
        (9, 10),
        (10, 0),
    ]


# -- deletions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [1, 2])
def test_a_leader_that_is_stopped_while_it_deletes_takes_nothing_from_its_successor(
    lease: Lease, look: int
) -> None:
    """The checkpoint took too long: its leader gives it up, and is stopped after the first or the second look."""
    first = lease.directory(1)
    first.take_over()
    older, given_up = complete(first, 1), complete(first, 2)
    found: list[StoredCheckpoint | None] = []

    def meanwhile() -> None:
        found.append(lease.pass_on().latest_valid().checkpoint)

    lease.stop_after(look, meanwhile)
    named = [file.path for file in given_up.metadata.files()]
    try:
        first.discard([given_up], named)
        is_deleted = True
    except LeadershipError:
        is_deleted = False
    [start] = found
    assert start is not None
    # After the first look nothing was announced yet: the second leader starts from it, and it stays. After the
    # second look it was: the second leader has left it alone, and it may go.
    assert is_deleted == (look == 2)
    assert start.path == (older.path if is_deleted else given_up.path)
    assert all(size is not None for size in file_sizes(f.path for f in start.metadata.files()).values())
    assert load_checkpoint(start.path) == start
    second = lease.directory(2)
    recovery = second.latest_valid()
    assert recovery.checkpoint == start


def test_a_deletion_that_was_announced_is_carried_out_by_the_next_leader(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    older, given_up = complete(first, 1), complete(first, 2)

    class Lost(BaseException):
        pass

    def lose() -> None:
        raise Lost

    lease.stop_after(2, lose)
    with pytest.raises(Lost):
        first.discard([given_up], ())
    assert set(announced_drops(first.path).values()) == {"chk-2-1"}
    second = lease.pass_on()
    assert ids(second) == [1]
    assert load_checkpoint(older.path) == older
    assert announced_drops(second.path) == {}
    assert "chk-2-1" not in list_directory(second.path)


def test_nothing_is_deleted_by_who_does_not_lead(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    stored = complete(first, 1)
    lease.pass_on()
    shared = [file.path for file in stored.metadata.files()]
    for delete in (
        lambda: first.discard([stored], shared),
        lambda: first.discard((), shared),
        first.delete_all,
    ):
        with pytest.raises(LeadershipError):
            delete()
    assert load_checkpoint(stored.path) == stored
    assert list_directory(first.shared_directory) == ["1.change"]


def test_deleting_everything_stops_as_soon_as_another_leads(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    for number in (1, 2, 3):
        complete(first, number)
    lease.stop_after(2, lease.pass_on)
    with pytest.raises(LeadershipError):
        first.delete_all()
    # What was being deleted when it was stopped is gone; the others are as they were.
    assert ids(lease.directory(2)) == [1]


def test_state_files_stay_if_another_leads_before_the_last_of_everything_is_deleted(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    complete(first, 1)
    # It looks before the checkpoint, and before the fence, which comes first among the rest.
    lease.stop_after(2, lease.pass_on)
    with pytest.raises(LeadershipError):
        first.delete_all()
    assert list_directory(first.shared_directory) == ["1.change"]


def test_a_discarded_checkpoint_leaves_nothing_behind(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    stored = complete(first, 1)
    first.discard([stored], [file.path for file in stored.metadata.files()])
    assert [name for name in list_directory(first.path) if name.startswith(("chk-", "dropped-"))] == []
    assert list_directory(first.shared_directory) == []


# -- fences --------------------------------------------------------------------------------------------


def test_a_damaged_fence_is_named_with_what_to_do(lease: Lease) -> None:
    first = lease.directory(1)
    first.take_over()
    complete(first, 1)
    [name] = [name for name in list_directory(first.path) if name.startswith("fence-")]
    path = join_path(first.path, name)
    data = bytearray(read_file(path))
    data[-1] ^= 1
    files.delete_files([path])
    write_new_file(path, bytes(data))
    second = lease.directory(2)
    for look in (second.take_over, second.latest_valid, second.valid):
        with pytest.raises(DamagedStateError, match=f"{name} is damaged") as caught:
            look()
        assert "delete it" in (caught.value.hint or "")
