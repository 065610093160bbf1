"""Whether executors see the directory that checkpoints go to; hosts are directories of this machine here."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.errors import ConfigurationError
from headrace.spark.shared_directory import Look, check_directory, look


def on_host(name: str, place: str, content: bytes) -> Look:
    return replace(look(place, content), host=name, executor=name)


def test_a_directory_that_all_hosts_see_is_accepted_and_left_as_it_was(tmp_path: Path) -> None:
    asked = []

    def ask(place: str, content: bytes) -> Sequence[Look]:
        asked.append(place)
        return [on_host("a", place, content), on_host("b", place, content)]

    check_directory(str(tmp_path / "job"), ask)
    assert Path(asked[0]).is_relative_to(tmp_path / "job")
    assert not Path(asked[0]).exists()


def test_a_host_with_a_disk_of_its_own_is_refused_by_name(tmp_path: Path) -> None:
    def ask(place: str, content: bytes) -> Sequence[Look]:
        own_disk = place.replace(str(tmp_path / "job"), str(tmp_path / "other"))
        return [on_host("a", place, content), on_host("b", own_disk, content)]

    with pytest.raises(ConfigurationError) as caught:
        check_directory(str(tmp_path / "job"), ask)
    assert f"directory {tmp_path / 'job'} is not shared" in caught.value.message
    assert "host b does not see files that the driver has written" in caught.value.message
    assert "host a" not in caught.value.message
    assert "execution.checkpointing.dir" in (caught.value.hint or "")
    assert not list((tmp_path / "job").glob(".probe*"))


def test_a_host_whose_writes_the_driver_does_not_see_is_refused(tmp_path: Path) -> None:
    """A copy of the directory, such as a snapshot that is mounted for reading and writing."""

    def ask(place: str, content: bytes) -> Sequence[Look]:
        copy = place.replace(str(tmp_path / "job"), str(tmp_path / "copy"))
        shutil.copytree(place, copy)
        return [on_host("b", copy, content)]

    with pytest.raises(ConfigurationError, match="host b writes files that the driver does not see"):
        check_directory(str(tmp_path / "job"), ask)


def test_a_host_that_cannot_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(place: str, content: bytes) -> Sequence[Look]:
        def refuse(path: str, data: bytes) -> None:
            raise PermissionError(13, "Permission denied", path)

        with monkeypatch.context() as patch:
            patch.setattr("headrace.spark.shared_directory.write_new_file", refuse)
            return [on_host("b", place, content)]

    with pytest.raises(ConfigurationError, match=r"host b cannot write there: .*Permission denied"):
        check_directory(str(tmp_path / "job"), ask)


def test_files_of_another_driver_are_not_taken_for_ours(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "driver").write_bytes(b"another")
    assert "sees different files" in look(str(place), b"content").problem


@pytest.mark.parametrize("failing", ["read_file", "write_new_file"])
def test_storage_that_does_not_answer_is_not_a_reason_to_refuse_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """It is a failure like others: the epoch is tried again."""

    def time_out(*_: object) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "timed out")

    def ask(place: str, content: bytes) -> Sequence[Look]:
        with monkeypatch.context() as patch:
            patch.setattr(f"headrace.spark.shared_directory.{failing}", time_out)
            return [on_host("b", place, content)]

    with pytest.raises(TimeoutError):
        check_directory(str(tmp_path / "job"), ask)
