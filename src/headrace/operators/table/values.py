"""ValueBag: the values of an argument per key, with how often each is there.

DISTINCT aggregates go by values that appear and disappear; MIN and MAX of a changelog need the next value when the
lowest is taken back. Both are answered here: an epoch's differences in, what appeared and disappeared out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.accumulators import ValueChanges
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
from headrace.operators.table.ttl import TimeToLive
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

_VALUE = "v"
_COUNT = "c"


@dataclass(frozen=True)
class BagChanges:
    """What an epoch did to the values of keys."""

    values: ValueChanges
    #: The rows of state to write.
    rows: RowSet


class ValueBag:
    """The values of one argument.

    Args:
        side: The input its differences come in.
        keys: The columns of the group's key.
        arguments: The columns of the argument; usually one.
        filter: The column of its FILTER clause.
        kind: The type of the first argument.
        rows: Spark SQL of how many rows there are.
        ttl: Of the group's state.
    """

    def __init__(
        self,
        side: int,
        keys: tuple[str, ...],
        arguments: tuple[str, ...],
        filter: str | None,
        kind: pa.DataType,
        rows: str,
        ttl: TimeToLive,
    ) -> None:
        conditions = [f"{quote(argument)} IS NOT NULL" for argument in arguments]
        conditions += [quote(filter)] if filter else []
        self.input = InputSpec(
            side=side,
            source=0,
            keys=keys,
            group_by=tuple(dict.fromkeys((*keys, *arguments))),
            items=((rows, _COUNT),),
            where=" AND ".join(conditions),
            row_keys=(*keys, *arguments),
        )
        self._argument = arguments[0]
        self._ttl = ttl
        self.layout = TableLayout(
            f"values{side}",
            (ColumnType(_VALUE, kind, is_key=True), ColumnType(_COUNT, pa.int64()), *ttl.columns),
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
        counts = read_columns(state, slots, [_COUNT])[_COUNT]
        before = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False)
        after = np.maximum(before + numbers(rows, _COUNT), 0)
        signs = (after > 0).astype(np.int64) - (before > 0).astype(np.int64)
        values = rows.column(self._argument).combine_chunks()
        columns = {_VALUE: values, _COUNT: pa.array(after), **self._ttl.stamps(len(after), now_ms)}
        written = written_rows(self.layout, row_keys, columns, owners=owners, removed=after == 0)
        moved = np.flatnonzero(signs)
        positions = positions_in(keys, owners[moved])
        changes = ValueChanges(positions, signs[moved], values.take(pa.array(moved)), len(keys))
        return BagChanges(changes, written)

    def all_values(
        self, changes: BagChanges, positions: Ints, keys: Ints, state: SlotTable, now_ms: int
    ) -> tuple[Ints, pa.Array]:
        """Return all values that some keys have after the changes: positions of keys, and values."""
        at, slots = state.members(keys[positions])
        alive = self._ttl.alive(state, slots, now_ms) >= 0
        at, slots = at[alive], slots[alive]
        gone = positions_in(changes.rows.keys, state.keys_at(slots)) >= 0  # those changed come below
        kept = read_columns(state, slots[~gone], [_VALUE])[_VALUE]
        written = ~changes.rows.removed
        fresh_rows = changes.rows.take(written)
        fresh = fresh_rows.to_arrow()[_VALUE]
        assert fresh_rows.owners is not None
        owners = positions_in(keys[positions], fresh_rows.owners)
        mine = owners >= 0
        return (
            np.concatenate([positions[at[~gone]], positions[owners[mine]]]),
            pa.concat_arrays([kept, fresh.filter(pa.array(mine))]),
        )
