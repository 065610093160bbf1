"""The state of process table functions: an entry is a table, found by the key of the rows that are processed.

    value.NAME    one row for each key: the value, pickled; read before a call, written after it if it has changed
    list.NAME     a row for each element
    map.NAME      a row for each entry, found by key and entry: a map of any size is never read as a whole

The changes of an epoch are buffered here until they are written to the tables.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.catalog.process_functions import StateKind, StateSpec
from headrace.errors import UserFunctionError
from headrace.operators.table.base import EpochTime, read_columns, written_rows
from headrace.operators.table.timed_rows import arrival_order
from headrace.operators.table.ttl import RowTimeToLive
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

__all__ = ["Key", "StateEntry", "StateList", "StateMap", "make_entry"]

#: Both numbers that a key is known by.
Key = tuple[int, int]

_VALUE, _ENTRY, _PLACE = "value", "entry", "place"


class StateEntry:
    """An entry of state; keys have their own of it.

    Args:
        spec: What the function declares.
        ttl_ms: How long it stays after it was last written; 0: forever.
    """

    def __init__(self, spec: StateSpec, ttl_ms: int) -> None:
        self.spec = spec
        self.ttl = RowTimeToLive(ttl_ms)
        self.table: SlotTable | None = None
        self.time = EpochTime(0, 0)

    @property
    def layout(self) -> TableLayout:
        raise NotImplementedError

    def begin(self, tables: Mapping[str, SlotTable], time: EpochTime) -> None:
        self.table, self.time = tables[self.layout.name], time

    def of_key(self, key: Key) -> Any:
        """Return what the function gets of a key."""
        raise NotImplementedError

    def clear(self, key: Key) -> None:
        """Forget what a key has."""
        raise NotImplementedError

    def changes(self) -> Iterable[RowSet]:
        """Return what the epoch has changed, and end the epoch."""
        raise NotImplementedError

    def swept(self) -> list[RowSet]:
        """Return rows whose time to live is over."""
        assert self.table is not None
        gone = self.ttl.sweep(self.table, self.time.now_ms)
        return [] if gone is None else [gone]

    def _slots(self, keys: Ints) -> Ints:
        """Return where rows are that have not ended; -1 for others."""
        assert self.table is not None
        return self.ttl.alive(self.table, self.table.find(keys), self.time.now_ms)

    def _members(self, key: Key) -> Ints:
        """Return where the rows of a key are that have not ended."""
        assert self.table is not None
        _, slots = self.table.members(np.array([key], np.int64))
        alive = self.ttl.alive(self.table, slots, self.time.now_ms)
        return alive[alive >= 0]

    def _written(
        self, keys: list[tuple[int, ...]], columns: Mapping[str, list[Any]], gone: list[bool]
    ) -> RowSet:
        layout = self.layout
        numbers = np.array(keys, np.int64).reshape(len(keys), layout.key_words)
        arrays = {
            name: pa.array(values, layout.column(name).arrow) for name, values in columns.items()
        } | self.ttl.stamps(len(keys), self.time.now_ms)
        owners = numbers[:, :KEY_WORDS].copy() if layout.has_owners else None
        return written_rows(layout, numbers, arrays, owners=owners, removed=np.array(gone, np.bool_))


def make_entry(spec: StateSpec, ttl_ms: int) -> StateEntry:
    """Return the entry of its kind; its own time to live counts before the job's."""
    own = ttl_ms if spec.ttl_ms is None else spec.ttl_ms
    kinds: dict[StateKind, type[StateEntry]] = {
        StateKind.VALUE: ValueEntry,
        StateKind.LIST: ListEntry,
        StateKind.MAP: MapEntry,
    }
    return kinds[spec.kind](spec, own)


class ValueEntry(StateEntry):
    """A value that the function changes in place."""

    def __init__(self, spec: StateSpec, ttl_ms: int) -> None:
        super().__init__(spec, ttl_ms)
        #: What keys have now, and what was stored of it; None: nothing.
        self._values: dict[Key, Any] = {}
        self._stored: dict[Key, bytes | None] = {}

    @property
    def layout(self) -> TableLayout:
        return TableLayout(f"value.{self.spec.name}", (ColumnType(_VALUE, pa.binary()), *self.ttl.columns))

    def load(self, keys: Ints) -> None:
        """Read what keys have, all at once."""
        assert self.table is not None
        slots = self._slots(keys)
        pickled = read_columns(self.table, slots, [_VALUE])[_VALUE].to_pylist()
        for (one, other), stored in zip(keys.tolist(), pickled, strict=True):
            self._stored[one, other] = stored

    def of_key(self, key: Key) -> Any:
        if key not in self._values:
            if key not in self._stored:
                self.load(np.array([key], np.int64))
            stored = self._stored[key]
            self._values[key] = self._new() if stored is None else self._loaded(stored)
        return self._values[key]

    def clear(self, key: Key) -> None:
        self._values[key] = None

    def settle(self, key: Key) -> None:
        """Have a value that was cleared in a call be a new one in the next."""
        if self._values.get(key, self) is None:
            del self._values[key]
            if self._stored.get(key) is not None:
                self._removed.append(key)
            self._stored[key] = None

    def begin(self, tables: Mapping[str, SlotTable], time: EpochTime) -> None:
        super().begin(tables, time)
        self._values, self._stored = {}, {}
        #: Keys whose stored value was cleared.
        self._removed: list[Key] = []

    def changes(self) -> Iterable[RowSet]:
        written: dict[Key, bytes | None] = dict.fromkeys(self._removed)
        for key, value in self._values.items():
            pickled = self._pickled(value)
            if pickled != self._stored[key] and not self._is_new(key, pickled):
                written[key] = pickled
        if not written:
            return []
        gone = [pickled is None for pickled in written.values()]
        return [self._written(list(written), {_VALUE: list(written.values())}, gone)]

    def _new(self) -> Any:
        assert self.spec.make is not None
        return self.spec.make()

    def _is_new(self, key: Key, pickled: bytes) -> bool:
        """Whether a value was never there and is what it started as: then there is nothing to keep."""
        return self._stored[key] is None and pickled == self._pickled(self._new())

    def _pickled(self, value: Any) -> bytes:
        return _pickled(self.spec.name, dict(vars(value)) if self.spec.is_object else value)

    def _loaded(self, stored: bytes) -> Any:
        """Return a stored value: an object as a new one with its attributes, so that its class may change."""
        if not self.spec.is_object:
            return pickle.loads(stored)
        made = self._new()
        vars(made).update(pickle.loads(stored))
        return made


class ListEntry(StateEntry):
    """A list, element by element."""

    def __init__(self, spec: StateSpec, ttl_ms: int) -> None:
        super().__init__(spec, ttl_ms)
        self._lists: dict[Key, StateList] = {}
        self._added = 0

    @property
    def layout(self) -> TableLayout:
        columns = (ColumnType(_PLACE, pa.int64(), is_key=True), ColumnType(_VALUE, pa.binary(), is_key=True))
        return TableLayout(
            f"list.{self.spec.name}",
            (*columns, *self.ttl.columns),
            has_owners=True,
            key_words=KEY_WORDS + 1,
        )

    def begin(self, tables: Mapping[str, SlotTable], time: EpochTime) -> None:
        super().begin(tables, time)
        self._lists, self._added = {}, 0

    def of_key(self, key: Key) -> StateList:
        return self._lists.setdefault(key, StateList(self, key))

    def clear(self, key: Key) -> None:
        self.of_key(key).clear()

    def next_place(self) -> int:
        """Return a number after all before, also those of earlier epochs."""
        self._added += 1
        return int(arrival_order(self.time.epoch, 1)[0]) + self._added - 1

    def stored(self, key: Key) -> list[tuple[int, bytes]]:
        """Return the elements that a key had before the epoch, with their places."""
        assert self.table is not None
        columns = read_columns(self.table, self._members(key), [_PLACE, _VALUE])
        pairs = zip(columns[_PLACE].to_pylist(), columns[_VALUE].to_pylist(), strict=True)
        return sorted(pairs, key=lambda each: each[0])

    def changes(self) -> Iterable[RowSet]:
        keys: list[tuple[int, ...]] = []
        places: list[int] = []
        values: list[bytes | None] = []
        for key, each in self._lists.items():
            for place, pickled in each.changed():
                keys.append((*key, place))
                places.append(place)
                values.append(pickled)
        if not keys:
            return []
        gone = [each is None for each in values]
        return [self._written(keys, {_PLACE: places, _VALUE: values}, gone)]


class StateList:
    """A list in state, with the methods of `ListView`."""

    def __init__(self, entry: ListEntry, key: Key) -> None:
        self._entry = entry
        self._key = key
        self._is_cleared = False
        self._added: list[tuple[int, Any]] = []

    def get(self) -> Iterable[Any]:
        return list(self)

    def add(self, value: Any) -> None:
        """Put an element after the others."""
        self._added.append((self._entry.next_place(), value))

    def add_all(self, values: Iterable[Any]) -> None:
        """Put elements after the others."""
        for each in values:
            self.add(each)

    def clear(self) -> None:
        self._is_cleared = True
        self._added = []

    def __iter__(self) -> Iterator[Any]:
        if not self._is_cleared:
            for _, pickled in self._entry.stored(self._key):
                yield pickle.loads(pickled)
        for _, value in self._added:
            yield value

    def changed(self) -> Iterator[tuple[int, bytes | None]]:
        """Return the elements to write, and None for those to remove."""
        if self._is_cleared:
            for place, _ in self._entry.stored(self._key):
                yield place, None
        for place, value in self._added:
            yield place, _pickled(self._entry.spec.name, value)


class MapEntry(StateEntry):
    """A map, entry by entry."""

    def __init__(self, spec: StateSpec, ttl_ms: int) -> None:
        super().__init__(spec, ttl_ms)
        self._maps: dict[Key, StateMap] = {}

    @property
    def layout(self) -> TableLayout:
        columns = (ColumnType(_ENTRY, pa.binary(), is_key=True), ColumnType(_VALUE, pa.binary()))
        return TableLayout(
            f"map.{self.spec.name}",
            (*columns, *self.ttl.columns),
            has_owners=True,
            key_words=KEY_WORDS + 2,
        )

    def begin(self, tables: Mapping[str, SlotTable], time: EpochTime) -> None:
        super().begin(tables, time)
        self._maps = {}

    def of_key(self, key: Key) -> StateMap:
        return self._maps.setdefault(key, StateMap(self, key))

    def clear(self, key: Key) -> None:
        self.of_key(key).clear()

    def stored_value(self, key: Key, entry: bytes) -> bytes | None:
        """Return what an entry had before the epoch."""
        assert self.table is not None
        slots = self._slots(np.array([(*key, *_hash(entry))], np.int64))
        value: bytes | None = read_columns(self.table, slots, [_VALUE])[_VALUE].to_pylist()[0]
        return value

    def stored(self, key: Key) -> dict[bytes, bytes]:
        """Return all entries that a key had before the epoch."""
        assert self.table is not None
        columns = read_columns(self.table, self._members(key), [_ENTRY, _VALUE])
        return dict(zip(columns[_ENTRY].to_pylist(), columns[_VALUE].to_pylist(), strict=True))

    def changes(self) -> Iterable[RowSet]:
        keys: list[tuple[int, ...]] = []
        entries: list[bytes] = []
        values: list[bytes | None] = []
        for key, each in self._maps.items():
            for entry, pickled in each.changed():
                keys.append((*key, *_hash(entry)))
                entries.append(entry)
                values.append(pickled)
        if not keys:
            return []
        gone = [each is None for each in values]
        return [self._written(keys, {_ENTRY: entries, _VALUE: values}, gone)]


class _Missing:
    """Stands for an entry that was removed."""


class StateMap:
    """A map in state, with the methods of `MapView`."""

    def __init__(self, entry: MapEntry, key: Key) -> None:
        self._entry = entry
        self._key = key
        self._is_cleared = False
        #: What the epoch has read or written, by the pickled key.
        self._seen: dict[bytes, Any] = {}
        self._touched: set[bytes] = set()

    def get(self, key: Any) -> Any:
        """Return the value of a key.

        Raises:
            KeyError: If there is none.
        """
        found = self._found(self._pickled(key))
        if found is _Missing:
            raise KeyError(key)
        return found

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""
        entry = self._pickled(key)
        self._seen[entry] = value
        self._touched.add(entry)

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set the values of several keys."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        entry = self._pickled(key)
        self._seen[entry] = _Missing
        self._touched.add(entry)

    def contains(self, key: Any) -> bool:
        """Whether there is a value of this key."""
        return self._found(self._pickled(key)) is not _Missing

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return keys and values."""
        if not self._is_cleared:
            for entry, value in self._entry.stored(self._key).items():
                if entry not in self._seen:
                    self._seen[entry] = pickle.loads(value)
        return [(pickle.loads(each), value) for each, value in self._seen.items() if value is not _Missing]

    def keys(self) -> Iterable[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> Iterable[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Whether there is no key."""
        return not self.items()

    def clear(self) -> None:
        self._is_cleared = True
        self._seen, self._touched = {}, set()

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def changed(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Return the entries to write, and None for those to remove."""
        if self._is_cleared:
            for entry in self._entry.stored(self._key):
                if entry not in self._touched:
                    yield entry, None
        for entry in self._touched:
            value = self._seen[entry]
            yield entry, None if value is _Missing else self._pickled(value)

    def _found(self, entry: bytes) -> Any:
        if entry not in self._seen:
            stored = None if self._is_cleared else self._entry.stored_value(self._key, entry)
            self._seen[entry] = _Missing if stored is None else pickle.loads(stored)
        return self._seen[entry]

    def _pickled(self, value: Any) -> bytes:
        return _pickled(self._entry.spec.name, value)


def _pickled(name: str, value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception as error:
        raise UserFunctionError(
            f"state {name!r} cannot be stored: {error}", hint="keep values in state that can be pickled"
        ) from error


def _hash(entry: bytes) -> Key:
    digest = hashlib.blake2b(entry, digest_size=16).digest()
    return int.from_bytes(digest[:8], signed=True), int.from_bytes(digest[8:], signed=True)
