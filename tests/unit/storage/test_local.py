"""Which directories are synced, and in which order: a power loss must not take away what was promised."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headrace.connectors.staged_files import DurableDirectories
from headrace.storage import local
from headrace.storage.local import make_directories, sync_directory
from headrace.storage.locations import Location
from headrace.storage.store import SyncError


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was synced, relative to the test's directory; what is above it is left out."""
    found: list[str] = []

    def note(path: str) -> None:
        if Path(path).is_relative_to(tmp_path):
            found.append(str(Path(path).relative_to(tmp_path)))

    monkeypatch.setattr(local, "sync_file", note)
    return found


def test_new_directories_are_synced_into_those_above_them(tmp_path: Path, synced: list[str]) -> None:
    make_directories(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert synced == [".", "a"]
    make_directories(str(tmp_path / "a" / "b"))
    assert synced == [".", "a"]


def test_a_directory_whose_name_could_not_be_synced_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing_with(errno.ENOSPC))
        with pytest.raises(SyncError):
            make_directories(str(tmp_path / "a"))
    synced: list[str] = []
    monkeypatch.setattr(local, "sync_file", synced.append)
    make_directories(str(tmp_path / "a"))
    assert synced == [str(tmp_path)]


def test_a_file_in_the_way_of_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(FileExistsError):
        make_directories(str(tmp_path / "a"))


def test_directories_of_others_are_secured_once(tmp_path: Path, synced: list[str]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    names = DurableDirectories()
    names.sync(Location("", str(tmp_path / "a" / "b")))
    assert synced == ["a/b", ".", "a"]
    names.sync(Location("", str(tmp_path / "a" / "b")))
    assert synced[3:] == ["a/b"]


def test_a_directory_that_is_created_again_is_secured_again(tmp_path: Path, synced: list[str]) -> None:
    make_directories(str(tmp_path / "a"))
    (tmp_path / "a").rmdir()
    synced.clear()
    make_directories(str(tmp_path / "a"))
    assert synced == ["."]


def failing_with(number: int):
    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_some_file_systems_cannot_sync_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing_with(errno.EINVAL))
    sync_directory(str(tmp_path))


def test_a_failed_sync_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing_with(errno.EIO))
    with pytest.raises(SyncError, match=str(tmp_path)) as caught:
        sync_directory(str(tmp_path))
    assert caught.value.filename == str(tmp_path)
