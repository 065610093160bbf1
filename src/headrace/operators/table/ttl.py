"""Time to live of rows in columnar state: when they were last written, and which have expired."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

#: When a row was written, ms; only where state has a time to live.
WRITTEN = ColumnType("written_ms", pa.int64())
#: Slots looked at in an epoch, at least.
_SWEEP = 4_096


class RowTimeToLive:
    """The rule of one table.

    Args:
        ttl_ms: How long rows stay after they were written; 0: forever.
    """

    def __init__(self, ttl_ms: int) -> None:
        self._ttl_ms = ttl_ms

    def __bool__(self) -> bool:
        return self._ttl_ms > 0

    @property
    def columns(self) -> tuple[ColumnType, ...]:
        """What a table needs for it."""
        return (WRITTEN,) if self else ()

    def stamps(self, count: int, now_ms: int) -> dict[str, pa.Array]:
        """Return the columns of rows that are written now."""
        return {WRITTEN.name: pa.array(np.full(count, now_ms, np.int64))} if self else {}

    def alive(self, table: SlotTable, slots: Ints, now_ms: int) -> Ints:
        """Return slots with -1 for those whose time is over."""
        if not self or not len(slots):
            return slots
        found = slots >= 0
        left = slots.copy()
        left[found] = np.where(self._ended(table, slots[found], now_ms), -1, slots[found])
        return left

    def sweep(self, table: SlotTable, now_ms: int) -> RowSet | None:
        """Return rows to remove because their time is over: of a part of the table, another one every time."""
        if not self or not table.slots:
            return None
        count = min(table.slots, max(_SWEEP, table.slots // 64))
        start = now_ms * 2_654_435_761 % table.slots
        live = table.live_among(np.arange(start, start + count) % table.slots)
        ended = live[self._ended(table, live, now_ms)]
        if not len(ended):
            return None
        rows = table.rows(ended)
        return RowSet(rows.keys, rows.owners, np.ones(len(ended), np.bool_), rows.columns, rows.types)

    def _ended(self, table: SlotTable, slots: Ints, now_ms: int) -> Bools:
        written = table.cells(WRITTEN.name, slots).values
        assert written is not None
        ended: Bools = written.view(np.int64) + self._ttl_ms <= now_ms
        return ended
