"""Which options Java gets for the archive of Spark's classes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from headrace.spark import class_archive
from headrace.spark.class_archive import archive_options


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setattr(class_archive, "_IN_CONTAINERS", (str(tmp_path / "container"),))
    return {"JAVA_HOME": str(java.parent.parent)}


@pytest.fixture
def in_container(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "container").touch()
    return environment


def written_file(options: str) -> Path:
    found = re.search(r'"-XX:ArchiveClassesAtExit=([^"]+)"', options)
    assert found, options
    return Path(found[1])


def test_the_first_program_in_a_container_writes_no_archive(in_container: dict[str, str]) -> None:
    assert archive_options("streams", "", in_container) == ""
    assert written_file(archive_options("streams", "", in_container))


@pytest.mark.parametrize("name", ["CI", "KUBERNETES_SERVICE_HOST", "container"])
def test_the_first_program_where_programs_get_a_new_home_writes_no_archive(
    environment: dict[str, str], name: str
) -> None:
    assert archive_options("streams", "", {**environment, name: "yes"}) == ""


def test_the_first_program_writes_the_archive_that_later_ones_use(environment: dict[str, str]) -> None:
    partial = written_file(archive_options("streams", "", environment))
    partial.write_bytes(b"classes")
    assert archive_options("streams", "", environment) == ""  # it may not be complete yet
    long_ago = partial.stat().st_mtime - 60
    os.utime(partial, (long_ago, long_ago))

    used = archive_options("streams", "", environment)

    archive = Path(re.search(r'"-XX:SharedArchiveFile=([^"]+)"', used)[1])  # type: ignore[index]  # else it fails
    assert archive.read_bytes() == b"classes"
    assert not partial.exists()
    assert archive_options("streams", "", environment) == used


def test_streams_and_tables_have_archives_of_their_own(environment: dict[str, str]) -> None:
    paths = {written_file(archive_options(kind, "", environment)) for kind in ("streams", "tables")}
    assert len(paths) == 2


def test_another_java_has_an_archive_of_its_own(environment: dict[str, str]) -> None:
    before = written_file(archive_options("streams", "", environment))
    before.touch()
    assert archive_options("streams", "", environment) == ""
    os.utime(Path(environment["JAVA_HOME"], "bin", "java"), (1, 1))
    after = written_file(archive_options("streams", "", environment))
    assert after.name.split(".")[0] != before.name.split(".")[0]


def test_archives_unused_for_months_are_removed(environment: dict[str, str]) -> None:
    archive_options("streams", "", environment)
    cache = Path(os.environ["XDG_CACHE_HOME"], "headrace")
    old = cache / "classes-0123456789abcdef-streams.jsa"
    old.touch()
    os.utime(old, (1, 1))
    archive_options("streams", "", environment)
    assert not old.exists()


@pytest.mark.parametrize("option", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa"])
def test_options_of_the_user_win(environment: dict[str, str], option: str) -> None:
    for _ in range(2):
        assert archive_options("streams", option, environment) == ""
        assert archive_options("streams", "", {**environment, "SPARK_SUBMIT_OPTS": option}) == ""


def test_nothing_is_written_without_a_cache_directory(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert [archive_options("streams", "", environment) for _ in range(2)] == ["", ""]
