"""ON CONFLICT DO NOTHING and DO ERROR: rows with different keys of the query but the same primary key of the sink.

Rows wait until the watermark advances. Then rows and their retractions cancel out, in any order. If several rows of a
primary key remain, DO NOTHING keeps the one that the sink already has, or the first, and DO ERROR fails the job.

    primary key 'tea'    +I(tea, 1)   +I(tea, 3)   -U(tea, 1)   |watermark    ->  +I(tea, 3)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.common.arrow_values import python_values
from headrace.errors import JobExecutionError
from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    hashes_of,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import DELETE, INSERT, UPDATE_AFTER, changes_table
from headrace.operators.table.process_state import Key
from headrace.operators.table.sink_declarations import SinkConflictDeclaration
from headrace.operators.table.steps import KIND, Schema
from headrace.operators.table.timed_rows import (
    TimedRows,
    TimedTable,
    arrival_order,
    joined_rows,
    merged_changes,
)
from headrace.operators.table.ttl import RowTimeToLive
from headrace.operators.table.user_results import result_column
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import ColumnType
from headrace.state.row_sets import RowSet

__all__ = ["SinkConflictOperator"]

_WAITING, _CURRENT = "waiting", "current"
_Row = tuple[Any, ...]


class SinkConflictOperator:
    """Resolves rows that share a primary key, as a `SinkConflictDeclaration` says."""

    def __init__(self, declaration: SinkConflictDeclaration, schema: Schema, *, retracts: bool) -> None:
        self._declaration = declaration
        self._retracts = retracts
        self._names = [column.name for column in schema]
        types = [column.arrow for column in schema]
        self._waiting = TimedTable(_WAITING, [*types, *([pa.int8()] if retracts else [])])
        self._ttl = RowTimeToLive(declaration.ttl_ms)
        columns = [ColumnType(f"c{at}", kind) for at, kind in enumerate(types)]
        self._current = TableLayout(_CURRENT, (*columns, *self._ttl.columns))
        self._upsert_key = [self._names.index(name) for name in declaration.upsert_key]
        self.layouts = (self._waiting.layout, self._current)
        self.inputs = (InputSpec(side=0, source=0, keys=declaration.keys, items=(WITH_SEQUENCE,)),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        changes: list[tuple[str, RowSet]] = []
        fresh = self._fresh(inputs.get(0), time)
        emitted: list[tuple[int, _Row]] = []
        if time.after <= time.before and not time.is_final:
            changes.append((_WAITING, self._waiting.written(fresh)))
        else:
            slots = state[_WAITING].live
            changes.append((_WAITING, self._waiting.removed(state[_WAITING], slots)))
            due = joined_rows(self._waiting.rows_at(state[_WAITING], slots), fresh)
            emitted = self._resolved(
                due.take(np.argsort(due.order, kind="stable")), state[_CURRENT], time, changes
            )
        swept = self._ttl.sweep(state[_CURRENT], time.now_ms)
        changes[:0] = [] if swept is None else [(_CURRENT, swept)]
        return EpochOutput(self._table(emitted), merged_changes(changes))

    def _fresh(self, rows: pa.Table | None, time: EpochTime) -> TimedRows:
        if rows is None or not rows.num_rows:
            return self._waiting.none()
        rows = rows.sort_by(SEQUENCE)
        names = [*self._names, *([KIND] if self._retracts else [])]
        columns = [rows.column(name).combine_chunks() for name in names]
        order = arrival_order(time.epoch, rows.num_rows)
        return TimedRows(columns, hashes_of(rows), np.zeros(rows.num_rows, np.int64), order)

    def _resolved(
        self, due: TimedRows, table: SlotTable, time: EpochTime, changes: list[tuple[str, RowSet]]
    ) -> list[tuple[int, _Row]]:
        """Return what happens to the keys of rows; note what the sink has then."""
        if not len(due.times):
            return []
        width = len(self._names)
        rows = list(zip(*map(python_values, due.columns[:width]), strict=True))
        kinds = due.columns[width].to_pylist() if self._retracts else [INSERT] * len(rows)
        by_key: dict[Key, list[tuple[int, _Row]]] = {}
        for (one, other), kind, row in zip(due.owners.tolist(), kinds, rows, strict=True):
            _add_or_cancel(by_key.setdefault((one, other), []), kind, row)
        before = self._stored(list(by_key), table, time)
        emitted: list[tuple[int, _Row]] = []
        written: dict[Key, _Row | None] = {}
        for key, pending in by_key.items():
            old = before[key]
            left = self._compacted(old, pending)
            new = self._chosen(old, left)
            if new == old:
                continue
            written[key] = new
            if new is None:
                assert old is not None
                emitted.append((DELETE, old))
            else:
                emitted.append((INSERT if old is None else UPDATE_AFTER, new))
        if written:
            changes.append((_CURRENT, self._written(written, time)))
        return emitted

    def _compacted(self, old: _Row | None, pending: list[tuple[int, _Row]]) -> list[_Row]:
        """Return the rows of a primary key that are left."""
        rows = [] if old is None else [old]
        for kind, row in pending:
            at = next((at for at, each in enumerate(rows) if self._is_same(each, row)), None)
            if kind in (INSERT, UPDATE_AFTER):
                if at is None or not self._upsert_key:
                    rows.append(row)
                else:
                    rows[at] = row
            elif at is not None:
                del rows[at]
        return rows

    def _is_same(self, one: _Row, other: _Row) -> bool:
        """Whether rows are the same one to the query: by its key, or by all columns if it has none."""
        if not self._upsert_key:
            return one == other
        return all(one[at] == other[at] for at in self._upsert_key)

    def _chosen(self, old: _Row | None, left: list[_Row]) -> _Row | None:
        if len(left) <= 1:
            return left[0] if left else None
        if self._declaration.fails:
            keys = self._declaration.keys
            values = [left[0][self._names.index(name)] for name in keys]
            shown = ", ".join(f"{name} = {value!r}" for name, value in zip(keys, values, strict=True))
            raise JobExecutionError(
                f"ON CONFLICT DO ERROR: {len(left)} different rows have the primary key {shown}",
                hint="ON CONFLICT DO NOTHING keeps the first one, DO DEDUPLICATE the last one",
            )
        return left[0] if old is None else old

    # -- state -------------------------------------------------------------------------------------------------

    def _stored(self, keys: list[Key], table: SlotTable, time: EpochTime) -> dict[Key, _Row | None]:
        slots = self._ttl.alive(table, table.find(np.array(keys, np.int64)), time.now_ms)
        names = [f"c{at}" for at in range(len(self._names))]
        columns = read_columns(table, slots, names)
        rows = zip(*(python_values(columns[name]) for name in names), strict=True)
        return {
            key: row if slot >= 0 else None for key, slot, row in zip(keys, slots.tolist(), rows, strict=True)
        }

    def _written(self, rows: Mapping[Key, _Row | None], time: EpochTime) -> RowSet:
        values = [row or (None,) * len(self._names) for row in rows.values()]
        columns = {
            f"c{at}": result_column("ON CONFLICT", column, self._current.columns[at].arrow)
            for at, column in enumerate(zip(*values, strict=True))
        }
        gone = np.array([row is None for row in rows.values()], np.bool_)
        keys = np.array(list(rows), np.int64)
        return written_rows(
            self._current, keys, columns | self._ttl.stamps(len(keys), time.now_ms), removed=gone
        )

    def _table(self, emitted: list[tuple[int, _Row]]) -> pa.Table:
        output = self._declaration.output
        columns = list(zip(*(row for _, row in emitted), strict=True)) if emitted else [()] * len(output)
        arrays = {
            column.name: result_column("ON CONFLICT", values, column.arrow)
            for column, values in zip(output, columns, strict=True)
        }
        return changes_table(output, arrays, np.array([kind for kind, _ in emitted], np.int8))


def _add_or_cancel(pending: list[tuple[int, _Row]], kind: int, row: _Row) -> None:
    """Put a row after others, unless it and one of them cancel each other."""
    is_added = kind in (INSERT, UPDATE_AFTER)
    for at, (other, each) in enumerate(pending):
        if (other in (INSERT, UPDATE_AFTER)) != is_added and each == row:
            del pending[at]
            return
    pending.append((kind, row))
