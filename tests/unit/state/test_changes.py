from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import StateError
from headrace.state.changes import (
    KEY_GROUP_PREFIX,
    StateChange,
    column_of,
    merge_changes,
    read_change,
    write_change,
)

#: State -> storage key -> value, None for removed: a change as a test likes to write it.
Entries = dict[str, dict[bytes, bytes | None]]


def as_change(entries: Entries) -> StateChange:
    columns = {name: column_of(list(found), list(found.values())) for name, found in entries.items()}
    return {name: column for name, column in columns.items() if column}


def as_entries(change: StateChange) -> Entries:
    found: Entries = {}
    for name, column in change.items():
        for keys, values in column.values():
            found.setdefault(name, {}).update(zip(keys, values, strict=True))
    return found


def in_group(group: int, key: bytes) -> bytes:
    return KEY_GROUP_PREFIX[group] + key


storage_keys = st.builds(in_group, st.integers(min_value=0, max_value=9), st.binary(max_size=4))
states = st.dictionaries(storage_keys, st.none() | st.binary(max_size=8), min_size=1, max_size=12)
changes = st.dictionaries(st.sampled_from(["count", "last", "ü"]), states, max_size=3)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that each example writes again: write_change replaces what stands there."""
    return str(tmp_path_factory.mktemp("changes") / "1.change")


@given(entries=changes)
def test_a_change_comes_back_as_it_was_written(path: str, entries: Entries) -> None:
    size = write_change(path, as_change(entries))
    assert as_entries(read_change(path)) == entries
    assert size == Path(path).stat().st_size


@given(entries=changes, first=st.integers(0, 9), count=st.integers(0, 9))
def test_a_subtask_reads_its_own_key_groups_only(path: str, entries: Entries, first: int, count: int) -> None:
    groups = range(first, first + count)
    write_change(path, as_change(entries))
    read = read_change(path, groups)
    expected = {
        name: {key: value for key, value in found.items() if int.from_bytes(key[:2], "big") in groups}
        for name, found in entries.items()
    }
    assert as_entries(read) == {name: found for name, found in expected.items() if found}
    assert all(group in groups for column in read.values() for group in column)


def test_damage_in_another_subtasks_key_group_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "1.change"
    change = as_change({"s": {in_group(1, b"a"): b"AAAAAAAA", in_group(2, b"b"): b"BBBBBBBB"}})
    write_change(str(path), change)
    path.write_bytes(path.read_bytes().replace(b"BBBBBBBB", b"BBBxBBBB"))
    assert as_entries(read_change(str(path), range(2))) == {"s": {in_group(1, b"a"): b"AAAAAAAA"}}
    with pytest.raises(StateError, match="key group 2"):
        read_change(str(path), range(2, 3))


@given(entries=changes.filter(bool), data=st.data())
def test_a_file_that_was_damaged_anywhere_is_refused(
    path: str, entries: Entries, data: st.DataObject
) -> None:
    write_change(path, as_change(entries))
    content = bytearray(Path(path).read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    Path(path).write_bytes(content)
    with pytest.raises(StateError, match=r"1\.change"):
        read_change(path)


@given(entries=changes.filter(bool), data=st.data())
def test_a_file_that_was_cut_short_is_refused(path: str, entries: Entries, data: st.DataObject) -> None:
    write_change(path, as_change(entries))
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(StateError, match=r"1\.change"):
        read_change(path)


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"gone\.change is missing") as caught:
        read_change(str(tmp_path / "gone.change"))
    assert "execution.checkpointing.dir" in (caught.value.hint or "")


def test_another_files_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.change"
    path.write_bytes(b"HRSTATE0" + bytes(100))
    with pytest.raises(StateError, match="not a state file of this version"):
        read_change(str(path))


def test_no_partial_file_is_left_next_to_the_file(tmp_path: Path) -> None:
    write_change(str(tmp_path / "new" / "1.change"), as_change({"s": {in_group(0, b"a"): b"1"}}))
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["1.change"]


@given(st.lists(changes, max_size=4), st.booleans())
def test_of_merged_changes_the_later_one_wins(many: list[Entries], keep_removals: bool) -> None:
    expected: Entries = {}
    for each in many:
        for name, found in each.items():
            expected.setdefault(name, {}).update(found)
    if not keep_removals:
        expected = {
            name: {key: value for key, value in found.items() if value is not None}
            for name, found in expected.items()
        }
    merged = merge_changes(map(as_change, many), keep_removals=keep_removals)
    assert as_entries(merged) == {name: found for name, found in expected.items() if found}


def test_what_is_merged_is_in_the_order_of_its_keys() -> None:
    first = {"s": column_of([b"\x00\x01c", b"\x00\x01a"], [b"1", b"2"])}
    second = {"s": column_of([b"\x00\x01b", b"\x00\x00z"], [b"3", None])}
    merged = merge_changes([first, second], keep_removals=True)
    assert merged == {
        "s": {
            0: ([b"\x00\x00z"], [None]),
            1: ([b"\x00\x01a", b"\x00\x01b", b"\x00\x01c"], [b"2", b"3", b"1"]),
        }
    }
