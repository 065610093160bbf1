"""What lookups of external tables have in common: a cache of what was found, as Flink's `lookup.partial-cache.*`."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.time import Duration, as_millis
from headrace.errors import JobDefinitionError


@dataclass(frozen=True)
class LookupCacheOptions:
    """How much a lookup remembers, and for how long.

    Args:
        max_rows: Rows kept at most; those that were not asked for the longest go first. 0: nothing is kept.
        expire_after_write: How long something is kept after it was looked up; None: as long as there is room.
        expire_after_access: How long something is kept after it was last asked for.
        cache_missing_key: Whether the cache also remembers keys without rows.

    Raises:
        JobDefinitionError: A number is negative.
    """

    max_rows: int = 10_000
    expire_after_write: Duration | None = None
    expire_after_access: Duration | None = None
    cache_missing_key: bool = True

    def __post_init__(self) -> None:
        spans = [each for each in (self.expire_after_write, self.expire_after_access) if each is not None]
        if self.max_rows < 0 or any(as_millis(each) <= 0 for each in spans):
            raise JobDefinitionError(
                f"LookupCacheOptions: max rows must not be negative, and times must be greater than 0; got {self}"
            )


@dataclass
class _Entry:
    rows: Sequence[Any]
    written: float
    used: float


class LookupCache:
    """Remembers what was found under a key. Belongs to one worker, and is empty after a restart.

    Args:
        options: How much, and for how long.
        clock: Seconds.
    """

    def __init__(self, options: LookupCacheOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        #: Lookups that are awaited run in threads.
        self._lock = threading.Lock()
        #: The one that was not asked for the longest comes first.
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._rows = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Sequence[Any] | None:
        """Return what is remembered; None if nothing is."""
        with self._lock:
            entry = self._entries.get(key)
            now = self._clock()
            if entry is None or self._is_over(entry, now):
                self._forget(key)
                self.misses += 1
                return None
            entry.used = now
            self._entries.move_to_end(key)
            self.hits += 1
            return entry.rows

    def put(self, key: Hashable, rows: Sequence[Any]) -> None:
        """Remember what was found."""
        weight = _weight(rows)
        with self._lock:
            self._forget(key)
            if weight > self._options.max_rows or not (rows or self._options.cache_missing_key):
                return
            now = self._clock()
            self._entries[key] = _Entry(rows, now, now)
            self._rows += weight
            while self._rows > self._options.max_rows:
                self._forget(next(iter(self._entries)))

    def _forget(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._rows -= _weight(entry.rows)

    def _is_over(self, entry: _Entry, now: float) -> bool:
        write, access = self._options.expire_after_write, self._options.expire_after_access
        return (write is not None and now - entry.written >= as_millis(write) / 1000) or (
            access is not None and now - entry.used >= as_millis(access) / 1000
        )


def _weight(rows: Sequence[Any]) -> int:
    """Return how many rows an entry counts as; a missing key counts as one."""
    return max(1, len(rows))
