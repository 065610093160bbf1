"""The first row of each key by event time, emitted when the watermark has passed it, and never changed.

    waiting   per key the earliest row so far      --watermark-->   emitted, and the key is in ...
    seen      keys whose first row was emitted: their other rows are duplicates

A row that arrives behind the watermark is late and dropped: so no row that comes later can be earlier than one that
was emitted. Of rows of the same time the first that came counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    hashes_of,
    numbers,
    quote,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import changes_table
from headrace.operators.table.declarations import DeduplicateDeclaration
from headrace.operators.table.steps import Schema
from headrace.operators.table.timed_rows import int_cells
from headrace.operators.table.ttl import RowTimeToLive
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

_WAITING, _SEEN, _TIME = "waiting", "seen", "time"


class FirstByTimeOperator:
    """Runs a `DeduplicateDeclaration` that waits for the watermark.

    Args:
        declaration: What it is.
        schema: The columns of its input, whose rows are never retracted.
    """

    def __init__(self, declaration: DeduplicateDeclaration, schema: Schema) -> None:
        assert declaration.time is not None
        self._declaration, self._time = declaration, declaration.time
        self._names = [column.name for column in schema]
        self._columns = [f"c{index}" for index in range(len(schema))]
        self._ttl = RowTimeToLive(declaration.ttl_ms)
        kept = [
            ColumnType(name, column.arrow, is_key=column.name in declaration.keys)
            for name, column in zip(self._columns, schema, strict=True)
        ]
        stamped = (ColumnType(_TIME, pa.int64()), *self._ttl.columns)
        self._waiting = TableLayout(_WAITING, (*kept, *stamped))
        self._seen = TableLayout(_SEEN, stamped)
        self.layouts = (self._waiting, self._seen)
        where = f"{quote(self._time)} IS NOT NULL"
        self.inputs = (
            InputSpec(side=0, source=0, keys=declaration.keys, items=(WITH_SEQUENCE,), where=where),
        )

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        waiting, seen = state[_WAITING], state[_SEEN]
        given = inputs.get(0)
        late = 0
        rows: pa.Table | None = None
        replaced = np.empty(0, np.int64)
        if given is not None and given.num_rows:
            is_late = numbers(given, self._time) <= time.before
            late = int(is_late.sum())
            rows, replaced = self._earlier(given.filter(pa.array(~is_late)), waiting, seen, time)
        live = np.setdiff1d(waiting.live, replaced)
        passed = live[int_cells(waiting, _TIME, live) <= time.after]
        due = passed[self._ttl.alive(waiting, passed, time.now_ms) >= 0]
        emitted = [(read_columns(waiting, due, self._columns), int_cells(waiting, _TIME, due))]
        # A row that is due at once may stand in the place of one that waits.
        gone = waiting.rows(passed)
        to_waiting = [
            RowSet(gone.keys, gone.owners, np.ones(len(passed), np.bool_), gone.columns, gone.types)
        ]
        to_seen = [self._marked(waiting.rows(due).keys, emitted[0][1], time)]
        if rows is not None:
            keys, times = hashes_of(rows), numbers(rows, self._time)
            is_due = times <= time.after
            columns = {
                c: rows.column(name).combine_chunks()
                for c, name in zip(self._columns, self._names, strict=True)
            }
            stamps = self._ttl.stamps(len(keys), time.now_ms)
            to_waiting.append(
                written_rows(
                    self._waiting, keys, {**columns, _TIME: pa.array(times), **stamps}, removed=is_due
                )
            )
            to_seen.append(self._marked(keys[is_due], times[is_due], time))
            picks = pa.array(np.flatnonzero(is_due))
            emitted.append(({c: column.take(picks) for c, column in columns.items()}, times[is_due]))
        changes = {}
        for table, parts in ((waiting, to_waiting), (seen, to_seen)):
            swept = self._ttl.sweep(table, time.now_ms)
            merged = RowSet.merged([*([] if swept is None else [swept]), *parts], keep_removals=True)
            if len(merged):
                changes[table.layout.name] = merged
        return EpochOutput(self._output(emitted), changes if time.keeps_state else {}, late)

    def _earlier(
        self, rows: pa.Table, waiting: SlotTable, seen: SlotTable, time: EpochTime
    ) -> tuple[pa.Table, Ints]:
        """Return the earliest row of each key, if it is earlier than the one that waits, and the slots of those."""
        rows = rows.combine_chunks()
        keys = hashes_of(rows)
        order = np.lexsort((numbers(rows, SEQUENCE), numbers(rows, self._time), keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        rows = rows.take(pa.array(np.sort(order[is_first]))).combine_chunks()
        keys, times = hashes_of(rows), numbers(rows, self._time)
        wins = self._ttl.alive(seen, seen.find(keys), time.now_ms) < 0
        slots = self._ttl.alive(waiting, waiting.find(keys), time.now_ms)
        waits = slots >= 0
        wins[waits] &= times[waits] < int_cells(waiting, _TIME, slots[waits])
        return rows.filter(pa.array(wins)), slots[wins & waits]

    def _marked(self, keys: Ints, times: Ints, time: EpochTime) -> RowSet:
        """Return keys whose first rows are emitted."""
        stamps = self._ttl.stamps(len(keys), time.now_ms)
        return written_rows(self._seen, keys, {_TIME: pa.array(times), **stamps})

    def _output(self, parts: Sequence[tuple[Mapping[str, pa.Array], Ints]]) -> pa.Table:
        """Return rows in the order of their times."""
        order = np.argsort(np.concatenate([times for _, times in parts]), kind="stable")
        picks = pa.array(order)
        arrays = [pa.concat_arrays([columns[c] for columns, _ in parts]).take(picks) for c in self._columns]
        output = self._declaration.output
        return changes_table(output, dict(zip((c.name for c in output), arrays, strict=True)), None)
