"""ValueBag: the values of an argument per key, with their number of occurrences.

DISTINCT aggregates depend on which values appear and disappear; MIN and MAX of a changelog need the next value when
the extreme one is retracted. A bag takes the differences of an epoch and returns the values that appeared and
disappeared. Calls with the same argument share a bag, whatever their FILTER clauses: a value has a count for each of
them, so Spark sends it once, and it is in state once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.accumulators import ValueChanges, rows_sql
from headrace.operators.table.base import (
    ROW_HASHES,
    InputSpec,
    hashes_of,
    numbers,
    positions_in,
    quote,
    read_columns,
    written_rows,
)
from headrace.operators.table.ttl import RowTimeToLive
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

_VALUE = "v"


@dataclass(frozen=True)
class BagChanges:
    """What an epoch did to the values of keys."""

    #: By FILTER clause.
    values: Sequence[ValueChanges]
    #: The rows of state to write.
    rows: RowSet


class ValueBag:
    """The values of one argument.

    Args:
        side: The input its differences come in.
        keys: The columns of the group's key.
        arguments: The columns of the argument; usually one.
        kind: The type of the first argument.
        filters: The columns of FILTER clauses; None: all rows count.
        ttl: Of the group's state.
        retracts: Whether rows may be retracted.
    """

    def __init__(
        self,
        side: int,
        keys: tuple[str, ...],
        arguments: tuple[str, ...],
        kind: pa.DataType,
        filters: Sequence[str | None],
        ttl: RowTimeToLive,
        *,
        retracts: bool,
    ) -> None:
        self._counts = [f"c{index}" if index else "c" for index in range(len(filters))]
        conditions = [f"{quote(argument)} IS NOT NULL" for argument in arguments]
        clauses = [quote(each) for each in filters if each is not None]
        if len(clauses) == len(filters):
            conditions.append(f"({' OR '.join(clauses)})")
        self.input = InputSpec(
            side=side,
            source=0,
            keys=keys,
            group_by=tuple(dict.fromkeys((*keys, *arguments))),
            items=tuple(
                (rows_sql(retracts=retracts, filter=each if len(filters) > 1 else None), name)
                for each, name in zip(filters, self._counts, strict=True)
            ),
            where=" AND ".join(conditions),
            row_keys=(*keys, *arguments),
        )
        self._argument = arguments[0]
        self._ttl = ttl
        self._retracts = retracts
        self.layout = TableLayout(
            f"values{side}",
            (
                ColumnType(_VALUE, kind, is_key=True),
                *(ColumnType(name, pa.int64()) for name in self._counts),
                *ttl.columns,
            ),
            has_owners=True,
        )

    def change(self, rows: pa.Table | None, keys: Ints, state: SlotTable, now_ms: int) -> BagChanges | None:
        """Add an epoch's differences.

        Args:
            rows: They, per key and value.
            keys: The hashes of the epoch's keys.
            state: The table, as it was.
            now_ms: The clock.
        """
        if rows is None or not rows.num_rows:
            return None
        owners, row_keys = hashes_of(rows), hashes_of(rows, ROW_HASHES)
        slots = self._ttl.alive(state, state.find(row_keys), now_ms)
        counted = read_columns(state, slots, self._counts)
        before = [pc.fill_null(counted[name], 0).to_numpy(zero_copy_only=False) for name in self._counts]
        after = [
            np.maximum(count + numbers(rows, name), 0)
            for count, name in zip(before, self._counts, strict=True)
        ]
        signs = [(new > 0).astype(np.int64) - (old > 0) for old, new in zip(before, after, strict=True)]
        values = rows.column(self._argument).combine_chunks()
        changed = np.flatnonzero(np.logical_or.reduce([sign != 0 for sign in signs]))
        if self._retracts or self._ttl:
            written = np.arange(len(owners))
        else:
            # Nobody takes a value back, so nobody asks how often it came: only what is new is written.
            written = changed
        columns = {
            _VALUE: values.take(pa.array(written)),
            **{name: pa.array(new[written]) for name, new in zip(self._counts, after, strict=True)},
            **self._ttl.stamps(len(written), now_ms),
        }
        removed = np.logical_and.reduce([new[written] == 0 for new in after])
        stored = written_rows(
            self.layout, row_keys[written], columns, owners=owners[written], removed=removed
        )
        positions = np.full(len(owners), -1, np.int64)
        positions[changed] = positions_in(keys, owners[changed])
        changes = []
        for sign in signs:
            moved = np.flatnonzero(sign)
            changes.append(
                ValueChanges(positions[moved], sign[moved], values.take(pa.array(moved)), len(keys))
            )
        return BagChanges(changes, stored)

    def all_values(
        self, changes: BagChanges, filter: int, positions: Ints, keys: Ints, state: SlotTable, now_ms: int
    ) -> tuple[Ints, pa.Array]:
        """Return all values that some keys have after the changes: positions of keys, and values."""
        count = self._counts[filter]
        at, slots = state.members(keys[positions])
        alive = self._ttl.alive(state, slots, now_ms) >= 0
        at, slots = at[alive], slots[alive]
        gone = positions_in(changes.rows.keys, state.keys_at(slots)) >= 0  # those changed come below
        at, slots = at[~gone], slots[~gone]
        kept = read_columns(state, slots, [_VALUE, count])
        is_there = pc.greater(kept[count], 0)
        at = at[is_there.to_numpy(zero_copy_only=False)]
        fresh_rows = changes.rows.take(~changes.rows.removed)
        written = fresh_rows.to_arrow()
        is_counted = pc.greater(written[count], 0)
        fresh_rows = fresh_rows.take(is_counted.to_numpy(zero_copy_only=False))
        fresh = written[_VALUE].filter(is_counted)
        assert fresh_rows.owners is not None
        owners = positions_in(keys[positions], fresh_rows.owners)
        mine = owners >= 0
        return (
            np.concatenate([positions[at], positions[owners[mine]]]),
            pa.concat_arrays([kept[_VALUE].filter(is_there), fresh.filter(pa.array(mine))]),
        )
