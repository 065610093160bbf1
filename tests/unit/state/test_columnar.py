"""Columnar state: a copy holds what a dictionary would, whatever the files, the processes and the key groups."""

from __future__ import annotations

import datetime as dt
import decimal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import StateError, StateMigrationError
from headrace.state.changes import read_change, table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Cells, ColumnType, to_arrow, to_cells
from headrace.state.compaction import compact
from headrace.state.handles import StateChain, StateFile
from headrace.state.row_sets import RowSet
from headrace.state.sections import rows_in

NUMBER, TEXT = ColumnType("number", pa.int64()), ColumnType("text", pa.string())
LAYOUT = TableLayout("table", (NUMBER, TEXT), has_owners=True)
GROUPS = 8

ARRAYS = [
    pa.array([1, None, -3], pa.int64()),
    pa.array([1.5, None, float("inf")], pa.float64()),
    pa.array([True, None, False]),
    pa.array(["a", None, "", "длинная строка"]),
    pa.array([b"\x00", None, b""]),
    pa.array([decimal.Decimal("1.20"), None], pa.decimal128(38, 2)),
    pa.array([dt.date(2020, 1, 1), None]),
    pa.array([1_577_880_000_000_000, None], pa.timestamp("us")),
    pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    pa.array([{"x": 1, "y": None}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])),
    pa.array([None, None], pa.string()),
    pa.array([], pa.int32()),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_arrays_come_back_as_they_were(array: pa.Array):
    kind = ColumnType("c", array.type)
    cells = to_cells(array, kind)
    assert to_arrow(cells, kind).equals(array)
    assert to_arrow(to_cells(array.slice(1), kind), kind).equals(array.slice(1))
    both = Cells.concat([cells, cells])
    assert to_arrow(both, kind).equals(pa.concat_arrays([array, array]))
    backwards = np.arange(len(array))[::-1]
    assert to_arrow(cells.take(backwards), kind).equals(array.take(pa.array(backwards)))


@pytest.fixture
def copy_at() -> Iterator[Callable[[Path], TableCopy]]:
    """Return a function that makes copies, which are let go of at the end."""
    copies = []

    def make(path: Path) -> TableCopy:
        copies.append(TableCopy(str(path), [LAYOUT]))
        return copies[-1]

    yield make
    for copy in copies:
        copy.close()


def key_of(key: int) -> tuple[int, int]:
    # Few first hashes, so that keys are told apart by the second and meet in the index.
    return key % 5 if key < 1_000 else key, key


def owner_of(key: int) -> tuple[int, int]:
    return key % 3, 77


def pairs(values: list[tuple[int, int]]) -> Any:
    return np.array(values, np.int64).reshape(-1, 2)


def row_set(entries: dict[int, tuple[int | None, str | None] | None]) -> RowSet:
    keys = list(entries)
    values = [entries[key] or (None, None) for key in keys]
    return RowSet(
        pairs([key_of(key) for key in keys]),
        pairs([owner_of(key) for key in keys]),
        np.array([entries[key] is None for key in keys], bool),
        {
            "number": to_cells(pa.array([value[0] for value in values], pa.int64()), NUMBER),
            "text": to_cells(pa.array([value[1] for value in values], pa.string()), TEXT),
        },
        LAYOUT.types,
    )


def contents(table: SlotTable) -> dict[int, tuple[Any, Any]]:
    slots = table.live
    columns = [to_arrow(table.cells(column.name, slots), column).to_pylist() for column in LAYOUT.columns]
    found = dict(zip(table.keys_at(slots)[:, 1].tolist(), zip(*columns, strict=True), strict=True))
    assert len(found) == len(slots)
    return found


values = st.tuples(st.none() | st.integers(-9, 9), st.none() | st.text("ab", max_size=3))
epochs = st.lists(st.dictionaries(st.integers(0, 40), st.none() | values, max_size=12), max_size=6)


@settings(max_examples=50, deadline=None)
@given(epochs, st.booleans(), st.integers(0, 5))
def test_a_copy_holds_what_was_written_last(
    changes: list[dict[int, Any]], keeps_copy: bool, compacted_behind: int
):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        chain, model = StateChain("run"), {}
        for version, change in enumerate(changes, 1):
            encoded = table_change({"table": row_set(change)}, GROUPS)
            if encoded:
                name = str(path / f"{version}.change")
                chain = chain.append(StateFile(name, chain.version, version, write_change(name, encoded)))
            model.update(change)
            model = {key: value for key, value in model.items() if value is not None}
            if version == compacted_behind and chain.files:
                merged = str(path / "merged")
                size = compact(chain.files, merged)
                chain = chain.compacted(StateFile(merged, 0, chain.version, size, is_base=True))
            copy = TableCopy(str(path / ("copy" if keeps_copy else f"copy{version}")), [LAYOUT])
            copy.catch_up(chain, range(GROUPS))
            table = copy.tables["table"]
            assert contents(table) == model
            texts = [text or "" for _, text in model.values()]
            assert (table.size.live, table.size.held) == (len(model), len("".join(texts)))
            asked = pairs([key_of(key) for key in range(41)])
            assert [slot >= 0 for slot in table.find(asked)] == [key in model for key in range(41)]
            at, slots = table.members(pairs([owner_of(owner) for owner in range(3)]))
            members = [set(table.keys_at(slots[at == owner])[:, 1].tolist()) for owner in range(3)]
            assert members == [{key for key in model if key % 3 == owner} for owner in range(3)]
            copy.close()


def test_a_table_grows_with_its_rows(tmp_path: Path):
    table = SlotTable(str(tmp_path), LAYOUT)
    for start in range(1_000, 21_000, 5_000):
        table.apply(row_set({key: (key, f"text {key}") for key in range(start, start + 5_000)}))
    assert contents(table) == {key: (key, f"text {key}") for key in range(1_000, 21_000)}
    at, slots = table.members(pairs([owner_of(owner) for owner in range(3)]))
    assert len(slots) == len(set(slots.tolist())) == 20_000
    assert (table.keys_at(slots)[:, 1] % 3 == at).all()


def test_another_process_finds_the_rows_where_the_mark_says(
    tmp_path: Path, copy_at: Callable[[Path], TableCopy]
):
    name = str(tmp_path / "1.change")
    encoded = table_change({"table": row_set({1: (1, "one"), 2: (2, None)})}, GROUPS)
    chain = StateChain("run", (StateFile(name, 0, 1, write_change(name, encoded)),))
    copy_at(tmp_path / "copy").catch_up(chain, range(GROUPS))
    Path(name).unlink()  # it is not needed a second time
    other = copy_at(tmp_path / "copy")
    other.catch_up(chain, range(GROUPS))
    assert contents(other.tables["table"]) == {1: (1, "one"), 2: (2, None)}


def test_a_copy_that_stays_open_sees_what_other_processes_do_to_it(
    tmp_path: Path, copy_at: Callable[[Path], TableCopy], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("headrace.state.columnar.copy._FEW_SLOTS", 10)
    first, second = copy_at(tmp_path / "copy"), copy_at(tmp_path / "copy")
    changes: list[dict[int, Any]] = [
        {1: (1, "one"), 2: (2, "two")},
        {1: (10, "ten"), 3: (3, None)},  # in place
        {key: (key, "x" * 40) for key in range(1_000, 9_000)},  # longer files, and another index
        {key: None for key in range(1_000, 8_990)},  # mostly dead rows, so that the table is made again
        {1: None, 4: (4, "four")},
    ]
    chain, model = StateChain("run"), {}
    for version, change in enumerate(changes, 1):
        name = str(tmp_path / f"{version}.change")
        size = write_change(name, table_change({"table": row_set(change)}, GROUPS))
        chain = chain.append(StateFile(name, version - 1, version, size))
        model = {key: value for key, value in {**model, **change}.items() if value is not None}
        for copy in (
            (first, second) if version % 2 else (second, first)
        ):  # one writes, the other finds it there
            copy.catch_up(chain, range(GROUPS))
            assert contents(copy.tables["table"]) == model
            assert (copy.tables["table"].find(pairs([key_of(key) for key in model])) >= 0).all()
            copy.release()
    (tmp_path / "copy" / "dirty").touch()
    for copy in (first, second):  # it is built again, at the same version as before
        copy.catch_up(chain, range(GROUPS))
        assert contents(copy.tables["table"]) == model
        copy.release()


def test_only_the_key_groups_of_the_subtask_are_there(tmp_path: Path, copy_at: Callable[[Path], TableCopy]):
    name = str(tmp_path / "1.change")
    write_change(name, table_change({"table": row_set({key: (key, None) for key in range(30)})}, GROUPS))
    chain = StateChain("run", (StateFile(name, 0, 1, 0),))
    copy = copy_at(tmp_path / "copy")
    copy.catch_up(chain, range(1, 2))  # a key's group is that of its owner
    assert contents(copy.tables["table"]) == {key: (key, None) for key in range(30) if key % 3 == 1}


def test_a_copy_that_was_left_half_written_is_rebuilt(tmp_path: Path, copy_at: Callable[[Path], TableCopy]):
    name = str(tmp_path / "1.change")
    write_change(name, table_change({"table": row_set({1: (1, "one")})}, GROUPS))
    chain = StateChain("run", (StateFile(name, 0, 1, 0),))
    copy = copy_at(tmp_path / "copy")
    copy.catch_up(chain, range(GROUPS))
    copy.tables["table"].apply(row_set({1: (99, "damage"), 2: (2, "damage")}))
    copy.release()
    (tmp_path / "copy" / "dirty").touch()
    copy.catch_up(chain, range(GROUPS))
    assert contents(copy.tables["table"]) == {1: (1, "one")}


def test_a_copy_never_goes_back_and_never_changes_runs(tmp_path: Path, copy_at: Callable[[Path], TableCopy]):
    name = str(tmp_path / "1.change")
    write_change(name, table_change({"table": row_set({1: (1, "one")})}, GROUPS))
    copy = copy_at(tmp_path / "copy")
    copy.catch_up(StateChain("run", (StateFile(name, 0, 1, 0),)), range(GROUPS))
    with pytest.raises(StateError, match="version 1, but this attempt needs 0"):
        copy.catch_up(StateChain("run"), range(GROUPS))
    with pytest.raises(StateError, match="belongs to lineage run"):
        copy.catch_up(StateChain("other", (StateFile(name, 0, 1, 0),)), range(GROUPS))


def test_dead_rows_are_swept_out(
    tmp_path: Path, copy_at: Callable[[Path], TableCopy], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("headrace.state.columnar.copy._FEW_SLOTS", 10)
    files = []
    for version, change in enumerate(
        [{key: (key, "x" * 9) for key in range(100)}, {key: None for key in range(95)}], 1
    ):
        name = str(tmp_path / f"{version}.change")
        write_change(name, table_change({"table": row_set(change)}, GROUPS))
        files.append(StateFile(name, version - 1, version, 0))
    copy = copy_at(tmp_path / "copy")
    for version in (1, 2):
        copy.catch_up(StateChain("run", tuple(files[:version])), range(GROUPS))
    table = copy.tables["table"]
    assert table.slots == 5
    assert contents(table) == {key: (key, "x" * 9) for key in range(95, 100)}


def test_a_base_forgets_what_was_removed_and_a_merged_change_does_not(tmp_path: Path):
    files = []
    for version, change in enumerate([{1: (1, "a"), 4: (4, "d")}, {1: None}], 1):
        name = str(tmp_path / f"{version}.change")
        write_change(name, table_change({"table": row_set(change)}, GROUPS))
        files.append(StateFile(name, version - 1, version, 0))
    compact(files, str(tmp_path / "base"))
    compact(files[1:], str(tmp_path / "change"))
    for path, removed in (("base", {False}), ("change", {True})):
        sections = [rows_in(part) for part in read_change(str(tmp_path / path))["table"].values()]
        assert {bool(each) for rows in sections if rows is not None for each in rows.removed} == removed


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            TableLayout("table", (NUMBER, TEXT), has_owners=True, key_words=3),
            "keys of 2 numbers instead of 3",
        ),
        (TableLayout("table", (NUMBER, TEXT)), "rows have another kind of key"),
        (
            TableLayout("table", (NUMBER, TEXT, ColumnType("more", pa.int64())), has_owners=True),
            "column more is missing",
        ),
        (
            TableLayout("table", (NUMBER, ColumnType("text", pa.int64())), has_owners=True),
            "column text is string instead of int64",
        ),
    ],
)
def test_state_of_another_form_is_refused(layout: TableLayout, message: str, tmp_path: Path):
    change, path = table_change({"table": row_set({1: (10, "a")})}, GROUPS), str(tmp_path / "1.change")
    chain = StateChain("run").append(StateFile(path, 0, 1, write_change(path, change)))
    with closing(TableCopy(str(tmp_path / "copy"), [layout])) as copy:
        for _ in range(2):
            with pytest.raises(
                StateMigrationError, match=f"cannot restore table 'table'.*{message}"
            ) as error:
                copy.catch_up(chain, range(GROUPS))
    assert "restore it with the version that wrote it" in str(error.value)
