"""Regular joins: both sides are kept, and the changes of each side in an epoch are joined with the rows of the other.

    pairs that go     L- x R   +  L' x R-       L, R: before the epoch    L-, L+: removed and added in the epoch
    pairs that come   L+ x R'  +  L" x R+       L', R': without the removed    L", R": at the end

So pairs that never existed, or that cancel out, are not emitted. Which rows an outer join pads with NULLs, and which
ones SEMI and ANTI pass, depends on the number of matching rows on the other side, before and after. Retractions are
emitted before insertions. Kinds are Flink's: those of the input for inner joins, +I and -D for outer ones, except
that pairs of a removed row of the inner side have the kind of its retraction. SEMI and ANTI keep the kinds of their
own rows; changes caused by the other side have the kind of that side's change in a SEMI join, and +I and -D in an
ANTI join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headrace.errors import InvariantViolation
from headrace.operators.table.base import (
    EpochOutput,
    EpochTime,
    events_of,
)
from headrace.operators.table.changelog import (
    changed_positions,
    changes_table,
    concat_changes,
    kinds_of,
)
from headrace.operators.table.declarations import FirstPairs, JoinDeclaration, JoinKind, WindowJoinDeclaration
from headrace.operators.table.kept_rows import (
    KeptRows,
    KeptSide,
    changes_of,
    counted_up,
    numbered,
    rows_after,
)
from headrace.operators.table.pair_conditions import PairCondition, is_whole_number, whole_numbers
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Bools, Ints

_PADS_LEFT = frozenset({JoinKind.LEFT, JoinKind.FULL})
_PADS_RIGHT = frozenset({JoinKind.RIGHT, JoinKind.FULL})
_LEFT_ONLY = frozenset({JoinKind.SEMI, JoinKind.ANTI})
_ALL_KINDS = _LEFT_ONLY | {JoinKind.INNER}


class JoinOperator:
    """Runs a `JoinDeclaration`.

    Args:
        declaration: What it is. A condition besides the keys is for Spark to check, behind an inner join.
        schemas: The columns of both inputs.
        retracts: For each whether its rows may be retracted.
    """

    def __init__(
        self, declaration: JoinDeclaration, schemas: Sequence[Schema], retracts: Sequence[bool]
    ) -> None:
        if declaration.kind is not JoinKind.INNER and (
            declaration.condition is not None or declaration.ttl_ms or declaration.right_ttl_ms
        ):
            raise InvariantViolation(
                f"a join ({declaration.kind.value}) with a condition or a time to live is planned in two halves"
            )
        self._declaration = declaration
        right_ttl = declaration.ttl_ms if declaration.right_ttl_ms is None else declaration.right_ttl_ms
        null_safe = declaration.null_safe or (False,) * len(declaration.left_keys)
        kind = declaration.kind
        self._left = KeptSide(
            "left",
            0,
            declaration.left_keys,
            schemas[0],
            declaration.ttl_ms,
            null_safe,
            retracts=retracts[0],
            keeps_unmatched=kind in _PADS_LEFT or kind is JoinKind.ANTI,
            ended_can_go=True,
        )
        self._right = KeptSide(
            "right",
            1,
            declaration.right_keys,
            schemas[1],
            right_ttl,
            null_safe,
            retracts=retracts[1],
            keeps_unmatched=kind in _PADS_RIGHT,
            ended_can_go=True,
        )
        self._condition = PairCondition.of(declaration.condition, self._left.types, self._right.types)
        self.layouts = (self._left.layout, self._right.layout)
        self.inputs = (self._left.input, self._right.input)

    @property
    def checks_condition(self) -> bool:
        """Whether nothing of its condition is left for Spark to check."""
        return self._condition.is_all_of(self._declaration.condition)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        kind = self._declaration.kind
        left_table, right_table = state[self._left.name], state[self._right.name]
        left = self._left.change(inputs.get(0), left_table, time)
        right = self._right.change(inputs.get(1), right_table, time)
        owners, left_ids, right_ids = numbered(left.owners, right.owners)
        d_left, d_right = left.rows(left_ids), right.rows(right_ids)
        everything = np.arange(len(owners))
        is_inner = kind is JoinKind.INNER
        old_left = self._left.kept(left_table, owners, right_ids if is_inner else everything, time.now_ms)
        old_right = self._right.kept(right_table, owners, left_ids if is_inner else everything, time.now_ms)
        parts = [] if kind in _LEFT_ONLY else _changed_pairs(kind, old_left, d_left, old_right, d_right)
        if is_inner:
            parts = [part.passing(self._condition) for part in parts]
            if self._declaration.first_pairs is not None:
                parts = [part.first(self._declaration.first_pairs) for part in parts]
        else:
            parts += self._unpaired(old_left, d_left, old_right, d_right, len(owners))
        changes = {}
        if time.keeps_state:
            renews_left, renews_right = self._declaration.renews
            changes = {
                self._left.name: left.written(_seen(old_left, right_ids) if renews_left else None),
                self._right.name: right.written(_seen(old_right, left_ids) if renews_right else None),
            }
        events = None
        if any(events_of(rows) is not None for rows in inputs.values()):
            events = np.zeros(len(owners), np.int64)
            events[left_ids] = left.events
            events[right_ids] = right.events
        output = join_output(self._declaration, self._left.types, self._right.types, parts, events)
        return EpochOutput(output, {name: rows for name, rows in changes.items() if len(rows)})

    def _unpaired(
        self, old_left: KeptRows, d_left: KeptRows, old_right: KeptRows, d_right: KeptRows, keys: int
    ) -> list[JoinedPart]:
        """Return what comes and goes of rows by whether their keys have any on the other side."""
        kind = self._declaration.kind
        before_right = _per_key(old_right, keys)
        after_right = before_right + _per_key(d_right, keys)
        parts: list[JoinedPart] = []
        if kind in _PADS_LEFT or kind is JoinKind.ANTI:
            alone = (before_right == 0, after_right == 0)
            parts += [JoinedPart(rows, None, counts) for rows, counts in _alone(old_left, d_left, *alone)]
        if kind is JoinKind.SEMI:
            matched = (before_right > 0, after_right > 0)
            (moved, moves), (own, own_counts) = _alone(old_left, d_left, *matched, unmatched=False)
            moved = replace(moved, is_update=_only_updates(d_right, keys)[moved.keys])
            parts += [JoinedPart(moved, None, moves), JoinedPart(own, None, own_counts)]
        if kind in _PADS_RIGHT:
            before_left = _per_key(old_left, keys)
            alone = (before_left == 0, before_left + _per_key(d_left, keys) == 0)
            parts += [JoinedPart(None, rows, counts) for rows, counts in _alone(old_right, d_right, *alone)]
        return parts


@dataclass
class JoinedPart:
    """Rows of the result that come or go; a side that is None is NULL."""

    left: KeptRows | None
    right: KeptRows | None
    counts: Ints
    #: Whether rows of an outer join have the kind of what caused them.
    keeps_kinds: bool = False
    #: Which row of the left side each is made of, and which of the right one; None: as they stand.
    at_left: Ints | None = None
    at_right: Ints | None = None

    def passing(self, condition: PairCondition) -> JoinedPart:
        """Return it without pairs that cannot pass a condition."""
        if self.left is None or self.right is None or self.at_left is None or self.at_right is None:
            return self
        passes = condition.holds(self.left.columns, self.right.columns, self.at_left, self.at_right)
        if passes is None or passes.all():
            return self
        return self._only(passes)

    def first(self, wanted: FirstPairs) -> JoinedPart:
        """Return it without pairs that enough others of their partition come before; all if that takes long to see."""
        if self.left is None or self.right is None or self.at_left is None or self.at_right is None:
            return self
        columns = [
            *((column, self.at_left) for column in self.left.columns),
            *((column, self.at_right) for column in self.right.columns),
        ]
        used = [columns[at] for at in (*wanted.partition, *(at for at, _ in wanted.order))]
        if any(column.null_count or not is_whole_number(column.type) for column, _ in used):
            return self
        values = [whole_numbers(column)[at] for column, at in used]
        partition, order = values[: len(wanted.partition)], values[len(wanted.partition) :]
        keys = [each if up else ~each for each, (_, up) in zip(order, wanted.order, strict=True)]
        sorted_ = np.lexsort([*reversed(keys), *reversed(partition)])
        starts = np.zeros(len(sorted_), np.bool_)
        starts[:1] = True
        for each in partition:
            in_order = each[sorted_]
            starts[1:] |= in_order[1:] != in_order[:-1]
        places = np.arange(len(sorted_))
        ranks = places - np.maximum.accumulate(np.where(starts, places, 0))
        chosen = np.zeros(len(sorted_), np.bool_)
        chosen[sorted_[ranks < wanted.last]] = True
        return self._only(chosen)

    def _only(self, chosen: Bools) -> JoinedPart:
        assert self.at_left is not None
        assert self.at_right is not None
        return replace(
            self,
            counts=self.counts[chosen],
            at_left=self.at_left[chosen],
            at_right=self.at_right[chosen],
        )

    def caused_by(self, positions: Ints, events: Ints) -> Ints:
        """Return the rows of the epoch that caused it, by their keys; rows that match nothing cause only themselves."""
        rows, at = (self.left, self.at_left) if self.left is not None else (self.right, self.at_right)
        assert rows is not None
        places = _places(at, positions)
        keys = rows.keys[places]
        return np.where(keys < 0, rows.order[places], events[keys]) if len(events) else rows.order[places]

    def is_update(self, positions: Ints) -> Bools:
        """Whether the row of the epoch that caused it is half of an update."""
        sides = [
            rows.is_update[_places(at, positions)]
            for rows, at in ((self.left, self.at_left), (self.right, self.at_right))
            if rows is not None
        ]
        return sides[0] if len(sides) == 1 else sides[0] | sides[1]


def _places(at: Ints | None, positions: Ints) -> Ints:
    return positions if at is None else at[positions]


def join_output(
    declaration: JoinDeclaration | WindowJoinDeclaration,
    left_types: Sequence[pa.DataType],
    right_types: Sequence[pa.DataType],
    parts: Sequence[JoinedPart],
    events: Ints | None = None,
) -> pa.Table:
    """Put changes of the result together: what goes first, then what comes.

    ``events`` are the rows that came for each key, where these are to be emitted.
    """
    keeps_all = declaration.kind in _ALL_KINDS
    tables = []
    for comes in (False, True):
        for part in parts:
            repeated = changed_positions(part.counts, comes=comes)
            if not len(repeated):
                continue
            columns = _side_columns(part.left, left_types, _places(part.at_left, repeated))
            if declaration.kind not in _LEFT_ONLY:
                columns += _side_columns(part.right, right_types, _places(part.at_right, repeated))
            kinds = None
            if not declaration.is_insert_only:
                is_update = part.is_update(repeated) & (keeps_all or part.keeps_kinds)
                kinds = kinds_of(is_update, comes=comes)
            named = dict(zip((column.name for column in declaration.output), columns, strict=True))
            caused = None if events is None else part.caused_by(repeated, events)
            tables.append(changes_table(declaration.output, named, kinds, caused))
    return concat_changes(tables, declaration.output, is_insert_only=declaration.is_insert_only)


def _side_columns(rows: KeptRows | None, types: Sequence[pa.DataType], positions: Ints) -> list[pa.Array]:
    if rows is None:
        return [pa.nulls(len(positions), kind) for kind in types]
    picks = pa.array(positions)
    return [column.take(picks) for column in rows.columns]


def _seen(rows: KeptRows, keys: Ints) -> KeptRows:
    """Return the rows that changes of the other side have met: as in Flink, an outer side writes these."""
    return rows.take(np.isin(rows.keys, keys))


def _changed_pairs(
    kind: JoinKind, left: KeptRows, d_left: KeptRows, right: KeptRows, d_right: KeptRows
) -> list[JoinedPart]:
    """Return the pairs that go and come."""
    went_left, went_right = d_left.take(d_left.counts < 0), d_right.take(d_right.counts < 0)
    came_left, came_right = d_left.take(d_left.counts > 0), d_right.take(d_right.counts > 0)
    rest_left, rest_right = rows_after(left, went_left), rows_after(right, went_right)
    gone = [
        *pairs_of(went_left, right, keeps_kinds=kind not in _PADS_LEFT),
        *pairs_of(rest_left, went_right, keeps_kinds=kind not in _PADS_RIGHT),
        *pairs_of(came_left, rest_right),
    ]
    if (came_left.slots < 0).all():
        # Rows that are new as a whole need not be put after the others to be paired.
        return [*gone, *pairs_of(rest_left, came_right), *pairs_of(came_left, came_right)]
    return [*gone, *pairs_of(rows_after(rest_left, came_left), came_right)]


def pairs_of(left: KeptRows, right: KeptRows, *, keeps_kinds: bool = False) -> list[JoinedPart]:
    """Return all pairs of rows with the same key."""
    if not len(left.keys) or not len(right.keys):
        return []
    # Keys are numbers from 0 on, and -1: the rows of a key on the right stand from where those of lower ones end.
    order = np.argsort(right.keys)
    totals = np.bincount(right.keys + 1, minlength=int(left.keys.max()) + 2)
    start = (np.cumsum(totals) - totals)[left.keys + 1]
    matches = np.where(left.keys < 0, 0, totals[left.keys + 1])
    at_left = np.repeat(np.arange(len(left.keys)), matches)
    if not len(at_left):
        return []
    at_right = order[np.repeat(start, matches) + counted_up(matches)]
    return [
        JoinedPart(left, right, left.counts[at_left] * right.counts[at_right], keeps_kinds, at_left, at_right)
    ]


def _per_key(rows: KeptRows, count: int) -> Ints:
    """Return how many rows each key has."""
    matching = rows.keys >= 0
    totals = np.zeros(count, np.int64)
    np.add.at(totals, rows.keys[matching], rows.counts[matching])
    return totals


def _only_updates(change: KeptRows, count: int) -> Bools:
    """Return for each key whether all that happened to it were updates."""
    plain = np.ones(count, np.bool_)
    plain[change.keys[(change.keys >= 0) & ~change.is_update]] = False
    return plain


def _alone(
    old: KeptRows, change: KeptRows, was: Bools, is_now: Bools, *, unmatched: bool = True
) -> list[tuple[KeptRows, Ints]]:
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
    # Of a key that enters, all that it has after the epoch.
    left = old.counts + changes_of(old, change)
    counts = np.where(enters[old.keys], left, counts)
    moved = np.flatnonzero(counts)
    stays = np.append(was & is_now, unmatched)[change.keys]  # -1, the last: rows that match nothing
    is_fresh = np.append(enters, False)[change.keys] & (change.slots < 0)
    changed = np.flatnonzero(stays | is_fresh)
    return [(old.take(moved), counts[moved]), (change.take(changed), change.counts[changed])]
