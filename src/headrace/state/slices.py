"""State by slice of time and then by key: all keys of a slice lie together, so a slice can be read and dropped whole.

    storage key   group | slice | length, key        value: the key and its encoded accumulator
                  group | 0xff                       value: the group's mark

A slice is a name of bytes, all of one length. Adding touches single keys; only firing a window reads slices whole.

Every key group that has slices has a mark: how far it has advanced in time, and how many arrivals were numbered. So all
that is needed to continue moves with the group, whichever subtask gets it next, with groups from wherever.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from headrace.common.codec import value_codec
from headrace.common.plain_pickle import Loads
from headrace.state.changes import KEY_GROUP_BYTES, KEY_GROUP_PREFIX, Column, column_of
from headrace.state.entries import (
    group_prefix,
    pack_map_entry,
    unpack_map_entry,
    unpack_map_value,
    with_length,
)
from headrace.state.keys import encode_key, shorten
from headrace.state.stores.base import LocalStore

_KEY_LIMIT = 200
#: What stands in the place of a slice's name in the entry of a mark; no name begins with it.
_MARK = b"\xff"
_mark = struct.Struct(">qQ")


class Mark(NamedTuple):
    """How far a key group has come."""

    #: Windows that end up to here have fired.
    fired_until: int
    #: No accumulator of the group has a higher number.
    arrivals: int


class StateSlice:
    """One slice in the epoch at work."""

    __slots__ = ("_table", "is_stored", "name", "written")

    def __init__(self, table: SliceTable, name: bytes, *, is_stored: bool) -> None:
        self._table = table
        self.name = name
        #: Whether the store may hold entries of it.
        self.is_stored = is_stored
        #: Accumulators by key, as they are now, of the keys touched in this epoch.
        self.written: dict[Any, Any] = {}

    def load(self, key: Any) -> Any:
        """Return the stored accumulator of a key that was not touched yet; None if there is none."""
        return self._table.fetch(self.name, key) if self.is_stored else None

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yield every key with its accumulator."""
        if self.is_stored:
            for key, accumulator in self._table.stored(self.name):
                if key not in self.written:
                    yield key, accumulator
        yield from self.written.items()


class SliceTable:
    """The slices of one operator subtask."""

    def __init__(self, name: str, groups: range, max_parallelism: int, *, name_size: int) -> None:
        self._name = name
        self._groups = groups
        self._name_size = name_size
        self._max_parallelism = max_parallelism
        self._encode, self._decode = value_codec(None)
        self._store: LocalStore | None = None
        self._open: dict[bytes, StateSlice] = {}
        self._dropped: list[bytes] = []
        #: The slices that the store holds, as the operator remembers them.
        self._stored_names: set[bytes] = set()
        #: These, and the ones that were opened to add to; not to be changed by others.
        self.names: set[bytes] = set()
        #: The marks of the key groups that have slices, as the store holds them.
        self.marks: dict[int, Mark] = {}
        #: The marks as they will be, once the changes are written down.
        self._new_marks: dict[int, Mark] = {}
        #: What this epoch brings the groups to.
        self._mark = Mark(-(1 << 63), 0)

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._new_marks = self.marks
        self.settle(0)
        if not is_current:
            stored = ((group, store.get(self._name, _mark_key(group))) for group in self._groups)
            self.marks = {group: Mark(*_mark.unpack(mark)) for group, mark in stored if mark is not None}
            self._new_marks = self.marks

    def restore(self, names: Iterable[bytes]) -> None:
        """Say which slices the store holds."""
        self._stored_names = set(names)
        self.names = set(self._stored_names)

    def find_names(self) -> set[bytes]:
        """Look up which slices the store holds. It steps from one to the next in every key group: remember them."""
        assert self._store is not None
        found = set()
        for group in self.marks:
            prefix = KEY_GROUP_PREFIX[group]
            position = prefix
            while (name := self._first_name(prefix, position)) is not None:
                found.add(name)
                position = prefix + (int.from_bytes(name) + 1).to_bytes(self._name_size)
        return found

    def mark(self, fired_until: int, arrivals: int) -> None:
        """Say what the epoch brings the groups to; those that are further stay there."""
        self._mark = Mark(fired_until, arrivals)

    def open(self, name: bytes) -> StateSlice:
        """Return a slice to read."""
        piece = self._open.get(name)
        if piece is None:
            piece = self._open[name] = StateSlice(self, name, is_stored=name in self._stored_names)
        return piece

    def open_to_add(self, name: bytes) -> StateSlice:
        """Return a slice to add to. From now on it is one of the table's, with or without keys."""
        self.names.add(name)
        return self.open(name)

    def drop(self, name: bytes) -> None:
        """Remove a slice with all its keys."""
        self._open.pop(name, None)
        self.names.discard(name)
        if name in self._stored_names:
            self._stored_names.discard(name)
            self._dropped.append(name)

    def fetch(self, name: bytes, key: Any) -> Any:
        """Return what the store has for a key."""
        assert self._store is not None
        stored = self._store.get(self._name, self._storage_key(name, key))
        return None if stored is None else self._decode(unpack_map_value(stored))

    def stored(self, name: bytes) -> Iterator[tuple[Any, Any]]:
        """Yield what the store has of a slice."""
        assert self._store is not None
        for group in self._groups:
            for _, entry in self._store.scan(self._name, KEY_GROUP_PREFIX[group] + name):
                key, encoded = unpack_map_entry(entry)
                yield key, self._decode(encoded)

    def take_changes(self, version: int) -> Column:
        assert self._store is not None
        changed: dict[bytes, bytes | None] = {}
        for name in self._dropped:
            for group in self._groups:
                for storage_key, _ in self._store.scan(self._name, KEY_GROUP_PREFIX[group] + name):
                    changed[storage_key] = None
        for name, piece in self._open.items():
            for key, accumulator in piece.written.items():
                entry = pack_map_entry(key, self._encode(accumulator))
                changed[self._storage_key(name, key)] = entry
        column = column_of(list(changed), list(changed.values()))
        for group, mark in self._take_marks(column).items():
            keys, values = column.setdefault(group, ([], []))
            keys.append(_mark_key(group))
            values.append(None if mark is None else _mark.pack(*mark))
        return column

    def _take_marks(self, column: Column) -> dict[int, Mark | None]:
        """Return the marks that are new or no longer needed."""
        self._new_marks = dict(self.marks) if self.names else {}
        if not self.names:
            return dict.fromkeys(self.marks)
        fired_until, arrivals = self._mark
        changed: dict[int, Mark | None] = {}
        for group in self.marks.keys() | column.keys():
            before = self.marks.get(group, self._mark)
            reached = max(before.fired_until, fired_until)
            # Only a group that was written to can have new numbers.
            mark = Mark(reached, arrivals if group in column else before.arrivals)
            if group not in self.marks or mark != before:
                changed[group] = self._new_marks[group] = mark
        return changed

    def settle(self, cache_entries: int) -> None:
        self._open.clear()
        self._dropped.clear()
        self.marks = self._new_marks

    def _first_name(self, prefix: bytes, position: bytes) -> bytes | None:
        """Return the first slice of a group from a position on."""
        assert self._store is not None
        start = len(prefix)
        for storage_key, _ in self._store.scan(self._name, prefix, position):
            name = storage_key[start : start + self._name_size]
            return None if name == _MARK else name
        return None

    def _storage_key(self, name: bytes, key: Any) -> bytes:
        encoded = encode_key(key)
        group = group_prefix(encoded, self._max_parallelism)
        return b"".join((group, name, with_length(shorten(encoded, _KEY_LIMIT))))


def _mark_key(group: int) -> bytes:
    return KEY_GROUP_PREFIX[group] + _MARK


def slice_entry(
    storage_key: bytes, value: bytes, loads: Loads = pickle.loads
) -> tuple[bytes, Any, bytes] | None:
    """Return the name of the slice, the key and the encoded accumulator of an entry; None for a mark."""
    start = KEY_GROUP_BYTES
    if storage_key[start:] == _MARK:
        return None
    key, accumulator = unpack_map_entry(value, loads)
    length = len(with_length(shorten(encode_key(key), _KEY_LIMIT)))
    return storage_key[start:-length], key, accumulator
