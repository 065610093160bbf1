"""Rows of windows, kept until the watermark has passed the window: window joins, window top-N, window deduplication.

Rows carry their windows; when a window is over, all its rows are processed at once, and the output is insert-only.
Rows that arrive after the end of their window are late and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.associations import Emitted, InputRows, associations_output
from headrace.operators.table.base import EpochOutput, EpochTime, InputSpec, hashes_of, numbers
from headrace.operators.table.changelog import changes_table
from headrace.operators.table.declarations import (
    DeduplicateDeclaration,
    JoinAssociationsDeclaration,
    JoinKind,
    Order,
    RankDeclaration,
    WindowJoinDeclaration,
)
from headrace.operators.table.join import JoinedPart, join_output, pairs_of
from headrace.operators.table.kept_rows import KeptRows, KeptSide, SideChange, concat_rows, numbered
from headrace.operators.table.rank import Ranking
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Bools, Ints
from headrace.state.row_sets import RowSet


@dataclass
class _Due:
    """Rows whose windows are over."""

    rows: KeptRows
    owners: Ints
    written: RowSet
    late: int


class HeldSide:
    """One input of an operator over windows.

    Args:
        name: Of its table.
        number: Of the input.
        keys: What rows are brought together by, their window included.
        schema: The columns.
        window_end: The BIGINT column with the end of a row's window.
        tells_copies_apart: Whether it matters that a row is there already.
    """

    def __init__(
        self,
        name: str,
        number: int,
        keys: tuple[str, ...],
        schema: Schema,
        window_end: str,
        *,
        tells_copies_apart: bool = False,
    ) -> None:
        self._end = window_end
        self._position = [column.name for column in schema].index(window_end)
        self._side = KeptSide(
            name,
            number,
            keys,
            schema,
            0,
            [True] * len(keys),
            retracts=False,
            is_ordered=True,
            tells_copies_apart=tells_copies_apart,
        )
        self.name, self.layout, self.input = name, self._side.layout, self._side.input
        self.types = self._side.types

    def advance(self, rows: pa.Table | None, table: SlotTable, time: EpochTime) -> _Due:
        """Take an epoch's rows, and return those whose windows are over after it."""
        late = 0
        if rows is not None and rows.num_rows:
            on_time = numbers(rows, self._end) - 1 > time.before
            late = int((~on_time).sum())
            rows = rows.filter(pa.array(on_time))
        change = self._side.change(rows, table, time)
        fresh = change.rows(np.zeros(len(change.counts), np.int64))
        is_due = self.ends_of(fresh) - 1 <= time.after
        live = table.live
        ends = table.cells(f"c{self._position}", live).values
        assert ends is not None
        slots = live[ends.view(np.int64) - 1 <= time.after]
        stored = self._side.rows_at(table, slots, np.zeros(len(slots), np.int64))
        # A row that is there already and came again: its new count is with the change.
        again = np.isin(slots, change.slots)
        due = fresh.take(is_due)
        due.counts = change.after[is_due]
        return _Due(
            concat_rows(stored.take(~again), due),
            np.concatenate([table.owners_at(slots[~again]), change.owners[is_due]]),
            self._written(change, is_due, stored),
            late,
        )

    def ends_of(self, rows: KeptRows) -> Ints:
        """Return the ends of the windows that rows are in."""
        ends: Ints = rows.columns[self._position].to_numpy(zero_copy_only=False)
        return ends

    def _written(self, change: SideChange, is_due: Bools, stored: KeptRows) -> RowSet:
        """Return what to write: rows that wait, without those that do not any more."""
        change.counts = np.where(is_due, 0, change.counts)
        removed = change.again(stored, np.zeros(len(stored.slots), np.int64))
        return RowSet.merged([change.written(), removed], keep_removals=True)


class WindowRankOperator:
    """Runs a `RankDeclaration` or a `DeduplicateDeclaration` of the rows of each window."""

    def __init__(
        self, declaration: RankDeclaration | DeduplicateDeclaration, schema: Schema, *, retracts: bool
    ) -> None:
        _refuse_changelog("a window top-N or deduplication", retracts=retracts)
        assert declaration.window_end is not None
        self._declaration = declaration
        self._names = [column.name for column in schema]
        if isinstance(declaration, RankDeclaration):
            keys = declaration.partition
            self._ranking = Ranking(declaration.order, declaration.first, declaration.last)
        else:
            keys = declaration.keys
            # As for any order, NULL is the smallest.
            is_first = not declaration.keep_last
            order = (Order(declaration.time, is_first, nulls_first=is_first),) if declaration.time else ()
            self._ranking = Ranking(order, last=1, newest_first=declaration.keep_last)
        self._side = HeldSide("rows", 0, keys, schema, declaration.window_end)
        self.layouts = (self._side.layout,)
        self.inputs = (self._side.input,)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        due = self._side.advance(inputs.get(0), state[self._side.name], time)
        _, due.rows.keys, _ = numbered(due.owners, np.empty((0, 2), np.int64))
        ordered, ranks = self._ranking.sorted(due.rows, self._names)
        emitted = self._ranking.is_among(ranks)
        # Windows that are over come in the order of their ends.
        emitted = emitted[np.argsort(self._side.ends_of(ordered)[emitted], kind="stable")]
        rows, ranks = ordered.take(emitted), ranks[emitted]
        arrays = list(rows.columns)
        output = self._declaration.output
        if isinstance(self._declaration, RankDeclaration) and self._declaration.rank_column is not None:
            arrays.append(pa.array(ranks + 1))
        kinds = None if self._declaration.is_insert_only else np.zeros(len(ranks), np.int8)
        table = changes_table(output, dict(zip((c.name for c in output), arrays, strict=True)), kinds)
        return EpochOutput(table, {self._side.name: due.written} if len(due.written) else {}, due.late)


class WindowJoinOperator:
    def __init__(
        self, declaration: WindowJoinDeclaration, left: Schema, right: Schema, *, retracts: bool
    ) -> None:
        _refuse_changelog("a window join", retracts=retracts)
        self._declaration = declaration
        self._names = ([column.name for column in left], [column.name for column in right])
        left_keys = (*declaration.left_keys, declaration.left_start, declaration.left_end)
        right_keys = (*declaration.right_keys, declaration.right_start, declaration.right_end)
        self._left = HeldSide("left", 0, left_keys, left, declaration.left_end)
        self._right = HeldSide("right", 1, right_keys, right, declaration.right_end)
        self._left_output = _like(left, declaration.left)
        self._right_output = _like(right, declaration.right)
        self.layouts = (self._left.layout, self._right.layout)
        self.inputs = (self._left.input, self._right.input)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        declaration = self._declaration
        left = self._left.advance(inputs.get(0), state["left"], time)
        right = self._right.advance(inputs.get(1), state["right"], time)
        _, left_ids, right_ids = numbered(left.owners, right.owners)
        left.rows.keys = _matching(left.rows, left_ids, self._names[0], declaration.left_keys)
        right.rows.keys = _matching(right.rows, right_ids, self._names[1], declaration.right_keys)
        # What only says which window a row is in has done its work.
        left.rows.columns = _chosen(left.rows, self._names[0], declaration.left)
        right.rows.columns = _chosen(right.rows, self._names[1], declaration.right)
        kind = declaration.kind
        parts = pairs_of(left.rows, right.rows) if kind not in (JoinKind.SEMI, JoinKind.ANTI) else []
        has_right = np.isin(left.rows.keys, right.rows.keys[right.rows.keys >= 0])
        has_left = np.isin(right.rows.keys, left.rows.keys[left.rows.keys >= 0])
        if kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI):
            alone = left.rows.take(~has_right)
            parts.append(JoinedPart(alone, None, alone.counts))
        if kind is JoinKind.SEMI:
            matched = left.rows.take(has_right)
            parts.append(JoinedPart(matched, None, matched.counts))
        if kind in (JoinKind.RIGHT, JoinKind.FULL):
            alone = right.rows.take(~has_left)
            parts.append(JoinedPart(None, alone, alone.counts))
        left_types = [column.arrow for column in self._left_output]
        right_types = [column.arrow for column in self._right_output]
        output = join_output(declaration, left_types, right_types, parts)
        changes = {"left": left.written, "right": right.written}
        return EpochOutput(
            output, {name: rows for name, rows in changes.items() if len(rows)}, left.late + right.late
        )


class WindowAssociationsOperator:
    """Runs `JoinAssociationsDeclaration` of a window join: rows of an outer side wait for their window's pairs."""

    def __init__(
        self, declaration: JoinAssociationsDeclaration, schemas: Sequence[Schema], *, retracts: bool
    ) -> None:
        _refuse_changelog("a window join", retracts=retracts)
        self._declaration = declaration
        self._names = {
            side.source: [column.name for column in schemas[side.source]] for side in declaration.sides
        }
        self._held = {
            side.source: HeldSide(
                f"side{side.source}",
                side.source,
                side.keys,
                schemas[side.source],
                side.window_end or "",
                tells_copies_apart=True,
            )
            for side in declaration.sides
        }
        self.layouts = tuple(held.layout for held in self._held.values())
        pairs = InputSpec(side=0, source=0, keys=declaration.sides[0].pair_keys)
        self.inputs = (pairs, *(held.input for held in self._held.values()))

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        kind = self._declaration.kind
        pairs = InputRows.of(inputs.get(0))
        emitted, changes = [], {}
        if kind not in (JoinKind.SEMI, JoinKind.ANTI) and pairs.table is not None:
            emitted.append(Emitted(pairs.table, pairs.weights, pairs.is_update))
        for side in self._declaration.sides:
            held, names = self._held[side.source], self._names[side.source]
            due = held.advance(inputs.get(side.source), state[held.name], time)
            rows = pa.table(dict(zip(names, due.rows.columns, strict=True)))
            _, own, paired = numbered(hashes_of(rows, side.ids), pairs.ids(side.ids))
            wanted = np.isin(own, paired) if kind is JoinKind.SEMI else ~np.isin(own, paired)
            # Late rows were counted by the first half.
            emitted.append(Emitted(rows, np.where(wanted, due.rows.counts, 0), due.rows.is_update))
            if len(due.written):
                changes[held.name] = due.written
        return EpochOutput(associations_output(self._declaration, emitted), changes)


def _matching(rows: KeptRows, ids: Ints, names: list[str], keys: tuple[str, ...]) -> Ints:
    """Return the numbers of keys, -1 where one of them is NULL and so equal to nothing."""
    ids = ids.copy()
    for key in keys:
        array = rows.columns[names.index(key)]
        if array.null_count:
            ids[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return ids


def _like(schema: Schema, wanted: Schema) -> Schema:
    """Return columns of the input in the order in which they are wanted."""
    by_name = {column.name: column for column in schema}
    return tuple(by_name[column.name] for column in wanted)


def _chosen(rows: KeptRows, names: list[str], wanted: Schema) -> list[pa.Array]:
    return [rows.columns[names.index(column.name)] for column in wanted]


def _refuse_changelog(what: str, *, retracts: bool) -> None:
    if retracts:  # as in Flink
        raise UnsupportedFeatureError.not_yet(f"{what} over a changelog with updates", "use insert-only rows")
