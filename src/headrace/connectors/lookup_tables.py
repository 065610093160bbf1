"""Tables that a query looks rows up in, as its own rows come: Flink's options, caches, retries, calls side by side.

    keys of a batch -> the cache of this process -> the connector, for those that it does not know -> rows of each key

A worker process keeps what it has looked up from epoch to epoch.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from headrace.common.time import Duration
from headrace.config.table_options import TableOptions
from headrace.connectors.lookup import LookupCache, LookupCacheOptions
from headrace.errors import ConnectorError

__all__ = ["CacheKind", "LookupOptions", "LookupRetry", "LookupSettings", "TableLookup", "lookup_options"]

Key = tuple[Any, ...]
Rows = Sequence[Sequence[Any]]

_DAY: Final = datetime.timedelta(days=1)
#: Tables whose caches a process keeps at most.
_KEPT: Final = 64


class CacheKind(Enum):
    """What is remembered of a table."""

    NONE = "NONE"
    #: What was asked for.
    PARTIAL = "PARTIAL"
    #: All of it, read as a whole.
    FULL = "FULL"


@dataclass(frozen=True)
class LookupOptions:
    """What `lookup.*` says in the options of a table.

    Args:
        cache: What is remembered.
        partial: How much, and for how long, of what was asked for.
        reload_every: How old the whole table may be; None: it is read once.
        reload_at: The time of the day at which it is read again, in UTC; None: at any.
        reload_from_start: Whether its age counts from when reading began, not from when it ended.
        max_retries: How often a question is asked again when the connector fails.
        is_async: Whether keys are asked for side by side.
    """

    cache: CacheKind = CacheKind.NONE
    partial: LookupCacheOptions = field(default_factory=LookupCacheOptions)
    reload_every: datetime.timedelta | None = None
    reload_at: datetime.time | None = None
    reload_from_start: bool = False
    max_retries: int = 3
    is_async: bool = False


def lookup_options(options: TableOptions, default: CacheKind = CacheKind.NONE) -> LookupOptions:
    """Read Flink's options of lookup tables.

    Args:
        options: The options.
        default: What is remembered if they do not say it. Where that is all of the table, it is read once.

    Raises:
        SqlValidationError: One has another value than it may have, or they contradict each other.
    """
    text = (options.text("lookup.cache") or default.value).upper()
    if text not in CacheKind.__members__:
        raise options.wrong("lookup.cache", "NONE, PARTIAL or FULL")
    cache = CacheKind[text]
    rows = options.integer("lookup.partial-cache.max-rows")
    written = options.duration("lookup.partial-cache.expire-after-write")
    used = options.duration("lookup.partial-cache.expire-after-access")
    missing = options.boolean("lookup.partial-cache.cache-missing-key", default=True)
    if cache is CacheKind.PARTIAL and rows is None and written is None and used is None:
        raise options.error(
            "'lookup.cache' = 'PARTIAL' needs a bound",
            hint="set 'lookup.partial-cache.max-rows' or 'lookup.partial-cache.expire-after-write'",
        )
    every, at, from_start = _reload(options)
    if cache is CacheKind.FULL and every is None and default is not CacheKind.FULL:
        raise options.error(
            "'lookup.cache' = 'FULL' does not say when the table is read again",
            hint="set 'lookup.full-cache.periodic-reload.interval' = '1 h'",
        )
    retries = options.integer("lookup.max-retries")
    return LookupOptions(
        cache,
        LookupCacheOptions(2**62 if rows is None else rows, _span(written), _span(used), missing),
        every,
        at,
        from_start,
        3 if retries is None else retries,
        options.boolean("lookup.async", default=False),
    )


def _span(given: datetime.timedelta | None) -> Duration | None:
    return None if given is None else Duration.of_millis(given // datetime.timedelta(milliseconds=1))


def _reload(options: TableOptions) -> tuple[datetime.timedelta | None, datetime.time | None, bool]:
    """Return how often a table is read again as a whole, and at what time of the day."""
    strategy = (options.text("lookup.full-cache.reload-strategy") or "PERIODIC").upper()
    interval = options.duration("lookup.full-cache.periodic-reload.interval")
    mode = (options.text("lookup.full-cache.periodic-reload.schedule-mode") or "FIXED_DELAY").upper()
    clock = options.text("lookup.full-cache.timed-reload.iso-time")
    days = options.integer("lookup.full-cache.timed-reload.interval-in-days")
    if strategy not in ("PERIODIC", "TIMED"):
        raise options.wrong("lookup.full-cache.reload-strategy", "PERIODIC or TIMED")
    if mode not in ("FIXED_DELAY", "FIXED_RATE"):
        raise options.wrong("lookup.full-cache.periodic-reload.schedule-mode", "FIXED_DELAY or FIXED_RATE")
    if strategy == "PERIODIC":
        return interval, None, mode == "FIXED_RATE"
    if clock is None:
        raise options.error(
            "TIMED reloads need a time of the day",
            hint="set 'lookup.full-cache.timed-reload.iso-time' = '10:15Z'",
        )
    try:
        at = datetime.time.fromisoformat(clock)
    except ValueError as wrong:
        raise options.wrong("lookup.full-cache.timed-reload.iso-time", "a time such as '10:15Z'") from wrong
    return (days or 1) * _DAY, at, False


@dataclass(frozen=True)
class LookupRetry:
    """What the hint LOOKUP says about keys under which nothing is found: they are asked for again."""

    delay: datetime.timedelta = datetime.timedelta(0)
    #: How often they are asked for in all.
    attempts: int = 1


@dataclass(frozen=True)
class LookupSettings:
    """How keys are asked for side by side, by `table.exec.async-lookup.*` or the hint LOOKUP."""

    capacity: int = 100
    timeout: datetime.timedelta = datetime.timedelta(minutes=3)


@dataclass(frozen=True)
class TableLookup:
    """A table that rows are looked up in; pickled to workers.

    Args:
        name: What messages call the table.
        options: Its options.
        ask: Returns the rows under a key; None if the connector can only read the whole table.
        read_all: Returns all rows; None if the connector cannot.
        keys: Where in a row the columns of the key are.
    """

    name: str
    options: LookupOptions
    ask: Callable[..., Rows] | None
    read_all: Callable[[], Iterable[Sequence[Any]]] | None
    keys: tuple[int, ...]

    def kept(self, token: str) -> KeptLookup:
        """Return the state of this table in this process."""
        with _lock:
            found = _kept.get(token)
            if found is None:
                found = _kept[token] = KeptLookup(self)
                while len(_kept) > _KEPT:
                    _kept.popitem(last=False)
            return found


_lock = threading.Lock()
_kept: OrderedDict[str, KeptLookup] = OrderedDict()


class KeptLookup:
    """What a process knows about a table.

    Args:
        table: The table.
        clock: Seconds.
        sleep: Waits.
    """

    def __init__(
        self,
        table: TableLookup,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = table
        self._clock = clock
        self._sleep = sleep
        is_partial = table.options.cache is CacheKind.PARTIAL
        self._cache = LookupCache(table.options.partial, clock) if is_partial else None
        self._full: dict[Key, list[Sequence[Any]]] = {}
        self._due = float("-inf")

    def find(self, keys: Sequence[Key], retry: LookupRetry, settings: LookupSettings | None) -> list[Rows]:
        """Return the rows under each key; none under one with None in it.

        Args:
            keys: The keys.
            retry: How often they are asked for if nothing is found.
            settings: How they are asked for side by side; None: one after the other.

        Raises:
            ConnectorError: The connector failed, or did not answer in time.
        """
        wanted = list(dict.fromkeys(key for key in keys if None not in key))
        if settings is None or self._table.options.cache is CacheKind.FULL:
            found = {key: self._one(key, retry) for key in wanted}
        else:
            found = self._side_by_side(wanted, retry, settings)
        return [found.get(key, ()) for key in keys]

    def _side_by_side(
        self, keys: Sequence[Key], retry: LookupRetry, settings: LookupSettings
    ) -> dict[Key, Rows]:
        with ThreadPoolExecutor(settings.capacity) as pool:
            asked = {key: pool.submit(self._one, key, retry) for key in keys}
            try:
                seconds = settings.timeout.total_seconds()
                return {key: answer.result(seconds) for key, answer in asked.items()}
            except LateError as error:
                pool.shutdown(wait=False, cancel_futures=True)
                raise ConnectorError(
                    f"table {self._table.name!r} did not answer a lookup within {settings.timeout}",
                    hint="raise table.exec.async-lookup.timeout, or the 'timeout' of the hint LOOKUP",
                ) from error

    def _one(self, key: Key, retry: LookupRetry) -> Rows:
        rows = self._known(key)
        for _ in range(retry.attempts - 1):
            if rows:
                break
            self._sleep(retry.delay.total_seconds())
            rows = self._asked(key)
        return rows

    def _known(self, key: Key) -> Rows:
        if self._table.options.cache is CacheKind.FULL:
            return self._all().get(key, ())
        found = None if self._cache is None else self._cache.get(key)
        return self._asked(key) if found is None else found

    def _asked(self, key: Key) -> Rows:
        if self._table.options.cache is CacheKind.FULL:
            return self._all().get(key, ())
        assert self._table.ask is not None
        rows = self._table.ask(*key)
        if self._cache is not None:
            self._cache.put(key, rows)
        return rows

    # -- the whole table -----------------------------------------------------------------------------------------

    def _all(self) -> dict[Key, list[Sequence[Any]]]:
        """Return all rows by key; read again if they are too old."""
        now = self._clock()
        if now >= self._due:
            table = self._table
            assert table.read_all is not None
            full: dict[Key, list[Sequence[Any]]] = defaultdict(list)
            for row in table.read_all():
                full[tuple(row[at] for at in table.keys)].append(row)
            self._full = dict(full)
            self._due = self._next(now if table.options.reload_from_start else self._clock())
        return self._full

    def _next(self, now: float) -> float:
        """Return when the table must be read again."""
        options = self._table.options
        if options.reload_every is None:
            return float("inf")
        if options.reload_at is None:
            return now + options.reload_every.total_seconds()
        zone = options.reload_at.tzinfo or datetime.UTC
        moment = datetime.datetime.fromtimestamp(now, zone)
        due = datetime.datetime.combine(moment.date(), options.reload_at.replace(tzinfo=None), zone)
        if due <= moment:
            due += options.reload_every
        return due.timestamp()
