"""Notes what is read and written of keyed state, table by table, while an epoch is replayed.

Tables of operators that only decide when something happens (triggers, which windows were merged, clean-up timers) are
left out: a window's result depends on what is in the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from headrace.operators.window.slices import SlicedWindowProcessor, pack_slice_name, unpack_slice_name
from headrace.runtime.task.sink_digest import canonical_bytes
from headrace.state import entries
from headrace.state.operator_state import DictBroadcastState
from headrace.state.slices import SliceTable, StateSlice
from headrace.state.tables import EntryTable, ListTable, MapTable
from headrace.state.timers import Timer, TimerTable
from headrace.state.ttl import SweptTable
from headrace.why.lineage import Entry, TaskLineage
from headrace.windowing.windows import TimeWindow

_UNFOLLOWED = ("_merging", "_trigger/", "_ttl")
_JOIN = "_interval_join/"
#: What names of broadcast state begin with.
BROADCAST = "broadcast/"
#: Names of states that operators have, not functions.
_NAMES = {
    "_reduced": "reduced",
    "_window/_contents": "window",
    "_slices": "window",
    "_timers/event": "timer",
    "_timers/processing": "timer",
    "_interval_join/left": "left",
    "_interval_join/right": "right",
    "_batch_input": "records",
}


def shown_name(state: str) -> str:
    """Return what a state is called in answers."""
    return _NAMES.get(state, state.removeprefix("_window_state/").removeprefix(BROADCAST))


def watch_table(operator: Any, operator_id: str, lineage: TaskLineage, name: str, table: Any) -> None:
    """Note all reads and writes of a table of an operator from here on."""
    if name.startswith(_UNFOLLOWED):
        return
    if isinstance(table, SweptTable):
        table = table.table
    if isinstance(table, EntryTable):
        _EntryWatch(operator_id, lineage, name, table)
    elif isinstance(table, ListTable):
        _ListWatch(operator_id, lineage, name, table)
    elif isinstance(table, MapTable):
        _MapWatch(operator_id, lineage, name, table)
    elif isinstance(table, TimerTable):
        _TimerWatch(operator_id, lineage, name, table)
    elif isinstance(table, SliceTable) and isinstance(operator, SlicedWindowProcessor):
        _SliceWatch(operator, operator_id, lineage, name, table)


class _Watch:
    """What is common: names of entries, and the parts of a key."""

    def __init__(self, operator_id: str, lineage: TaskLineage, name: str, table: Any) -> None:
        self._operator_id = operator_id
        self._lineage = lineage
        self._name = name
        self._table = table
        self._is_window = name.startswith(("_window/", "_window_state/"))

    def _entry(self, storage_key: bytes) -> Entry:
        return Entry(self._operator_id, self._name, storage_key)

    def _place(self) -> tuple[Any, Any]:
        """Return the current key, and the window within it."""
        key = self._table._current.key
        return key if self._is_window else (key, None)


class _EntryWatch(_Watch):
    def __init__(self, operator_id: str, lineage: TaskLineage, name: str, table: EntryTable) -> None:
        super().__init__(operator_id, lineage, name, table)
        self._get, self._put, self._items = table.get, table.put, table.items
        table.get = self._read  # type: ignore[method-assign]
        table.put = self._write  # type: ignore[method-assign]
        table.values = self._values  # type: ignore[method-assign]

    def _here(self) -> Entry:
        return self._entry(self._table._scheme.storage_key(self._table._current.key))

    def _read(self) -> Any:
        value = self._get()
        self._lineage.read(self._here(), *self._place(), value)
        return value

    def _write(self, value: Any) -> None:
        before = self._get()
        self._put(value)
        self._lineage.write(self._here(), *self._place(), before, value)

    def _values(self) -> Iterator[Any]:
        for storage_key, value in self._items():
            self._lineage.begin("end", "end of input")
            self._lineage.read(self._entry(storage_key), None, None, value)
            yield value


class _ListWatch(_Watch):
    def __init__(self, operator_id: str, lineage: TaskLineage, name: str, table: ListTable) -> None:
        super().__init__(operator_id, lineage, name, table)
        self._add_all, self._read, self._replace = table.add_all, table.read, table.replace
        self._take_items = table.take_items
        table.add_all = self._append  # type: ignore[method-assign]
        table.read = self._list  # type: ignore[method-assign]
        table.replace = self._write  # type: ignore[method-assign]
        table.take_all = self._taken  # type: ignore[method-assign]

    def _here(self) -> Entry:
        return self._entry(self._table._scheme.prefix(self._table._current.key))

    def _append(self, values: Iterable[Any]) -> None:
        added, here = list(values), self._here()
        self._add_all(added)
        before = _Stored() if self._is_stored(here.storage_key) else None
        shown = _Records(f"+{len(added)}") if self._is_window else _Added(added)
        self._lineage.write(here, *self._place(), before, shown, keeps=True)

    def _is_stored(self, prefix: bytes) -> bool:
        """Whether the list had elements before the epoch. Reading it would change how it is written."""
        store = self._table._store
        return store is not None and next(iter(store.scan(self._name, prefix)), None) is not None

    def _list(self) -> list[Any]:
        elements = self._read()
        shown = _Records(f"{len(elements)} records") if self._is_window else elements
        self._lineage.read(self._here(), *self._place(), shown if elements else None)
        return elements

    def _write(self, values: list[Any]) -> None:
        before: Any = list(self._read()) or None
        self._replace(values)
        after: Any = values or None
        if self._is_window:
            before, after = (
                None if each is None else _Records(f"{len(each)} records") for each in (before, after)
            )
        self._lineage.write(self._here(), *self._place(), before, after)

    def _taken(self) -> Iterator[list[Any]]:
        """Yield each key's list, as a step of its own."""
        for prefix, elements in self._take_items():
            self._lineage.begin("end", "end of input")
            self._lineage.read(self._entry(prefix), None, None, elements)
            yield elements


class _Records(str):
    """How many records a window has: they are listed anyway."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Stored:
    """A list that is there, whatever is in it."""

    def __repr__(self) -> str:
        return "..."


class _Added:
    """Elements that were appended to a list."""

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements

    def __repr__(self) -> str:
        return "+ " + ", ".join(map(repr, self._elements))


class _MapWatch(_Watch):
    def __init__(self, operator_id: str, lineage: TaskLineage, name: str, table: MapTable) -> None:
        super().__init__(operator_id, lineage, name, table)
        self._is_join = name.startswith(_JOIN)
        self._get, self._put, self._remove = table.get, table.put, table.remove
        self._contains, self._complete, self._clear = table.contains, table.complete, table.clear
        table.get = self._read  # type: ignore[method-assign]
        table.contains = self._has  # type: ignore[method-assign]
        table.put = self._write  # type: ignore[method-assign]
        table.remove = self._delete  # type: ignore[method-assign]
        table.complete = self._all  # type: ignore[method-assign]
        table.clear = self._empty  # type: ignore[method-assign]

    def _here(self, map_key: Any) -> Entry:
        prefix = self._table._scheme.prefix(self._table._current.key)
        return self._entry(entries.map_key(prefix, map_key))

    def _note_read(self, map_key: Any, value: Any) -> None:
        key, _ = self._place()
        self._lineage.read(self._here(map_key), key, map_key, value, is_buffer=self._is_join)

    def _note_write(self, map_key: Any, before: Any, after: Any) -> None:
        key, _ = self._place()
        self._lineage.write(self._here(map_key), key, map_key, before, after, is_buffer=self._is_join)

    def _read(self, map_key: Any) -> Any:
        value = self._get(map_key)
        self._note_read(map_key, value)
        return value

    def _has(self, map_key: Any) -> bool:
        is_there = self._contains(map_key)
        self._note_read(map_key, self._get(map_key) if is_there else None)
        return is_there

    def _write(self, map_key: Any, value: Any) -> None:
        before = self._get(map_key)
        self._put(map_key, value)
        self._note_write(map_key, before, value)

    def _delete(self, map_key: Any) -> None:
        before = self._get(map_key)
        self._remove(map_key)
        self._note_write(map_key, before, None)

    def _all(self) -> dict[Any, Any]:
        found = self._complete()
        if not self._is_join:  # a join only looks which times there are
            for map_key, value in found.items():
                self._note_read(map_key, value)
        return found

    def _empty(self) -> None:
        before = self._complete()
        self._clear()
        for map_key, value in before.items():
            self._note_write(map_key, value, None)


class BroadcastWatch:
    """Notes what is read and written of the broadcast state of a subtask.

    Args:
        operator_id: The operator.
        lineage: Of the subtask.
        subtask: Its number: each has its own copy.
    """

    def __init__(self, operator_id: str, lineage: TaskLineage, subtask: int) -> None:
        self._operator_id = operator_id
        self._lineage = lineage
        self._subtask = subtask

    def __call__(self, name: str, state: Any) -> None:
        """Watch a state from here on."""
        if not isinstance(state, DictBroadcastState):
            return
        entries = _WatchedEntries(partial(self._read, name), partial(self._write, name))
        dict.update(entries, state.entries)
        state.entries = entries
        load = state.load

        def load_watched(encoded: list[bytes] | None) -> None:
            load(encoded)
            dict.clear(entries)
            dict.update(entries, state.entries)
            state.entries = entries

        state.load = load_watched  # type: ignore[method-assign]

    def _entry(self, name: str, map_key: Any) -> Entry:
        return Entry(self._operator_id, name, b"%d/%b" % (self._subtask, canonical_bytes(map_key)))

    def _read(self, name: str, map_key: Any, value: Any) -> None:
        self._lineage.read(self._entry(name, map_key), None, map_key, value)

    def _write(self, name: str, map_key: Any, before: Any, after: Any) -> None:
        self._lineage.write(self._entry(name, map_key), None, map_key, before, after)


class _WatchedEntries(dict[Any, Any]):
    """Entries of broadcast state."""

    def __init__(
        self, on_read: Callable[[Any, Any], None], on_write: Callable[[Any, Any, Any], None]
    ) -> None:
        super().__init__()
        self._on_read = on_read
        self._on_write = on_write

    def get(self, key: Any, default: Any = None) -> Any:
        value = super().get(key, default)
        self._on_read(key, value)
        return value

    def __contains__(self, key: Any) -> bool:
        self._on_read(key, super().get(key))
        return super().__contains__(key)

    def _all_read(self) -> None:
        for key, value in super().items():
            self._on_read(key, value)

    def items(self) -> Any:
        self._all_read()
        return super().items()

    def keys(self) -> Any:
        self._all_read()
        return super().keys()

    def values(self) -> Any:
        self._all_read()
        return super().values()

    def __iter__(self) -> Iterator[Any]:
        self._all_read()
        return super().__iter__()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._on_write(key, super().get(key), value)
        super().__setitem__(key, value)

    def update(self, other: Any) -> None:  # type: ignore[override]
        for key, value in other.items():
            self[key] = value

    def pop(self, key: Any, default: Any = None) -> Any:
        self._on_write(key, super().get(key), None)
        return super().pop(key, default)

    def clear(self) -> None:
        for key, value in super().items():
            self._on_write(key, value, None)
        super().clear()


class _TimerWatch(_Watch):
    """A timer that fires begins a step. One that a function has set depends on the record that set it."""

    def __init__(self, operator_id: str, lineage: TaskLineage, name: str, table: TimerTable) -> None:
        super().__init__(operator_id, lineage, name, table)
        self._register, self._due = table.register, table.due
        table.register = self._set  # type: ignore[method-assign]
        table.due = self._fired  # type: ignore[method-assign]

    def _set(self, timestamp: int, key: Any, namespace: Any) -> None:
        is_new = (key, namespace) not in self._table._waiting.get(timestamp, ())
        self._register(timestamp, key, namespace)
        if namespace is None and is_new:
            entry = self._entry(self._table._storage_key(Timer(timestamp, key, namespace)))
            self._lineage.write(entry, key, None, None, timestamp)

    def _fired(self, until: int) -> Iterator[Timer]:
        for timer in self._due(until):
            if timer.namespace is None:
                entry = self._entry(self._table._storage_key(timer))
                self._lineage.begin("timer", "", timer.timestamp)
                self._lineage.read(entry, timer.key, None, timer.timestamp)
            else:
                self._lineage.begin("window", "", timer.timestamp).part = timer.namespace
            yield timer


class _WatchedSlice(dict[Any, Any]):
    """What an epoch has written of a slice."""

    def __init__(self, watch: _SliceWatch, name: bytes) -> None:
        super().__init__()
        self._watch = watch
        self._name = name

    def __setitem__(self, key: Any, value: Any) -> None:
        self._watch.written(self._name, key, super().get(key), value)
        super().__setitem__(key, value)


class _SliceWatch(_Watch):
    """Accumulators by slice and key. What overlapping windows share beyond that is derived, and not followed.

    Each window of a key that fires is a step of its own.
    """

    def __init__(
        self,
        operator: SlicedWindowProcessor,
        operator_id: str,
        lineage: TaskLineage,
        name: str,
        table: SliceTable,
    ) -> None:
        super().__init__(operator_id, lineage, name, table)
        self._operator = operator
        self._open, self._emit = table.open, operator._emit
        table.open = self._opened  # type: ignore[method-assign]
        operator._emit = self._fired  # type: ignore[method-assign]

    def _opened(self, name: bytes) -> StateSlice:
        piece = self._open(name)
        if not isinstance(piece.written, _WatchedSlice) and unpack_slice_name(name)[0] == 0:
            piece.written = _WatchedSlice(self, name)
        return piece

    def _place_of(self, name: bytes, key: Any) -> tuple[Entry, Any, TimeWindow]:
        start = unpack_slice_name(name)[1]
        part = TimeWindow(start, start + self._operator._step)
        return self._entry(self._table._storage_key(name, key)), key, part

    def _shown(self, value: Any) -> Any:
        """Leave out the number that says which record came first."""
        return value[1] if value is not None and self._operator._is_numbered else value

    def written(self, name: bytes, key: Any, before: Any, after: Any) -> None:
        """Note that a record was added to a slice: what the slice has of the key contains it from now on."""
        if before is None and name in self._table._stored_names:
            before = self._table.fetch(name, key)
        place = self._place_of(name, key)
        self._lineage.write(*place, self._shown(before), self._shown(after), keeps=True)

    def _fired(self, key: Any, window: TimeWindow, value: Any) -> None:
        self._lineage.begin("window", "", window.max_timestamp()).part = window
        for start in self._operator._starts:
            if window.start <= start < window.end:
                self._read(pack_slice_name(0, start), key)
        self._emit(key, window, value)

    def _read(self, name: bytes, key: Any) -> None:
        piece = self._open(name)
        value = piece.written.get(key)
        if value is None:
            value = piece.load(key)
        if value is not None:
            self._lineage.read(*self._place_of(name, key), self._shown(value))
