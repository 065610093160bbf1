"""Checkpoints and savepoints as the command line shows them; the savepoint is that of a real job."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.runtime.test_recovery import counting, stop_in_the_middle


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    folder = tmp_path / "savepoints"
    return Path(stop_in_the_middle(counting, folder, parallelism=2, sink=str(tmp_path)))


def test_savepoints_are_listed_with_what_is_known_of_them(headrace, savepoint: Path):
    result = headrace("checkpoints", "list", savepoint.parent)

    assert result.exit_code == 0, result.output
    header, line = result.stdout.splitlines()
    assert header.split() == ["ID", "KIND", "JOB", "EPOCH", "TIME", "SIZE", "STATE", "PATH"]
    assert line.split()[1:4] == ["savepoint", "test", "2"]
    assert "valid" in line
    assert str(savepoint) in line


def test_what_is_damaged_is_listed_with_the_reason(headrace, savepoint: Path):
    broken = Path(shutil.copytree(savepoint, savepoint.with_name("savepoint-000000-0123456789ab")))
    next(path for path in broken.iterdir() if path.name != "_metadata").unlink()
    cut = Path(shutil.copytree(savepoint, savepoint.with_name("savepoint-000000-1123456789ab")))
    (cut / "_metadata").write_bytes((cut / "_metadata").read_bytes()[:50])

    found = json.loads(headrace("checkpoints", "list", savepoint.parent, "--json").stdout)

    by_path = {Path(each["path"]): each for each in found}
    assert by_path[savepoint]["valid"]
    assert "is missing" in by_path[broken]["state"]
    assert "truncated" in by_path[cut]["state"]
    assert by_path[cut]["epoch"] is None


def test_the_checkpoints_of_all_jobs_in_a_directory_are_listed_in_order(headrace, savepoint: Path):
    home = savepoint.parent.parent / "checkpoints"
    for job in ("job-a", "job-b"):
        for number in (9, 10):
            shutil.copytree(savepoint, home / job / f"chk-{number}")
    (home / "job-b" / "chk-11").mkdir()

    found = json.loads(headrace("checkpoints", "list", home, "--json").stdout)

    assert [Path(each["path"]).relative_to(home).as_posix() for each in found] == [
        "job-a/chk-9",
        "job-a/chk-10",
        "job-b/chk-9",
        "job-b/chk-10",
        "job-b/chk-11",
    ]
    assert "no _metadata file" in found[-1]["state"]
    one = json.loads(headrace("checkpoints", "list", home / "job-a", "--json").stdout)
    assert len(one) == 2


def test_an_empty_directory_is_an_error(headrace, tmp_path: Path):
    result = headrace("checkpoints", "list", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert "there are no checkpoints or savepoints" in result.stderr


def test_operators_states_and_positions_are_shown(headrace, savepoint: Path):
    result = headrace("checkpoints", "show", savepoint)

    assert result.exit_code == 0, result.output
    assert "of job 'test', epoch 2" in result.stdout
    assert "(uid count, " in result.stdout
    assert "count: value of any type, 7 entries" in result.stdout
    assert "split " in result.stdout
    shown = json.loads(headrace("checkpoints", "show", savepoint, "--json").stdout)
    [counted] = [each for each in shown["operators"] if each["uid"] == "count"]
    assert counted["states"][0]["entries"] == 7


def test_rows_are_printed(headrace, savepoint: Path):
    result = headrace("savepoint", "inspect", savepoint, "--operator", "count", "--limit", "3")

    assert result.exit_code == 0, result.output
    title, *rows = result.stdout.splitlines()
    assert title == "count / count (value)"
    assert len(rows) == 3
    assert "more than 3 rows" in result.stderr

    lines = headrace("savepoint", "inspect", savepoint, "--operator", "count", "--json").stdout.splitlines()
    assert sorted(json.loads(line)["key"] for line in lines) == list(range(7))
    assert sum(json.loads(line)["value"] for line in lines) == 16


def test_an_operator_that_is_not_there_is_an_error_that_names_the_others(headrace, savepoint: Path):
    result = headrace("savepoint", "inspect", savepoint, "--operator", "cuont")
    assert result.exit_code == 1
    assert "numbers, count" in result.stderr


def test_a_savepoint_is_disposed_of(headrace, savepoint: Path):
    assert headrace("savepoint", "dispose", savepoint).exit_code == 0
    assert not savepoint.exists()
    again = headrace("savepoint", "dispose", savepoint)
    assert again.exit_code == 1
    assert "no checkpoint or savepoint found" in again.stderr
