"""State with a time to live against a brute-force model, and how ended entries leave the store."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.common.time import Duration, Time
from headrace.common.typeinfo import Types
from headrace.datastream.functions import AggregateFunction
from headrace.errors import InvariantViolation, StateDescriptorError, StateError, StateTypeError
from headrace.state.changes import read_change, write_change
from headrace.state.compaction import compact
from headrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.state.handles import StateChain, StateFile
from headrace.state.keyed import KeyedStateBackend
from headrace.state.keys import encode_key
from headrace.state.schema import SCHEMAS
from headrace.state.stores.lmdb import LmdbStore
from headrace.state.tables import EntryTable, ListTable, MapTable
from headrace.state.ttl import RULES

TTL = 10
MAX_PARALLELISM = 4
KINDS = ("value", "reducing", "aggregating", "list", "map")
UPDATES = (StateTtlConfig.UpdateType.OnCreateAndWrite, StateTtlConfig.UpdateType.OnReadAndWrite)
NEVER = StateTtlConfig.StateVisibility.NeverReturnExpired
RETURN = StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
CLEANUPS: dict[str, Callable[[StateTtlConfig.Builder], StateTtlConfig.Builder]] = {
    "on access only": lambda builder: builder.disable_cleanup_in_background(),
    "in the background": lambda builder: builder,
    "incremental": lambda builder: builder.disable_cleanup_in_background().cleanup_incrementally(2, False),
    "every record": lambda builder: builder.disable_cleanup_in_background().cleanup_incrementally(1, True),
    "full snapshot": lambda builder: builder.disable_cleanup_in_background().cleanup_full_snapshot(),
    "rocksdb": lambda builder: builder.disable_cleanup_in_background().cleanup_in_rocksdb_compact_filter(
        1000
    ),
}


def config(
    *, ttl: int = TTL, update: Any = UPDATES[0], visibility: Any = NEVER, cleanup: str = "on access only"
) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(ttl))
    return CLEANUPS[cleanup](builder.set_update_type(update).set_state_visibility(visibility)).build()


class Gather(AggregateFunction):
    """Its accumulator is a list that is changed in place, its result a tuple."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> tuple[Any, ...]:
        return tuple(accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return acc_a + acc_b


def descriptor(kind: str, ttl: StateTtlConfig | None, name: str = "state") -> StateDescriptor:
    made: dict[str, Callable[[], StateDescriptor]] = {
        "value": lambda: ValueStateDescriptor(name, None),
        "reducing": lambda: ReducingStateDescriptor(name, lambda a, b: a + b, None),
        "aggregating": lambda: AggregatingStateDescriptor(name, Gather(), None),
        "list": lambda: ListStateDescriptor(name, None),
        "map": lambda: MapStateDescriptor(name, None, None),
    }
    found = made[kind]()
    if ttl is not None:
        found.enable_time_to_live(ttl)
    return found


class Subtask:
    """An operator subtask with a clock, whose epochs a test begins, ends, moves, repeats and compacts."""

    def __init__(
        self,
        directory: Path,
        *described: StateDescriptor,
        cache_entries: int = 1000,
        groups: range | None = None,
    ) -> None:
        self._directory = directory
        self._cache_entries = cache_entries
        self._groups = range(MAX_PARALLELISM) if groups is None else groups
        self._copies = 0
        self._files = 0
        self.described = described
        self.now = 1_000
        self.epoch = 1
        self.chain = StateChain("line")
        self.open()

    def open(self) -> None:
        store = LmdbStore(str(self._directory / f"copy-{self._copies}"))
        self.backend = KeyedStateBackend(
            store, self._groups, MAX_PARALLELISM, self._cache_entries, processing_time=lambda: self.now
        )
        try:
            self.backend.begin_epoch(self.chain)
            self.states = [self.get(each) for each in self.described]
        except Exception:
            self.backend.close()
            raise

    def get(self, described: StateDescriptor) -> Any:
        getters: dict[str, Any] = {
            "value": self.backend.get_state,
            "reducing": self.backend.get_reducing_state,
            "aggregating": self.backend.get_aggregating_state,
            "list": self.backend.get_list_state,
            "map": self.backend.get_map_state,
        }
        return getters[described.kind](described)

    @property
    def state(self) -> Any:
        return self.states[0] if self.states else None

    def at(self, key: Any) -> Any:
        """Go to a key; returns the first state."""
        self.backend.current.key = key
        return self.state

    def write(self) -> StateChain:
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

    def move(self, *, keeps_copy: bool = False) -> None:
        self.backend.close()
        self._copies += not keeps_copy
        self.open()

    def repeat(self, *, was_written: bool) -> None:
        if was_written:
            self.write()
        self.backend.begin_epoch(self.chain)

    def compact(self, *, only_changes: bool = False) -> None:
        """Merge files after the epoch's end, as the job master does between two epochs."""
        files = self.chain.changes if only_changes else self.chain.files
        if not files:
            return
        self._files += 1
        path = str(self._directory / "state" / f"{self._files}.merged")
        size = compact(files, path, self.now)
        first, last = files[0].from_version, files[-1].to_version
        self.chain = self.chain.compacted(StateFile(path, first, last, size, is_base=first == 0))
        self.backend.begin_epoch(self.chain)

    def stored(self, name: str = "state") -> list[tuple[bytes, bytes]]:
        """Return the entries that this host's copy holds, as of the last epoch."""
        return list(self.backend._store.scan(name))

    def close(self) -> None:
        self.backend.close()


# --- a model ----------------------------------------------------------------------------------------------------------


class Model:
    """What may be seen of one state: brute force, and sure only of what Flink promises.

    An entry is a time and the values it may have. What has ended may be gone where something cleans up after the
    scenes; a read finds out, and after it the entry is gone for good.
    """

    def __init__(self, update: Any, visibility: Any, cleanup: str) -> None:
        self._renews = update is StateTtlConfig.UpdateType.OnReadAndWrite
        self._returns = visibility is RETURN
        self._is_sure = cleanup == "on access only"
        self.now = 0
        #: key -> entry, key -> list of entries, or key -> map key -> entry
        self.entries: dict[Any, Any] = {}

    def has_ended(self, entry: Any) -> bool:
        return bool(entry[0] + TTL <= self.now)

    def candidates(self, entry: Any) -> list[Any]:
        """Return what a read may see of an entry; None for nothing."""
        if entry is None:
            return [None]
        if not self.has_ended(entry):
            return list(entry[1])
        if not self._returns:
            return [None]
        return [*entry[1], *([] if self._is_sure else [None])]

    def after_read(self, entry: Any, seen: Any) -> Any:
        if entry is None or self.has_ended(entry):
            return None
        return (self.now if self._renews else entry[0], [seen])

    # One value per key.

    def write(self, key: Any, value: Any) -> None:
        self.entries[key] = (self.now, [value])

    def add(self, key: Any, value: tuple[Any, ...]) -> None:
        before = self.candidates(self.entries.get(key))
        self.entries[key] = (self.now, [value if each is None else each + value for each in before])

    def read(self, key: Any, seen: Any) -> None:
        assert seen in self.candidates(self.entries.get(key))
        self._keep(self.entries, key, self.after_read(self.entries.get(key), seen))

    # Lists.

    def extend(self, key: Any, values: list[Any]) -> None:
        self.entries.setdefault(key, []).extend((self.now, [value]) for value in values)

    def read_list(self, key: Any, seen: list[Any]) -> None:
        expected, kept = [], []
        for entry in self.entries.get(key, []):
            candidates = self.candidates(entry)
            if candidates != [None] and not (None in candidates and entry[1][0] not in seen):
                expected.append(entry[1][0])
            kept.append(self.after_read(entry, entry[1][0]))
        assert seen == expected
        self.entries[key] = [entry for entry in kept if entry is not None]

    # Maps.

    def put(self, key: Any, map_key: Any, value: Any) -> None:
        self.entries.setdefault(key, {})[map_key] = (self.now, [value])

    def remove(self, key: Any, map_key: Any) -> None:
        self.entries.get(key, {}).pop(map_key, None)

    def read_entry(self, key: Any, map_key: Any, seen: Any) -> None:
        found = self.entries.get(key, {})
        assert seen in self.candidates(found.get(map_key))
        self._keep(found, map_key, self.after_read(found.get(map_key), seen))

    def contains(self, key: Any, map_key: Any, answer: bool) -> None:
        entry = self.entries.get(key, {}).get(map_key)
        assert answer in {each is not None for each in self.candidates(entry)}
        self._keep(self.entries.get(key, {}), map_key, self.after_read(entry, entry and entry[1][0]))

    def read_map(self, key: Any, seen: dict[Any, Any]) -> None:
        assert list(seen) == sorted(seen, key=encode_key)
        for map_key in {*seen, *self.entries.get(key, {})}:
            self.read_entry(key, map_key, seen.get(map_key))

    def is_empty(self, key: Any, answer: bool) -> None:
        candidates = [self.candidates(entry) for entry in self.entries.get(key, {}).values()]
        if any(None not in each for each in candidates):
            assert not answer
        elif all(each == [None] for each in candidates):
            assert answer

    def clear(self, key: Any) -> None:
        self.entries.pop(key, None)

    def _keep(self, entries: dict[Any, Any], key: Any, entry: Any) -> None:
        if entry is None:
            entries.pop(key, None)
        else:
            entries[key] = entry


class Run:
    """One state and its model, through the same steps."""

    def __init__(
        self, directory: Path, kind: str, update: Any, visibility: Any, cleanup: str, cache: int
    ) -> None:
        described = descriptor(kind, config(update=update, visibility=visibility, cleanup=cleanup))
        self.subtask = Subtask(directory, described, cache_entries=cache)
        self.model = Model(update, visibility, cleanup)
        self.model.now = self.subtask.now
        self.at_barrier = copy.deepcopy(self.model.entries)
        self.key: Any = "a"
        self._serial = count()

    def fresh(self) -> Any:
        """Return a value that was never there before; every other one can be changed in place."""
        number = next(self._serial)
        return number if number % 2 else [number]

    def step(self, kind: str, name: str, argument: Any) -> None:
        if name in ("enter", "advance", "end_epoch", "move", "fail", "compact"):
            getattr(self, name)(argument)
        else:
            getattr(self, f"{kind}_step")(name, argument)
        self.subtask.at(self.key)

    # What happens around a function.

    def enter(self, key: Any) -> None:
        self.key = key

    def advance(self, ms: int) -> None:
        self.subtask.now += ms
        self.model.now = self.subtask.now

    def end_epoch(self, _: Any = None) -> None:
        self.subtask.end_epoch()
        self.at_barrier = copy.deepcopy(self.model.entries)

    def move(self, keeps_copy: bool) -> None:
        self.end_epoch()
        self.subtask.move(keeps_copy=keeps_copy)

    def fail(self, moves: bool) -> None:
        self.model.entries = copy.deepcopy(self.at_barrier)
        if moves:
            self.subtask.move(keeps_copy=True)
        else:
            self.subtask.repeat(was_written=len(self.at_barrier) % 2 == 0)

    def compact(self, only_changes: bool) -> None:
        self.end_epoch()
        self.subtask.compact(only_changes=only_changes)

    # What a function does.

    def value_step(self, name: str, _: Any) -> None:
        state = self.subtask.at(self.key)
        if name == "write":
            value = self.fresh()
            self.model.write(self.key, copy.copy(value))
            state.update(value)
        elif name == "read":
            self.model.read(self.key, copy.copy(state.value()))
        else:
            self.model.clear(self.key)
            state.clear()

    def reducing_step(self, name: str, _: Any) -> None:
        state = self.subtask.at(self.key)
        if name == "write":
            value = (next(self._serial),)
            self.model.add(self.key, value)
            state.add(value)
        elif name == "read":
            self.model.read(self.key, state.get())
        else:
            self.model.clear(self.key)
            state.clear()

    def aggregating_step(self, name: str, _: Any) -> None:
        state = self.subtask.at(self.key)
        if name == "write":
            value = next(self._serial)
            self.model.add(self.key, (value,))
            state.add(value)
        elif name == "read":
            self.model.read(self.key, state.get())
        else:
            self.model.clear(self.key)
            state.clear()

    def list_step(self, name: str, choice: int) -> None:
        state = self.subtask.at(self.key)
        if name == "write":
            values = [self.fresh() for _ in range(1 if choice < 3 else choice - 2)]
            if choice == 2:
                self.model.clear(self.key)
                state.update(values)
            elif choice < 2:
                state.add(values[0])
            else:
                state.add_all(values)
            self.model.extend(self.key, copy.deepcopy(values))
        elif name == "read":
            self.model.read_list(self.key, copy.deepcopy(list(state.get())))
        else:
            self.model.clear(self.key)
            state.clear()

    def map_step(self, name: str, choice: int) -> None:
        state, map_key = self.subtask.at(self.key), choice % 3
        if name == "write":
            many = {map_key: self.fresh()} if choice < 5 else {each: self.fresh() for each in range(3)}
            for each, value in many.items():
                self.model.put(self.key, each, copy.copy(value))
            state.put_all(many)
        elif name == "clear":
            if choice < 4:
                self.model.remove(self.key, map_key)
                state.remove(map_key)
            else:
                self.model.clear(self.key)
                state.clear()
        elif choice < 3:
            self.model.read_entry(self.key, map_key, copy.copy(state.get(map_key)))
        elif choice == 3:
            self.model.contains(self.key, map_key, state.contains(map_key))
        elif choice == 4:
            self.model.is_empty(self.key, state.is_empty())
        else:
            self.model.read_map(self.key, copy.deepcopy(dict(state.items())))


steps = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(["a", "b", 7])),
    st.tuples(st.just("advance"), st.sampled_from([1, 3, TTL - 1, TTL, 2 * TTL])),
    st.tuples(st.sampled_from(["write", "read", "write", "read", "clear"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["write", "read"]), st.integers(0, 5)),
    st.tuples(st.just("end_epoch"), st.none()),
    st.tuples(st.sampled_from(["move", "fail", "compact"]), st.booleans()),
)


@pytest.mark.parametrize("visibility", [NEVER, RETURN], ids=["never returned", "returned"])
@pytest.mark.parametrize("update", UPDATES, ids=["on write", "on read and write"])
@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    cleanup=st.sampled_from(sorted(CLEANUPS)),
    cache=st.sampled_from([0, 1000]),
    taken=st.lists(steps, min_size=8, max_size=50),
)
def test_state_is_what_the_model_says(
    kind: str, update: Any, visibility: Any, cleanup: str, cache: int, taken: list[tuple[str, Any]]
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="headrace-ttl-"))
    try:
        run = Run(directory, kind, update, visibility, cleanup, cache)
        with closing(run.subtask):
            run.subtask.at(run.key)
            for name, argument in taken:
                run.step(kind, name, argument)
    finally:
        shutil.rmtree(directory)


# --- by example -------------------------------------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Subtask]]:
    """Return a function that starts a subtask with states; it is closed after the test."""
    opened: list[Subtask] = []

    def make(*described: StateDescriptor, **options: Any) -> Subtask:
        opened.append(Subtask(tmp_path / str(len(opened)), *described, **options))
        opened[-1].at("k")
        return opened[-1]

    yield make
    for subtask in opened:
        subtask.close()


Start = Callable[..., Subtask]


def fill(subtask: Subtask, kind: str, keys: range) -> None:
    """Write something under each key."""
    for key in keys:
        state = subtask.at(key)
        if kind == "map":
            state.put("m", key)
        else:
            getattr(state, "update" if kind == "value" else "add")((key,))


def look(subtask: Subtask, kind: str, key: Any) -> Any:
    """Read what there is under a key."""
    state = subtask.at(key)
    if kind == "value":
        return state.value()
    if kind == "map":
        return dict(state.items())
    return list(state.get()) if kind == "list" else state.get()


#   write            read                 the end
#     |---------------|-------- ttl ------->|
#   1000             1009                 1010


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_has_ended_at_its_time_plus_the_time_to_live(start: Start, kind: str) -> None:
    subtask = start(descriptor(kind, config()))
    fill(subtask, kind, range(1))
    subtask.now += TTL - 1
    assert look(subtask, kind, 0)
    subtask.now += 1
    assert not look(subtask, kind, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_renews_only_with_on_read_and_write(start: Start, kind: str) -> None:
    for update, is_there in zip(UPDATES, (False, True), strict=True):
        subtask = start(descriptor(kind, config(update=update)))
        fill(subtask, kind, range(1))
        for _ in range(3):
            subtask.now += TTL - 1
            found = look(subtask, kind, 0)
            subtask.end_epoch()
        assert bool(found) == is_there


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_ended_is_returned_once_where_that_is_asked_for(start: Start, kind: str) -> None:
    subtask = start(descriptor(kind, config(visibility=RETURN)))
    fill(subtask, kind, range(1))
    subtask.end_epoch()
    subtask.now += 5 * TTL
    assert look(subtask, kind, 0)
    assert not look(subtask, kind, 0)
    subtask.end_epoch()
    assert not look(subtask, kind, 0)


def test_elements_of_a_list_end_one_by_one(start: Start) -> None:
    subtask = start(descriptor("list", config()))
    for number in range(4):
        subtask.state.add(number)
        subtask.end_epoch()
        subtask.now += 4
    assert list(subtask.state.get()) == [2, 3]
    subtask.now += 4
    assert list(subtask.state.get()) == [3]


def test_entries_of_a_map_end_one_by_one(start: Start) -> None:
    subtask = start(descriptor("map", config()))
    for number in range(4):
        subtask.state.put(number, None)
        subtask.now += 4
    assert list(subtask.state.keys()) == [2, 3]
    assert subtask.state.contains(2)
    assert not subtask.state.contains(1)
    subtask.now += 4
    assert list(subtask.state.items()) == [(3, None)]


def test_a_sum_starts_over_after_it_expired_unless_expired_values_are_returned(start: Start) -> None:
    for visibility, expected in ((NEVER, (2,)), (RETURN, (1, 2))):
        for kind in ("reducing", "aggregating"):
            subtask = start(descriptor(kind, config(visibility=visibility)))
            subtask.state.add((1,) if kind == "reducing" else 1)
            subtask.now += TTL
            subtask.state.add((2,) if kind == "reducing" else 2)
            assert subtask.state.get() == expected


def test_asking_whether_a_map_is_empty_renews_nothing_and_ignores_what_has_ended(start: Start) -> None:
    subtask = start(descriptor("map", config(update=UPDATES[1])))
    subtask.state.put("x", 1)
    subtask.now += TTL - 1
    assert not subtask.state.is_empty()
    subtask.now += 1
    assert subtask.state.is_empty()
    assert subtask.state.get("x") is None


def test_a_change_in_place_is_kept_but_is_not_an_access(start: Start) -> None:
    subtask = start(descriptor("value", config()))
    subtask.state.update([1])
    subtask.end_epoch()
    subtask.now += TTL - 1
    subtask.state.value().append(2)
    subtask.move()
    assert subtask.at("k").value() == [1]
    subtask.state.value().append(2)
    subtask.end_epoch()
    assert subtask.state.value() == [1, 2]
    subtask.now += 1
    assert subtask.state.value() is None


def test_a_window_may_have_state_with_a_time_to_live(start: Start) -> None:
    subtask = start()
    scope = subtask.backend.namespaced("window:", str.encode)
    state = scope.get_state(descriptor("value", config()))  # type: ignore[arg-type]
    for window in ("w1", "w2"):
        scope.current.key = ("k", window)
        state.update(window)
        subtask.now += TTL // 2
    subtask.end_epoch()
    scope.current.key = ("k", "w1")
    assert state.value() is None
    scope.current.key = ("k", "w2")
    assert state.value() == "w2"


# --- leaving the store ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visibility", [NEVER, RETURN])
@pytest.mark.parametrize("kind", KINDS)
def test_a_read_removes_what_has_ended(start: Start, kind: str, visibility: Any) -> None:
    subtask = start(descriptor(kind, config(visibility=visibility)))
    fill(subtask, kind, range(5))
    subtask.end_epoch()
    subtask.now += TTL
    look(subtask, kind, 0)
    look(subtask, kind, 3)
    subtask.end_epoch()
    assert len(subtask.stored()) == 3
    subtask.compact()
    subtask.move()
    assert len(subtask.stored()) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_accesses_to_other_keys_sweep_out_what_has_ended(start: Start, kind: str) -> None:
    subtask = start(descriptor(kind, config(cleanup="incremental")))
    fill(subtask, kind, range(20))
    subtask.end_epoch()
    subtask.now += TTL - 1
    fill(subtask, kind, range(100, 103))
    for _ in range(20):
        look(subtask, kind, 100)
    subtask.end_epoch()
    assert len(subtask.stored()) == 23
    subtask.now += 1
    for expected in range(20, 0, -4):
        assert len(subtask.stored()) >= expected + 3
        look(subtask, kind, 100)
        look(subtask, kind, 101)
        subtask.end_epoch()
    for _ in range(4):  # to the end of the round
        look(subtask, kind, 102)
    subtask.end_epoch()
    assert len(subtask.stored()) == 3
    assert all(look(subtask, kind, key) for key in range(100, 103))


@pytest.mark.parametrize("kind", KINDS)
def test_records_that_touch_no_state_sweep_where_that_is_asked_for(start: Start, kind: str) -> None:
    for cleanup, left in (("every record", 0), ("incremental", 10)):
        subtask = start(descriptor(kind, config(cleanup=cleanup)), descriptor("value", None, "other"))
        fill(subtask, kind, range(10))
        subtask.end_epoch()
        subtask.now += TTL
        for record in range(10):
            subtask.at(record)
        subtask.end_epoch()
        assert len(subtask.stored()) == left


def test_each_state_with_cleanup_for_every_record_is_cleaned_up(start: Start) -> None:
    ttl = config(cleanup="every record")
    subtask = start(descriptor("value", ttl, "one"), descriptor("list", ttl, "two"))
    subtask.states[0].update(1)
    subtask.states[1].add(1)
    subtask.end_epoch()
    subtask.now += TTL
    subtask.at("other")
    assert subtask.backend.current.key == "other"
    subtask.end_epoch()
    assert not subtask.stored("one")
    assert not subtask.stored("two")


@pytest.mark.parametrize("cleanup", ["full snapshot", "rocksdb", "in the background"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_base_is_written_without_what_has_ended(start: Start, kind: str, cleanup: str) -> None:
    subtask = start(descriptor(kind, config(cleanup=cleanup)), descriptor("value", None, "other"))
    fill(subtask, kind, range(10))
    subtask.states[1].update("stays")
    subtask.end_epoch()
    subtask.now += TTL - 1
    fill(subtask, kind, range(10, 13))
    subtask.end_epoch()
    for expected in (13, 3):
        subtask.compact()
        base = read_change(subtask.chain.tip)
        assert sum(len(keys) for keys, _ in base["state"].values()) == expected
        subtask.now += 1
    subtask.move()
    assert len(subtask.stored()) == 3
    assert len(subtask.stored("other")) == 1
    assert all(look(subtask, kind, key) for key in range(10, 13))
    assert not any(look(subtask, kind, key) for key in range(10))


def test_a_base_keeps_expired_values_without_cleanup(start: Start) -> None:
    subtask = start(descriptor("value", config(visibility=RETURN)))
    fill(subtask, "value", range(10))
    subtask.end_epoch()
    subtask.now += 5 * TTL
    subtask.compact()
    subtask.move()
    assert len(subtask.stored()) == 10
    assert look(subtask, "value", 3) == (3,)


def test_a_state_of_which_nothing_is_left_leaves_a_base_that_can_be_read(start: Start) -> None:
    subtask = start(descriptor("value", config(cleanup="full snapshot")))
    fill(subtask, "value", range(10))
    subtask.end_epoch()
    subtask.now += TTL
    subtask.compact()
    subtask.move()
    assert not subtask.stored()
    assert look(subtask, "value", 3) is None


@pytest.mark.parametrize("cleanup", ["incremental", "full snapshot"])
def test_a_list_of_which_a_part_has_ended_is_cut_without_being_read(start: Start, cleanup: str) -> None:
    subtask = start(descriptor("list", config(cleanup=cleanup)))
    subtask.at("long").add_all(["x" * 100] * 9)
    subtask.now += TTL - 1
    subtask.state.add_all(["y" * 100])
    subtask.end_epoch()
    (before,) = subtask.stored()
    subtask.now += 1
    if cleanup == "incremental":
        subtask.at("other").add("z")
        subtask.end_epoch()
    else:
        subtask.compact()
        subtask.move()
    after = dict(subtask.stored())[before[0]]
    assert len(after) * 9 < len(before[1])
    assert look(subtask, "list", "long") == ["y" * 100]


def test_what_was_written_again_in_the_same_epoch_is_not_swept(start: Start) -> None:
    for kind in KINDS:
        subtask = start(descriptor(kind, config(cleanup="incremental")))
        fill(subtask, kind, range(1))
        subtask.end_epoch()
        subtask.now += TTL
        look(subtask, kind, "other")  # finds the entry ended ...
        fill(subtask, kind, range(1))  # ... which is there again
        subtask.end_epoch()
        subtask.move()
        assert look(subtask, kind, 0)
        assert len(subtask.stored()) == 1


def test_what_was_swept_is_not_seen_again_from_the_cache(start: Start) -> None:
    subtask = start(descriptor("value", config(visibility=RETURN, cleanup="incremental")))
    fill(subtask, "value", range(1))
    subtask.end_epoch()
    subtask.now += TTL
    look(subtask, "value", "other")
    subtask.end_epoch()
    assert not subtask.stored()
    assert look(subtask, "value", 0) is None


def test_what_an_abandoned_epoch_swept_is_swept_again(start: Start) -> None:
    for was_written in (False, True):
        subtask = start(descriptor("value", config(cleanup="incremental")))
        fill(subtask, "value", range(1))
        subtask.end_epoch()
        subtask.now += TTL
        look(subtask, "value", "other")
        look(subtask, "value", "other")
        subtask.repeat(was_written=was_written)
        assert len(subtask.stored()) == 1
        look(subtask, "value", "other")
        subtask.epoch += 1
        subtask.end_epoch()
        assert not subtask.stored()


def test_a_sweep_waits_until_something_can_have_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = LmdbStore.scan
    scans: list[str] = []

    def noted(store: LmdbStore, table: str, *args: Any, **more: Any) -> Any:
        scans.append(table)
        return scan(store, table, *args, **more)

    monkeypatch.setattr(LmdbStore, "scan", noted)
    subtask = start(descriptor("value", config(cleanup="incremental")))

    def is_swept_at(now: int) -> bool:
        subtask.now = now
        scans.clear()
        for _ in range(3):
            look(subtask, "value", 0)
        return bool(scans)

    fill(subtask, "value", range(3))
    subtask.now = 1_005
    fill(subtask, "value", range(2))
    subtask.end_epoch()
    assert not is_swept_at(1_000 + TTL - 1)
    assert is_swept_at(1_000 + TTL)
    subtask.end_epoch()
    assert len(subtask.stored()) == 2
    assert not is_swept_at(1_005 + TTL - 1)
    assert is_swept_at(1_005 + TTL)


def test_a_worker_may_leave_in_the_middle_of_a_sweep(start: Start) -> None:
    subtask = start(descriptor("value", config(cleanup="incremental")))
    fill(subtask, "value", range(10))
    subtask.end_epoch()
    subtask.now += TTL
    look(subtask, "value", "other")
    subtask.move(keeps_copy=True)
    look(subtask, "value", "other")
    subtask.repeat(was_written=False)
    look(subtask, "value", "other")


# --- configurations that change ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("keeps_copy", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_state_written_without_a_time_to_live_is_not_read_with_one(
    start: Start, kind: str, keeps_copy: bool
) -> None:
    subtask = start(descriptor(kind, None))
    fill(subtask, kind, range(3))
    subtask.end_epoch()
    subtask.described = (descriptor(kind, config()),)
    with pytest.raises(StateError, match="'state' was written without a time to live") as caught:
        subtask.move(keeps_copy=keeps_copy)
    assert not caught.value.retryable
    assert caught.value.domain == "user"


@pytest.mark.parametrize("keeps_copy", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_state_written_with_a_time_to_live_is_not_read_without_one(
    start: Start, kind: str, keeps_copy: bool
) -> None:
    subtask = start(descriptor(kind, config()))
    fill(subtask, kind, range(3))
    subtask.end_epoch()
    subtask.compact()
    subtask.described = (descriptor(kind, None),)
    with pytest.raises(StateError, match="'state' was written with a time to live"):
        subtask.move(keeps_copy=keeps_copy)


def test_the_refusal_also_comes_when_the_state_is_asked_for_before_the_epoch(start: Start) -> None:
    for before, after in ((config(), None), (None, config())):
        subtask = start(descriptor("value", before))
        subtask.state.update(1)
        subtask.end_epoch()
        store = LmdbStore(str(subtask._directory / "other"))
        with closing(
            KeyedStateBackend(store, range(MAX_PARALLELISM), MAX_PARALLELISM, 0, processing_time=lambda: 0)
        ) as backend:
            backend.get_state(descriptor("value", after))  # type: ignore[arg-type]
            with pytest.raises(StateTypeError, match="time to live"):
                backend.begin_epoch(subtask.chain)


def test_state_with_a_time_to_live_is_not_read_as_another_kind(start: Start) -> None:
    subtask = start(descriptor("list", config()))
    subtask.state.add(1)
    subtask.end_epoch()
    subtask.described = (descriptor("map", config()),)
    with pytest.raises(StateError, match="was written as a list, but is now declared as a map"):
        subtask.move()


def test_one_state_cannot_be_declared_with_and_without_a_time_to_live(start: Start) -> None:
    subtask = start(descriptor("value", config()))
    with pytest.raises(StateDescriptorError, match="both with and without a time to live"):
        subtask.get(descriptor("value", None))
    assert subtask.get(descriptor("value", config())) is subtask.state


def test_a_time_to_live_that_was_made_longer_counts_for_what_is_stored(start: Start) -> None:
    subtask = start(descriptor("value", config(cleanup="full snapshot")))
    fill(subtask, "value", range(10))
    subtask.end_epoch()
    subtask.described = (descriptor("value", config(ttl=10 * TTL, cleanup="full snapshot")),)
    subtask.move()
    subtask.now += TTL
    subtask.end_epoch()
    subtask.compact()
    subtask.move()
    assert all(look(subtask, "value", key) for key in range(10))
    subtask.now += 9 * TTL
    assert look(subtask, "value", 0) is None


def test_a_subtask_of_another_parallelism_knows_what_has_a_time_to_live(start: Start) -> None:
    subtask = start(descriptor("value", config()))
    fill(subtask, "value", range(20))
    subtask.end_epoch()
    parts = []
    for groups in (range(1), range(1, MAX_PARALLELISM)):
        part = start(groups=groups)
        part.chain, part.now, part.epoch = subtask.chain, subtask.now + TTL, subtask.epoch
        part.described = (descriptor("value", None),)
        with pytest.raises(StateError, match="was written with a time to live"):
            part.move()
        part.described = subtask.described
        part.open()
        parts.append(len(part.stored()))
        assert look(part, "value", 3) is None
        part.end_epoch()
    assert sum(parts) == 20
    assert all(parts)


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_state_without_a_time_to_live_has_the_plain_tables_and_nothing_else(start: Start) -> None:
    disabled = StateTtlConfig.new_builder(Duration.of_millis(1)).set_update_type(
        StateTtlConfig.UpdateType.Disabled
    )
    plain = {"value": EntryTable, "list": ListTable, "map": MapTable, "reducing": EntryTable}
    for ttl in (None, disabled.build()):
        subtask = start(*(descriptor(kind, ttl, kind) for kind in plain))
        for state, table_type in zip(subtask.states, plain.values(), strict=True):
            assert type(state._table) is table_type
        subtask.states[0].update(1)
        assert list(subtask.backend.take_changes(1)) == ["value", SCHEMAS]


def test_a_time_takes_eight_bytes(start: Start) -> None:
    described = ValueStateDescriptor("state", Types.LONG())
    described.enable_time_to_live(config())
    subtask = start(described)
    subtask.state.update(7)
    subtask.end_epoch()
    assert [len(value) for _, value in subtask.stored()] == [16]


def test_which_states_have_a_time_to_live_is_written_once(start: Start) -> None:
    subtask = start(descriptor("value", config()))
    subtask.state.update(1)
    change = subtask.backend.take_changes(1)
    assert sorted(change[RULES]) == list(range(MAX_PARALLELISM))
    subtask.end_epoch()
    subtask.state.update(2)
    assert list(subtask.backend.take_changes(2)) == ["state"]
    subtask.move()
    subtask.at("k").update(2)
    assert list(subtask.backend.take_changes(2)) == ["state"]


def test_a_state_that_was_only_read_is_not_written_again(start: Start) -> None:
    for kind in KINDS:
        subtask = start(descriptor(kind, config(cleanup="in the background")))
        fill(subtask, kind, range(3))
        subtask.end_epoch()
        subtask.now += TTL - 1
        assert all(look(subtask, kind, key) for key in range(3))
        assert subtask.backend.take_changes(2) == {}


def test_a_backend_without_a_clock_refuses_a_time_to_live(tmp_path: Path) -> None:
    with closing(KeyedStateBackend(LmdbStore(str(tmp_path)), range(4), 4, 0)) as backend:
        with pytest.raises(InvariantViolation, match="without a clock"):
            backend.get_state(descriptor("value", config()))  # type: ignore[arg-type]
