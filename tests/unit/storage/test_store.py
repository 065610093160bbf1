"""What every store promises: on local disks, on a file system of pyarrow's, and on an S3 server."""

from __future__ import annotations

import errno
import io
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from headrace.errors import DiskFullError
from headrace.storage import local
from headrace.storage.store import Entry, EntryKind, FileStore, Purpose
from headrace.storage.stores import find_store
from tests.unit.storage.remote import mount

PURPOSE = Purpose("a model", "set models.dir to a larger disk")
#: More than is copied or sent at a time.
LARGE = b"0123456789abcdef" * (3 << 16)


class WriterFailed(Exception):
    pass


@pytest.fixture(params=["local", "file system", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "s3":
        return f"{request.getfixturevalue('s3')}/dir"
    return mount(monkeypatch) if request.param == "file system" else str(tmp_path / "dir")


@pytest.fixture
def store(place: str) -> FileStore:
    return find_store(place)[0]


@pytest.fixture
def home(place: str) -> str:
    return find_store(place)[1]


def write(store: FileStore, path: str, data: bytes = b"content") -> str:
    with store.new_file(path, PURPOSE) as stream:
        stream.write(data)
    return path


def read(store: FileStore, path: str) -> bytes:
    with store.open(path) as stream:
        return stream.read()


def kind_of(store: FileStore, path: str) -> EntryKind:
    return store.look_up([path])[0].kind


# --- whole files ----------------------------------------------------------------------------------


def test_a_file_is_visible_when_all_of_it_is_written(store: FileStore, home: str) -> None:
    path = f"{home}/a/b"
    with store.new_file(path, PURPOSE) as stream:
        stream.write(b"con")
        assert kind_of(store, path) is EntryKind.MISSING
        stream.write(b"tent")
    assert read(store, path) == b"content"
    assert store.names(f"{home}/a") == ["b"]


def test_a_write_that_fails_leaves_nothing(store: FileStore, home: str) -> None:
    write(store, f"{home}/before")
    with pytest.raises(WriterFailed), store.new_file(f"{home}/a", PURPOSE) as stream:
        stream.write(b"half of it")
        raise WriterFailed
    assert store.names(home) == ["before"]


def test_a_file_can_be_replaced_with_synced_content(store: FileStore, home: str) -> None:
    path = write(store, f"{home}/a", b"old")
    with store.new_file(path, PURPOSE, synced=True) as stream:
        stream.write(b"new")
    assert read(store, path) == b"new"


def test_the_content_of_an_open_file_is_received(store: FileStore, home: str) -> None:
    store.receive(f"{home}/sub/a", io.BytesIO(LARGE), PURPOSE)
    assert read(store, f"{home}/sub/a") == LARGE


class Breaking(io.BytesIO):
    """A file of which only the first bytes can be read."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError(errno.EIO, "cannot read on")
        return super().read(len(LARGE) // 2)


def test_an_upload_that_fails_half_way_leaves_nothing(store: FileStore, home: str) -> None:
    write(store, f"{home}/before")
    with pytest.raises(OSError, match="cannot read on"):
        store.receive(f"{home}/a", Breaking(LARGE), PURPOSE)
    assert store.names(home) == ["before"]


def test_a_file_is_copied(store: FileStore, home: str) -> None:
    store.copy(write(store, f"{home}/a"), f"{home}/sub/b", PURPOSE)
    assert read(store, f"{home}/a") == read(store, f"{home}/sub/b") == b"content"


def test_a_copy_of_a_missing_file_leaves_nothing(store: FileStore, home: str) -> None:
    write(store, f"{home}/before")
    with pytest.raises(FileNotFoundError):
        store.copy(f"{home}/missing", f"{home}/b", PURPOSE)
    assert store.names(home) == ["before"]


# --- names that are given once --------------------------------------------------------------------


def test_a_published_file_is_never_replaced(store: FileStore, home: str) -> None:
    store.publish(f"{home}/sub/a", b"first", PURPOSE)
    with pytest.raises(FileExistsError):
        store.publish(f"{home}/sub/a", b"second", PURPOSE)
    assert read(store, f"{home}/sub/a") == b"first"
    assert store.names(f"{home}/sub") == ["a"]


def test_one_of_many_claims_a_name_or_the_store_says_that_it_cannot(store: FileStore, home: str) -> None:
    def claim(number: int) -> int | None:
        try:
            store.claim(f"{home}/token", str(number).encode(), PURPOSE)
        except FileExistsError:
            return None
        return number

    if not store.is_local:
        with pytest.raises(NotImplementedError, match="only if it is new"):
            claim(0)
        return
    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(claim, range(8)) if number is not None]
    assert [read(store, f"{home}/token")] == [str(number).encode() for number in winners]


# --- staged files ---------------------------------------------------------------------------------


def test_a_staged_file_is_written_finished_and_moved(store: FileStore, home: str) -> None:
    stream = store.open_output(f"{home}/.staging/a")
    stream.write(b"con")
    stream.write(b"tent")
    store.finish_output(stream)
    assert read(store, f"{home}/.staging/a") == b"content"
    store.move(f"{home}/.staging/a", f"{home}/day=1/part")
    assert read(store, f"{home}/day=1/part") == b"content"
    assert kind_of(store, f"{home}/.staging/a") is EntryKind.MISSING


# --- reading, listing -----------------------------------------------------------------------------


def test_a_missing_file_cannot_be_opened(store: FileStore, home: str) -> None:
    with pytest.raises(FileNotFoundError):
        store.open(f"{home}/missing")
    with pytest.raises(FileNotFoundError):
        store.open_arrow(f"{home}/missing")


def test_arrow_reads_anywhere_in_a_file(store: FileStore, home: str) -> None:
    with store.open_arrow(write(store, f"{home}/a", b"0123456789")) as file:
        file.seek(4)
        assert (file.size(), file.read(3)) == (10, b"456")


def test_files_directories_and_missing_paths_are_distinguished(store: FileStore, home: str) -> None:
    file = write(store, f"{home}/sub/a", b"12345")
    below_a_file, missing = f"{file}/b", f"{home}/missing"
    assert store.look_up([missing, f"{home}/sub", file, below_a_file]) == [
        Entry(missing, EntryKind.MISSING),
        Entry(f"{home}/sub", EntryKind.DIRECTORY),
        Entry(file, EntryKind.FILE, 5),
        Entry(below_a_file, EntryKind.MISSING),
    ]


def test_a_directory_lists_what_is_in_it_and_below_it(store: FileStore, home: str) -> None:
    top, deep = write(store, f"{home}/b", b"1"), write(store, f"{home}/a/x/y", b"22")
    in_it = [Entry(f"{home}/a", EntryKind.DIRECTORY), Entry(top, EntryKind.FILE, 1)]
    below = [Entry(f"{home}/a/x", EntryKind.DIRECTORY), Entry(deep, EntryKind.FILE, 2)]

    def sorted_entries(**options: bool) -> list[Entry]:
        return sorted(store.entries(home, **options), key=lambda entry: entry.path)

    assert store.names(home) == ["a", "b"]
    assert sorted_entries() == in_it
    assert sorted_entries(recursive=True) == sorted(in_it + below, key=lambda entry: entry.path)


def test_a_missing_directory_lists_nothing(store: FileStore, home: str) -> None:
    assert store.names(f"{home}/missing") == []
    assert store.entries(f"{home}/missing", recursive=True) == []


def test_links_that_lead_nowhere_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert local.LocalFiles().entries(str(tmp_path), recursive=True) == []


# --- deleting -------------------------------------------------------------------------------------


def test_deleting_twice_is_fine(store: FileStore, home: str) -> None:
    path, kept = write(store, f"{home}/a"), write(store, f"{home}/sub/b")
    for _ in range(2):
        store.delete(path)
    assert kind_of(store, path) is EntryKind.MISSING
    assert kind_of(store, kept) is EntryKind.FILE
    for _ in range(2):
        store.delete_directory(f"{home}/sub")
    assert kind_of(store, kept) is EntryKind.MISSING


def test_a_directory_with_a_file_in_it_is_not_empty(store: FileStore, home: str) -> None:
    path = write(store, f"{home}/sub/a")
    store.delete_if_empty(f"{home}/sub")
    assert kind_of(store, path) is EntryKind.FILE


def test_an_empty_local_directory_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    local.LocalFiles().delete_if_empty(str(tmp_path / "sub"))
    assert list(tmp_path.iterdir()) == []


# --- stores ---------------------------------------------------------------------------------------


def test_stores_of_the_same_files_are_equal(place: str, store: FileStore) -> None:
    again = find_store(f"{place}/sub")[0]
    assert again == store
    assert hash(again) == hash(store)
    assert (store == find_store("/tmp")[0]) == store.is_local


# --- full disks -----------------------------------------------------------------------------------


def no_space(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


def write_synced(store: FileStore, path: str) -> None:
    with store.new_file(path, PURPOSE, synced=True) as stream:
        stream.write(b"content")


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        ("os.fsync", write_synced),
        ("os.replace", lambda store, path: store.receive(path, io.BytesIO(LARGE), PURPOSE)),
        ("shutil.copyfile", lambda store, path: store.copy(__file__, path, PURPOSE)),
        ("os.link", lambda store, path: store.publish(path, b"content", PURPOSE)),
    ],
    ids=["new_file", "receive", "copy", "publish"],
)
def test_a_full_disk_is_an_error_with_directory_space_and_remedy(
    call: str, operation: Callable[[FileStore, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"headrace.storage.local.{call}", no_space)
    with pytest.raises(DiskFullError, match=r"cannot write a model in .* is free") as caught:
        operation(local.LocalFiles(), str(tmp_path / "a"))
    assert caught.value.directory == str(tmp_path)
    assert caught.value.free
    assert "set models.dir to a larger disk" in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_finds_no_space_on_its_way_names_the_temporary_directory(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, path = find_store(f"{s3}/a")
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", no_space)
    with pytest.raises(DiskFullError, match=f"cannot write a model in {tempfile.gettempdir()}") as caught:
        write(store, path)
    assert "TMPDIR" in (caught.value.hint or "")
    assert kind_of(store, path) is EntryKind.MISSING
