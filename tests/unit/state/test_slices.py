from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.state.changes import write_change
from headrace.state.handles import StateChain, StateFile
from headrace.state.slices import SliceTable
from headrace.state.store import LocalStore

ALL = range(8)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(str(tmp_path / "copy"))) as opened:
        opened.catch_up(StateChain("line"), ALL)
        yield opened


@pytest.fixture
def table(store: LocalStore) -> SliceTable:
    made = SliceTable("s", ALL, 8)
    made.begin(store, is_current=False)
    made.restore(())
    return made


def next_epoch(table: SliceTable, store: LocalStore, path: Path, chain: StateChain) -> StateChain:
    """Write the changes down and go on from there."""
    version = chain.version + 1
    file = str(path / f"{version}.change")
    size = write_change(file, {"s": table.take_changes(version)})
    chain = chain.append(StateFile(file, chain.version, version, size))
    names = set(table.names)
    store.catch_up(chain, ALL)
    table.begin(store, is_current=False)
    table.restore(names)
    return chain


def test_a_slice_that_was_only_read_is_not_one_of_the_tables(table: SliceTable) -> None:
    assert list(table.open(b"1").items()) == []
    assert table.names == set()


def test_a_slice_that_was_opened_to_add_is_one_also_without_keys(table: SliceTable) -> None:
    table.open_to_add(b"1")
    assert table.names == {b"1"}
    table.drop(b"1")
    assert table.names == set()


def test_slices_last_from_one_epoch_to_the_next(table: SliceTable, store: LocalStore, tmp_path: Path) -> None:
    table.open_to_add(b"1").written.update(a=1, b=2)
    table.open_to_add(b"2").written["a"] = 3
    chain = next_epoch(table, store, tmp_path, StateChain("line"))
    assert table.names == {b"1", b"2"}
    assert sorted(table.open(b"1").items()) == [("a", 1), ("b", 2)]

    table.drop(b"1")
    piece = table.open_to_add(b"2")
    piece.written["a"] = piece.load("a") + 1
    next_epoch(table, store, tmp_path, chain)
    assert table.names == {b"2"}
    assert list(table.open(b"1").items()) == []
    assert list(table.open(b"2").items()) == [("a", 4)]


def test_a_slice_that_is_dropped_and_filled_again_has_the_new_keys_only(
    table: SliceTable, store: LocalStore, tmp_path: Path
) -> None:
    table.open_to_add(b"1").written.update(a=1, b=2)
    chain = next_epoch(table, store, tmp_path, StateChain("line"))
    table.drop(b"1")
    table.open_to_add(b"1").written["b"] = 5
    next_epoch(table, store, tmp_path, chain)
    assert list(table.open(b"1").items()) == [("b", 5)]
