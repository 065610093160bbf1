"""MATCH_RECOGNIZE: sequences of rows of a key that match a pattern, in the order of time.

In event time, rows wait until the watermark has passed them, when all earlier rows are known. Rows that arrive behind
the watermark are late and dropped. In processing time, rows are processed as they arrive.

    waiting    rows that the watermark has not passed
    rows       those that partial matches consist of, from the first row of the oldest one on
    runs       of each key, its partial matches, and when the first of them will have taken too long (WITHIN)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    EpochOutput,
    EpochTime,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import changes_table, empty_changes
from headrace.operators.table.first_rows import sort_keys
from headrace.operators.table.kept_rows import numbered
from headrace.operators.table.match_declarations import MatchRecognizeDeclaration
from headrace.operators.table.match_runs import Found, Runs
from headrace.operators.table.matching import Matching
from headrace.operators.table.steps import Schema
from headrace.operators.table.timed_rows import (
    TimedRows,
    TimedTable,
    arrival_order,
    int_cells,
    merged_changes,
)
from headrace.operators.table.waiting_rows import WaitingRows
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

__all__ = ["MatchRecognizeOperator"]

_WAITING, _ROWS, _RUNS = "waiting", "rows", "runs"
_PACKED, _DEADLINE = "packed", "deadline"
#: A deadline that never comes.
_NEVER: Final = np.iinfo(np.int64).max


@dataclass
class _Block:
    """The rows of some keys, one key after the other: those that were kept, then those that are due.

    Args:
        rows: The rows.
        keys: The keys.
        begins: Where the rows of each key begin; one more, where the last ones end.
        is_due: Which rows are new.
    """

    rows: TimedRows
    keys: Ints
    begins: Ints
    is_due: Bools


class MatchRecognizeOperator:
    """Finds the matches of a `MatchRecognizeDeclaration`."""

    def __init__(self, declaration: MatchRecognizeDeclaration, schema: Schema) -> None:
        self._declaration = declaration
        types = {column.name: column.arrow for column in schema}
        self._names = list(types)
        self._waiting = WaitingRows(_WAITING, types, declaration.time)
        self._rows = TimedTable(_ROWS, list(types.values()))
        self._runs = TableLayout(_RUNS, (ColumnType(_PACKED, pa.string()), ColumnType(_DEADLINE, pa.int64())))
        waits = (self._waiting.layout,) if declaration.time is not None else ()
        self.layouts = (*waits, self._rows.layout, self._runs)
        self.inputs = (self._waiting.input(declaration.keys),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        declaration = self._declaration
        changes: list[tuple[str, RowSet]] = []
        due, late = self._waiting.fresh(inputs.get(0), time)
        now = time.now_ms
        if declaration.time is not None:
            due = self._waiting.due(due, state[_WAITING], time, changes)
            now = time.after
        runs = state[_RUNS]
        live = runs.live
        deadlines = int_cells(runs, _DEADLINE, live)
        expired = runs.rows(live[deadlines <= now]).keys
        keys, _, _ = numbered(np.concatenate([due.owners, expired]), due.owners[:0])
        emitted = empty_changes(declaration.output, is_insert_only=declaration.is_insert_only)
        rest = deadlines[deadlines > now].tolist()
        if len(keys):
            block = self._block(keys, due, state[_ROWS], time)
            emitted, ahead = self._matched(block, state, now, changes)
            rest += ahead
        timer = min(rest, default=_NEVER)
        wakes = declaration.time is None and timer != _NEVER
        return EpochOutput(emitted, merged_changes(changes), late, next_timer_ms=timer if wakes else None)

    # -- rows --------------------------------------------------------------------------------------------------

    def _block(self, keys: Ints, due: TimedRows, table: SlotTable, time: EpochTime) -> _Block:
        """Return the rows of keys in their order."""
        at, slots = self._rows.of_keys(table, keys)
        kept = self._rows.rows_at(table, slots)
        _, _, of_due = numbered(keys, due.owners)
        extra = [
            each
            for order in reversed(self._declaration.order)
            for each in sort_keys(due.columns[self._names.index(order.column)], order)
        ]
        sorted_ = np.lexsort((due.order, *extra, due.times, of_due))
        due, of_due = due.take(sorted_), of_due[sorted_]
        # From now on their place is known, whatever comes later.
        due.order = arrival_order(time.epoch, len(due.order))
        of_key = np.concatenate([at, of_due])
        is_due = np.arange(len(of_key)) >= len(at)
        order = np.concatenate([kept.order, due.order])
        picks = np.lexsort((order, is_due, of_key))
        both = TimedRows(
            [pa.concat_arrays([a, b]) for a, b in zip(kept.columns, due.columns, strict=True)],
            np.concatenate([kept.owners, due.owners]),
            np.concatenate([kept.times, due.times]),
            order,
        ).take(picks)
        begins = np.searchsorted(of_key[picks], np.arange(len(keys) + 1))
        return _Block(both, keys, begins, is_due[picks])

    # -- matches -----------------------------------------------------------------------------------------------

    def _matched(
        self, block: _Block, state: Mapping[str, SlotTable], now: int, changes: list[tuple[str, RowSet]]
    ) -> tuple[pa.Table, list[int]]:
        """Look for matches in the rows of keys; return them, and the deadlines of what is not complete."""
        rows = block.rows
        matching = Matching(self._declaration.pattern, dict(enumerate(rows.columns)))
        table = state[_RUNS]
        slots = table.find(block.keys)
        packed = read_columns(table, slots, [_PACKED])[_PACKED].to_pylist()
        texts: list[str | None] = []
        deadlines: list[int] = []
        found: list[Found] = []
        stays = np.zeros(len(block.is_due), np.bool_)
        for number, text in enumerate(packed):
            begin, end = int(block.begins[number]), int(block.begins[number + 1])
            first_due = begin + int((~block.is_due[begin:end]).sum())
            runs = Runs.unpacked(matching.plan, None if text is None else json.loads(text), first_due)
            found += matching.fed(runs, range(first_due, end), rows.times)
            found += runs.advance(now)
            oldest = runs.oldest
            if oldest is not None:
                stays[oldest.bounds[0] : end] = True
            texts.append(None if oldest is None else json.dumps(runs.packed(end), separators=(",", ":")))
            deadline = runs.deadline_ms
            deadlines.append(_NEVER if deadline is None else deadline)
        is_gone = np.array([each is None for each in texts], np.bool_)
        # What was not there need not go.
        touched = ~is_gone | (slots >= 0)
        columns = {
            _PACKED: pa.array(["" if each is None else each for each in texts]),
            _DEADLINE: pa.array(deadlines),
        }
        picks = pa.array(np.flatnonzero(touched))
        chosen = {name: each.take(picks) for name, each in columns.items()}
        changes.append(
            (_RUNS, written_rows(self._runs, block.keys[touched], chosen, removed=is_gone[touched]))
        )
        fresh, old = rows.take(block.is_due & stays), rows.take(~block.is_due & ~stays)
        changes.append((_ROWS, self._rows.written(fresh)))
        changes.append((_ROWS, self._rows.written(old, is_gone=np.ones(len(old.times), np.bool_))))
        return self._emitted(matching, rows, found), [each for each in deadlines if each != _NEVER]

    def _emitted(self, matching: Matching, rows: TimedRows, found: list[Found]) -> pa.Table:
        """Return a row for each match, in the order of the times they were found at."""
        declaration = self._declaration
        found = sorted(found, key=lambda each: each.time_ms)
        width = len(declaration.keys)
        firsts = pa.array([each.bounds[0] for each in found], pa.int64())
        made = [rows.columns[self._names.index(key)].take(firsts) for key in declaration.keys]
        kinds = [column.arrow for column in declaration.output[width:]]
        made += matching.results(found, rows.columns, kinds)
        named = dict(zip((column.name for column in declaration.output), made, strict=True))
        marks = None if declaration.is_insert_only else np.zeros(len(found), np.int8)
        return changes_table(declaration.output, named, marks)
