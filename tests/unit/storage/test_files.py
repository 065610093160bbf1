from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headrace.errors import DiskFullError, StateError
from headrace.storage.files import (
    copy_file,
    delete_directory,
    delete_files,
    file_sizes,
    list_directory,
    publish_file,
    read_file,
    sync_files,
    write_new_file,
)
from headrace.storage.paths import join_path
from tests.unit.storage.remote import mount


@pytest.fixture(params=["path", "file-uri", "remote", "s3"])
def directory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "path":
        return str(tmp_path)
    if request.param == "remote":
        return mount(monkeypatch)
    if request.param == "s3":
        return str(request.getfixturevalue("s3"))
    return tmp_path.as_uri()


def test_what_was_written_is_read(directory: str) -> None:
    path = join_path(directory, "1.change")
    write_new_file(path, b"\x00content")
    assert read_file(path) == b"\x00content"


def test_directories_are_made_where_they_are_missing(directory: str) -> None:
    path = join_path(directory, "job", "epochs", "1.plan")
    write_new_file(path, b"x")
    assert read_file(path) == b"x"


def test_a_missing_file_is_named(directory: str) -> None:
    path = join_path(directory, "gone")
    with pytest.raises(StateError, match="gone is missing"):
        read_file(path)


def test_deleting_what_is_gone_already_is_fine(directory: str) -> None:
    kept, deleted = join_path(directory, "kept"), join_path(directory, "deleted")
    write_new_file(kept, b"1")
    write_new_file(deleted, b"2")
    delete_files([deleted, join_path(directory, "never-there")])
    delete_files([deleted])
    assert read_file(kept) == b"1"
    with pytest.raises(StateError):
        read_file(deleted)


# --- published files ------------------------------------------------------------------------------


def test_a_published_file_is_read(directory: str) -> None:
    path = join_path(directory, "chk-1", "_metadata")
    publish_file(path, b"content")
    assert read_file(path) == b"content"
    assert list_directory(join_path(directory, "chk-1")) == ["_metadata"]


def test_a_published_file_is_never_replaced(directory: str) -> None:
    path = join_path(directory, "chk-1", "_metadata")
    publish_file(path, b"first")
    with pytest.raises(FileExistsError):
        publish_file(path, b"second")
    assert read_file(path) == b"first"
    assert list_directory(join_path(directory, "chk-1")) == ["_metadata"]


def test_a_file_system_without_links_gets_files_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    path = str(tmp_path / "x")
    publish_file(path, b"first")
    with pytest.raises(FileExistsError):
        publish_file(path, b"second")
    assert read_file(path) == b"first"
    assert list_directory(str(tmp_path)) == ["x"]


def test_nothing_is_left_of_a_file_that_could_not_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match="cannot write a file"):
        publish_file(str(tmp_path / "x"), b"content")
    assert list_directory(str(tmp_path)) == []


# --- looking, copying -----------------------------------------------------------------------------


def test_a_directory_lists_its_names_sorted_and_a_missing_one_is_empty(directory: str) -> None:
    for name in ("b", "a"):
        write_new_file(join_path(directory, "sub", name), b"x")
    assert list_directory(join_path(directory, "sub")) == ["a", "b"]
    assert list_directory(join_path(directory, "missing")) == []


def test_sizes_of_missing_files_and_of_directories_are_none(directory: str) -> None:
    path = join_path(directory, "sub", "a")
    write_new_file(path, b"12345")
    gone, folder = join_path(directory, "gone"), join_path(directory, "sub")
    assert file_sizes([path, gone, folder, path]) == {path: 5, gone: None, folder: None}


def test_a_file_is_copied_between_storages(directory: str, tmp_path: Path) -> None:
    start, back = join_path(directory, "from", "a"), str(tmp_path / "back" / "a")
    there = join_path(directory, "to", "b")
    write_new_file(start, b"content")
    copy_file(start, there)
    copy_file(there, back)
    assert read_file(there) == read_file(back) == b"content"


def test_syncing_a_missing_file_is_an_error(tmp_path: Path) -> None:
    write_new_file(str(tmp_path / "a"), b"x")
    sync_files([str(tmp_path / "a"), "s3://bucket/not-ours"])
    with pytest.raises(FileNotFoundError):
        sync_files([str(tmp_path / "b")])


def test_a_deleted_directory_is_gone_and_may_be_gone_already(directory: str) -> None:
    write_new_file(join_path(directory, "sub", "a"), b"x")
    delete_directory(join_path(directory, "sub"))
    delete_directory(join_path(directory, "sub"))
    assert list_directory(join_path(directory, "sub")) == []
