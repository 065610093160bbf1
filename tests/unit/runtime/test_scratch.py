from __future__ import annotations

import tempfile
from pathlib import Path

from headrace.runtime.task.scratch import copy_directory, remove_scratch, scratch_directories
from headrace.runtime.task.settings import TaskSettings
from headrace.state.stores.settings import RocksDBSettings, StoreSettings


def test_rocksdb_is_on_disk_unless_told_otherwise() -> None:
    settings = TaskSettings(scratch_name="run", store=StoreSettings(rocksdb=RocksDBSettings()))
    assert scratch_directories(settings) == [f"{tempfile.gettempdir()}/run"]


def test_copies_are_spread_over_the_directories_and_found_again(tmp_path: Path) -> None:
    parents = (str(tmp_path / "a"), str(tmp_path / "b"))
    settings = TaskSettings(scratch_name="run", store=StoreSettings(directories=parents))
    places = [copy_directory(settings, "line", "op", f"{n}-of-20") for n in range(20)]
    assert places == [copy_directory(settings, "line", "op", f"{n}-of-20") for n in range(20)]
    assert {Path(place).parents[2].parent.name for place in places} == {"a", "b"}
    for place in places:
        Path(place).mkdir(parents=True)
    remove_scratch(settings)
    assert [list((tmp_path / name).iterdir()) for name in "ab"] == [[], []]


def test_a_worker_that_stands_for_a_host_has_a_directory_of_its_own(tmp_path: Path) -> None:
    settings = TaskSettings(
        scratch_name="run", scratch_parent=str(tmp_path), store=StoreSettings(directories=("/elsewhere",))
    )
    assert scratch_directories(settings) == [str(tmp_path / "run")]
