"""Where copies of state are on a host, and when they are removed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from headrace.runtime.task import scratch
from headrace.runtime.task.scratch import (
    copy_directory,
    hold_scratch_for_driver,
    remove_run,
    remove_scratch,
    renew_scratch,
    scratch_directories,
    sweep_scratch,
)
from headrace.runtime.task.settings import TaskSettings
from headrace.state.stores.settings import RocksDBSettings, StoreSettings
from headrace.util.host_directories import HeldDirectory, Owner, read_owner


def test_rocksdb_is_on_disk_unless_told_otherwise() -> None:
    settings = TaskSettings(scratch_name="run", store=StoreSettings(rocksdb=RocksDBSettings()))
    assert scratch_directories(settings) == [f"{tempfile.gettempdir()}/run-{os.geteuid()}"]


def test_copies_are_spread_over_the_directories_and_found_again(tmp_path: Path) -> None:
    parents = (str(tmp_path / "a"), str(tmp_path / "b"))
    settings = TaskSettings(scratch_name="run", store=StoreSettings(directories=parents))
    places = [copy_directory(settings, "line", "op", f"{n}-of-20") for n in range(20)]
    assert places == [copy_directory(settings, "line", "op", f"{n}-of-20") for n in range(20)]
    assert {Path(place).parents[2].parent.name for place in places} == {"a", "b"}
    for place in places:
        Path(place).mkdir(parents=True)
    for directory in scratch_directories(settings):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    remove_scratch(settings)
    assert [list((tmp_path / name).iterdir()) for name in "ab"] == [[], []]


def test_a_worker_that_stands_for_a_host_has_a_directory_of_its_own(tmp_path: Path) -> None:
    settings = TaskSettings(
        scratch_name="run", scratch_parent=str(tmp_path), store=StoreSettings(directories=("/elsewhere",))
    )
    assert scratch_directories(settings) == [str(tmp_path / f"run-{os.geteuid()}")]


def test_copies_of_an_earlier_boot_of_the_host_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not synced: after a power loss they may be torn."""
    settings = TaskSettings(scratch_name="run", scratch_parent=str(tmp_path))
    before = Path(copy_directory(settings, "run", "op", "0-of-1"))
    before.mkdir(parents=True)
    monkeypatch.setattr(scratch, "_boot_id", lambda: "another")
    assert copy_directory(settings, "run", "op", "0-of-1") != str(before)
    assert not before.exists()


def test_a_new_run_removes_the_copies_of_the_one_before(tmp_path: Path) -> None:
    settings = TaskSettings(scratch_name="run", scratch_parent=str(tmp_path))
    first = Path(copy_directory(settings, "first", "op", "0-of-1"))
    first.mkdir(parents=True)
    second = Path(copy_directory(settings, "second", "op", "0-of-1"))
    second.mkdir(parents=True)
    assert not first.exists()
    assert copy_directory(settings, "second", "other", "0-of-1").startswith(str(second.parents[1]))
    assert second.exists()
    remove_run(settings, "second")
    assert not second.exists()
    remove_scratch(settings)


@pytest.mark.parametrize("who", ["the next driver", "the next worker"])
def test_leftovers_of_a_killed_job_are_removed_by(who: str, tmp_path: Path) -> None:
    left = tmp_path / "headrace-left"
    HeldDirectory(str(left), Owner.here("state files", job_id="ab" * 16)).let_go()
    old = left.stat().st_mtime - 3600
    os.utime(left / "lease", (old, old))
    settings = TaskSettings(scratch_name="headrace-next", store=StoreSettings(directories=(str(tmp_path),)))
    if who == "the next driver":
        sweep_scratch(settings)
    else:
        copy_directory(settings, "first", "op", "0-of-1")
    assert not left.exists()
    remove_scratch(settings)


def test_the_driver_says_that_it_holds_the_directory_and_workers_leave_that_as_it_is(tmp_path: Path) -> None:
    settings = TaskSettings(scratch_name="run", scratch_parent=str(tmp_path))
    hold_scratch_for_driver(settings)
    copy_directory(settings, "first", "op", "0-of-1")
    (directory,) = scratch_directories(settings)
    owner = read_owner(directory)
    assert owner is not None
    assert owner.holds_lease
    remove_scratch(settings)


def test_a_driver_makes_no_directory_where_its_host_has_no_such_place(tmp_path: Path) -> None:
    settings = TaskSettings(scratch_name="run", store=StoreSettings(directories=(str(tmp_path / "nvme"),)))
    hold_scratch_for_driver(settings)
    assert list(tmp_path.iterdir()) == []


def test_a_renewed_directory_that_is_gone_is_created_again(tmp_path: Path) -> None:
    settings = TaskSettings(scratch_name="run", scratch_parent=str(tmp_path))
    copy_directory(settings, "first", "op", "0-of-1")
    (directory,) = scratch_directories(settings)
    shutil.rmtree(directory)
    renew_scratch(settings)
    assert sorted(os.listdir(directory)) == ["lease", "owner.json"]
    remove_scratch(settings)
    renew_scratch(settings)  # by now it is nobody's
    assert list(tmp_path.iterdir()) == []
