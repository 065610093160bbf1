"""Rows that wait in state for their time, with their keys, times and arrival order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import positions_in, read_columns, with_numbers, written_rows
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_TIME, _ORDER = "time", "order"
_NUMBERED = (ColumnType(_TIME, pa.int64(), is_key=True), ColumnType(_ORDER, pa.int64(), is_key=True))
#: Room for the rows of an epoch, in numbers that say in which order rows came.
_PLACE_BITS = 32
#: Up to how many rows a table is looked through for those of some keys.
_FEW = 1_000_000


@dataclass
class TimedRows:
    """Rows with their keys and times, and the order in which they came."""

    columns: list[pa.Array]
    owners: Ints
    times: Ints
    order: Ints

    def take(self, positions: Ints | Bools) -> TimedRows:
        if positions.dtype == np.bool_:
            if positions.all():
                return self
            positions = np.flatnonzero(positions)
        picks = pa.array(positions)
        return TimedRows(
            [column.take(picks) for column in self.columns],
            self.owners[positions],
            self.times[positions],
            self.order[positions],
        )


def joined_rows(first: TimedRows, second: TimedRows) -> TimedRows:
    """Return rows one after another."""
    return TimedRows(
        [pa.concat_arrays([a, b]) for a, b in zip(first.columns, second.columns, strict=True)],
        np.concatenate([first.owners, second.owners]),
        np.concatenate([first.times, second.times]),
        np.concatenate([first.order, second.order]),
    )


class TimedTable:
    """A table of rows with times.

    Args:
        name: Its name.
        types: The columns of its rows.
    """

    def __init__(self, name: str, types: Sequence[pa.DataType]) -> None:
        self.name = name
        self._types = list(types)
        self._names = [f"c{at}" for at in range(len(types))]
        kept = [
            ColumnType(column, kind, is_key=True) for column, kind in zip(self._names, types, strict=True)
        ]
        self.layout = TableLayout(name, (*kept, *_NUMBERED), has_owners=True, key_words=KEY_WORDS + 1)

    def none(self) -> TimedRows:
        nothing = np.empty(0, np.int64)
        columns = [pa.array([], kind) for kind in self._types]
        return TimedRows(columns, np.empty((0, KEY_WORDS), np.int64), nothing, nothing)

    def times(self, table: SlotTable, slots: Ints) -> Ints:
        """Return the times of rows."""
        return int_cells(table, _TIME, slots)

    def rows_at(self, table: SlotTable, slots: Ints) -> TimedRows:
        """Return rows of the table."""
        columns = read_columns(table, slots, [*self._names, _TIME, _ORDER])
        times, order = (columns.pop(name).to_numpy(zero_copy_only=False) for name in (_TIME, _ORDER))
        return TimedRows(list(columns.values()), table.owners_at(slots), times, order)

    def of_keys(self, table: SlotTable, owners: Ints) -> tuple[Ints, Ints]:
        """Return the rows of different keys: the positions of the keys, and slots."""
        live = table.live
        if len(live) > _FEW + 256 * len(owners):
            return table.members(owners)
        # A key's rows are found one after the other, however many it has: it is less work to look at all.
        positions = positions_in(owners, table.owners_at(live))
        found = positions >= 0
        return positions[found], live[found]

    def written(self, rows: TimedRows, *, is_gone: Bools | None = None) -> RowSet:
        """Return rows to write, or to take away."""
        columns = dict(zip(self._names, rows.columns, strict=True))
        columns |= {_TIME: pa.array(rows.times), _ORDER: pa.array(rows.order)}
        keys = with_numbers(rows.owners, rows.order)
        return written_rows(self.layout, keys, columns, owners=rows.owners, removed=is_gone)

    def removed(self, table: SlotTable, slots: Ints) -> RowSet:
        """Return rows to take away."""
        rows = table.rows(slots)
        return RowSet(rows.keys, rows.owners, np.ones(len(slots), np.bool_), rows.columns, rows.types)


def arrival_order(epoch: int, count: int) -> Ints:
    """Return numbers for the rows of an epoch, in the order in which they came: higher ones than those before."""
    return (epoch << _PLACE_BITS) + np.arange(count)


def int_cells(table: SlotTable, name: str, slots: Ints) -> Ints:
    """Return a BIGINT column of rows of state."""
    values = table.cells(name, slots).values
    assert values is not None
    return values.view(np.int64)


def merged_changes(changes: Sequence[tuple[str, RowSet]]) -> dict[str, RowSet]:
    """Return what to write to each table; of what is written twice, the last counts."""
    by_table: dict[str, list[RowSet]] = {}
    for name, rows in changes:
        if len(rows):
            by_table.setdefault(name, []).append(rows)
    return {
        name: rows[0] if len(rows) == 1 else RowSet.merged(rows, keep_removals=True)
        for name, rows in by_table.items()
    }
