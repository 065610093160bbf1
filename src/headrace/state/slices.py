"""State by slice of time and then by key: all keys of a slice lie together, so a slice can be read and dropped whole.

    storage key   group | slice | length, key        value: the key and its encoded accumulator

A slice is any namespace of bytes. Adding touches single keys; only firing a window reads slices whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.common.codec import value_codec
from headrace.state.changes import KEY_GROUP_PREFIX, Column, column_of
from headrace.state.entries import (
    group_prefix,
    pack_map_entry,
    unpack_map_entry,
    unpack_map_value,
    with_length,
)
from headrace.state.keys import encode_key, shorten
from headrace.state.store import LocalStore

_KEY_LIMIT = 200


class Slice:
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

    def __init__(self, name: str, groups: range, max_parallelism: int) -> None:
        self._name = name
        self._groups = groups
        self._max_parallelism = max_parallelism
        self._encode, self._decode = value_codec(None)
        self._store: LocalStore | None = None
        self._open: dict[bytes, Slice] = {}
        self._dropped: list[bytes] = []
        #: The slices that the store holds, as the operator remembers them.
        self._stored_names: set[bytes] = set()
        #: These, and the ones that were opened to add to; not to be changed by others.
        self.names: set[bytes] = set()

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self.settle(0)

    def restore(self, names: Iterable[bytes]) -> None:
        """Say which slices the store holds."""
        self._stored_names = set(names)
        self.names = set(self._stored_names)

    def open(self, name: bytes) -> Slice:
        """Return a slice to read."""
        piece = self._open.get(name)
        if piece is None:
            piece = self._open[name] = Slice(self, name, is_stored=name in self._stored_names)
        return piece

    def open_to_add(self, name: bytes) -> Slice:
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
        return column_of(list(changed), list(changed.values()))

    def settle(self, cache_entries: int) -> None:
        self._open.clear()
        self._dropped.clear()

    def _storage_key(self, name: bytes, key: Any) -> bytes:
        encoded = encode_key(key)
        group = group_prefix(encoded, self._max_parallelism)
        return b"".join((group, name, with_length(shorten(encoded, _KEY_LIMIT))))
