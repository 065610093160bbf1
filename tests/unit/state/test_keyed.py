"""Keyed state against plain dictionaries, with epochs that end, move to other workers and run again anywhere."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.common.typeinfo import Types
from headrace.datastream.functions import AggregateFunction
from headrace.errors import KeyTypeError, StateDescriptorError, StateTypeError
from headrace.state.changes import write_change
from headrace.state.compaction import compact
from headrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headrace.state.handles import StateChain, StateFile
from headrace.state.key_groups import key_group_range
from headrace.state.keyed import KeyedStateBackend
from headrace.state.keys import encode_key
from headrace.state.stores.lmdb import LmdbStore


class Average(AggregateFunction):
    """Its accumulator is a list that is changed in place."""

    def create_accumulator(self) -> list[float]:
        return [0, 0]

    def add(self, value: Any, accumulator: list[float]) -> list[float]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[float]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: list[float], acc_b: list[float]) -> list[float]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


VALUE = ValueStateDescriptor("value", None)
COUNT = ValueStateDescriptor("count", Types.LONG())
LIST = ListStateDescriptor("list", None)
MAP = MapStateDescriptor("map", None, None)
REDUCING = ReducingStateDescriptor("reducing", lambda a, b: a + b, None)
AGGREGATING = AggregatingStateDescriptor("aggregating", Average(), None)


class Subtask:
    """One operator subtask whose epochs a test begins, ends, moves and repeats."""

    def __init__(self, directory: Path, *, cache_entries: int = 1000) -> None:
        self._directory = directory
        self._cache_entries = cache_entries
        self._copies = 0
        self._files = 0
        self.epoch = 1
        self.chain = StateChain("line")
        self.open()

    def open(self) -> None:
        """Start a worker, with the local copy that is there."""
        store = LmdbStore(str(self._directory / f"copy-{self._copies}"))
        self.backend = KeyedStateBackend(store, key_group_range(0, 128, 1), 128, self._cache_entries)
        self.value = self.backend.get_state(VALUE)
        self.count = self.backend.get_state(COUNT)
        self.list = self.backend.get_list_state(LIST)
        self.map = self.backend.get_map_state(MAP)
        self.reducing = self.backend.get_reducing_state(REDUCING)
        self.aggregating = self.backend.get_aggregating_state(AGGREGATING)
        self.backend.begin_epoch(self.chain)

    def key(self, key: Any) -> None:
        self.backend.current.key = key

    def write(self) -> StateChain:
        """Do what a task does at the barrier; whether it counts is for others to say."""
        self._files += 1
        change = self.backend.take_changes(self.epoch)
        chain = self.chain
        if change:
            path = str(self._directory / "state" / f"{self._files}.change")
            chain = chain.append(StateFile(path, chain.version, self.epoch, write_change(path, change)))
        self.backend.settle(chain.tip)
        return chain

    def end_epoch(self) -> None:
        self.chain = self.write()
        self.epoch += 1
        self.backend.begin_epoch(self.chain)

    def move(self, *, keeps_copy: bool) -> None:
        """Another worker takes over, on this host or on another."""
        self.backend.close()
        if not keeps_copy:
            self._copies += 1
        self.open()

    def repeat(self, *, was_written: bool) -> None:
        """The epoch is run again by the same worker; the first try may have got to its end."""
        if was_written:
            self.write()
        self.backend.begin_epoch(self.chain)

    def compact(self, *, only_changes: bool) -> None:
        files = self.chain.changes if only_changes else self.chain.files
        if not files:
            return
        self._files += 1
        path = str(self._directory / "state" / f"{self._files}.merged")
        size = compact(files, path)
        first, last = files[0].from_version, files[-1].to_version
        self.chain = self.chain.compacted(StateFile(path, first, last, size, is_base=first == 0))

    def close(self) -> None:
        self.backend.close()


# --- against a model ------------------------------------------------------------------------------

# Few of them, so that they are met again.
keys = st.sampled_from(["a", None, "long" * 200])
map_keys = st.sampled_from([3, 1, ("x", 1), "long" * 100])
immutables = st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.text(max_size=2)))
mutables = st.one_of(
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.tuples(st.integers(), st.lists(st.integers(), max_size=2)),
)
values = immutables | mutables


def change_in_place(value: Any) -> None:
    """Change what can be changed inside a value; the same on the model's copy and the stored one."""
    if isinstance(value, list):
        value.append(len(value))
    elif isinstance(value, dict):
        value["more"] = value.get("more", 0) + 1
    elif isinstance(value, tuple):
        for part in value:
            change_in_place(part)


class Model:
    """What should be there."""

    def __init__(self) -> None:
        self.value: dict[Any, Any] = {}
        self.count: dict[Any, int] = {}
        self.list: dict[Any, list[Any]] = {}
        self.map: dict[Any, dict[Any, Any]] = {}
        self.reducing: dict[Any, int] = {}
        self.added: dict[Any, list[int]] = {}


class KeyedStateMachine(RuleBasedStateMachine):
    """Everything a function may do with state, and everything that may happen to its worker."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="headrace-keyed-"))
        self.model = Model()
        self.at_barrier = Model()
        self.key: Any = "a"

    @initialize(cache_entries=st.sampled_from([0, 2, 1000]))
    def start(self, cache_entries: int) -> None:
        self.subtask = Subtask(self.directory, cache_entries=cache_entries)
        self.enter("a")

    def teardown(self) -> None:
        if hasattr(self, "subtask"):
            self.subtask.close()
        shutil.rmtree(self.directory)

    # What a function does.

    @rule(key=keys)
    def enter(self, key: Any) -> None:
        self.key = key
        self.subtask.key(key)

    @rule(announced=st.lists(keys, min_size=1, max_size=3))
    def announce_keys(self, announced: list[Any]) -> None:
        self.subtask.backend.prefetch(announced)

    @rule(value=values)
    def update_value(self, value: Any) -> None:
        self.model.value[self.key] = copy.deepcopy(value)
        self.subtask.value.update(value)

    @rule()
    def clear_value(self) -> None:
        self.model.value.pop(self.key, None)
        self.subtask.value.clear()

    @rule()
    def update_value_with_none(self) -> None:
        self.model.value.pop(self.key, None)
        self.subtask.value.update(None)

    @rule()
    def change_value_in_place(self) -> None:
        change_in_place(self.model.value.get(self.key))
        change_in_place(self.subtask.value.value())

    @rule(amount=st.integers(-3, 3))
    def count(self, amount: int) -> None:
        self.model.count[self.key] = self.model.count.get(self.key, 0) + amount
        self.subtask.count.update((self.subtask.count.value() or 0) + amount)

    @rule(value=values)
    def append(self, value: Any) -> None:
        self.model.list.setdefault(self.key, []).append(copy.deepcopy(value))
        self.subtask.list.add(value)

    @rule(many=st.lists(values, max_size=3))
    def append_all(self, many: list[Any]) -> None:
        self.model.list.setdefault(self.key, []).extend(copy.deepcopy(many))
        self.subtask.list.add_all(many)

    @rule(many=st.lists(values, max_size=3))
    def replace_list(self, many: list[Any]) -> None:
        self.model.list[self.key] = copy.deepcopy(many)
        self.subtask.list.update(many)

    @rule()
    def clear_list(self) -> None:
        self.model.list[self.key] = []
        self.subtask.list.clear()

    @rule()
    def change_elements_in_place(self) -> None:
        for element in self.model.list.get(self.key, []):
            change_in_place(element)
        for element in self.subtask.list:
            change_in_place(element)

    @rule(map_key=map_keys, value=values | st.none())
    def put(self, map_key: Any, value: Any) -> None:
        self.model.map.setdefault(self.key, {})[map_key] = copy.deepcopy(value)
        self.subtask.map.put(map_key, value)

    @rule(map_key=map_keys)
    def remove(self, map_key: Any) -> None:
        self.model.map.get(self.key, {}).pop(map_key, None)
        self.subtask.map.remove(map_key)

    @rule()
    def clear_map(self) -> None:
        self.model.map.pop(self.key, None)
        self.subtask.map.clear()

    @rule(map_key=map_keys)
    def change_entry_in_place(self, map_key: Any) -> None:
        change_in_place(self.model.map.get(self.key, {}).get(map_key))
        change_in_place(self.subtask.map.get(map_key))

    @rule()
    def change_all_entries_in_place(self) -> None:
        for value in self.model.map.get(self.key, {}).values():
            change_in_place(value)
        for value in self.subtask.map.values():
            change_in_place(value)

    @rule(amount=st.integers(-3, 3))
    def reduce(self, amount: int) -> None:
        self.model.reducing[self.key] = self.model.reducing.get(self.key, 0) + amount
        self.subtask.reducing.add(amount)

    @rule(amount=st.integers(-3, 3))
    def aggregate(self, amount: int) -> None:
        self.model.added.setdefault(self.key, []).append(amount)
        self.subtask.aggregating.add(amount)

    @rule()
    def clear_sums(self) -> None:
        self.model.reducing.pop(self.key, None)
        self.model.added.pop(self.key, None)
        self.subtask.reducing.clear()
        self.subtask.aggregating.clear()

    # What a function sees. Reading is a rule and no invariant: keys that are not read must be right, too.

    @rule()
    def read_value(self) -> None:
        assert self.subtask.value.value() == self.model.value.get(self.key)
        assert self.subtask.count.value() == self.model.count.get(self.key)

    @rule()
    def read_list(self) -> None:
        assert list(self.subtask.list.get()) == self.model.list.get(self.key, [])

    @rule(map_key=map_keys)
    def read_entry(self, map_key: Any) -> None:
        expected = self.model.map.get(self.key, {})
        assert self.subtask.map.get(map_key) == expected.get(map_key)
        assert self.subtask.map.contains(map_key) == (map_key in expected)

    @rule()
    def read_map(self) -> None:
        expected = self.model.map.get(self.key, {})
        in_order = sorted(expected, key=encode_key)
        assert list(self.subtask.map.keys()) == in_order
        assert list(self.subtask.map.items()) == [(each, expected[each]) for each in in_order]
        assert list(self.subtask.map.values()) == [expected[each] for each in in_order]
        assert self.subtask.map.is_empty() == (not expected)

    @rule()
    def read_sums(self) -> None:
        assert self.subtask.reducing.get() == self.model.reducing.get(self.key)
        added = self.model.added.get(self.key)
        assert self.subtask.aggregating.get() == (None if added is None else sum(added) / len(added))

    # What happens to the worker.

    @rule()
    def end_epoch(self) -> None:
        self.subtask.end_epoch()
        self.at_barrier = copy.deepcopy(self.model)
        self.subtask.key(self.key)

    @rule(keeps_copy=st.booleans())
    def end_epoch_and_move(self, keeps_copy: bool) -> None:
        self.end_epoch()
        self.subtask.move(keeps_copy=keeps_copy)
        self.subtask.key(self.key)

    @rule(keeps_copy=st.booleans())
    def fail_and_move(self, keeps_copy: bool) -> None:
        self.model = copy.deepcopy(self.at_barrier)
        self.subtask.move(keeps_copy=keeps_copy)
        self.subtask.key(self.key)

    @rule(was_written=st.booleans())
    def run_again(self, was_written: bool) -> None:
        self.model = copy.deepcopy(self.at_barrier)
        self.subtask.repeat(was_written=was_written)
        self.subtask.key(self.key)

    @precondition(lambda self: self.subtask.chain.files)
    @rule(only_changes=st.booleans())
    def compact(self, only_changes: bool) -> None:
        self.end_epoch()
        self.subtask.compact(only_changes=only_changes)
        self.subtask.repeat(was_written=False)
        self.subtask.key(self.key)

    @invariant()
    def versions_rise(self) -> None:
        if hasattr(self, "subtask"):
            ends = [file.to_version for file in self.subtask.chain.files]
            assert ends == sorted(set(ends))
            assert self.subtask.chain.version < self.subtask.epoch


TestKeyedState = KeyedStateMachine.TestCase
TestKeyedState.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


# --- by example -----------------------------------------------------------------------------------


@pytest.fixture
def subtask(tmp_path: Path) -> Iterator[Subtask]:
    with closing(Subtask(tmp_path)) as opened:
        opened.key("k")
        yield opened


@pytest.fixture(params=["stays", "moves on the host", "moves to another host"])
def cut(request: pytest.FixtureRequest, subtask: Subtask) -> Callable[[], None]:
    """End the epoch; where the subtask runs next must not matter."""

    def end() -> None:
        subtask.end_epoch()
        if request.param != "stays":
            subtask.move(keeps_copy=request.param == "moves on the host")
        subtask.key("k")

    return end


def test_what_an_epoch_did_not_touch_is_not_written(subtask: Subtask) -> None:
    for key in "abc":
        subtask.key(key)
        subtask.value.update({"seen": key})
    subtask.end_epoch()
    subtask.key("b")
    assert subtask.value.value() == {"seen": "b"}
    assert subtask.backend.take_changes(2) == {}


def test_only_the_entry_that_changed_in_place_is_written(subtask: Subtask) -> None:
    for key in "abc":
        subtask.key(key)
        subtask.value.update([key])
    subtask.end_epoch()
    for key in "abc":
        subtask.key(key)
        found: Any = subtask.value.value()
        if key == "b":
            found.append(1)
    change = subtask.backend.take_changes(2)
    assert [len(keys) for keys, _ in change["value"].values()] == [1]


def test_a_value_changed_in_place_after_its_update_is_kept(subtask: Subtask, cut: Callable[[], None]) -> None:
    mine = [1]
    subtask.value.update(mine)
    mine.append(2)
    cut()
    assert subtask.value.value() == [1, 2]


def test_what_was_read_before_the_barrier_cannot_change_state_after_it(subtask: Subtask) -> None:
    subtask.value.update([1])
    subtask.end_epoch()
    kept: Any = subtask.value.value()
    subtask.end_epoch()
    kept.append("too late")
    assert subtask.value.value() == [1]


def test_appending_to_a_list_reads_nothing(subtask: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    subtask.list.add(1)
    subtask.end_epoch()
    monkeypatch.setattr(LmdbStore, "scan", lambda *_: pytest.fail("the list was read"))
    subtask.list.add(2)
    subtask.list.add_all([3, 4])
    subtask.end_epoch()


def test_a_list_that_was_only_read_is_merged_into_one_chunk_once(subtask: Subtask) -> None:
    for number in range(3):
        subtask.list.add(number)
        subtask.end_epoch()
    assert list(subtask.list) == [0, 1, 2]
    subtask.end_epoch()
    assert list(subtask.list) == [0, 1, 2]
    assert subtask.backend.take_changes(5) == {}


def test_entries_of_a_map_are_put_from_a_dict_or_from_pairs(subtask: Subtask) -> None:
    subtask.map.put_all({1: "a"})
    subtask.map.put_all([(2, "b"), (3, "c")])
    assert list(subtask.map.items()) == [(1, "a"), (2, "b"), (3, "c")]


def test_one_entry_of_a_map_is_read_by_itself(subtask: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    subtask.map.put_all({number: str(number) for number in range(100)})
    subtask.end_epoch()
    monkeypatch.setattr(LmdbStore, "scan", lambda *_: pytest.fail("the whole map was read"))
    assert subtask.map.get(7) == "7"
    assert not subtask.map.contains(100)
    subtask.map.put(7, "seven")
    change = subtask.backend.take_changes(2)
    assert sum(len(keys) for keys, _ in change["map"].values()) == 1


def test_maps_are_iterated_in_the_order_of_their_keys_whatever_the_cuts(
    subtask: Subtask, cut: Callable[[], None]
) -> None:
    for number in (5, -1, 300, 2):
        subtask.map.put(number, "number")
        cut()
        subtask.map.put(f"{number}", "text")
    assert list(subtask.map) == [-1, 2, 5, 300, "-1", "2", "300", "5"]


def test_an_entry_that_was_removed_is_not_seen_when_the_map_is_read_afterwards(
    subtask: Subtask, cut: Callable[[], None]
) -> None:
    subtask.map.put_all({"a": 1, "b": 2})
    cut()
    subtask.map.remove("a")
    assert subtask.map.get("a") is None
    assert list(subtask.map.items()) == [("b", 2)]
    subtask.map.put("a", 3)
    assert list(subtask.map.items()) == [("a", 3), ("b", 2)]


def test_a_map_entry_may_be_none_and_is_still_there(subtask: Subtask, cut: Callable[[], None]) -> None:
    subtask.map.put("k", None)
    assert subtask.map.contains("k")
    cut()
    assert subtask.map.contains("k")
    assert subtask.map.get("k") is None
    assert not subtask.map.is_empty()


def test_keys_that_are_equal_share_their_state(subtask: Subtask, cut: Callable[[], None]) -> None:
    subtask.key(1)
    subtask.count.update(5)
    cut()
    subtask.key(1.0)
    assert subtask.count.value() == 5
    subtask.key(True)
    subtask.count.update(6)
    cut()
    subtask.key(1)
    assert subtask.count.value() == 6


def test_an_epoch_that_is_run_again_starts_from_the_same_state(subtask: Subtask) -> None:
    subtask.count.update(1)
    subtask.end_epoch()
    for was_written in (False, True, True, False):
        subtask.key("k")
        assert subtask.count.value() == 1
        subtask.count.update(99)
        subtask.list.add("gone")
        subtask.repeat(was_written=was_written)
    subtask.key("k")
    assert subtask.count.value() == 1
    assert list(subtask.list) == []


def test_a_state_asked_for_in_the_middle_of_an_epoch_has_what_was_stored(subtask: Subtask) -> None:
    late = ValueStateDescriptor("late", None)
    subtask.backend.get_state(late).update(7)
    subtask.end_epoch()
    subtask.move(keeps_copy=True)
    subtask.key("k")
    assert subtask.backend.get_state(late).value() == 7


def test_the_same_descriptor_gives_the_same_state(subtask: Subtask) -> None:
    assert subtask.backend.get_state(ValueStateDescriptor("value", None)) is subtask.value


def test_one_name_cannot_be_two_kinds_of_state(subtask: Subtask) -> None:
    with pytest.raises(StateDescriptorError, match="'value' is declared both as value and as list"):
        subtask.backend.get_list_state(ListStateDescriptor("value", None))


def test_a_value_of_the_wrong_type_is_refused_at_the_barrier(subtask: Subtask) -> None:
    subtask.count.update("seven")
    with pytest.raises(StateTypeError, match="seven"):
        subtask.write()


def test_a_map_key_that_cannot_be_stored_is_refused(subtask: Subtask) -> None:
    with pytest.raises(KeyTypeError, match="compares by identity"):
        subtask.map.get(object())


@given(
    st.lists(st.integers(0, 30), max_size=60),
    st.lists(st.integers(1, 20), max_size=6),
    st.sampled_from([0, 8]),
)
@settings(max_examples=25, deadline=None)
def test_counts_do_not_depend_on_where_epochs_end(
    tmp_path_factory: pytest.TempPathFactory, records: list[int], cuts: list[int], cache_entries: int
) -> None:
    with closing(Subtask(tmp_path_factory.mktemp("counts"), cache_entries=cache_entries)) as subtask:
        results = []
        for index, record in enumerate(records):
            subtask.key(record)
            subtask.count.update((subtask.count.value() or 0) + 1)
            results.append(subtask.count.value())
            if index in cuts:
                subtask.end_epoch()
        assert results == [records[: index + 1].count(record) for index, record in enumerate(records)]


def test_keys_are_read_together_after_many_cache_misses(tmp_path, monkeypatch):
    subtask = Subtask(tmp_path)
    for key in "abcd":
        subtask.key(key)
        subtask.value.update(key.upper())
    subtask.end_epoch()
    subtask.move(keeps_copy=True)
    fetched: list[bytes] = []
    reader = LmdbStore.reader
    monkeypatch.setattr(
        LmdbStore,
        "reader",
        lambda store, table: lambda key: fetched.append(key) or reader(store, table)(key),
    )
    get_many = LmdbStore.get_many
    monkeypatch.setattr(
        LmdbStore, "get_many", lambda store, table, keys: fetched.extend(keys) or get_many(store, table, keys)
    )
    subtask.backend.begin_epoch(subtask.chain)

    def read(*keys: str) -> Iterator[Any]:
        for key in keys:
            subtask.key(key)
            yield subtask.value.value()

    assert list(read("a")) == ["A"]
    assert len(fetched) == 1
    subtask.backend.prefetch(list("abcd"))
    assert len(fetched) == 4
    assert list(read(*"abcd")) == ["A", "B", "C", "D"]
    assert len(fetched) == 4
    subtask.close()


def test_values_that_were_read_together_and_not_written_are_not_read_again(tmp_path, monkeypatch):
    subtask = Subtask(tmp_path)
    for key in "abcd":
        subtask.key(key)
        subtask.value.update(key.upper())
    subtask.end_epoch()
    subtask.move(keeps_copy=True)
    fetched: list[bytes] = []
    get_many = LmdbStore.get_many
    monkeypatch.setattr(
        LmdbStore, "get_many", lambda store, table, keys: fetched.extend(keys) or get_many(store, table, keys)
    )
    subtask.backend.begin_epoch(subtask.chain)
    subtask.key("a")
    assert subtask.value.value() == "A"
    for batch in ("bc", "cd", "bc"):
        subtask.backend.prefetch(list(batch))
        for key in batch:
            subtask.key(key)
            assert subtask.value.value() == key.upper()
        subtask.key("b")
        subtask.value.update("B")
    assert len(fetched) == 3
    subtask.close()


@pytest.mark.parametrize("value", ["x", 2**63, 1.5])
def test_the_error_of_a_value_names_its_key_among_others(tmp_path, value):
    subtask = Subtask(tmp_path)
    for key, count in (("a", 1), ("b", value), ("c", 1)):
        subtask.key(key)
        subtask.count.update(count)
    with pytest.raises(StateTypeError, match="key 'b'"):
        subtask.end_epoch()
    subtask.close()


def test_a_value_is_removed_among_others_that_are_written(tmp_path):
    subtask = Subtask(tmp_path)
    for key, count in (("a", 1), ("b", 2), ("b", None), ("c", 3)):
        subtask.key(key)
        subtask.count.update(count)
    subtask.end_epoch()
    subtask.move(keeps_copy=False)
    subtask.backend.begin_epoch(subtask.chain)
    found = []
    for key in "abc":
        subtask.key(key)
        found.append(subtask.count.value())
    assert found == [1, None, 3]
    subtask.close()
