"""The disk that loses power: what it keeps, and what it may lose."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.disk import Disk, torn

pytestmark = pytest.mark.chaos


class Machine:
    """Does what a program would, on a disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.disk = Disk(root)

    def call(self, name: str, *paths: str) -> None:
        args = tuple(str(self.root / path) for path in paths)
        after = self.disk.watch(name, args)
        getattr(os, name)(*args)
        after()

    def write(self, path: str, data: bytes) -> None:
        self.disk.created(str(self.root / path))
        (self.root / path).write_bytes(data)

    def sync(self, path: str = "") -> None:
        self.disk.sync(str(self.root / path))

    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


def outcomes(directory: Path, work: Callable[[Machine], None], seeds: int = 200) -> list[dict[str, bytes]]:
    """Return what different power losses leave."""
    found = []
    for seed in range(seeds):
        machine = Machine(directory / str(seed))
        work(machine)
        machine.disk.lose_power(random.Random(seed))
        found.append(machine.files())
    return found


def test_synced_files_survive_a_power_loss(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        machine.write("a", b"data")
        machine.sync("a")
        machine.sync()

    assert all(files == {"a": b"data"} for files in outcomes(tmp_path, work))


def test_a_file_that_is_not_synced_may_be_whole_torn_empty_or_missing(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        machine.write("a", b"0123456789abcdef")

    contents = {files.get("a") for files in outcomes(tmp_path, work)}
    assert {None, b"", b"0123456789abcdef", b"01234567" + bytes(8)} <= contents


def test_a_synced_file_in_a_new_directory_may_be_lost_with_the_directory(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        machine.call("makedirs", "deep/er")
        machine.write("deep/er/a", b"data")
        machine.sync("deep/er/a")
        machine.sync("deep/er")
        machine.sync("deep")

    assert {tuple(files) for files in outcomes(tmp_path, work)} == {(), ("deep/er/a",)}


def test_renames_are_atomic_and_may_be_undone(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        machine.write("a", b"new")
        machine.sync("a")
        machine.write("b", b"old")
        machine.sync("b")
        machine.sync()
        machine.call("replace", "a", "b")

    found = [tuple(sorted(files.items())) for files in outcomes(tmp_path, work)]
    assert set(found) == {(("a", b"new"), ("b", b"old")), (("b", b"new"),)}


def test_removals_may_be_undone_in_any_order(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        for name in "ab":
            machine.write(name, name.encode())
            machine.sync(name)
        machine.sync()
        machine.call("remove", "a")
        machine.call("remove", "b")

    found = {"".join(sorted(files)) for files in outcomes(tmp_path, work)}
    assert found == {"", "a", "b", "ab"}


def test_a_name_that_is_synced_does_not_go_back_to_what_it_was_before(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        machine.call("makedirs", "x")
        machine.sync()
        machine.write("b", b"old")
        machine.write("x/a", b"new")
        machine.sync("x/a")
        machine.call("replace", "x/a", "b")
        machine.sync("x")

    assert all(files == {"b": b"new"} for files in outcomes(tmp_path, work))


def test_a_sync_that_failed_cannot_be_made_up_for(tmp_path: Path) -> None:
    def work(machine: Machine) -> None:
        machine.write("a", b"data")
        machine.disk.sync(str(machine.root / "a"), failed=True)
        machine.sync("a")
        machine.sync()

    assert {files["a"] == b"data" for files in outcomes(tmp_path, work)} == {True, False}


def test_changes_past_the_simulated_disk_are_noticed(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "root")
    (machine.root / "a").write_bytes(b"")
    with pytest.raises(AssertionError):
        machine.disk.lose_power(random.Random(0))


@pytest.mark.parametrize("block", [8, 512])
def test_blocks_are_old_new_or_zero(block: int) -> None:
    before, after = b"o" * 2048, b"n" * 2048
    for seed in range(100):
        left = torn(random.Random(seed), before, after, block)
        assert set(left) <= set(b"on\0")
        assert len(left) <= 2048
