"""Rows that wait in state until the watermark has passed them; rows that arrive behind it are late and dropped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochTime,
    InputSpec,
    hashes_of,
    numbers,
    quote,
)
from headrace.operators.table.timed_rows import TimedRows, TimedTable, arrival_order, joined_rows
from headrace.state.columnar.slots import SlotTable
from headrace.state.row_sets import RowSet

__all__ = ["WaitingRows"]


class WaitingRows(TimedTable):
    """A table of rows that wait.

    Args:
        name: Its name.
        types: The columns of its rows.
        time: The BIGINT column with event time in ms; None: by the clock rows do not wait.
    """

    def __init__(self, name: str, types: Mapping[str, pa.DataType], time: str | None) -> None:
        super().__init__(name, list(types.values()))
        self._row_names = list(types)
        self._time = time

    def input(self, keys: tuple[str, ...]) -> InputSpec:
        """Return the operator's one input: rows with their order, and without those that have no time."""
        where = None if self._time is None else f"{quote(self._time)} IS NOT NULL"
        return InputSpec(side=0, source=0, keys=keys, items=(WITH_SEQUENCE,), where=where)

    def read(self, rows: pa.Table | None, time: EpochTime) -> TimedRows:
        """Return the rows of the epoch, in the order in which they came."""
        if rows is None or not rows.num_rows:
            return self.none()
        rows = rows.sort_by(SEQUENCE)
        times = np.full(rows.num_rows, time.now_ms, np.int64)
        if self._time is not None:
            times = numbers(rows, self._time)
        order = arrival_order(time.epoch, rows.num_rows)
        columns = [rows.column(name).combine_chunks() for name in self._row_names]
        return TimedRows(columns, hashes_of(rows), times, order)

    def fresh(self, rows: pa.Table | None, time: EpochTime) -> tuple[TimedRows, int]:
        """Return the rows of the epoch that are not late, in the order in which they came, and how many are late."""
        made = self.read(rows, time)
        if self._time is None:
            return made, 0
        is_late = made.times <= time.before
        late = int(is_late.sum())
        return (made.take(~is_late) if late else made), late

    def due(
        self, fresh: TimedRows, table: SlotTable, time: EpochTime, changes: list[tuple[str, RowSet]]
    ) -> TimedRows:
        """Return the rows that the watermark has passed; note what happens to those that wait."""
        is_due = fresh.times <= time.after
        if not is_due.all():
            changes.append((self.name, self.written(fresh.take(~is_due))))
        live = table.live
        slots = live[self.times(table, live) <= time.after]
        if not len(slots):
            return fresh.take(is_due)
        changes.append((self.name, self.removed(table, slots)))
        return joined_rows(self.rows_at(table, slots), fresh.take(is_due))
