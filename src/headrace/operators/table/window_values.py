"""WindowValues: the values of an argument per key and slice, for DISTINCT aggregates and retracted extremes of windows.

slice    [0..2)  [2..4)          of a window over both, a value that is in both counts once
values    a b     b c            -> a b c
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.operators.table.accumulators import ValueChanges
from headrace.operators.table.base import (
    ROW_HASHES,
    InputSpec,
    hashes_of,
    numbers,
    positions_in,
    quote,
    read_columns,
    with_numbers,
    written_rows,
)
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

_START, _END, _VALUE, _COUNT = "slice_start", "slice_end", "v", "c"


@dataclass(frozen=True)
class SliceColumns:
    """How Spark tells slices apart.

    Args:
        derived: Spark SQL and name of columns to add.
        names: Which of them tell slices apart.
        where: Rows that belong to a slice.
    """

    derived: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    where: str


@dataclass
class SlicedValues:
    """Values that windows may want, with the slices they are in."""

    owners: Ints
    starts: Ints
    ends: Ints
    #: A column per argument.
    values: list[pa.Array]

    def of_windows(self, positions: Ints, windows: Ints, starts: Ints, groups: Ints) -> ValueChanges:
        """Return the values of windows, each once.

        Args:
            positions: Which value each pair of value and window is of.
            windows: The ends of the windows.
            starts: Their starts.
            groups: What tells the windows apart that fire, as `window_keys`.
        """
        at = positions_in(groups, window_keys(self.owners[positions], windows, starts))
        wanted = np.flatnonzero(at >= 0)
        picks = pa.array(positions[wanted])
        columns = {f"{_VALUE}{at}": each.take(picks) for at, each in enumerate(self.values)}
        table = pa.table({"g": at[wanted], **columns})
        once = table.group_by(table.column_names, use_threads=False).aggregate([])
        # Of several arguments only how many there are is wanted.
        first = once.column(f"{_VALUE}0").combine_chunks()
        return ValueChanges(once.column("g").to_numpy(), np.ones(once.num_rows, np.int64), first, len(groups))


def window_keys(owners: Ints, windows: Ints, starts: Ints) -> Ints:
    """Return what tells windows of keys apart."""
    return with_numbers(owners, windows, starts)


class WindowValues:
    """The values of one argument, or of several together.

    Args:
        side: The input its differences come in.
        keys: The columns of the key.
        arguments: The columns of the argument; usually one.
        filter: The column of its FILTER clause.
        kinds: Their types.
        rows: Spark SQL of how many rows there are.
        slices: How Spark tells slices apart.
    """

    def __init__(
        self,
        side: int,
        keys: tuple[str, ...],
        arguments: tuple[str, ...],
        filter: str | None,
        kinds: Sequence[pa.DataType],
        rows: str,
        slices: SliceColumns,
    ) -> None:
        conditions = [slices.where, *(f"{quote(each)} IS NOT NULL" for each in arguments)]
        conditions += [quote(filter)] if filter else []
        by = tuple(dict.fromkeys((*keys, *slices.names, *arguments)))
        #: The columns of state that keep them.
        self._values = {_VALUE if at == 0 else f"{_VALUE}{at}": each for at, each in enumerate(arguments)}
        self.input = InputSpec(
            side=side,
            source=0,
            keys=keys,
            derived=slices.derived,
            group_by=by,
            items=((rows, _COUNT),),
            where=" AND ".join(conditions),
            row_keys=by,
        )
        self.layout = TableLayout(
            f"values{side}",
            (
                ColumnType(_START, pa.int64(), is_key=True),
                ColumnType(_END, pa.int64(), is_key=True),
                *(ColumnType(*each, is_key=True) for each in zip(self._values, kinds, strict=True)),
                ColumnType(_COUNT, pa.int64()),
            ),
            has_owners=True,
        )

    def advance(
        self,
        rows: pa.Table | None,
        state: Mapping[str, SlotTable],
        last_window: Callable[[Ints], Ints],
        start_of: Callable[[Ints], Ints],
        before: int,
        after: int,
    ) -> tuple[SlicedValues, RowSet]:
        """Add an epoch's differences.

        Args:
            rows: They, per key, slice and value.
            state: The tables as they were.
            last_window: From the end of a slice to the end of the last window around it.
            start_of: From the end of a slice to its start, where that is not said.
            before: The watermark while rows come.
            after: The watermark after them.

        Returns:
            The values that windows may want which are due, and the rows of state to write.
        """
        table = state[self.layout.name]
        live = table.live
        stored_ends = table.cells(_END, live).values
        assert stored_ends is not None
        due = live[stored_ends.view(np.int64) - 1 <= after]
        keys, owners, columns = self._fresh(rows, table, last_window, start_of, before)
        due = np.setdiff1d(due, table.find(keys))
        stored = read_columns(table, due, [column.name for column in self.layout.columns])
        columns = {
            name: pa.concat_arrays([stored[name], columns[name].cast(stored[name].type)]) for name in stored
        }
        keys, owners = (
            np.concatenate([table.keys_at(due), keys]),
            np.concatenate([table.owners_at(due), owners]),
        )
        counts, ends = _ints(columns[_COUNT]), _ints(columns[_END])
        is_over = (last_window(ends) - 1 <= after) | (counts <= 0)
        written = written_rows(self.layout, keys, columns, owners=owners, removed=is_over)
        touched = np.ones(len(keys), np.bool_)
        touched[: len(due)] = is_over[: len(due)]
        there = np.flatnonzero(counts > 0)
        values = SlicedValues(
            owners[there],
            _ints(columns[_START])[there],
            ends[there],
            [columns[name].take(pa.array(there)) for name in self._values],
        )
        return values, written.take(touched)

    def _fresh(
        self,
        rows: pa.Table | None,
        table: SlotTable,
        last_window: Callable[[Ints], Ints],
        start_of: Callable[[Ints], Ints],
        before: int,
    ) -> tuple[Ints, Ints, dict[str, pa.Array]]:
        """Return keys, owners and columns of what an epoch changed, with the counts as they are now."""
        if rows is None or not rows.num_rows:
            empty = {column.name: pa.array([], column.arrow) for column in self.layout.columns}
            return np.empty((0, 2), np.int64), np.empty((0, 2), np.int64), empty
        on_time = last_window(numbers(rows, _END)) - 1 > before
        rows = rows.filter(pa.array(on_time)).combine_chunks()
        keys, ends = hashes_of(rows, ROW_HASHES), numbers(rows, _END)
        starts = numbers(rows, _START) if _START in rows.column_names else start_of(ends)
        old = read_columns(table, table.find(keys), [_COUNT])[_COUNT].fill_null(0)
        counts = _ints(old) + numbers(rows, _COUNT)
        columns = {
            _START: pa.array(starts),
            _END: pa.array(ends),
            **{name: rows.column(each).combine_chunks() for name, each in self._values.items()},
            _COUNT: pa.array(counts),
        }
        return keys, hashes_of(rows), columns


def _ints(array: pa.Array) -> Ints:
    values: Ints = array.to_numpy(zero_copy_only=False)
    return values
