"""GROUP BY over SESSION windows: windows of a key grow and merge as rows arrive.

Spark has grouped each key's rows of the epoch into sessions. Here they are merged with the sessions in state that
they touch. A session fires and is removed when the watermark has passed its end. A session that arrives after that,
and touches none in state, is late. In processing time, all rows of an epoch have the same time, and the clock ends
sessions. Retractions do not shorten their session.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headrace.operators.table.accumulators import rows_sql
from headrace.operators.table.base import (
    SESSION,
    EpochOutput,
    EpochTime,
    InputSpec,
    SessionWindows,
    hashes_of,
    numbers,
    quote,
    read_columns,
    with_numbers,
    written_rows,
)
from headrace.operators.table.changelog import changes_table, empty_changes
from headrace.operators.table.declarations import WindowAggregateDeclaration
from headrace.operators.table.steps import Schema
from headrace.operators.table.wall_clock import instant_ms
from headrace.operators.table.window_aggregate import window_calls
from headrace.operators.table.windows import on_the_wall
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_TABLE = "sessions"
_START, _END, _ROWS, _COUNT = "start", "end", "rows", "read"


class SessionAggregateOperator:
    """Runs a `WindowAggregateDeclaration` over SESSION windows."""

    def __init__(self, declaration: WindowAggregateDeclaration, schema: Schema, *, retracts: bool) -> None:
        window = declaration.window
        assert window is not None
        self._declaration = declaration
        self._gap_ms, self._by_clock = window.gap_ms, window.time is None
        types = {column.name: column.arrow for column in schema}
        self._calls = window_calls(declaration, types, retracts=retracts)
        self._key_names = {key: f"k{index}" for index, key in enumerate(declaration.keys)}
        self._layout = TableLayout(
            _TABLE,
            (
                *(ColumnType(name, types[key], is_key=True) for key, name in self._key_names.items()),
                ColumnType(_START, pa.int64(), is_key=True),
                ColumnType(_END, pa.int64()),
                ColumnType(_ROWS, pa.int64()),
                *self._calls.columns,
            ),
            has_owners=True,
            key_words=KEY_WORDS + 1,
        )
        self.layouts = (self._layout,)
        self.inputs = (
            InputSpec(
                side=0,
                source=0,
                keys=declaration.keys,
                where=None if window.time is None else f"{quote(window.time)} IS NOT NULL",
                group_by=declaration.keys,
                session=None if window.time is None else SessionWindows(window.time, window.gap_ms),
                items=(
                    (rows_sql(retracts=retracts), _ROWS),
                    ("count(1)", _COUNT),
                    *self._calls.partials,
                ),
            ),
        )

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        table = state[_TABLE]
        time = on_the_wall(time, self._declaration.window)
        before, after = (-1, time.now_ms - 1) if self._by_clock else (time.before, time.after)
        fresh, owners, read = self._fresh(inputs.get(0), time.now_ms)
        touched = self._kept_with(table, owners)
        columns, all_owners = self._joined(table, touched, fresh, owners)
        merged, of_session, session_owners = self._merge(columns, all_owners)
        ends = _ints(merged[_END])
        # Late is what has met no kept session and lies behind the watermark.
        has_kept = np.zeros(len(ends), np.bool_)
        has_kept[of_session[: len(touched)]] = True
        is_late = (ends - 1 <= before) & ~has_kept
        late = int(read[is_late[of_session[len(touched) :]]].sum())
        waiting = self._due(table, after, touched)
        stored = read_columns(table, waiting, [column.name for column in self._layout.columns])
        fires = (ends - 1 <= after) & ~is_late
        fired = {
            name: pa.concat_arrays([stored[name], merged[name].filter(pa.array(fires))]) for name in stored
        }
        changes = self._changes(
            table, np.union1d(touched, waiting), merged, session_owners, ~fires & ~is_late
        )
        timer = self._next_timer(table, np.union1d(touched, waiting), ends[~fires & ~is_late])
        return EpochOutput(self._output(fired), {_TABLE: changes} if len(changes) else {}, late, timer)

    def _next_timer(self, table: SlotTable, gone: Ints, ends: Ints) -> int | None:
        """Return when the clock ends the next session."""
        if not self._by_clock:
            return None
        waiting = np.concatenate([_stored(table, _END, np.setdiff1d(table.live, gone)), ends])
        assert self._declaration.window is not None
        return instant_ms(int(waiting.min()), self._declaration.window.zone) if len(waiting) else None

    def _fresh(self, rows: pa.Table | None, now_ms: int) -> tuple[dict[str, pa.Array], Ints, Ints]:
        """Return the sessions of this epoch, whose they are, and how many rows each has."""
        names = [column.name for column in self._layout.columns]
        if rows is None or not rows.num_rows:
            empty = {column.name: pa.array([], column.arrow) for column in self._layout.columns}
            return empty, np.empty((0, 2), np.int64), np.empty(0, np.int64)
        rows = rows.combine_chunks()
        columns = {name: rows.column(key).combine_chunks() for key, name in self._key_names.items()}
        if self._by_clock:
            columns[_START] = pa.array(np.full(rows.num_rows, now_ms))
            columns[_END] = pa.array(np.full(rows.num_rows, now_ms + self._gap_ms))
        else:
            sessions = rows.column(SESSION).combine_chunks()
            columns[_START] = _milliseconds(sessions.field("start"))
            columns[_END] = _milliseconds(sessions.field("end"))
        for name in names:
            if name not in columns:
                columns[name] = rows.column(name).combine_chunks()
        return columns, hashes_of(rows), numbers(rows, _COUNT)

    def _kept_with(self, table: SlotTable, owners: Ints) -> Ints:
        """Return the kept sessions of keys."""
        if not len(owners):
            return np.empty(0, np.int64)
        _, slots = table.members(np.unique(owners, axis=0))
        return slots

    def _joined(
        self, table: SlotTable, touched: Ints, fresh: Mapping[str, pa.Array], owners: Ints
    ) -> tuple[dict[str, pa.Array], Ints]:
        kept = read_columns(table, touched, [column.name for column in self._layout.columns])
        columns = {name: pa.concat_arrays([kept[name], fresh[name].cast(kept[name].type)]) for name in kept}
        return columns, np.concatenate([table.owners_at(touched), owners])

    def _merge(self, columns: Mapping[str, pa.Array], owners: Ints) -> tuple[dict[str, pa.Array], Ints, Ints]:
        """Make one of sessions that touch; returns them, which of them each row is in, and whose they are."""
        starts, ends = _ints(columns[_START]), _ints(columns[_END])
        order = np.lexsort((starts, owners[:, 1], owners[:, 0]))
        own = owners[order]
        is_other_key = np.ones(len(order), np.bool_)
        is_other_key[1:] = (own[1:] != own[:-1]).any(axis=1)
        reach = _running_end(ends[order], np.cumsum(is_other_key))
        begins = is_other_key.copy()
        # The clock has ended a session before a row comes at its end; by event time they are one.
        later = np.greater_equal if self._by_clock else np.greater
        begins[1:] |= later(starts[order][1:], reach[:-1])
        ids = np.cumsum(begins) - 1
        of_row = np.empty(len(order), np.int64)
        of_row[order] = ids
        firsts = np.flatnonzero(begins)
        picks = pa.array(order)
        ordered = {name: column.take(picks) for name, column in columns.items()}
        merged = {name: column.take(pa.array(firsts)) for name, column in ordered.items()}
        if len(firsts):
            merged[_END] = pa.array(np.maximum.reduceat(_ints(ordered[_END]), firsts))
            merged[_ROWS] = pa.array(np.add.reduceat(_ints(ordered[_ROWS]), firsts))
            names = [column.name for column in self._calls.columns]
            merged.update(self._calls.combine_groups({name: ordered[name] for name in names}, ids))
        return merged, of_row, own[firsts]

    def _due(self, table: SlotTable, after: int, touched: Ints) -> Ints:
        """Return kept sessions that are over and got nothing in this epoch."""
        live = table.live
        return np.setdiff1d(live[_stored(table, _END, live) - 1 <= after], touched)

    def _changes(
        self, table: SlotTable, gone: Ints, merged: Mapping[str, pa.Array], owners: Ints, stays: Bools
    ) -> RowSet:
        """Take away the sessions that were kept, and write those that stay."""
        old = table.rows(gone)
        removed = RowSet(old.keys, old.owners, np.ones(len(gone), np.bool_), old.columns, old.types)
        left = {name: merged[name].filter(pa.array(stays)) for name in merged}
        keys = with_numbers(owners[stays], _ints(left[_START]))
        written = written_rows(self._layout, keys, left, owners=owners[stays])
        return RowSet.merged([removed, written], keep_removals=True)

    def _output(self, fired: Mapping[str, pa.Array]) -> pa.Table:
        declaration = self._declaration
        rows, ends = _ints(fired[_ROWS]), _ints(fired[_END])
        if not (rows > 0).all() or (ends[1:] < ends[:-1]).any():
            # As in Flink, sessions that are over come in the order of their ends.
            order = np.argsort(ends, kind="stable")
            picks = pa.array(order[rows[order] > 0])
            fired = {name: column.take(picks) for name, column in fired.items()}
        if not len(fired[_ROWS]):
            return empty_changes(declaration.output, is_insert_only=declaration.is_insert_only)
        results = self._calls.results(fired)
        times = {
            "window_start": _ints(fired[_START]),
            "window_end": _ints(fired[_END]),
            "window_time": _ints(fired[_END]) - 1,
        }
        arrays = [
            *(fired[name] for name in self._key_names.values()),
            *(results[call.result.name] for call in declaration.calls),
            *(pa.array(times[name] * 1000, pa.timestamp("us")) for name in declaration.properties),
        ]
        names = [column.name for column in declaration.output]
        kinds = None if declaration.is_insert_only else np.zeros(len(fired[_ROWS]), np.int8)
        return changes_table(declaration.output, dict(zip(names, arrays, strict=True)), kinds)


def _running_end(ends: Ints, keys: Ints) -> Ints:
    """Return the highest end so far, key by key; keys are numbered in order."""
    if not len(ends):
        return ends
    lowest = int(ends.min())
    span = int(ends.max()) - lowest + 1
    if span > (1 << 62) // (len(ends) + 1):  # times too far apart to be distinguished by an offset
        highest = ends.copy()
        for index in range(1, len(ends)):
            if keys[index] == keys[index - 1]:
                highest[index] = max(highest[index], highest[index - 1])
        return highest
    return np.maximum.accumulate(ends - lowest + keys * span) - keys * span + lowest


def _stored(table: SlotTable, name: str, slots: Ints) -> Ints:
    values = table.cells(name, slots).values
    assert values is not None
    return values.view(np.int64)


def _milliseconds(array: pa.Array) -> pa.Array:
    return pa.array(array.cast(pa.int64()).to_numpy() // 1000)


def _ints(array: pa.Array) -> Ints:
    values: Ints = array.to_numpy(zero_copy_only=False)
    return values
