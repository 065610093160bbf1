"""One row per key, the first or the last: deduplication, and upsert streams made into full changelogs.

Only the last row of a key in an epoch counts; `SEQUENCE` is the order in which rows arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headrace.elements import MIN_WATERMARK
from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    events_of,
    hashes_of,
    numbers,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import (
    DELETE,
    UPDATE_BEFORE,
    empty_changes,
    update_changelog,
    values_differ,
)
from headrace.operators.table.declarations import StatefulNode
from headrace.operators.table.steps import KIND, Schema
from headrace.operators.table.ttl import RowTimeToLive
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_TIME = "time"
_TABLE = "latest"


class LatestRowOperator:
    """Keeps one row per key.

    Args:
        declaration: What it is: a `Deduplicate` of insert-only rows, or a `ChangelogNormalize`.
        schema: The columns of its input.
        keys: What rows are distinguished by.
        time: A BIGINT column with event time; None: rows count in the order they come.
        keep_last: Whether the last row stays, not the first.
        has_kinds: Whether rows may say that a key is gone.
    """

    def __init__(
        self,
        declaration: StatefulNode,
        schema: Schema,
        keys: tuple[str, ...],
        *,
        time: str | None = None,
        keep_last: bool = True,
        has_kinds: bool = False,
    ) -> None:
        self._declaration = declaration
        self._names = [column.name for column in schema]
        self._keys, self._time, self._keep_last, self._has_kinds = keys, time, keep_last, has_kinds
        self._ttl = RowTimeToLive(declaration.ttl_ms)
        columns = [
            ColumnType(f"c{index}", column.arrow, is_key=column.name in keys)
            for index, column in enumerate(schema)
        ]
        self._layout = TableLayout(_TABLE, (*columns, ColumnType(_TIME, pa.int64()), *self._ttl.columns))
        self.layouts = (self._layout,)
        self.inputs = (InputSpec(side=0, source=0, keys=keys, items=(WITH_SEQUENCE,)),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        declaration, table = self._declaration, state[_TABLE]
        swept = self._ttl.sweep(table, time.now_ms)
        rows = self._decisive(inputs.get(0))
        if rows is None:
            nothing = empty_changes(declaration.output, is_insert_only=declaration.is_insert_only)
            return EpochOutput(nothing, {} if swept is None else {_TABLE: swept})
        keys, times = hashes_of(rows), self._times(rows)
        slots = self._ttl.alive(table, table.find(keys), time.now_ms)
        was = slots >= 0
        before = (
            read_columns(table, slots, [_TIME])[_TIME].fill_null(MIN_WATERMARK).to_numpy(zero_copy_only=False)
        )
        gone = self._is_gone(rows)
        wins = ~was | self._is_better(times, before)
        wins &= was | ~gone  # nothing is gone that was not there
        is_now = np.where(wins, ~gone, was)
        names = [f"c{index}" for index in range(len(self._names))]
        new = {c: rows.column(name).combine_chunks() for c, name in zip(names, self._names, strict=True)}
        # Most of a row is looked at only where it comes out, or where it may be the same as the new one.
        is_read = was & wins
        if not declaration.emits_update_before and self._time is not None:
            is_read &= gone | (times == before)
        old = read_columns(table, np.where(is_read, slots, -1), names)
        differs = wins.copy()
        differs[is_read] = _differs(old, new, names, is_read)
        changes = update_changelog(
            declaration.output,
            _named(declaration.output, [old[name] for name in names]),
            _named(declaration.output, [new[name] for name in names]),
            was=was,
            is_now=is_now,
            changed=wins & (differs | bool(self._ttl)),
            emits_update_before=declaration.emits_update_before,
            is_insert_only=declaration.is_insert_only,
            events=events_of(rows),
        )
        if not time.keeps_state:
            return EpochOutput(changes)
        stamps = self._ttl.stamps(len(keys), time.now_ms)
        columns = {**new, _TIME: pa.array(times), **stamps}
        written = written_rows(self._layout, keys, columns, removed=gone).take(wins)
        if swept is not None:
            written = RowSet.merged([swept, written], keep_removals=True)
        return EpochOutput(changes, {_TABLE: written} if len(written) else {})

    def _decisive(self, rows: pa.Table | None) -> pa.Table | None:
        """Return the row of each key that is left of the epoch."""
        if rows is None or not rows.num_rows:
            return None
        if self._has_kinds:
            # What was before an update is known here; upsert streams need not say it.
            rows = rows.filter(pa.array(rows.column(KIND).to_numpy() != UPDATE_BEFORE))
        rows = rows.combine_chunks()
        keys, sequence = hashes_of(rows), numbers(rows, SEQUENCE)
        order = np.lexsort((sequence, self._times(rows), keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        differs = (ordered[1:] != ordered[:-1]).any(axis=1)
        is_edge = np.ones(len(order), np.bool_)
        if self._keep_last:
            is_edge[:-1] = differs
        else:
            is_edge[1:] = differs
        return rows.take(pa.array(np.sort(order[is_edge]))).combine_chunks()

    def _times(self, rows: pa.Table) -> Ints:
        if self._time is None:
            return np.zeros(rows.num_rows, np.int64)
        times: Ints = (
            rows.column(self._time).combine_chunks().fill_null(MIN_WATERMARK).to_numpy(zero_copy_only=False)
        )
        return times

    def _is_better(self, times: Ints, before: Ints) -> Bools:
        return times >= before if self._keep_last else times < before

    def _is_gone(self, rows: pa.Table) -> Bools:
        if not self._has_kinds:
            return np.zeros(rows.num_rows, np.bool_)
        is_gone: Bools = rows.column(KIND).to_numpy() == DELETE
        return is_gone


def _named(output: Schema, arrays: list[pa.Array]) -> dict[str, pa.Array]:
    return dict(zip((column.name for column in output), arrays, strict=True))


def _differs(
    old: Mapping[str, pa.Array], new: Mapping[str, pa.Array], names: list[str], where: Bools
) -> Bools:
    """Return which of some rows are not the same."""
    picks = pa.array(np.flatnonzero(where))
    differs = np.zeros(len(picks), np.bool_)
    for name in names:
        differs |= values_differ(old[name].take(picks), new[name].take(picks))
    return differs
