"""Timers as keyed state: what was asked for, and in which order it falls due.

    storage key   group | time | length, key | length, namespace        value: key and namespace, pickled

Time comes right after the group, so the timers that are due are the first ones of each group: a million open timers
cost nothing until they are. Timers registered in the epoch at work wait in memory, by time.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, NamedTuple

from headrace.common.plain_pickle import Loads
from headrace.state.changes import KEY_GROUP_BYTES, KEY_GROUP_PREFIX, Column, column_of
from headrace.state.entries import group_prefix, with_length
from headrace.state.keys import encode_key, shorten
from headrace.state.stores.base import LocalStore

#: Sign flip: signed times sort as their big-endian bytes do.
_SIGN = 1 << 63
_LAST_TIME = _SIGN - 1
_time_bytes = struct.Struct(">Q")
_KEY_LIMIT = 200
_NAMESPACE_LIMIT = 60


class Timer(NamedTuple):
    """A call that was asked for."""

    timestamp: int
    key: Any
    namespace: Any


class TimerTable:
    """The timers of one operator subtask in one time domain. A timer exists once, however often it was asked for."""

    def __init__(
        self, name: str, groups: range, max_parallelism: int, encode_namespace: Callable[[Any], bytes]
    ) -> None:
        self._name = name
        self._groups = groups
        self._max_parallelism = max_parallelism
        self._encode_namespace = encode_namespace
        self._store: LocalStore | None = None
        self._forget()

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._forget()

    def register(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Register a timer; registering the same one again has no effect."""
        at_time = self._waiting.get(timestamp)
        if at_time is None:
            at_time = self._waiting[timestamp] = {}
            heappush(self._times, timestamp)
        if (key, namespace) not in at_time:
            at_time[key, namespace] = None
            self._deleted.pop(Timer(timestamp, key, namespace), None)

    def delete(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Take a request back; one that was never made is fine."""
        at_time = self._waiting.get(timestamp)
        if at_time is not None:
            at_time.pop((key, namespace), None)
        self._deleted[Timer(timestamp, key, namespace)] = None

    def next_time(self) -> int | None:
        """Return when the next timer falls due."""
        return self._earliest(min(self._firsts(self._first_not_deleted), default=None))

    def _earliest(self, stored: int | None) -> int | None:
        """Return the earlier one: the first in memory, or a stored one."""
        while self._times and not self._waiting.get(self._times[0]):
            self._waiting.pop(heappop(self._times), None)
        if not self._times:
            return stored
        return self._times[0] if stored is None else min(stored, self._times[0])

    def due(self, until: int) -> Iterator[Timer]:
        """Yield the timers up to a time, in order, also those that are registered meanwhile; each counts as done."""
        while True:
            # A stored timer that was deleted since may be among them: loading finds out.
            time = self._earliest(self._next_stored())
            if time is None or time > until:
                return
            self._load(until)
            at_time = self._waiting.get(time, {})
            for key, namespace in self._in_order(at_time):
                # An earlier call of the same moment may have deleted it.
                if at_time.pop((key, namespace), _ABSENT) is not _ABSENT:
                    self._deleted[Timer(time, key, namespace)] = None
                    yield Timer(time, key, namespace)
                if self._times and self._times[0] < time:
                    break  # a call has asked for an earlier moment, which comes first

    def take_changes(self, version: int) -> Column:
        changed: dict[bytes, bytes | None] = {}
        for timer in self._deleted:
            storage_key = self._storage_key(timer)
            # What was registered and is done within one epoch never was in the store.
            if self._store is not None and self._store.get(self._name, storage_key) is not None:
                changed[storage_key] = None
        for timestamp, at_time in self._waiting.items():
            for (key, namespace), stored in at_time.items():
                if stored is None:
                    value = pickle.dumps((key, namespace), protocol=5)
                    changed[self._storage_key(Timer(timestamp, key, namespace))] = value
        return column_of(list(changed), list(changed.values()))

    def settle(self, cache_entries: int) -> None:
        self._forget()

    def _forget(self) -> None:
        #: Timers in memory by time; the value is True where the store has it as well.
        self._waiting: dict[int, dict[tuple[Any, Any], bool | None]] = {}
        #: The times of these, as a heap; a time may be left over when its timers were deleted.
        self._times: list[int] = []
        #: Timers that were fired or deleted in this epoch.
        self._deleted: dict[Timer, None] = {}
        #: Up to which time stored timers are in memory.
        self._loaded_until = -_SIGN - 1
        self._stored_next: int | None = None
        self._is_stored_next_known = False

    def _next_stored(self) -> int | None:
        if not self._is_stored_next_known:
            self._is_stored_next_known = True
            self._stored_next = min(self._firsts(self._first_stored), default=None)
        return self._stored_next

    def _firsts(self, first_of: Callable[[Iterator[tuple[bytes, bytes]]], int | None]) -> Iterator[int]:
        """Yield the earliest time of each group that is not in memory yet."""
        if self._store is None or self._loaded_until >= _LAST_TIME:
            return
        start = _time_bytes.pack(self._loaded_until + 1 + _SIGN)
        for group in self._groups:
            prefix = KEY_GROUP_PREFIX[group]
            first = first_of(self._store.scan(self._name, prefix, prefix + start))
            if first is not None:
                yield first

    def _first_stored(self, entries: Iterator[tuple[bytes, bytes]]) -> int | None:
        return next((_time_of(storage_key) for storage_key, _ in entries), None)

    def _first_not_deleted(self, entries: Iterator[tuple[bytes, bytes]]) -> int | None:
        if not self._deleted:
            return self._first_stored(entries)
        for storage_key, value in entries:
            timer = Timer(_time_of(storage_key), *pickle.loads(value))
            if timer not in self._deleted:
                return timer.timestamp
        return None

    def _load(self, until: int) -> None:
        """Bring the stored timers up to a time into memory."""
        stored_next = self._next_stored()
        if stored_next is None or stored_next > until or self._store is None:
            return
        start = _time_bytes.pack(self._loaded_until + 1 + _SIGN)
        for group in self._groups:
            prefix = KEY_GROUP_PREFIX[group]
            for storage_key, value in self._store.scan(self._name, prefix, prefix + start):
                timestamp = _time_of(storage_key)
                if timestamp > until:
                    break
                self._take_in(timestamp, *pickle.loads(value))
        self._loaded_until = until
        self._is_stored_next_known = False

    def _take_in(self, timestamp: int, key: Any, namespace: Any) -> None:
        if Timer(timestamp, key, namespace) in self._deleted:
            return
        if timestamp not in self._waiting:
            self._waiting[timestamp] = {}
            heappush(self._times, timestamp)
        self._waiting[timestamp][key, namespace] = True

    def _in_order(self, at_time: dict[tuple[Any, Any], bool | None]) -> list[tuple[Any, Any]]:
        """Return what falls due at one moment so that a key's timers come in the same order wherever epochs end."""
        if len({namespace for _, namespace in at_time}) == 1:
            return list(at_time)
        return sorted(at_time, key=lambda timer: self._encode_namespace(timer[1]))

    def _storage_key(self, timer: Timer) -> bytes:
        encoded = encode_key(timer.key)
        return b"".join(
            (
                group_prefix(encoded, self._max_parallelism),
                _time_bytes.pack(timer.timestamp + _SIGN),
                with_length(shorten(encoded, _KEY_LIMIT)),
                with_length(shorten(self._encode_namespace(timer.namespace), _NAMESPACE_LIMIT)),
            )
        )


_ABSENT = object()


def _time_of(storage_key: bytes) -> int:
    (flipped,) = _time_bytes.unpack_from(storage_key, KEY_GROUP_BYTES)
    return int(flipped) - _SIGN


def timer_of(storage_key: bytes, value: bytes, loads: Loads = pickle.loads) -> Timer:
    """Return the timer that an entry stands for."""
    return Timer(_time_of(storage_key), *loads(value))
