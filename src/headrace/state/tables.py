"""The tables behind keyed state: the host's copy of each state, and what one epoch read and wrote of it.

A key is read from the store when it is first touched, worked on as a plain Python object, and written out once, at
the end of the epoch, if it was touched. What was decoded stays for the next epoch as long as this worker is the one
that runs the subtask again; that is a short cut only.

Values are the caller's own objects, as with Flink's heap backend: what is changed in place is kept. So that results do
not depend on where epochs end, values that can be changed in place are compared with their stored form at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from headrace.common.codec import encode_all, value_codec
from headrace.errors import StateError, StateTypeError, shorten
from headrace.state import entries
from headrace.state.changes import Column, column_of
from headrace.state.entries import KeyScheme
from headrace.state.isolation import is_all_atoms, is_immutable
from headrace.state.keys import encode_key
from headrace.state.stores.base import LocalStore

_ABSENT = object()
#: The share of a batch's keys that had to be read from the store, from which on they are read together.
_MISSES_WORTH_PREFETCHING = 0.25
_first = itemgetter(0)
#: Sorts after every storage key.
_BEHIND_CHUNKS = b"\xff" * 600


class _NoKey:
    """Takes the place of a key outside of records: accessing keyed state then raises an error."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise StateError(
            "keyed state was accessed without a current key",
            hint="access it while processing a record of the keyed stream, not in open() or for broadcast records",
        )


NO_KEY = _NoKey()


class CurrentKey:
    """The key whose record is being processed; shared by all states of an operator."""

    __slots__ = ("key",)

    def __init__(self) -> None:
        self.key: Any = NO_KEY


class StateTable(Protocol):
    """One state of one operator: what of it was read and written since the epoch began."""

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        """Start an epoch; what was decoded before holds only if ``is_current``."""

    def take_changes(self, version: int) -> Column:
        """Return the touched entries, encoded, as they will be at ``version``."""

    def settle(self, cache_entries: int) -> None:
        """The changes are written down: keep what may be kept decoded."""


class StoredTable:
    """How keys and values of a state are stored, and where."""

    def __init__(self, name: str, current: CurrentKey, scheme: KeyScheme, type_info: Any) -> None:
        self._name = name
        self._current = current
        self._scheme = scheme
        self._encode, self._decode = value_codec(type_info)
        self._store: LocalStore | None = None
        self._fetch: Callable[[bytes], bytes | None] = lambda key: None

    def _encoded(self, key: Any, value: Any) -> bytes:
        """Encode the value of a key; an error says whose it is."""
        try:
            return self._encode(value)
        except StateTypeError as error:
            raise StateTypeError(
                f"state '{self._name}', key {shorten(key)}: {error.message}", hint=error.hint
            ) from None


class EntryTable(StoredTable):
    """A state with one value per key: value, reducing and aggregating state."""

    def __init__(self, name: str, current: CurrentKey, scheme: KeyScheme, type_info: Any) -> None:
        super().__init__(name, current, scheme, type_info)
        #: How many keys were read from the store since the last batch of records began.
        self._misses = 0
        #: Values updated in this epoch; None is a removal.
        self.written: dict[Any, Any] = {}
        #: Values as stored that cannot be changed in place.
        self._read: dict[Any, Any] = {}
        #: The same, of the keys of one batch of records: most of them will be written, and need no place in a large
        #: dictionary before.
        self._ahead: dict[Any, Any] = {}
        #: Values as stored that can, with their stored form.
        self._borrowed: dict[Any, tuple[Any, bytes]] = {}

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._fetch = store.reader(self._name)
        self.written.clear()
        self._ahead.clear()
        self._borrowed.clear()
        if not is_current:
            self._read.clear()

    def get(self) -> Any:
        """Return the current key's value, or None."""
        key = self._current.key
        value = self.written.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        value = self._ahead.get(key, _ABSENT)
        return value if value is not _ABSENT else self._load(key)

    def put(self, value: Any) -> None:
        """Set the current key's value; None removes it."""
        self.written[self._current.key] = value

    def prefetch(self, keys: Collection[Any]) -> None:
        """Read what the records of these keys will ask for, if it is not at hand.

        Together, keys cost less than one by one. Nothing is done while most of what is asked for is at hand anyway.
        """
        if self._misses < len(keys) * _MISSES_WORTH_PREFETCHING:
            self._misses = 0
            return
        self._keep_ahead()
        ahead, borrowed = self._ahead, self._borrowed
        missing = list(set(keys).difference(self.written).difference(self._read).difference(borrowed))
        self._misses = len(missing)
        fetched, decode = self._fetch_all(missing), self._decode
        values = [None if stored is None else decode(stored) for stored in fetched]
        if is_all_atoms(map(type, values)):
            ahead.update(zip(missing, values, strict=True))
            return
        for key, value, stored in zip(missing, values, fetched, strict=True):
            if stored is None or is_immutable(value):
                ahead[key] = value
            else:
                borrowed[key] = (value, stored)

    def _keep_ahead(self) -> None:
        """Keep the values of a batch that were read and not written."""
        ahead = self._ahead
        for key in set(ahead).difference(self.written):
            self._read[key] = ahead[key]
        ahead.clear()

    def _fetch_all(self, keys: list[Any]) -> list[bytes | None]:
        if self._store is None:
            return [None] * len(keys)
        return self._store.get_many(self._name, self._scheme.storage_keys(keys))

    def _load(self, key: Any) -> Any:
        value = self._read.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        borrowed = self._borrowed.get(key)
        if borrowed is not None:
            return borrowed[0]
        self._misses += 1
        stored = self._fetch(self._scheme.storage_key(key))
        if stored is None:
            self._read[key] = None
            return None
        value = self._decode(stored)
        if is_immutable(value):
            self._read[key] = value
        else:
            self._borrowed[key] = (value, stored)
        return value

    def take_changes(self, version: int) -> Column:
        for key, (value, stored) in self._borrowed.items():
            if key not in self.written and self._encode(value) != stored:
                self.written[key] = value
        keys = self._scheme.storage_keys(list(self.written))
        return column_of(keys, self._encoded_values())

    def _encoded_values(self) -> Sequence[bytes | None]:
        """Return the written values, encoded; None is a removal."""
        values = self.written.values()
        if type(None) not in set(map(type, values)):
            with suppress(Exception):  # again below: errors name the key
                return encode_all(self._encode, values)
        return [None if value is None else self._encoded(key, value) for key, value in self.written.items()]

    def settle(self, cache_entries: int) -> None:
        self._keep_ahead()
        if len(self._read) + len(self.written) > cache_entries:
            self._read.clear()
        elif is_all_atoms(map(type, self.written.values())):
            self._read.update(self.written)
        else:
            for key, value in self.written.items():
                if is_immutable(value):
                    self._read[key] = value
                else:
                    self._read.pop(key, None)
        self.written.clear()
        self._borrowed.clear()

    def values(self) -> Iterator[Any]:
        """Yield every value of the subtask in storage order, changes of this epoch included."""
        return (value for _, value in self.items())

    def items(self) -> Iterator[tuple[bytes, Any]]:
        """Yield every storage key of the subtask in order, with its value, changes of this epoch included."""
        stored = self._store.scan(self._name) if self._store is not None else ()
        written_keys = self._scheme.storage_keys(list(self.written))
        written = dict(zip(written_keys, self.written.values(), strict=True))
        # What is stored may be more than memory holds; what this epoch wrote is not.
        kept = ((key, self._decode(value)) for key, value in stored if key not in written)
        for key, value in merge(kept, sorted(written.items(), key=_first), key=_first):
            if value is not None:
                yield key, value


class ListTable(StoredTable):
    """A list per key, stored in chunks: what an epoch appends is a chunk of its own, so appending never reads."""

    def __init__(self, name: str, current: CurrentKey, scheme: KeyScheme, type_info: Any) -> None:
        # Elements of a chunk are encoded together, which is why their type does not matter here.
        super().__init__(name, current, scheme, None)
        #: Elements appended to lists that were not read yet.
        self._appended: dict[Any, list[Any]] = {}
        #: Whole lists, with the storage keys and values of the chunks they came from.
        self._whole: dict[Any, tuple[list[Any], dict[bytes, bytes]]] = {}
        #: Chunks of lists that `take_all` has taken.
        self._taken: set[bytes] = set()

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._forget()

    def _forget(self) -> None:
        self._appended.clear()
        self._whole.clear()
        self._taken.clear()

    def take_all(self) -> Iterator[list[Any]]:
        """Yield the list of every key in storage order, and remove it; for lists that were not read."""
        return (elements for _, elements in self.take_items())

    def take_items(self) -> Iterator[tuple[bytes, list[Any]]]:
        """As `take_all`, with what the storage keys of each list begin with."""
        added = {self._scheme.prefix(key): elements for key, elements in self._appended.items()}
        self._appended.clear()
        stored = self._store.scan(self._name) if self._store is not None else ()
        kept = ((key[: -entries.VERSION_SIZE], key, value) for key, value in stored if key not in self._taken)
        # After the chunks of its key, as what was appended last.
        rest = ((prefix, _BEHIND_CHUNKS, None) for prefix in sorted(added))
        for prefix, chunks in groupby(merge(kept, rest, key=itemgetter(0, 1)), key=_first):
            elements: list[Any] = []
            for _, key, chunk in chunks:
                if chunk is None:
                    elements += added.pop(prefix)
                else:
                    self._taken.add(key)
                    elements += self._decode(chunk)
            yield prefix, elements

    def add_all(self, values: Iterable[Any]) -> None:
        """Append to the current key's list."""
        key = self._current.key
        whole = self._whole.get(key)
        if whole is not None:
            whole[0].extend(values)
        else:
            self._appended.setdefault(key, []).extend(values)

    def read(self) -> list[Any]:
        """Return the current key's list itself."""
        return self._load(self._current.key)[0]

    def replace(self, values: list[Any]) -> None:
        """Put another list in place."""
        chunks = self._load(self._current.key)[1]
        self._whole[self._current.key] = (values, chunks)

    def _load(self, key: Any) -> tuple[list[Any], dict[bytes, bytes]]:
        whole = self._whole.get(key)
        if whole is None:
            prefix = self._scheme.prefix(key)
            chunks = dict(self._store.scan(self._name, prefix)) if self._store is not None else {}
            elements = [element for chunk in chunks.values() for element in self._decode(chunk)]
            elements += self._appended.pop(key, ())
            whole = self._whole[key] = (elements, chunks)
        return whole

    def take_changes(self, version: int) -> Column:
        changed: dict[bytes, bytes | None] = dict.fromkeys(self._taken)
        for key, added in self._appended.items():
            changed[entries.chunk_key(self._scheme.prefix(key), version)] = self._encoded(key, added)
        for key, (elements, chunks) in self._whole.items():
            encoded = self._encoded(key, elements) if elements else None
            if encoded is None:
                changed.update(dict.fromkeys(chunks))
            elif len(chunks) != 1 or next(iter(chunks.values())) != encoded:
                changed.update(dict.fromkeys(chunks))
                changed[entries.chunk_key(self._scheme.prefix(key), version)] = encoded
        return column_of(list(changed), list(changed.values()))

    def settle(self, cache_entries: int) -> None:
        self._forget()


class _OpenMap:
    """What is known of one key's map in this epoch."""

    __slots__ = ("borrowed", "is_complete", "known", "removed", "written")

    def __init__(self) -> None:
        #: Entries as they are now, as far as read or written; sorted only when iterated.
        self.known: dict[Any, Any] = {}
        self.written: set[Any] = set()
        self.removed: dict[Any, None] = {}
        self.borrowed: dict[Any, bytes] = {}
        #: Whether all stored entries have been read.
        self.is_complete = False


class MapTable(StoredTable):
    """A map per key, an entry at a time: a large map costs what is touched of it.

    Iteration is in the order of the encoded map keys (numbers and strings ascending), in every epoch the same.
    """

    def __init__(self, name: str, current: CurrentKey, scheme: KeyScheme, type_info: Any) -> None:
        super().__init__(name, current, scheme, type_info)
        self._open: dict[Any, _OpenMap] = {}

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._fetch = store.reader(self._name)
        self._open.clear()

    def get(self, map_key: Any) -> Any:
        opened = self._opened()
        if map_key in opened.known:
            return opened.known[map_key]
        if opened.is_complete or map_key in opened.removed:
            return None
        stored = self._fetch(entries.map_key(self._scheme.prefix(self._current.key), map_key))
        if stored is None:
            return None
        return self._remember(opened, map_key, entries.unpack_map_value(stored))

    def contains(self, map_key: Any) -> bool:
        """Whether the current key's map has the entry, also one whose value is None."""
        return self.get(map_key) is not None or map_key in self._opened().known

    def put(self, map_key: Any, value: Any) -> None:
        opened = self._opened()
        opened.known[map_key] = value
        opened.written.add(map_key)
        opened.removed.pop(map_key, None)

    def remove(self, map_key: Any) -> None:
        opened = self._opened()
        opened.known.pop(map_key, None)
        opened.written.discard(map_key)
        opened.borrowed.pop(map_key, None)
        opened.removed[map_key] = None

    def clear(self) -> None:
        for map_key in list(self.complete()):
            self.remove(map_key)

    def complete(self) -> dict[Any, Any]:
        """Return all entries of the current key, in order."""
        opened = self._opened()
        if not opened.is_complete:
            prefix = self._scheme.prefix(self._current.key)
            for _, stored in self._store.scan(self._name, prefix) if self._store is not None else ():
                map_key, value = entries.unpack_map_entry(stored)
                if map_key not in opened.known and map_key not in opened.removed:
                    self._remember(opened, map_key, value)
            opened.is_complete = True
        ordered = sorted(opened.known, key=encode_key)
        return {map_key: opened.known[map_key] for map_key in ordered}

    def _opened(self) -> _OpenMap:
        key = self._current.key
        opened = self._open.get(key)
        if opened is None:
            opened = self._open[key] = _OpenMap()
        return opened

    def _remember(self, opened: _OpenMap, map_key: Any, stored: bytes) -> Any:
        value = self._decode(stored)
        opened.known[map_key] = value
        if not is_immutable(value):
            opened.borrowed[map_key] = stored
        return value

    def take_changes(self, version: int) -> Column:
        changed: dict[bytes, bytes | None] = {}
        for key, opened in self._open.items():
            prefix = self._scheme.prefix(key)
            for map_key, stored in opened.borrowed.items():
                if map_key not in opened.written and self._encode(opened.known[map_key]) != stored:
                    opened.written.add(map_key)
            for map_key in opened.written:
                value = self._encoded(key, opened.known[map_key])
                storage_key = entries.map_key(prefix, map_key)
                changed[storage_key] = entries.pack_map_entry(map_key, value)
            for map_key in opened.removed:
                changed[entries.map_key(prefix, map_key)] = None
        return column_of(list(changed), list(changed.values()))

    def settle(self, cache_entries: int) -> None:
        self._open.clear()
