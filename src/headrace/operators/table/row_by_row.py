"""Every change of every row, as Flink emits them without mini-batches (``table.exec.mini-batch.enabled: false``).

An epoch is processed in rounds: the first row of each key, then the second of each, and so on. In a round each key
has one row, so the output is what this row changes; and as keys are independent, the rounds of all of them run
together. Emitted rows carry the number of the row that caused them, and are sorted by it.

    rows    a1 b1 a2 a3 b2   ->   rounds  a1 b1 | a2 b2 | a3   ->   changes of  a1 b1 a2 a3 b2

Of two inputs, the rows of the left one come first: Flink leaves open which of two inputs is read first. State is
changed after every round, in small tables with the rows of the epoch's keys; their final contents are written as
after any other epoch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    EVENT,
    EpochOutput,
    EpochTime,
    InputSpec,
    TableOperator,
    hashes_of,
    numbers,
)
from headrace.operators.table.declarations import (
    ChangelogNormalizeDeclaration,
    DeduplicateDeclaration,
    GroupAggregateDeclaration,
    JoinAssociationsDeclaration,
    JoinDeclaration,
    RankDeclaration,
    StatefulNode,
)
from headrace.operators.table.sink_declarations import SinkUpsertMaterializeDeclaration
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Ints
from headrace.state.hashed import together
from headrace.state.row_sets import RowSet

__all__ = ["RowByRowOperator", "emits_every_change", "without_event"]

#: Where a later row of an epoch may change what an earlier one has made a node emit.
_UPDATING = (
    GroupAggregateDeclaration,
    JoinDeclaration,
    JoinAssociationsDeclaration,
    RankDeclaration,
    DeduplicateDeclaration,
    ChangelogNormalizeDeclaration,
    SinkUpsertMaterializeDeclaration,
)


def emits_every_change(declaration: object) -> bool:
    """Whether a node processes its rows one by one: those that only time makes emit need not."""
    if not isinstance(declaration, _UPDATING) or not declaration.row_by_row:
        return False
    is_of_interval = getattr(declaration, "interval_ms", None) is not None
    return not declaration.goes_by_watermark and not is_of_interval


def without_event(schema: Schema) -> Schema:
    """Return the columns of rows without the one that says which row of the epoch each is."""
    return tuple(column for column in schema if column.name != EVENT)


class RowByRowOperator:
    """Has another operator process an epoch row by row.

    Args:
        operator: The other one; it tells in `EVENT` which row caused each of its changes.
        declaration: What it is. If its output has the column `EVENT`, that is passed on.
    """

    def __init__(self, operator: TableOperator, declaration: StatefulNode) -> None:
        self._operator = operator
        self._passes_events = any(column.name == EVENT for column in declaration.output)
        self._columns = [column.name for column in declaration.output]
        self.layouts = operator.layouts
        self.inputs = tuple(_one_by_one(spec) for spec in operator.inputs)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        rounds = list(_rounds(inputs))
        if len(rounds) <= 1:
            output = self._operator.process(rounds[0] if rounds else {}, state, time)
            return replace(output, rows=self._in_order([output.rows]))
        # State whose time is over is looked for among all keys, not only those that have rows.
        outputs = [self._operator.process({}, state, time)]
        parent = os.path.dirname(next(iter(state.values())).directory)
        with tempfile.TemporaryDirectory(prefix="rounds-", dir=parent) as directory:
            tables = {
                name: _part_of(table, _keys_of(inputs), os.path.join(directory, name))
                for name, table in state.items()
            }
            before = 0
            for each in rounds:
                output = self._operator.process(
                    each, tables, replace(time, rows_before=before, keeps_state=True)
                )
                before += sum(rows.num_rows for rows in each.values())
                for name, rows in output.changes.items():
                    tables[name].apply(rows)
                outputs.append(output)
            for table in tables.values():
                table.close()
        return EpochOutput(
            self._in_order([output.rows for output in outputs]),
            _merged([output.changes for output in outputs]),
            sum(output.late_rows for output in outputs),
            outputs[-1].next_timer_ms,
        )

    def _in_order(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Put changes in the order of the rows that caused them."""
        caused = [part for part in parts if EVENT in part.column_names]
        if not caused:  # nothing comes out
            caused = [parts[0].append_column(EVENT, pa.array([], pa.int64()))]
        rows = pa.concat_tables(caused)
        order = np.argsort(numbers(rows, EVENT), kind="stable")
        rows = rows.take(pa.array(order))
        if not self._passes_events:
            return rows.drop_columns([EVENT])
        return rows.select(
            [*self._columns, *(name for name in rows.column_names if name not in self._columns)]
        )


def _one_by_one(spec: InputSpec) -> InputSpec:
    """Have rows of a key not combined by Spark."""
    return spec if spec.group_by is None else replace(spec, group_by=(*spec.group_by, EVENT))


def _rounds(inputs: Mapping[int, pa.Table]) -> Iterator[dict[int, pa.Table]]:
    """Return the rows of each round, by side."""
    sides = [side for side, rows in inputs.items() if rows.num_rows]
    if not sides:
        return
    keys = np.concatenate([hashes_of(inputs[side]) for side in sides])
    events = np.concatenate([numbers(inputs[side], EVENT) for side in sides])
    round_of = _round_numbers(keys, events)
    start = 0
    parts: list[tuple[int, pa.Table, Ints]] = []
    for side in sides:
        rows = inputs[side]
        own = round_of[start : start + rows.num_rows]
        order = np.lexsort((events[start : start + rows.num_rows], own))
        parts.append((side, rows.take(pa.array(order)).combine_chunks(), own[order]))
        start += rows.num_rows
    for number in range(int(round_of.max()) + 1):
        chosen = {}
        for side, rows, own in parts:
            first, end = np.searchsorted(own, (number, number + 1))
            if end > first:
                chosen[side] = rows.slice(first, end - first)
        yield chosen


def _round_numbers(keys: Ints, events: Ints) -> Ints:
    """Return the place of each row's event among the events of its key; several inputs may have rows of one event."""
    order, begins = together(keys)
    ids = np.empty(len(order), np.int64)
    ids[order] = np.cumsum(begins) - 1
    order = np.lexsort((events, ids))
    ids, events = ids[order], events[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = ids[1:] != ids[:-1]
    is_other = is_first.copy()
    is_other[1:] |= events[1:] != events[:-1]
    counted = np.cumsum(is_other) - 1
    firsts = np.flatnonzero(is_first)
    lengths = np.diff(np.append(firsts, len(order)))
    numbers_ = np.empty(len(order), np.int64)
    numbers_[order] = counted - np.repeat(counted[firsts], lengths)
    return numbers_


def _keys_of(inputs: Mapping[int, pa.Table]) -> Ints:
    keys = np.concatenate([hashes_of(rows) for rows in inputs.values()])
    order, begins = together(keys)
    return keys[order[begins]]


def _part_of(table: SlotTable, keys: Ints, directory: str) -> SlotTable:
    """Return a table with the rows of some keys."""
    if table.layout.has_owners:
        _, slots = table.members(keys)
    else:
        slots = table.find(keys)
        slots = slots[slots >= 0]
    part = SlotTable(directory, table.layout)
    if len(slots):
        part.apply(table.rows(slots))
    return part


def _merged(parts: Sequence[Mapping[str, RowSet]]) -> dict[str, RowSet]:
    """Lay what several rounds have written over each other."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: RowSet.merged([part[name] for part in parts if name in part], keep_removals=True)
        for name in names
    }
