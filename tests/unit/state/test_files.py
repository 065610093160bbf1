from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import StateError
from headrace.state.files import delete_files, join_path, read_file, write_new_file


@pytest.fixture(params=["path", "file-uri"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "path":
        return str(tmp_path)
    pytest.importorskip("pyarrow")
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
    delete_files([deleted, join_path(directory, "never there")])
    delete_files([deleted])
    assert read_file(kept) == b"1"
    with pytest.raises(StateError):
        read_file(deleted)


def test_names_are_joined_to_directories_of_any_kind() -> None:
    assert join_path("/tmp/x/", "a", "b") == "/tmp/x/a/b"
    assert join_path("s3://bucket/x", "a") == "s3://bucket/x/a"
