"""Timers as state: what falls due, in which order, and what is written down of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.elements import MAX_WATERMARK
from headrace.state.changes import StateChange, write_change
from headrace.state.handles import StateChain, StateFile
from headrace.state.key_groups import key_group_range
from headrace.state.keyed import KeyedStateBackend
from headrace.state.stores.lmdb import LmdbStore
from headrace.state.timers import Timer, TimerTable

NAME = "timers"


def as_bytes(namespace: Any) -> bytes:
    return repr(namespace).encode()


class Subtask:
    """Timers of one subtask, epoch after epoch."""

    def __init__(self, directory: Path, subtask: int = 0, parallelism: int = 1) -> None:
        self._directory = directory
        self._groups = key_group_range(subtask, 128, parallelism)
        self._copies = 0
        self.chain = StateChain("line")
        self.open()

    def open(self) -> None:
        """Begin on a host that has nothing yet."""
        self._copies += 1
        self.store = LmdbStore(
            str(self._directory / f"copy-{self._copies}-{self._groups.start}-{self._groups.stop}")
        )
        self.backend = KeyedStateBackend(self.store, self._groups, 128, 1000)
        self.backend.begin_epoch(self.chain)
        self.timers: TimerTable = self.backend.timers(NAME, as_bytes)

    def end_epoch(self) -> StateChange:
        """Write down what changed, and begin the next epoch."""
        version = self.chain.version + 1
        change = self.backend.take_changes(version)
        if change:
            path = str(self._directory / f"{version}.change")
            size = write_change(path, change)
            self.chain = self.chain.append(StateFile(path, self.chain.version, version, size))
        self.backend.settle(self.chain.tip)
        self.backend.begin_epoch(self.chain)
        return change

    def due(self, until: int) -> list[tuple[int, Any, Any]]:
        return [tuple(timer) for timer in self.timers.due(until)]

    def stored(self) -> int:
        return sum(1 for _ in self.store.scan(NAME))


@pytest.fixture
def subtask(tmp_path: Path) -> Iterator[Subtask]:
    made = Subtask(tmp_path)
    yield made
    made.backend.close()


def test_what_was_registered_and_fired_within_an_epoch_is_never_written(subtask: Subtask) -> None:
    subtask.timers.register(5, "a", None)
    subtask.timers.register(6, "b", None)
    subtask.timers.delete(6, "b", None)
    assert subtask.due(10) == [(5, "a", None)]
    assert subtask.end_epoch() == {}


def test_what_was_fired_is_removed(subtask: Subtask) -> None:
    for time in (5, 6, 7):
        subtask.timers.register(time, "a", None)
    subtask.end_epoch()
    assert subtask.stored() == 3
    assert subtask.due(6) == [(5, "a", None), (6, "a", None)]
    subtask.end_epoch()
    assert subtask.stored() == 1
    subtask.open()
    assert subtask.due(MAX_WATERMARK) == [(7, "a", None)]


def test_an_epoch_without_timers_due_changes_nothing(subtask: Subtask) -> None:
    subtask.timers.register(5, "a", None)
    subtask.end_epoch()
    assert subtask.due(4) == []
    subtask.timers.register(5, "a", None)
    assert subtask.due(4) == []
    # Registered again, so it is written again; there is still one.
    subtask.end_epoch()
    assert subtask.stored() == 1
    assert subtask.end_epoch() == {}


@pytest.mark.parametrize("cuts", [False, True])
def test_timers_of_one_moment_come_in_the_order_of_their_namespaces(subtask: Subtask, cuts: bool) -> None:
    for namespace in (3, 1, 2):
        subtask.timers.register(5, "a", namespace)
        if cuts:
            subtask.end_epoch()
    assert subtask.due(5) == [(5, "a", 1), (5, "a", 2), (5, "a", 3)]


@pytest.mark.parametrize("cuts", [False, True])
def test_a_timer_may_delete_the_next_one_of_its_moment(subtask: Subtask, cuts: bool) -> None:
    for namespace in (1, 2, 3):
        subtask.timers.register(5, "a", namespace)
    if cuts:
        subtask.end_epoch()
    fired = []
    for timer in subtask.timers.due(5):
        fired.append(timer.namespace)
        subtask.timers.delete(5, "a", 2)
    assert fired == [1, 3]
    subtask.end_epoch()
    assert subtask.stored() == 0


def test_the_same_moment_may_be_registered_while_it_fires(subtask: Subtask) -> None:
    subtask.timers.register(5, "a", None)
    fired = []
    for timer in subtask.timers.due(5):
        fired.append(timer)
        if len(fired) < 3:
            subtask.timers.register(5, "a", None)
    assert fired == [Timer(5, "a", None)] * 3


def test_when_the_next_timer_falls_due(subtask: Subtask) -> None:
    assert subtask.timers.next_time() is None
    subtask.timers.register(7, "a", None)
    subtask.timers.register(5, "b", None)
    assert subtask.timers.next_time() == 5
    subtask.end_epoch()
    assert subtask.timers.next_time() == 5
    subtask.timers.register(3, "c", None)
    assert subtask.timers.next_time() == 3
    subtask.timers.delete(3, "c", None)
    assert subtask.timers.next_time() == 5
    assert subtask.due(5) == [(5, "b", None)]
    assert subtask.timers.next_time() == 7
    subtask.end_epoch()
    subtask.open()
    assert subtask.timers.next_time() == 7


def test_timers_that_are_not_due_are_not_read(subtask: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3000):
        subtask.timers.register(1000 + number, f"key {number}", None)
    subtask.end_epoch()
    read = 0
    scan = subtask.store.scan

    def counting(*arguments: Any) -> Iterator[Any]:
        nonlocal read
        for entry in scan(*arguments):
            read += 1
            yield entry

    monkeypatch.setattr(subtask.store, "scan", counting)
    assert subtask.due(1001) == [(1000, "key 0", None), (1001, "key 1", None)]
    assert read < 500, "the first of each key group, and those that are due"


def test_long_keys_and_namespaces_are_distinguished(subtask: Subtask) -> None:
    long = "x" * 400
    timers = [(5, long + "1", None), (5, long + "2", None), (6, "k", long + "1"), (6, "k", long + "2")]
    for timer in timers:
        subtask.timers.register(*timer)
    subtask.end_epoch()
    assert sorted(subtask.due(9), key=repr) == sorted(timers, key=repr)


def test_a_subtask_has_the_timers_of_its_key_groups(tmp_path: Path) -> None:
    whole = Subtask(tmp_path)
    keys = [f"key {number}" for number in range(50)]
    for key in keys:
        whole.timers.register(5, key, None)
    whole.end_epoch()
    whole.backend.close()
    found = []
    for index in range(3):
        part = Subtask(tmp_path, index, 3)
        part.chain = whole.chain
        part.backend.begin_epoch(part.chain)
        found.append({key for _, key, _ in part.due(5)})
        part.backend.close()
    assert sorted(key for part in found for key in part) == sorted(keys)
    assert all(found)
