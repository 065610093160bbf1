"""OVER by time: each row is emitted once, with the results of functions over the rows before it.

In event time, rows wait until the watermark has passed them: then all earlier rows are known, and the results do not
depend on the arrival order. Rows that arrive behind the watermark are late and dropped. In processing time, rows are
emitted at once.

    waiting    rows that the watermark has not passed
    history    emitted rows that bounded frames may still need, freed as frames advance
    groups     the accumulators of unbounded frames, by key
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.base import (
    EpochOutput,
    EpochTime,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import changes_table
from headrace.operators.table.frames import Block
from headrace.operators.table.kept_rows import numbered
from headrace.operators.table.over_calls import make_measure
from headrace.operators.table.over_frames import KeyState, Windowed
from headrace.operators.table.steps import Schema
from headrace.operators.table.timed_declarations import OverAggregateDeclaration
from headrace.operators.table.timed_rows import TimedRows, TimedTable, merged_changes
from headrace.operators.table.ttl import RowTimeToLive
from headrace.operators.table.waiting_rows import WaitingRows
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, Ints
from headrace.state.row_sets import RowSet

_WAITING, _HISTORY, _GROUPS = "waiting", "history", "groups"
#: Where a key stands in the table of groups.
_SLOTS = ""


class OverOperator:
    """Runs an `OverAggregateDeclaration` that is ordered by time."""

    def __init__(self, declaration: OverAggregateDeclaration, schema: Schema, *, retracts: bool) -> None:
        if retracts:  # as in Flink
            raise UnsupportedFeatureError(
                "OVER by a time attribute over a changelog with updates: rows that were emitted cannot be retracted",
                feature="OVER by time over updates",
                hint="use insert-only rows, or ORDER BY a column that is not a time attribute",
            )
        self._declaration = declaration
        types = {column.name: column.arrow for column in schema}
        self._names = list(types)
        self._measures = [make_measure(at, call, types) for at, call in enumerate(declaration.calls)]
        seen = dict.fromkeys(name for each in self._measures for name in each.arguments)
        self._seen = list(seen)
        # COUNT(*) of a frame looks at rows, and at no column of them.
        self._has_history = any(
            each.arguments or (isinstance(each, Windowed) and not each.is_unbounded)
            for each in self._measures
        )
        self._given = list(dict.fromkeys(name for each in declaration.calls for name in each.call.arguments))
        self._waiting = WaitingRows(_WAITING, types, declaration.time)
        self._history = TimedTable(_HISTORY, [types[name] for name in self._seen])
        self._ttl = RowTimeToLive(declaration.ttl_ms)
        group_columns = tuple(column for each in self._measures for column in each.columns)
        self._groups = TableLayout(_GROUPS, (*group_columns, *self._ttl.columns))
        # What is freed as time moves on needs no time to live.
        self._is_by_time = not group_columns and all(
            call.is_range and call.preceding is not None for call in declaration.calls
        )
        self._has_groups = bool(self._groups.columns) and not self._is_by_time
        self.layouts = (
            *((self._waiting.layout,) if declaration.time is not None else ()),
            *((self._history.layout,) if self._has_history else ()),
            *((self._groups,) if self._has_groups else ()),
        )
        self.inputs = (self._waiting.input(declaration.keys),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        changes: list[tuple[str, RowSet]] = []
        fresh, late = self._waiting.fresh(inputs.get(0), time)
        due = fresh
        if self._declaration.time is not None:
            due = self._waiting.due(fresh, state[_WAITING], time, changes)
        oldest = time.after + 1 if self._declaration.time is not None else time.now_ms
        emitted = changes_table(*self._empty())
        if len(due.times):
            emitted = self._emitted(due, state, time, oldest, changes)
        elif self._is_by_time and self._has_history:
            table = state[_HISTORY]
            gone = self._passed(table, oldest)
            changes.append((_HISTORY, self._history.removed(table, gone)))
        if self._has_groups:
            swept = self._ttl.sweep(state[_GROUPS], time.now_ms)
            changes[:0] = [] if swept is None else [(_GROUPS, swept)]
            if swept is not None and self._has_history:
                _, slots = self._history.of_keys(state[_HISTORY], swept.keys)
                changes.insert(0, (_HISTORY, self._history.removed(state[_HISTORY], slots)))
        return EpochOutput(emitted, merged_changes(changes), late)

    # -- what is said about them ---------------------------------------------------------------------------------

    def _emitted(
        self,
        due: TimedRows,
        state: Mapping[str, SlotTable],
        time: EpochTime,
        oldest: int,
        changes: list[tuple[str, RowSet]],
    ) -> pa.Table:
        """Return rows with their results, in the order of their times; note what happens to state."""
        keys, ids, _ = numbered(due.owners, due.owners[:0])
        known = self._known(keys, state, time)
        old, old_ids, stale = self._kept(keys, known, state)
        block, at_old, at_due = self._block(len(keys), old, old_ids, due, ids)
        results: dict[str, pa.Array] = {}
        after: dict[str, pa.Array] = {}
        stays = np.zeros(len(block.keys), np.bool_)
        for over, measure in zip(self._declaration.calls, self._measures, strict=True):
            # By the clock a row without a start to look back to does not wait for others of its time.
            sees_peers = over.is_range and (self._declaration.time is not None or over.preceding is not None)
            frames = block.frames(over.preceding, is_range=over.is_range, sees_peers=sees_peers)
            outcome = measure.of(block, frames, known)
            results[over.call.result.name] = outcome.result
            after |= outcome.state
            stays |= measure.keeps(block, oldest)
        if self._has_groups:
            stamps = self._ttl.stamps(len(keys), time.now_ms)
            changes.append((_GROUPS, written_rows(self._groups, keys, {**after, **stamps})))
        if self._has_history:
            if self._is_by_time:
                stale = self._passed(state[_HISTORY], oldest)
            changes.append((_HISTORY, self._history.removed(state[_HISTORY], stale)))
            changes += self._history_changes(due, old, stays[at_old], stays[at_due])
        # Results are in the order of the block.
        places = np.empty(len(due.times), np.int64)
        places[np.argsort(at_due)] = np.arange(len(due.times))
        order = np.lexsort((due.order, due.times))
        picks, of_block = pa.array(order), pa.array(places[order])
        columns = {name: column.take(picks) for name, column in zip(self._names, due.columns, strict=True)}
        made = {**columns, **{name: each.take(of_block) for name, each in results.items()}}
        schema, _, kinds = self._empty()
        return changes_table(schema, made, None if kinds is None else np.zeros(len(order), np.int8))

    def _known(self, keys: Ints, state: Mapping[str, SlotTable], time: EpochTime) -> KeyState:
        """Return the combined values that state has of keys."""
        if not self._has_groups:
            return {}
        table = state[_GROUPS]
        slots = self._ttl.alive(table, table.find(keys), time.now_ms)
        names = [column.name for column in self._groups.columns]
        return {**read_columns(table, slots, names), _SLOTS: pa.array(slots)}

    def _kept(
        self, keys: Ints, known: KeyState, state: Mapping[str, SlotTable]
    ) -> tuple[TimedRows, Ints, Ints]:
        """Return the rows of keys that functions look at again, the numbers of their keys, and slots of stale ones."""
        none = np.empty(0, np.int64)
        if not self._has_history:
            return TimedRows([], np.empty((0, KEY_WORDS), np.int64), none, none), none, none
        table = state[_HISTORY]
        at, slots = self._history.of_keys(table, keys)
        if self._ttl and _SLOTS in known:
            is_alive = known[_SLOTS].to_numpy()[at] >= 0
            return self._history.rows_at(table, slots[is_alive]), at[is_alive], slots[~is_alive]
        return self._history.rows_at(table, slots), at, none

    def _block(
        self, keys: int, old: TimedRows, old_ids: Ints, due: TimedRows, ids: Ints
    ) -> tuple[Block, Ints, Ints]:
        """Sort rows into a block; return also where the old ones and those that are due stand in it."""
        of_key = np.concatenate([np.arange(keys), old_ids, ids])
        times = np.concatenate([np.zeros(keys, np.int64), old.times, due.times])
        order = np.concatenate([np.zeros(keys, np.int64), old.order, due.order])
        is_state = np.arange(len(of_key)) < keys
        picks = np.lexsort((order, times, ~is_state, of_key))
        places = np.empty(len(picks), np.int64)
        places[picks] = np.arange(len(picks))
        columns = {}
        for name in self._given:
            given = due.columns[self._names.index(name)]
            kept = old.columns[self._seen.index(name)] if name in self._seen else None
            before = pa.nulls(keys, given.type)
            rows = kept if kept is not None else pa.nulls(len(old_ids), given.type)
            columns[name] = pa.concat_arrays([before, rows, given]).take(pa.array(picks))
        sorted_keys, sorted_times, sorted_state = of_key[picks], times[picks], is_state[picks]
        is_other = np.ones(len(picks), np.bool_)
        is_other[1:] = (
            (sorted_keys[1:] != sorted_keys[:-1])
            | (sorted_times[1:] != sorted_times[:-1])
            | (sorted_state[1:] != sorted_state[:-1])
        )
        block = Block(
            sorted_keys,
            sorted_times,
            picks >= keys + len(old_ids),
            columns,
            np.cumsum(is_other) - 1,
        )
        return block, places[keys : keys + len(old_ids)], places[keys + len(old_ids) :]

    def _history_changes(
        self, due: TimedRows, old: TimedRows, old_stays: Bools, due_stays: Bools
    ) -> list[tuple[str, RowSet]]:
        """Return the rows that functions look at again, and those that they do not any more."""
        kept, gone = due.take(due_stays), old.take(~old_stays)
        kept = replace(kept, columns=[kept.columns[self._names.index(name)] for name in self._seen])
        made = [self._history.written(kept)] if len(kept.times) else []
        if len(gone.times):
            made.append(self._history.written(gone, is_gone=np.ones(len(gone.times), np.bool_)))
        return [(_HISTORY, each) for each in made]

    def _passed(self, table: SlotTable, oldest: int) -> Ints:
        """Return the rows that no later one looks back to, whatever its key."""
        furthest = max(call.preceding or 0 for call in self._declaration.calls)
        live = table.live
        return live[self._history.times(table, live) < oldest - furthest]

    def _empty(self) -> tuple[Schema, dict[str, pa.Array], np.ndarray[tuple[int], np.dtype[np.int8]] | None]:
        output = self._declaration.output
        kinds = None if self._declaration.is_insert_only else np.empty(0, np.int8)
        return output, {column.name: pa.array([], column.arrow) for column in output}, kinds
