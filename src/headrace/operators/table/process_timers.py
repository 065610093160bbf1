"""Timers of process table functions: by name, or by time; they fire when the watermark has passed them.

A timer is a row of state, found by its key and its name; timers that an epoch sets or clears are buffered until they
are written to the table.
"""

from __future__ import annotations

import hashlib
import heapq
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import read_columns, written_rows
from headrace.operators.table.process_state import Key
from headrace.operators.table.timed_rows import int_cells
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

__all__ = ["TIMERS", "ProcessTimer", "Timers"]

_TIME, _NAME, _KEY = "time", "name", "key"
#: The table of timers.
TIMERS = TableLayout(
    "timers",
    (
        ColumnType(_TIME, pa.int64()),
        ColumnType(_NAME, pa.string(), is_key=True),
        ColumnType(_KEY, pa.binary(), is_key=True),
    ),
    has_owners=True,
    key_words=KEY_WORDS + 2,
)
#: Both numbers of the key, and both of the timer.
_Id = tuple[int, int, int, int]


@dataclass(frozen=True)
class ProcessTimer:
    """A timer of a key."""

    owner: Key
    #: The values of the key.
    key: tuple[Any, ...]
    name: str | None
    time_ms: int

    @property
    def id(self) -> _Id:
        """What it is found by."""
        return (*self.owner, *_numbers(self.name, self.time_ms))


class Timers:
    """The timers of a subtask during an epoch."""

    def __init__(self, table: SlotTable) -> None:
        self._table = table
        #: What the epoch made of timers; None: gone.
        self._changed: dict[_Id, ProcessTimer | None] = {}
        self._due: list[tuple[int, int, ProcessTimer]] = []
        self._until: int | None = None
        self._pushed = 0

    def register(self, timer: ProcessTimer) -> None:
        """Set a timer; one of the same name is replaced."""
        self._changed[timer.id] = timer
        self._push(timer)

    def clear(self, owner: Key, name: str | None, time_ms: int | None) -> None:
        self._changed[(*owner, *_numbers(name, time_ms or 0))] = None

    def clear_all(self, owner: Key) -> None:
        """Remove all timers of a key."""
        for each in self._stored(self._table.members(np.array([owner], np.int64))[1]):
            self._changed[each.id] = None
        for found in [id_ for id_ in self._changed if id_[:KEY_WORDS] == owner]:
            self._changed[found] = None

    def fire(self, until: int) -> Iterator[ProcessTimer]:
        """Give timers that are due one after the other, also those that are set meanwhile; each is gone as it fires."""
        live = self._table.live
        slots = live[int_cells(self._table, _TIME, live) <= until]
        self._until = until
        for each in self._stored(slots):
            if each.id not in self._changed:
                self._changed[each.id] = each
        for timer in list(self._changed.values()):
            if timer is not None:
                self._push(timer)
        while self._due:
            _, _, timer = heapq.heappop(self._due)
            if self._changed.get(timer.id) == timer:
                self._changed[timer.id] = None
                yield timer

    def changes(self) -> RowSet | None:
        """Return what to write."""
        if not self._changed:
            return None
        ids = np.array(list(self._changed), np.int64).reshape(len(self._changed), TIMERS.key_words)
        timers = list(self._changed.values())
        columns: Mapping[str, pa.Array] = {
            _TIME: pa.array([each and each.time_ms for each in timers], pa.int64()),
            _NAME: pa.array([each and each.name for each in timers], pa.string()),
            _KEY: pa.array([each and pickle.dumps(each.key, protocol=5) for each in timers], pa.binary()),
        }
        gone = np.array([each is None for each in timers], np.bool_)
        return written_rows(TIMERS, ids, columns, owners=ids[:, :KEY_WORDS].copy(), removed=gone)

    def _push(self, timer: ProcessTimer) -> None:
        if self._until is not None and timer.time_ms <= self._until:
            self._pushed += 1
            heapq.heappush(self._due, (timer.time_ms, self._pushed, timer))

    def _stored(self, slots: Ints) -> list[ProcessTimer]:
        columns = read_columns(self._table, slots, [_TIME, _NAME, _KEY])
        owners = self._table.owners_at(slots).tolist()
        rows = zip(*(columns[name].to_pylist() for name in (_TIME, _NAME, _KEY)), strict=True)
        return [
            ProcessTimer((one, other), pickle.loads(key), name, time)
            for (one, other), (time, name, key) in zip(owners, rows, strict=True)
        ]


def _numbers(name: str | None, time_ms: int) -> tuple[int, int]:
    """Return what tells timers of a key apart: the name, or the time of those without."""
    text = f"time {time_ms}" if name is None else f"name {name}"
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], signed=True), int.from_bytes(digest[8:], signed=True)
