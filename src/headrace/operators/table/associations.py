"""Joins with a condition besides the keys, second half: how many partners each row of an outer side has.

    left  ----------------------------------------------.
      '--> inner join by keys --Spark: condition--> pairs --> here: pairs, and rows that have none
    right --^

State is two counters per row: how often the row exists, and in how many pairs it is (Flink's associations). As in
`join`, retractions are emitted before insertions, and those of SEMI and ANTI joins have the same kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    EVENT,
    EpochOutput,
    EpochTime,
    InputSpec,
    events_of,
    hashes_of,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import (
    UPDATE_AFTER,
    UPDATE_BEFORE,
    changed_positions,
    changes_table,
    concat_changes,
    kinds_of,
    weights_of,
)
from headrace.operators.table.declarations import JoinAssociationsDeclaration, JoinKind, OuterSide
from headrace.operators.table.kept_rows import numbered
from headrace.operators.table.steps import KIND
from headrace.operators.table.ttl import RowTimeToLive
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_ROWS, _PAIRS = "rows", "pairs"
_PAIR_INPUT = 0


class JoinAssociationsOperator:
    def __init__(self, declaration: JoinAssociationsDeclaration) -> None:
        self._declaration = declaration
        self._sides = [_CountedSide(side) for side in declaration.sides]
        self.layouts = tuple(side.layout for side in self._sides)
        pairs = InputSpec(side=_PAIR_INPUT, source=_PAIR_INPUT, keys=declaration.sides[0].pair_keys)
        self.inputs = (pairs, *(side.input for side in self._sides))

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        pairs = InputRows.of(inputs.get(_PAIR_INPUT))
        counted = [
            side.count(InputRows.of(inputs.get(side.input.source)), pairs, state[side.name], time)
            for side in self._sides
        ]
        emitted = [self._of_side(side, each) for side, each in zip(self._sides, counted, strict=True)]
        if self._declaration.kind not in (JoinKind.SEMI, JoinKind.ANTI) and pairs.table is not None:
            # A row whose time is over is not there any more, though the first half may still know it.
            known = np.logical_and.reduce([each.is_known[each.of_pairs] for each in counted])
            is_update = self._takes_its_pairs(pairs, counted)
            emitted.insert(0, Emitted(pairs.table, np.where(known, pairs.weights, 0), is_update))
        changes = {side.name: each.written for side, each in zip(self._sides, counted, strict=True)}
        return EpochOutput(
            associations_output(self._declaration, emitted),
            {name: rows for name, rows in changes.items() if len(rows)},
        )

    def _takes_its_pairs(self, pairs: InputRows, counted: Sequence[_Counted]) -> Bools:
        """Return the pairs that go with an update of the side that is not outer."""
        goes: Bools = pairs.is_update & (pairs.weights < 0)
        for each in counted:
            goes &= ~each.is_own[each.of_pairs]
        return goes & (len(counted) == 1)

    def _of_side(self, side: _CountedSide, counted: _Counted) -> Emitted:
        """Return the rows of a side that come and go, by whether they have partners."""
        was_alone, is_alone = counted.was_alone, counted.pairs_after == 0
        if self._declaration.kind is JoinKind.SEMI:
            was, is_now = ~was_alone, ~is_alone
        else:
            was, is_now = was_alone, is_alone
        counts = np.where(is_now, counted.rows_after, 0) - np.where(was, counted.rows_before, 0)
        is_half = self._declaration.kind in (JoinKind.SEMI, JoinKind.ANTI)
        by_partners = counted.only_updates & (self._declaration.kind is JoinKind.SEMI)
        is_update = np.where(counted.is_own, counted.is_update, by_partners) & is_half
        return Emitted(counted.columns, counts, is_update)


@dataclass
class Emitted:
    """Rows of the result, with how many of each come (go, if negative)."""

    columns: pa.Table
    counts: Ints
    is_update: Bools


def associations_output(declaration: JoinAssociationsDeclaration, emitted: Sequence[Emitted]) -> pa.Table:
    """Put rows of the result together: what goes first, then what comes."""
    tables = []
    for comes in (False, True):
        for part in emitted:
            repeated = changed_positions(part.counts, comes=comes)
            if not len(repeated):
                continue
            rows = part.columns.take(pa.array(repeated))
            columns = {
                column.name: rows.column(name)
                if name in rows.column_names
                else pa.nulls(len(repeated), column.arrow)
                for column, name in zip(declaration.output, declaration.pair_columns, strict=True)
            }
            kinds = None
            if not declaration.is_insert_only:
                kinds = kinds_of(part.is_update[repeated], comes=comes)
            events = events_of(rows)
            caused = None if events is None else events.to_numpy()
            tables.append(changes_table(declaration.output, columns, kinds, caused))
    return concat_changes(tables, declaration.output, is_insert_only=declaration.is_insert_only)


class InputRows:
    """Rows of an input, or none."""

    def __init__(self, table: pa.Table | None) -> None:
        self.table = table
        self.weights: Ints = np.empty(0, np.int64)
        self.is_update: Bools = np.empty(0, np.bool_)
        self.owners: Ints = np.empty((0, 2), np.int64)
        if table is None:
            return
        self.owners = hashes_of(table)
        self.weights = np.ones(table.num_rows, np.int64)
        self.is_update = np.zeros(table.num_rows, np.bool_)
        if KIND in table.column_names:
            kinds = table.column(KIND).to_numpy()
            self.weights = weights_of(kinds)
            self.is_update = (kinds == UPDATE_BEFORE) | (kinds == UPDATE_AFTER)

    @staticmethod
    def of(table: pa.Table | None) -> InputRows:
        return InputRows(table.combine_chunks() if table is not None and table.num_rows else None)

    def __len__(self) -> int:
        return len(self.weights)

    def ids(self, names: tuple[str, str]) -> Ints:
        return np.empty((0, 2), np.int64) if self.table is None else hashes_of(self.table, names)


@dataclass
class _Counted:
    """What happened to the rows of a side that an epoch has touched, each once."""

    rows_before: Ints
    rows_after: Ints
    pairs_before: Ints
    pairs_after: Ints
    #: How many pairs came, or went if negative.
    pairs_moved: Ints
    is_update: Bools
    #: Whether all that happened to a row's pairs were updates.
    only_updates: Bools
    #: Of which of them each pair is.
    of_pairs: Ints
    columns: pa.Table
    written: RowSet

    @property
    def was_alone(self) -> Bools:
        """Whether the row was in no pair; of one that goes those count that go with it, as in Flink."""
        alone: Bools = np.where(self.rows_after == 0, self.pairs_moved == 0, self.pairs_before == 0)
        return alone

    @property
    def is_own(self) -> Bools:
        """Whether there are more or less of the row itself."""
        differs: Bools = self.rows_before != self.rows_after
        return differs

    @property
    def is_known(self) -> Bools:
        return (self.rows_before > 0) | (self.rows_after > 0)


class _CountedSide:
    """The counters of one side."""

    def __init__(self, side: OuterSide) -> None:
        self._side = side
        self._ttl = RowTimeToLive(side.ttl_ms)
        self.name = f"side{side.source}"
        self.layout = TableLayout(
            self.name,
            (ColumnType(_ROWS, pa.int64()), ColumnType(_PAIRS, pa.int64()), *self._ttl.columns),
            has_owners=True,
        )
        self.input = InputSpec(side=side.source, source=side.source, keys=side.keys)

    def count(self, rows: InputRows, pairs: InputRows, table: SlotTable, time: EpochTime) -> _Counted:
        """Add what an epoch did to the rows and their pairs."""
        ids = self._side.ids
        keys, of_rows, of_pairs = numbered(rows.ids(ids), pairs.ids(ids))
        added, matched = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        np.add.at(added, of_rows, rows.weights)
        np.add.at(matched, of_pairs, pairs.weights)
        is_update = np.zeros(len(keys), np.bool_)
        is_update[of_rows[rows.is_update]] = True
        only_updates = np.ones(len(keys), np.bool_)
        only_updates[of_pairs[~pairs.is_update]] = False
        slots = self._ttl.alive(table, table.find(keys), time.now_ms)
        stored = read_columns(table, slots, [_ROWS, _PAIRS])
        rows_before, pairs_before = (
            stored[name].fill_null(0).to_numpy(zero_copy_only=False) for name in (_ROWS, _PAIRS)
        )
        if self._ttl:
            # A row whose time is over is known again when it goes.
            rows_before = np.where(rows_before == 0, np.maximum(-added, 0), rows_before)
        # What is not there cannot go, and has no partners.
        rows_after = np.maximum(rows_before + added, 0)
        pairs_after = np.where(rows_after > 0, np.maximum(pairs_before + matched, 0), 0)
        firsts = np.empty(len(keys), np.int64)
        of_both = np.concatenate([of_rows, of_pairs])
        firsts[of_both[::-1]] = np.arange(len(of_both))[::-1]
        owners = np.concatenate([rows.owners, pairs.owners])[firsts]
        columns = {_ROWS: pa.array(rows_after), _PAIRS: pa.array(pairs_after)}
        columns |= self._ttl.stamps(len(keys), time.now_ms)
        written = written_rows(self.layout, keys, columns, owners=owners, removed=rows_after == 0)
        known = (rows_before > 0) | (rows_after > 0)
        swept = self._ttl.sweep(table, time.now_ms)
        parts = [written.take(known)] if swept is None else [swept, written.take(known)]
        return _Counted(
            rows_before,
            rows_after,
            pairs_before,
            pairs_after,
            matched,
            is_update,
            only_updates,
            of_pairs,
            self._columns(rows, pairs, firsts),
            RowSet.merged(parts, keep_removals=True),
        )

    def _columns(self, rows: InputRows, pairs: InputRows, firsts: Ints) -> pa.Table:
        """Return the side's columns of the touched rows, from its own rows or from pairs."""
        tables = [each.table for each in (rows, pairs) if each.table is not None]
        picks = pa.array(firsts)
        columns = {}
        for column in self._side.columns:
            chunks = [chunk for table in tables for chunk in table.column(column.name).chunks]
            columns[column.name] = pa.chunked_array(chunks, None if chunks else column.arrow).take(picks)
        events = [table.column(EVENT) for table in tables if EVENT in table.column_names]
        if events:
            chunks = [chunk for column in events for chunk in column.chunks]
            columns[EVENT] = pa.chunked_array(chunks).take(picks)
        return pa.table(columns)
