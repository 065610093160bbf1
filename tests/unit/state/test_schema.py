"""What a state was declared as is kept with it, and holds a changed program to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.common.typeinfo import TypeInformation, Types
from headrace.errors import StateMigrationError
from headrace.state.changes import read_change, write_change
from headrace.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headrace.state.handles import StateChain, StateFile, rescaled_chain
from headrace.state.key_groups import key_group_range
from headrace.state.keyed import KeyedStateBackend
from headrace.state.schema import SCHEMAS, StateSchema, is_readable_as, schemas_in
from headrace.state.stores.lmdb import LmdbStore

GROUPS = 8


class Store:
    """State of one operator, written and read back by backends that come and go."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._backends = 0
        self.chain = StateChain("line")

    @contextmanager
    def backend(self, groups: range = range(GROUPS)) -> Iterator[KeyedStateBackend]:
        self._backends += 1
        store = LmdbStore(str(self._directory / f"copy-{self._backends}"))
        with closing(KeyedStateBackend(store, groups, GROUPS, 100)) as backend:
            backend.begin_epoch(self.chain)
            yield backend

    def end_epoch(self, backend: KeyedStateBackend) -> dict[str, Any]:
        version = self.chain.version + 1
        change = backend.take_changes(version)
        path = str(self._directory / f"change-{version}")
        size = write_change(path, change)
        self.chain = self.chain.append(StateFile(path, version - 1, version, size))
        backend.settle(path)
        return change


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def handle_of(backend: KeyedStateBackend, descriptor: StateDescriptor) -> Any:
    getter = {
        "value": backend.get_state,
        "list": backend.get_list_state,
        "map": backend.get_map_state,
        "reducing": backend.get_reducing_state,
    }[descriptor.kind]
    return getter(descriptor)  # type: ignore[operator]


def write(store: Store, descriptor: StateDescriptor, *values: Any, keys: int = 1) -> dict[str, Any]:
    with store.backend() as backend:
        state = handle_of(backend, descriptor)
        for key in range(keys):
            backend.current.key = key
            for value in values:
                if descriptor.kind == "map":
                    state.put(*value)
                elif descriptor.kind == "value":
                    state.update(value)
                else:
                    state.add(value)
        return store.end_epoch(backend)


WRITTEN = ValueStateDescriptor("total", Types.LONG())


def test_what_is_declared_is_written_with_the_groups_that_have_state_and_only_once(store: Store):
    with store.backend() as backend:
        state = backend.get_state(WRITTEN)
        backend.get_map_state(MapStateDescriptor("seen", Types.STRING(), Types.INT()))
        backend.current.key = "a"
        state.update(1)
        first = store.end_epoch(backend)
        backend.begin_epoch(store.chain)
        state.update(2)
        again = store.end_epoch(backend)
    assert list(first[SCHEMAS]) == list(first["total"])
    assert schemas_in(entry for _, (entry,) in first[SCHEMAS].values()) == {
        "seen": StateSchema("map", "INT", "STRING"),
        "total": StateSchema("value", "LONG"),
    }
    assert SCHEMAS not in again


def test_another_worker_does_not_write_it_again(store: Store):
    write(store, WRITTEN, 1)
    assert SCHEMAS not in write(store, WRITTEN, 2)


def test_an_epoch_that_changes_nothing_writes_nothing(store: Store):
    with store.backend() as backend:
        backend.get_state(WRITTEN)
        assert backend.take_changes(1) == {}


def test_a_state_that_is_no_longer_declared_stays_known(store: Store):
    write(store, WRITTEN, 1)
    write(store, ValueStateDescriptor("other", None), "x")
    write(store, ListStateDescriptor("third", None), "x")
    entries = read_change(store.chain.tip)[SCHEMAS]
    assert schemas_in(entry for _, (entry,) in entries.values() if entry).keys() == {
        "total",
        "other",
        "third",
    }


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            ValueStateDescriptor("total", Types.STRING()),
            "as value of LONG, but is now declared as value of STRING",
        ),
        (ValueStateDescriptor("total", None), "as value of LONG, but is now declared as value of any type"),
        (ValueStateDescriptor("total", Types.INT()), "as value of LONG, but is now declared as value of INT"),
        (ListStateDescriptor("total", Types.LONG()), "as value of LONG, but is now declared as list of LONG"),
        (
            MapStateDescriptor("total", Types.STRING(), Types.LONG()),
            "as value of LONG, but is now declared as map from STRING to LONG",
        ),
        (
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG()),
            "as value of LONG, but is now declared as reducing of LONG",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, StateDescriptor) else "",
)
def test_a_state_declared_otherwise_than_it_was_written_is_refused(
    store: Store, other: StateDescriptor, message: str
):
    write(store, WRITTEN, 1)
    with store.backend() as backend, pytest.raises(StateMigrationError, match=message) as refused:
        handle_of(backend, other)
    assert "give it another name" in str(refused.value)
    assert not refused.value.retryable
    with store.backend() as backend:  # and what was there still is
        state = backend.get_state(WRITTEN)
        backend.current.key = 0
        assert state.value() == 1


def test_it_is_refused_also_where_the_state_was_declared_before_the_first_epoch(store: Store, tmp_path: Path):
    write(store, WRITTEN, 1)
    with closing(KeyedStateBackend(LmdbStore(str(tmp_path / "late")), range(GROUPS), GROUPS, 9)) as backend:
        backend.get_state(ValueStateDescriptor("total", Types.STRING()))
        with pytest.raises(StateMigrationError):
            backend.begin_epoch(store.chain)


def test_the_schema_is_known_in_every_part_of_redistributed_state(store: Store):
    write(store, WRITTEN, 1, keys=100)
    files = store.chain.files
    for subtask in range(3):
        groups = key_group_range(subtask, GROUPS, 3)
        store.chain = rescaled_chain("new", [(range(GROUPS), files)], groups, 1)
        with store.backend(groups) as backend, pytest.raises(StateMigrationError):
            backend.get_state(ValueStateDescriptor("total", Types.STRING()))


@pytest.mark.parametrize(
    ("stored", "declared", "is_readable"),
    [
        (Types.INT, Types.LONG, True),
        (Types.LONG, Types.SHORT, False),
        (Types.FLOAT, Types.DOUBLE, True),
        (Types.LONG, Types.DOUBLE, False),
        (Types.STRING, None, False),
        (None, Types.STRING, False),
        (None, Types.PICKLED_BYTE_ARRAY, True),
        (None, lambda: Types.TUPLE([Types.INT()]), True),
        (lambda: Types.TUPLE([Types.INT()]), lambda: Types.TUPLE([Types.INT(), Types.INT()]), True),
        (lambda: Types.TUPLE([Types.INT()]), lambda: Types.MAP(Types.INT(), Types.INT()), False),
        (lambda: Types.LIST(Types.INT()), lambda: Types.BASIC_ARRAY(Types.INT()), True),
        (Types.BIG_INT, Types.BIG_DEC, False),
    ],
)
def test_which_types_can_be_read_as_which(
    stored: Callable[[], TypeInformation] | None,
    declared: Callable[[], TypeInformation] | None,
    is_readable: bool,
):
    texts = [None if make is None else make().summary() for make in (stored, declared)]
    assert is_readable_as(*texts) is is_readable


def test_the_elements_of_a_list_and_the_keys_of_a_map_count_too(store: Store):
    write(store, ListStateDescriptor("list", Types.LONG()), 1)
    write(store, MapStateDescriptor("map", Types.STRING(), Types.LONG()), ("a", 1))
    with store.backend() as backend:
        backend.get_list_state(ListStateDescriptor("list", None))  # elements are pickled in any case
        with pytest.raises(StateMigrationError, match="as map from STRING to LONG"):
            backend.get_map_state(MapStateDescriptor("map", Types.LONG(), Types.LONG()))
    with store.backend() as backend, pytest.raises(StateMigrationError, match="list of STRING"):
        backend.get_list_state(ListStateDescriptor("list", Types.STRING()))


def test_a_state_that_was_widened_in_some_groups_cannot_be_narrowed_again(store: Store):
    write(store, ValueStateDescriptor("total", Types.INT()), 1, keys=100)
    write(store, WRITTEN, 1 << 40)
    with store.backend() as backend, pytest.raises(StateMigrationError, match="as value of LONG"):
        backend.get_state(ValueStateDescriptor("total", Types.INT()))
    with store.backend() as backend:
        state = backend.get_state(WRITTEN)
        backend.current.key = 50
        assert state.value() == 1
