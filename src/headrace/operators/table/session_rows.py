"""Rows in their SESSION windows: each row is emitted with its session when the session is over.

The last row of a session decides its end. So rows wait in state until the watermark has passed the end of their
session; then all of them are emitted, in arrival order, as in Flink. In processing time, all rows of an epoch have the
same time, and the clock ends sessions.

    time     1  2     5            20       gap 3: 1, 2 and 5 are one session, [1, 8); 20 is another, [20, 23)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import EpochOutput, EpochTime
from headrace.operators.table.changelog import changes_table, empty_changes
from headrace.operators.table.kept_rows import numbered
from headrace.operators.table.steps import Schema
from headrace.operators.table.timed_declarations import SessionRowsDeclaration
from headrace.operators.table.timed_rows import TimedRows, joined_rows, merged_changes
from headrace.operators.table.waiting_rows import WaitingRows
from headrace.operators.table.wall_clock import instant_ms, wall_clock_ms
from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Bools, Ints
from headrace.state.row_sets import RowSet

_WAITING = "waiting"


@dataclass(frozen=True)
class _Sessions:
    """Of each row its session: its number, when it starts, and when it ends."""

    numbers: Ints
    starts: Ints
    ends: Ints

    def with_any(self, rows: Bools) -> Bools:
        """Which rows are in a session that has one of these rows."""
        has = np.zeros(int(self.numbers.max(initial=-1)) + 1, np.bool_)
        has[self.numbers[rows]] = True
        return has[self.numbers]


class SessionRowsOperator:
    """Emits rows with their session windows, as a `SessionRowsDeclaration` says."""

    def __init__(self, declaration: SessionRowsDeclaration, schema: Schema) -> None:
        self._declaration = declaration
        self._by_clock = declaration.time is None
        types = {column.name: column.arrow for column in schema}
        self._names = list(types)
        self._waiting = WaitingRows(_WAITING, types, declaration.time)
        self.layouts = (self._waiting.layout,)
        self.inputs = (self._waiting.input(declaration.keys),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        table = state[_WAITING]
        if self._by_clock:
            now_ms = wall_clock_ms(time.now_ms, self._declaration.zone)
            time = replace(time, now_ms=now_ms, before=-1, after=now_ms - 1)
        fresh = self._waiting.read(inputs.get(0), time)
        slots = self._slots(table, fresh, time.after)
        rows = joined_rows(self._waiting.rows_at(table, slots), fresh)
        is_kept = np.arange(len(rows.times)) < len(slots)
        sessions = self._sessions(rows)
        # Late is what has met no session that waits, and lies behind the watermark.
        is_late = (sessions.ends - 1 <= time.before) & ~sessions.with_any(is_kept)
        is_due = (sessions.ends - 1 <= time.after) & ~is_late
        changes: list[tuple[str, RowSet]] = [
            (_WAITING, self._waiting.removed(table, slots[is_due[: len(slots)]])),
            (_WAITING, self._waiting.written(rows.take(~is_due & ~is_late & ~is_kept))),
        ]
        timer = self._next_timer(table, slots, sessions.ends[~is_due & ~is_late])
        return EpochOutput(
            self._emitted(rows, sessions, is_due), merged_changes(changes), int(is_late.sum()), timer
        )

    def _next_timer(self, table: SlotTable, seen: Ints, ends: Ints) -> int | None:
        """Return when the clock may end the next session: of keys that were not looked at, when a row's gap is over."""
        if not self._by_clock:
            return None
        others = np.setdiff1d(table.live, seen)
        waiting = np.concatenate([self._waiting.times(table, others) + self._declaration.gap_ms, ends])
        return instant_ms(int(waiting.min()), self._declaration.zone) if len(waiting) else None

    def _slots(self, table: SlotTable, fresh: TimedRows, after: int) -> Ints:
        """Return the rows that wait for keys that have fresh rows, or rows that time has passed."""
        live = table.live
        passed = live[self._waiting.times(table, live) + self._declaration.gap_ms - 1 <= after]
        owners = np.concatenate([fresh.owners, table.owners_at(passed)])
        if not len(owners):
            return passed
        _, slots = self._waiting.of_keys(table, np.unique(owners, axis=0))
        return np.sort(slots)

    def _sessions(self, rows: TimedRows) -> _Sessions:
        """Put rows into sessions; those that touch are one, as in Flink."""
        _, keys, _ = numbered(rows.owners, rows.owners[:0])
        order = np.lexsort((rows.times, keys))
        times, own = rows.times[order], keys[order]
        begins = np.ones(len(order), np.bool_)
        # The clock has ended a session before a row comes at its end; by event time they are one.
        later = np.greater_equal if self._by_clock else np.greater
        begins[1:] = (own[1:] != own[:-1]) | later(times[1:] - times[:-1], self._declaration.gap_ms)
        of_sorted = np.cumsum(begins) - 1
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(order)) - 1 if len(firsts) else firsts
        of_row = np.empty(len(order), np.int64)
        of_row[order] = of_sorted
        return _Sessions(of_row, times[firsts][of_row], times[lasts][of_row] + self._declaration.gap_ms)

    def _emitted(self, rows: TimedRows, sessions: _Sessions, is_due: Bools) -> pa.Table:
        """Return the rows whose sessions are over, sessions in the order of their ends."""
        output = self._declaration.output
        if not is_due.any():
            return empty_changes(output, is_insert_only=self._declaration.is_insert_only)
        places = np.flatnonzero(is_due)
        ends = sessions.ends[places]
        places = places[np.lexsort((rows.order[places], sessions.numbers[places], ends))]
        emitted = rows.take(places)
        starts, ends = sessions.starts[places], sessions.ends[places]
        arrays = [
            *emitted.columns,
            *(pa.array(each * 1000, pa.timestamp("us")) for each in (starts, ends, ends - 1)),
        ]
        kinds = None if self._declaration.is_insert_only else np.zeros(len(places), np.int8)
        names = [column.name for column in output]
        return changes_table(output, dict(zip(names, arrays, strict=True)), kinds)
