from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.state.changes import write_change
from headrace.state.handles import StateChain, StateFile
from headrace.state.slices import SliceTable
from headrace.state.stores.lmdb import LmdbStore

ALL = range(8)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    with closing(LmdbStore(str(tmp_path / "copy"))) as opened:
        opened.catch_up(StateChain("line"), ALL)
        yield opened


@pytest.fixture
def table(store: LmdbStore) -> SliceTable:
    made = SliceTable("s", ALL, 8, name_size=1)
    made.begin(store, is_current=False)
    made.restore(())
    return made


def next_epoch(table: SliceTable, store: LmdbStore, path: Path, chain: StateChain) -> StateChain:
    """Write the changes down and continue from there."""
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


def test_slices_last_from_one_epoch_to_the_next(table: SliceTable, store: LmdbStore, tmp_path: Path) -> None:
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
    table: SliceTable, store: LmdbStore, tmp_path: Path
) -> None:
    table.open_to_add(b"1").written.update(a=1, b=2)
    chain = next_epoch(table, store, tmp_path, StateChain("line"))
    table.drop(b"1")
    table.open_to_add(b"1").written["b"] = 5
    next_epoch(table, store, tmp_path, chain)
    assert list(table.open(b"1").items()) == [("b", 5)]


def test_groups_with_slices_have_marks_and_only_those_written_to_get_new_numbers(
    table: SliceTable, store: LmdbStore, tmp_path: Path
) -> None:
    table.open_to_add(b"1").written.update(a=1, b=2)
    table.mark(5, 2)
    chain = next_epoch(table, store, tmp_path, StateChain("line"))
    group_of_a, group_of_b = table._storage_key(b"1", "a")[1], table._storage_key(b"1", "b")[1]
    assert table.marks == {group_of_a: (5, 2), group_of_b: (5, 2)}

    table.open_to_add(b"1").written["a"] = 3
    table.mark(5, 7)
    chain = next_epoch(table, store, tmp_path, chain)
    assert table.marks == {group_of_a: (5, 7), group_of_b: (5, 2)}

    table.mark(9, 7)
    chain = next_epoch(table, store, tmp_path, chain)
    table.mark(4, 7)
    assert table.take_changes(9) == {}, "those that are further stay there"
    assert table.marks == {group_of_a: (9, 7), group_of_b: (9, 2)}

    table.drop(b"1")
    next_epoch(table, store, tmp_path, chain)
    assert table.marks == {}
    assert list(store.scan("s")) == []


def test_which_slices_there_are_can_be_found_in_the_store(
    table: SliceTable, store: LmdbStore, tmp_path: Path
) -> None:
    for name, keys in [(b"1", "abc"), (b"2", "d"), (b"\x00", "az")]:
        table.open_to_add(name).written.update(dict.fromkeys(keys, 0))
    next_epoch(table, store, tmp_path, StateChain("line"))
    assert table.find_names() == {b"1", b"2", b"\x00"}
