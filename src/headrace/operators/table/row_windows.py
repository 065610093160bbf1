"""Windows of the Table API that count rows: emits the rows of full windows.

    rows of a key    0 1 2 3 4 5 6 7 ...          in arrival order
    window i         [i * slide, i * slide + size)  emitted as a whole when its last row arrives

State has the rows of windows that are not full yet, and the number of rows of each key. A later node aggregates the
windows: their rows arrive together, so it needs no state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    hashes_of,
    read_columns,
    with_numbers,
    written_rows,
)
from headrace.operators.table.changelog import changes_table, empty_changes
from headrace.operators.table.declarations import RowWindowsDeclaration
from headrace.operators.table.kept_rows import counted_up, numbered
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_ROWS, _COUNTS = "rows", "counts"
_NUMBER, _COUNT = "number", "n"


class RowWindowsOperator:
    def __init__(self, declaration: RowWindowsDeclaration, schema: Schema, *, retracts: bool) -> None:
        if retracts:  # as in Flink
            raise UnsupportedFeatureError(
                "a ROWS window over a changelog with updates: a retracted row has no position in it",
                feature="a ROWS window over updates",
                hint="use insert-only rows, or a RANGE window",
            )
        self._declaration = declaration
        self._names = [column.name for column in schema]
        kept = [ColumnType(f"c{at}", column.arrow, is_key=True) for at, column in enumerate(schema)]
        self._rows = TableLayout(
            _ROWS,
            (*kept, ColumnType(_NUMBER, pa.int64(), is_key=True)),
            has_owners=True,
            key_words=KEY_WORDS + 1,
        )
        self._counts = TableLayout(_COUNTS, (ColumnType(_COUNT, pa.int64()),))
        self.layouts = (self._rows, self._counts)
        self.inputs = (InputSpec(side=0, source=0, keys=declaration.keys, items=(WITH_SEQUENCE,)),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        declaration, given = self._declaration, inputs.get(0)
        if given is None or not given.num_rows:
            return EpochOutput(empty_changes(declaration.output, is_insert_only=declaration.is_insert_only))
        given = given.sort_by(SEQUENCE)
        hashes = hashes_of(given)
        keys, of_row, _ = numbered(hashes, hashes[:0])
        before, came = self._counted(state[_COUNTS], keys), np.bincount(of_row)
        after = before + came
        at, slots = state[_ROWS].members(keys)
        old = read_columns(state[_ROWS], slots, [column.name for column in self._rows.columns])
        numbers = np.concatenate([old.pop(_NUMBER).to_numpy(), before[of_row] + _before(of_row, came)])
        columns = [
            pa.concat_arrays([kept, given.column(name).combine_chunks()])
            for kept, name in zip(old.values(), self._names, strict=True)
        ]
        rows = _Numbered(columns, np.concatenate([at, of_row]), numbers)
        full_before, full_after = self._full(before), self._full(after)
        # The first row that a window needs which is not full yet.
        stays = numbers >= full_after[rows.keys] * declaration.slide
        is_old = np.arange(len(numbers)) < len(at)
        changes = {
            _ROWS: self._written(rows, keys, stays & ~is_old, ~stays & is_old),
            _COUNTS: written_rows(self._counts, keys, {_COUNT: pa.array(after)}),
        }
        return EpochOutput(
            self._emitted(rows, full_before, full_after),
            {name: written for name, written in changes.items() if len(written)},
        )

    def _counted(self, table: SlotTable, keys: Ints) -> Ints:
        """Return how many rows keys have had."""
        counts: Ints = read_columns(table, table.find(keys), [_COUNT])[_COUNT].fill_null(0).to_numpy()
        return counts

    def _full(self, counts: Ints) -> Ints:
        """Return how many windows are full with so many rows."""
        size, slide = self._declaration.size, self._declaration.slide
        return np.where(counts < size, 0, (counts - size) // slide + 1)

    def _written(self, rows: _Numbered, keys: Ints, comes: Bools, goes: Bools) -> RowSet:
        """Return the rows of state that come and go."""
        moved = np.flatnonzero(comes | goes)
        picks, owners = pa.array(moved), keys[rows.keys[moved]]
        columns = {f"c{at}": column.take(picks) for at, column in enumerate(rows.columns)}
        return written_rows(
            self._rows,
            with_numbers(owners, rows.numbers[moved]),
            {**columns, _NUMBER: pa.array(rows.numbers[moved])},
            owners=owners,
            removed=goes[moved],
        )

    def _emitted(self, rows: _Numbered, full_before: Ints, full_after: Ints) -> pa.Table:
        """Return the rows of windows that have become full: by key and window, and as they came."""
        declaration = self._declaration
        size, slide = declaration.size, declaration.slide
        first = np.maximum((rows.numbers - size) // slide + 1, full_before[rows.keys])
        last = np.minimum(rows.numbers // slide, full_after[rows.keys] - 1)
        copies = np.maximum(last - first + 1, 0)
        picks = np.repeat(np.arange(len(copies)), copies)
        windows = first[picks] + counted_up(copies)
        order = np.lexsort((rows.numbers[picks], windows, rows.keys[picks]))
        picks, windows = pa.array(picks[order]), windows[order]
        named = {name: column.take(picks) for name, column in zip(self._names, rows.columns, strict=True)}
        kinds = None if declaration.is_insert_only else np.zeros(len(windows), np.int8)
        return changes_table(declaration.output, {**named, declaration.number: pa.array(windows)}, kinds)


@dataclass(frozen=True)
class _Numbered:
    """Rows of state and of the epoch, with the places of their keys, and their numbers in those."""

    columns: Sequence[pa.Array]
    keys: Ints
    numbers: Ints


def _before(of_row: Ints, counts: Ints) -> Ints:
    """Return how many rows of the same key stand before each row."""
    before = np.empty(len(of_row), np.int64)
    before[np.argsort(of_row, kind="stable")] = counted_up(counts)
    return before
