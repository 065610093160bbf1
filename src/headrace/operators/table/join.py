"""Regular joins: both sides are kept, and an epoch's changes of each meet the rows of the other.

    pairs that go     L- x R   +  L' x R-       L, R: as they were    L-, L+: what went and came in the epoch
    pairs that come   L+ x R'  +  L" x R+       L', R': without what went    L", R": as they are in the end

So nothing is told that was never there, or that is gone again. What an outer join pads with NULLs, and what SEMI and
ANTI let through, goes by how many rows a key has on the other side, before and after. Rows that go come out before rows
that come. Kinds are Flink's: those of the input for inner joins, +I and -D for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.base import (
    ROW_HASHES,
    EpochOutput,
    EpochTime,
    InputSpec,
    hashes_of,
    quote,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    changes_table,
    concat_changes,
    weights_of,
)
from headrace.operators.table.declarations import KIND, Join, JoinKind, Schema
from headrace.operators.table.ttl import TimeToLive
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_COUNT = "n"
#: Whether a key of the row is NULL, and so equal to no other.
_UNMATCHED = "__unmatched"

_PADS_LEFT = frozenset({JoinKind.LEFT, JoinKind.FULL})
_PADS_RIGHT = frozenset({JoinKind.RIGHT, JoinKind.FULL})
_LEFT_ONLY = frozenset({JoinKind.SEMI, JoinKind.ANTI})


@dataclass
class _Rows:
    """Rows of one side, from the epoch or from state."""

    columns: list[pa.Array]
    #: The number of each row's key among the keys of the epoch; -1 for rows that match nothing.
    keys: Ints
    #: How many of the row there are, or how many came (went, if negative).
    counts: Ints
    #: Where the row is, or was, half of an update; only of the epoch's.
    is_update: Bools
    slots: Ints

    def take(self, positions: Ints | Bools) -> _Rows:
        if positions.dtype == np.bool_:
            positions = np.flatnonzero(positions)
        picks = pa.array(positions)
        return _Rows(
            [column.take(picks) for column in self.columns],
            self.keys[positions],
            self.counts[positions],
            self.is_update[positions],
            self.slots[positions],
        )


class JoinOperator:
    """Runs a `Join`.

    Args:
        declaration: What it is. A condition besides the keys is for Spark to check, behind an inner join.
        schemas: The columns of both inputs.
        retracts: For each whether its rows may be retracted.
    """

    def __init__(self, declaration: Join, schemas: Sequence[Schema], retracts: Sequence[bool]) -> None:
        if declaration.condition is not None and declaration.kind is not JoinKind.INNER:
            raise UnsupportedFeatureError.not_yet(
                f"a {declaration.kind.value} JOIN with a condition that is no equality of columns",
                "compare columns for equality in ON, or run the query in BATCH mode",
            )
        self._declaration = declaration
        right_ttl = declaration.ttl_ms if declaration.right_ttl_ms is None else declaration.right_ttl_ms
        null_safe = declaration.null_safe or (False,) * len(declaration.left_keys)
        self._left = _Side(
            0, declaration.left_keys, schemas[0], declaration.ttl_ms, null_safe, retracts=retracts[0]
        )
        self._right = _Side(1, declaration.right_keys, schemas[1], right_ttl, null_safe, retracts=retracts[1])
        self.layouts = (self._left.layout, self._right.layout)
        self.inputs = (self._left.input, self._right.input)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        kind = self._declaration.kind
        left_table, right_table = state[self._left.name], state[self._right.name]
        left = self._left.change(inputs.get(0), left_table, time.now_ms)
        right = self._right.change(inputs.get(1), right_table, time.now_ms)
        owners, left_ids, right_ids = _numbered(left.owners, right.owners)
        d_left, d_right = left.rows(left_ids), right.rows(right_ids)
        everything = np.arange(len(owners))
        is_inner = kind is JoinKind.INNER
        old_left = self._left.kept(left_table, owners, right_ids if is_inner else everything, time.now_ms)
        old_right = self._right.kept(right_table, owners, left_ids if is_inner else everything, time.now_ms)
        parts: list[_Part] = []
        if kind not in _LEFT_ONLY:
            parts += _changed_pairs(old_left, d_left, old_right, d_right)
        before_right = _per_key(old_right, len(owners))
        after_right = before_right + _per_key(d_right, len(owners))
        if kind in _PADS_LEFT or kind is JoinKind.ANTI:
            alone = (before_right == 0, after_right == 0)
            parts += [_Part(rows, None, counts) for rows, counts in _alone(old_left, d_left, *alone)]
        if kind is JoinKind.SEMI:
            matched = (before_right > 0, after_right > 0)
            parts += [_Part(r, None, c) for r, c in _alone(old_left, d_left, *matched, unmatched=False)]
        if kind in _PADS_RIGHT:
            before_left = _per_key(old_left, len(owners))
            alone = (before_left == 0, before_left + _per_key(d_left, len(owners)) == 0)
            parts += [_Part(None, rows, counts) for rows, counts in _alone(old_right, d_right, *alone)]
        changes = {
            self._left.name: left.written(_seen(old_left, right_ids) if kind in _PADS_LEFT else None),
            self._right.name: right.written(_seen(old_right, left_ids) if kind in _PADS_RIGHT else None),
        }
        return EpochOutput(self._output(parts), {name: rows for name, rows in changes.items() if len(rows)})

    def _output(self, parts: Sequence[_Part]) -> pa.Table:
        """Put the changes together: what goes first, then what comes."""
        declaration = self._declaration
        keeps_kinds = declaration.kind in (JoinKind.INNER, JoinKind.SEMI)
        tables = []
        for comes in (False, True):
            for part in parts:
                mask = part.counts > 0 if comes else part.counts < 0
                if not mask.any():
                    continue
                tables.append(
                    self._part_table(part, np.flatnonzero(mask), comes=comes, keeps_kinds=keeps_kinds)
                )
        return concat_changes(tables, declaration.output, is_insert_only=declaration.is_insert_only)

    def _part_table(self, part: _Part, positions: Ints, *, comes: bool, keeps_kinds: bool) -> pa.Table:
        declaration = self._declaration
        repeated = np.repeat(positions, np.abs(part.counts[positions]))
        picks = pa.array(repeated)
        columns: list[pa.Array] = []
        sides = [(part.left, self._left)]
        if declaration.kind not in _LEFT_ONLY:
            sides.append((part.right, self._right))
        for rows, side in sides:
            if rows is None:
                columns += [pa.nulls(len(repeated), kind) for kind in side.types]
            else:
                columns += [column.take(picks) for column in rows.columns]
        kinds = None
        if not declaration.is_insert_only:
            is_update = part.is_update[repeated] & keeps_kinds
            update, plain = (UPDATE_AFTER, INSERT) if comes else (UPDATE_BEFORE, DELETE)
            kinds = np.where(is_update, update, plain).astype(np.int8)
        names = [column.name for column in declaration.output]
        return changes_table(declaration.output, dict(zip(names, columns, strict=True)), kinds)


@dataclass
class _Part:
    """Rows of the result that come or go; a side that is None is NULL."""

    left: _Rows | None
    right: _Rows | None
    counts: Ints

    @property
    def is_update(self) -> Bools:
        """Whether the row of the epoch that caused it is half of an update."""
        sides = [rows.is_update for rows in (self.left, self.right) if rows is not None]
        return sides[0] if len(sides) == 1 else sides[0] | sides[1]


class _Side:
    """One input of a join, and its table."""

    def __init__(
        self,
        number: int,
        keys: tuple[str, ...],
        schema: Schema,
        ttl_ms: int,
        null_safe: Sequence[bool],
        *,
        retracts: bool,
    ) -> None:
        self.name = ("left", "right")[number]
        self._names = [column.name for column in schema]
        self.types = [column.arrow for column in schema]
        self._retracts = retracts
        self._ttl = TimeToLive(ttl_ms)
        kept = [ColumnType(f"c{index}", kind, is_key=True) for index, kind in enumerate(self.types)]
        self.layout = TableLayout(
            self.name, (*kept, ColumnType(_COUNT, pa.int64()), *self._ttl.columns), has_owners=True
        )
        nulls = [f"{quote(key)} IS NULL" for key, is_safe in zip(keys, null_safe, strict=True) if not is_safe]
        self.input = InputSpec(
            side=number,
            source=number,
            keys=keys,
            items=((" OR ".join(nulls) or "false", _UNMATCHED),),
            row_keys=tuple(self._names),
        )

    def change(self, rows: pa.Table | None, table: SlotTable, now_ms: int) -> _Change:
        """Return what an epoch does to the side: each row once, with how many of it came or went."""
        if rows is None or not rows.num_rows:
            return _Change(self, table, [pa.array([], kind) for kind in self.types], now_ms)
        rows = rows.combine_chunks()
        row_keys, owners = hashes_of(rows, ROW_HASHES), hashes_of(rows)
        weights, is_update = np.ones(len(row_keys), np.int64), np.zeros(len(row_keys), np.bool_)
        if self._retracts:
            kinds = rows.column(KIND).to_numpy()
            weights = weights_of(kinds)
            is_update = (kinds == UPDATE_BEFORE) | (kinds == UPDATE_AFTER)
        firsts, totals, is_update = _netted(row_keys, weights, is_update)
        moved = totals != 0
        firsts, totals, is_update = firsts[moved], totals[moved], is_update[moved]
        picks = pa.array(firsts)
        columns = [rows.column(name).combine_chunks().take(picks) for name in self._names]
        unmatched = rows.column(_UNMATCHED).combine_chunks().take(picks).cast(pa.bool_())
        is_free = unmatched.to_numpy(zero_copy_only=False).astype(np.bool_)
        change = _Change(self, table, columns, now_ms)
        change.row_keys, change.owners = row_keys[firsts], owners[firsts]
        change.is_update, change.is_free = is_update, is_free
        slots = self._ttl.alive(table, table.find(change.row_keys), now_ms)
        stored = read_columns(table, slots, [_COUNT])[_COUNT].fill_null(0).to_numpy(zero_copy_only=False)
        # What is not there cannot go. Rows that match nothing are not kept, so that nothing is known of them.
        change.after = np.where(is_free, 0, np.maximum(stored + totals, 0))
        change.counts = np.where(is_free, totals, change.after - stored)
        change.slots = slots
        return change

    def kept(self, table: SlotTable, owners: Ints, wanted: Ints, now_ms: int) -> _Rows:
        """Return the rows that the side has of keys."""
        ids = np.unique(wanted[wanted >= 0])
        at, slots = table.members(owners[ids])
        alive = self._ttl.alive(table, slots, now_ms)
        there = alive >= 0
        at, slots = at[there], slots[there]
        columns = read_columns(table, slots, [*(f"c{index}" for index in range(len(self.types))), _COUNT])
        counts = columns.pop(_COUNT).to_numpy(zero_copy_only=False)
        return _Rows(list(columns.values()), ids[at], counts, np.zeros(len(slots), np.bool_), slots)

    @property
    def has_ttl(self) -> bool:
        """Whether its rows have a time to live."""
        return bool(self._ttl)

    def rows_to_write(
        self, row_keys: Ints, owners: Ints, columns: Sequence[pa.Array], counts: Ints, now_ms: int
    ) -> RowSet:
        """Return rows with how many of each there are now; none: the row is gone."""
        named = {f"c{index}": column for index, column in enumerate(columns)}
        stamps = self._ttl.stamps(len(counts), now_ms)
        return written_rows(
            self.layout,
            row_keys,
            {**named, _COUNT: pa.array(counts), **stamps},
            owners=owners,
            removed=counts == 0,
        )


class _Change:
    """What an epoch does to one side."""

    def __init__(self, side: _Side, table: SlotTable, columns: list[pa.Array], now_ms: int) -> None:
        self._side = side
        self._table = table
        self._columns = columns
        self._now_ms = now_ms
        self.row_keys: Ints = np.empty((0, 2), np.int64)
        self.owners: Ints = np.empty((0, 2), np.int64)
        self.counts: Ints = np.empty(0, np.int64)
        self.after: Ints = np.empty(0, np.int64)
        self.slots: Ints = np.empty(0, np.int64)
        self.is_update: Bools = np.empty(0, np.bool_)
        #: Rows that can match nothing.
        self.is_free: Bools = np.empty(0, np.bool_)

    def rows(self, ids: Ints) -> _Rows:
        """Return the changed rows; ids are the numbers of their keys."""
        return _Rows(self._columns, np.where(self.is_free, -1, ids), self.counts, self.is_update, self.slots)

    def written(self, seen: _Rows | None) -> RowSet:
        """Return the rows of state to write; the time to live of rows that were seen begins anew."""
        kept = np.flatnonzero(~self.is_free & (self.counts != 0))
        picks = pa.array(kept)
        columns = [column.take(picks) for column in self._columns]
        rows = self._side.rows_to_write(
            self.row_keys[kept], self.owners[kept], columns, self.after[kept], self._now_ms
        )
        if seen is None or not self._side.has_ttl:
            return rows
        keys, owners = self._table.keys_at(seen.slots), self._table.owners_at(seen.slots)
        again = self._side.rows_to_write(keys, owners, seen.columns, seen.counts, self._now_ms)
        return RowSet.merged([again, rows], keep_removals=True)


def _seen(rows: _Rows, keys: Ints) -> _Rows:
    """Return the rows that changes of the other side have met: as in Flink, an outer side writes these."""
    return rows.take(np.isin(rows.keys, keys))


def _numbered(left: Ints, right: Ints) -> tuple[Ints, Ints, Ints]:
    """Number the keys of both sides: keys in order, and the numbers of each side's rows."""
    both = np.concatenate([left, right])
    if not len(both):
        return both, np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.lexsort((both[:, 1], both[:, 0]))
    ordered = both[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    ids = np.empty(len(order), np.int64)
    ids[order] = np.cumsum(begins) - 1
    return ordered[begins], ids[: len(left)], ids[len(left) :]


def _netted(row_keys: Ints, weights: Ints, is_update: Bools) -> tuple[Ints, Ints, Bools]:
    """Put equal rows together: the first of each, their sum, and whether any is half of an update."""
    order = np.lexsort((row_keys[:, 1], row_keys[:, 0]))
    ordered = row_keys[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(begins)
    firsts = order[starts]
    totals = np.add.reduceat(weights[order], starts)
    updates = np.logical_or.reduceat(is_update[order], starts)
    back = np.argsort(firsts)  # as rows came
    return firsts[back], totals[back], updates[back]


def _changed_pairs(left: _Rows, d_left: _Rows, right: _Rows, d_right: _Rows) -> list[_Part]:
    """Return the pairs that go and come."""
    went_left, went_right = d_left.take(d_left.counts < 0), d_right.take(d_right.counts < 0)
    came_left, came_right = d_left.take(d_left.counts > 0), d_right.take(d_right.counts > 0)
    rest_left, rest_right = _after(left, went_left), _after(right, went_right)
    return [
        *_pairs(went_left, right),
        *_pairs(rest_left, went_right),
        *_pairs(came_left, rest_right),
        *_pairs(_after(rest_left, came_left), came_right),
    ]


def _after(rows: _Rows, change: _Rows) -> _Rows:
    """Return rows as they are behind changes."""
    if not len(change.keys):
        return rows
    counts = rows.counts + _changes_of(rows, change)
    left, fresh = replace(rows, counts=counts).take(counts > 0), change.take(change.slots < 0)
    return _Rows(
        [pa.concat_arrays([a, b]) for a, b in zip(left.columns, fresh.columns, strict=True)],
        np.concatenate([left.keys, fresh.keys]),
        np.concatenate([left.counts, fresh.counts]),
        np.concatenate([left.is_update, fresh.is_update]),
        np.concatenate([left.slots, fresh.slots]),
    )


def _pairs(left: _Rows, right: _Rows) -> list[_Part]:
    """Return all pairs of rows with the same key."""
    if not len(left.keys) or not len(right.keys):
        return []
    order = np.argsort(right.keys, kind="stable")
    keys = right.keys[order]
    start, end = np.searchsorted(keys, left.keys, "left"), np.searchsorted(keys, left.keys, "right")
    matches = np.where(left.keys < 0, 0, end - start)
    at_left = np.repeat(np.arange(len(left.keys)), matches)
    if not len(at_left):
        return []
    within = np.arange(len(at_left)) - np.repeat(np.cumsum(matches) - matches, matches)
    at_right = order[np.repeat(start, matches) + within]
    left, right = left.take(at_left), right.take(at_right)
    return [_Part(left, right, left.counts * right.counts)]


def _per_key(rows: _Rows, count: int) -> Ints:
    """Return how many rows each key has."""
    matching = rows.keys >= 0
    totals = np.zeros(count, np.int64)
    np.add.at(totals, rows.keys[matching], rows.counts[matching])
    return totals


def _alone(
    old: _Rows, change: _Rows, was: Bools, is_now: Bools, *, unmatched: bool = True
) -> list[tuple[_Rows, Ints]]:
    """Return the rows that come and go because of what their keys have on the other side.

    Args:
        old: The side's rows before the epoch.
        change: What the epoch did to them.
        was: For each key whether its rows were in the result before ...
        is_now: ... and whether they are now.
        unmatched: Whether rows that match nothing are in the result.
    """
    leaves, enters = was & ~is_now, ~was & is_now
    counts = np.where(leaves[old.keys], -old.counts, 0)
    # Of a key that enters, all that it has behind the epoch.
    left = old.counts + _changes_of(old, change)
    counts = np.where(enters[old.keys], left, counts)
    moved = np.flatnonzero(counts)
    stays = np.append(was & is_now, unmatched)[change.keys]  # -1, the last: rows that match nothing
    is_fresh = np.append(enters, False)[change.keys] & (change.slots < 0)
    changed = np.flatnonzero(stays | is_fresh)
    return [(old.take(moved), counts[moved]), (change.take(changed), change.counts[changed])]


def _changes_of(old: _Rows, change: _Rows) -> Ints:
    """Return by how many each of the rows was changed."""
    changes = np.zeros(len(old.slots), np.int64)
    order = np.argsort(old.slots)
    known = np.flatnonzero(np.isin(change.slots, old.slots))
    places = np.searchsorted(old.slots[order], change.slots[known])
    changes[order[places]] = change.counts[known]
    return changes
