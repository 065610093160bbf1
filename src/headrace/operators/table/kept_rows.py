"""Rows that are kept by key, each once with its number of occurrences: the state of joins and rankings.

KeptSide      one input of an operator: its table, and the form in which Spark delivers its rows
SideChange    its net change in an epoch: rows added and removed
Rows          rows at hand, from the epoch or from state
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    ROW_HASHES,
    SEQUENCE,
    WITH_SEQUENCE,
    EpochTime,
    InputSpec,
    events_of,
    hashes_of,
    quote,
    read_columns,
    with_numbers,
    written_rows,
)
from headrace.operators.table.changelog import UPDATE_AFTER, UPDATE_BEFORE, weights_of
from headrace.operators.table.steps import KIND, Schema
from headrace.operators.table.ttl import RowTimeToLive
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.hashed import together
from headrace.state.row_sets import RowSet

_COUNT = "n"
_ORDER = "order"
#: Whether a key of the row is NULL, and so equal to no other.
UNMATCHED = "__unmatched"


@dataclass
class KeptRows:
    """Rows of one side, from the epoch or from state."""

    columns: list[pa.Array]
    #: The number of each row's key among the keys of the epoch; -1 for rows that match nothing.
    keys: Ints
    #: How many of the row there are, or how many came (went, if negative).
    counts: Ints
    #: Where the row is, or was, half of an update; only of the epoch's.
    is_update: Bools
    slots: Ints
    #: In which order rows came, where the side is ordered. Else zero, or which row of the epoch it is.
    order: Ints

    def take(self, positions: Ints | Bools) -> KeptRows:
        if positions.dtype == np.bool_:
            if positions.all():
                return self
            positions = np.flatnonzero(positions)
        picks = pa.array(positions)
        return KeptRows(
            [column.take(picks) for column in self.columns],
            self.keys[positions],
            self.counts[positions],
            self.is_update[positions],
            self.slots[positions],
            self.order[positions],
        )


class KeptSide:
    """One input of an operator, and its table.

    Args:
        name: The table's.
        number: The input's.
        keys: The columns that rows are found by.
        schema: The columns.
        ttl_ms: How long rows stay.
        null_safe: For each key whether NULL equals NULL.
        retracts: Whether rows may be retracted.
        is_ordered: Whether to remember in which order rows came.
        newest_counts: Whether a row that comes again is as new as its last copy, not as old as its first.
        keeps_unmatched: Whether rows that match nothing, because a key is NULL, make a difference.
        ended_can_go: Whether a row whose time is over still takes its pairs with it when it goes.
        tells_copies_apart: Whether it matters that a row is there already; not where all rows of a key go together.
    """

    def __init__(
        self,
        name: str,
        number: int,
        keys: tuple[str, ...],
        schema: Schema,
        ttl_ms: int,
        null_safe: Sequence[bool],
        *,
        retracts: bool,
        is_ordered: bool = False,
        newest_counts: bool = False,
        keeps_unmatched: bool = True,
        ended_can_go: bool = False,
        tells_copies_apart: bool = True,
    ) -> None:
        self.name = name
        self._is_ordered = is_ordered
        self._newest_counts = newest_counts
        self._names = [column.name for column in schema]
        self.types = [column.arrow for column in schema]
        self._retracts = retracts
        self._ttl = RowTimeToLive(ttl_ms)
        self._ended_can_go = ended_can_go and bool(ttl_ms)
        kept = [ColumnType(f"c{index}", kind, is_key=True) for index, kind in enumerate(self.types)]
        kept += [ColumnType(_ORDER, pa.int64(), is_key=not newest_counts)] if is_ordered else []
        # A row is looked for among those that are there if it goes, or has to live longer, and if only the first of
        # several counts. Others are written as they come: the columns to find them by are most of a join's work.
        self._finds_rows = retracts or bool(ttl_ms) or (is_ordered and tells_copies_apart)
        self.layout = TableLayout(
            self.name,
            (*kept, ColumnType(_COUNT, pa.int64()), *self._ttl.columns),
            has_owners=True,
            key_words=KEY_WORDS if self._finds_rows else KEY_WORDS + 1,
        )
        unsafe = [quote(key) for key, is_safe in zip(keys, null_safe, strict=True) if not is_safe]
        self._has_unmatched = bool(unsafe) and keeps_unmatched
        items = [(" OR ".join(f"{key} IS NULL" for key in unsafe), UNMATCHED)] if self._has_unmatched else []
        matches = " AND ".join(f"{key} IS NOT NULL" for key in unsafe)
        self.input = InputSpec(
            side=number,
            source=number,
            keys=keys,
            where=matches if unsafe and not keeps_unmatched else None,
            items=(*items, *([WITH_SEQUENCE] if is_ordered else [])),
            row_keys=tuple(self._names) if self._finds_rows else None,
        )

    def change(self, rows: pa.Table | None, table: SlotTable, time: EpochTime) -> SideChange:
        """Return what an epoch does to the side: each row once, with how many of it came or went."""
        if rows is None or not rows.num_rows:
            return SideChange(self, table, [pa.array([], kind) for kind in self.types], time.now_ms)
        rows = self._in_order(rows)
        if not self._finds_rows:
            return self._new_rows(rows, table, time)
        row_keys, owners = hashes_of(rows, ROW_HASHES), hashes_of(rows)
        weights, is_update = np.ones(len(row_keys), np.int64), np.zeros(len(row_keys), np.bool_)
        if self._retracts:
            kinds = rows.column(KIND).to_numpy()
            weights = weights_of(kinds)
            is_update = (kinds == UPDATE_BEFORE) | (kinds == UPDATE_AFTER)
        firsts, totals, is_update = netted(row_keys, weights, is_update)
        moved = totals != 0
        firsts, totals, is_update = firsts[moved], totals[moved], is_update[moved]
        picks = pa.array(firsts)
        columns = [column.take(picks) for column in self._columns_of(rows)]
        is_free = self._is_unmatched(rows)[firsts]
        change = SideChange(self, table, columns, time.now_ms)
        change.row_keys, change.owners = row_keys[firsts], owners[firsts]
        change.is_update, change.is_free = is_update, is_free
        slots = self._ttl.alive(table, table.find(change.row_keys), time.now_ms)
        stored = read_columns(table, slots, [_COUNT])[_COUNT].fill_null(0).to_numpy(zero_copy_only=False)
        # What is not there cannot go. Rows that match nothing are not kept, so that nothing is known of them.
        change.after = np.where(is_free, 0, np.maximum(stored + totals, 0))
        goes_unseen = is_free | ((stored == 0) & self._ended_can_go)
        change.counts = np.where(goes_unseen, totals, change.after - stored)
        change.slots = slots
        change.events = _events(rows, firsts)
        change.order = self._order_of(change, table, totals > 0, time.first_place)
        return change

    def _new_rows(self, rows: pa.Table, table: SlotTable, time: EpochTime) -> SideChange:
        """Return rows as they come, each under a key of its own."""
        change = SideChange(self, table, self._columns_of(rows), time.now_ms)
        change.owners = hashes_of(rows)
        places = time.first_place + np.arange(rows.num_rows)
        change.row_keys = with_numbers(change.owners, places)
        change.is_update = np.zeros(rows.num_rows, np.bool_)
        change.is_free = self._is_unmatched(rows)
        change.counts = np.ones(rows.num_rows, np.int64)
        change.after = np.where(change.is_free, 0, 1)
        change.slots = np.full(rows.num_rows, -1, np.int64)
        change.events = _events(rows, np.arange(rows.num_rows))
        change.order = places if self._is_ordered else change.events
        return change

    def _columns_of(self, rows: pa.Table) -> list[pa.Array]:
        return [rows.column(name).combine_chunks() for name in self._names]

    def _is_unmatched(self, rows: pa.Table) -> Bools:
        if not self._has_unmatched:
            return np.zeros(rows.num_rows, np.bool_)
        unmatched: Bools = rows.column(UNMATCHED).to_numpy().astype(np.bool_)
        return unmatched

    def _in_order(self, rows: pa.Table) -> pa.Table:
        """Return an epoch's rows as they came, so that the first of equal ones is the one that counts."""
        if not self._is_ordered:
            return rows
        return rows.sort_by([(SEQUENCE, "descending" if self._newest_counts else "ascending")])

    def _order_of(self, change: SideChange, table: SlotTable, grows: Bools, first: int) -> Ints:
        """Return in which order rows came; they are given as `_in_order` has them."""
        slots = change.slots
        if not self._is_ordered:
            return change.events
        place = np.arange(len(slots))
        order = first + (place[::-1] if self._newest_counts else place)
        stored = read_columns(table, slots, [_ORDER])[_ORDER].fill_null(0).to_numpy(zero_copy_only=False)
        is_new = (slots < 0) | (grows & self._newest_counts)
        return np.where(is_new, order, stored)

    def kept(self, table: SlotTable, owners: Ints, wanted: Ints, now_ms: int) -> KeptRows:
        """Return the rows that the side has of keys."""
        is_wanted = np.zeros(len(owners), np.bool_)
        is_wanted[wanted[wanted >= 0]] = True
        ids = np.flatnonzero(is_wanted)
        at, slots = table.members(owners[ids])
        alive = self._ttl.alive(table, slots, now_ms)
        there = alive >= 0
        at, slots = at[there], slots[there]
        return self.rows_at(table, slots, ids[at])

    def rows_at(self, table: SlotTable, slots: Ints, keys: Ints) -> KeptRows:
        """Return rows of the table, with the numbers of their keys."""
        columns = read_columns(table, slots, [*(f"c{index}" for index in range(len(self.types))), _COUNT])
        counts = columns.pop(_COUNT).to_numpy(zero_copy_only=False)
        order = np.zeros(len(slots), np.int64)
        if self._is_ordered:
            order = read_columns(table, slots, [_ORDER])[_ORDER].to_numpy(zero_copy_only=False)
        return KeptRows(list(columns.values()), keys, counts, np.zeros(len(slots), np.bool_), slots, order)

    def swept(self, table: SlotTable, now_ms: int) -> RowSet | None:
        """Return rows to remove because their time is over."""
        return self._ttl.sweep(table, now_ms)

    @property
    def has_ttl(self) -> bool:
        """Whether its rows have a time to live."""
        return bool(self._ttl)

    def rows_to_write(
        self,
        row_keys: Ints,
        owners: Ints,
        columns: Sequence[pa.Array],
        counts: Ints,
        order: Ints,
        now_ms: int,
    ) -> RowSet:
        """Return rows with how many of each there are now; none: the row is gone."""
        named = {f"c{index}": column for index, column in enumerate(columns)}
        if self._is_ordered:
            named[_ORDER] = pa.array(order)
        stamps = self._ttl.stamps(len(counts), now_ms)
        return written_rows(
            self.layout,
            row_keys,
            {**named, _COUNT: pa.array(counts), **stamps},
            owners=owners,
            removed=counts == 0,
        )


class SideChange:
    """What an epoch does to one side."""

    def __init__(self, side: KeptSide, table: SlotTable, columns: list[pa.Array], now_ms: int) -> None:
        self._side = side
        self._table = table
        self._columns = columns
        self._now_ms = now_ms
        self.row_keys: Ints = np.empty((0, side.layout.key_words), np.int64)
        self.owners: Ints = np.empty((0, KEY_WORDS), np.int64)
        self.counts: Ints = np.empty(0, np.int64)
        self.after: Ints = np.empty(0, np.int64)
        self.slots: Ints = np.empty(0, np.int64)
        self.is_update: Bools = np.empty(0, np.bool_)
        #: Rows that can match nothing.
        self.is_free: Bools = np.empty(0, np.bool_)
        self.order: Ints = np.empty(0, np.int64)
        #: Which rows of the epoch they are, where that is known; else zero.
        self.events: Ints = np.empty(0, np.int64)

    def rows(self, ids: Ints) -> KeptRows:
        """Return the changed rows; ids are the numbers of their keys."""
        keys = np.where(self.is_free, -1, ids)
        return KeptRows(self._columns, keys, self.counts, self.is_update, self.slots, self.order)

    def written(self, seen: KeptRows | None = None) -> RowSet:
        """Return the rows of state to write; the time to live of rows that were seen begins again."""
        rows = self._side.rows_to_write(
            self.row_keys, self.owners, self._columns, self.after, self.order, self._now_ms
        ).take(~self.is_free & (self.counts != 0))
        parts = [rows]
        if seen is not None and self._side.has_ttl:
            parts.insert(0, self.again(seen, seen.counts))
        swept = self._side.swept(self._table, self._now_ms)
        if swept is not None:
            parts.insert(0, swept)
        return RowSet.merged(parts, keep_removals=True)

    def again(self, rows: KeptRows, counts: Ints) -> RowSet:
        """Return rows of state to write with other counts."""
        keys, owners = self._table.keys_at(rows.slots), self._table.owners_at(rows.slots)
        return self._side.rows_to_write(keys, owners, rows.columns, counts, rows.order, self._now_ms)


def _events(rows: pa.Table, positions: Ints) -> Ints:
    events = events_of(rows)
    return np.zeros(len(positions), np.int64) if events is None else events.to_numpy()[positions]


def events_by_key(events: pa.ChunkedArray | None, ids: Ints, keys: int) -> Ints | None:
    """Return for each key the row of the epoch that came for it; ids are the keys of rows."""
    if events is None:
        return None
    by_key = np.zeros(keys, np.int64)
    by_key[ids] = events.to_numpy()
    return by_key


def numbered(left: Ints, right: Ints) -> tuple[Ints, Ints, Ints]:
    """Number the keys of both sides: each key once, and the numbers of each side's rows."""
    both = np.concatenate([left, right])
    if not len(both):
        return both, np.empty(0, np.int64), np.empty(0, np.int64)
    order, begins = together(both)
    ids = np.empty(len(order), np.int64)
    ids[order] = np.cumsum(begins) - 1
    return both[order[begins]], ids[: len(left)], ids[len(left) :]


def counted_up(counts: Ints) -> Ints:
    """Return 0, 1, ... up to each of the counts, one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def netted(row_keys: Ints, weights: Ints, is_update: Bools) -> tuple[Ints, Ints, Bools]:
    """Put equal rows together: the first of each, their sum, and whether any is half of an update."""
    order, begins = together(row_keys)
    if begins.all():
        return np.arange(len(order)), weights, is_update
    starts = np.flatnonzero(begins)
    firsts = np.minimum.reduceat(order, starts)
    totals = np.add.reduceat(weights[order], starts)
    updates = np.logical_or.reduceat(is_update[order], starts)
    back = np.argsort(firsts)  # as rows came
    return firsts[back], totals[back], updates[back]


def concat_rows(first: KeptRows, second: KeptRows) -> KeptRows:
    """Put rows one after another."""
    return KeptRows(
        [pa.concat_arrays([a, b]) for a, b in zip(first.columns, second.columns, strict=True)],
        np.concatenate([first.keys, second.keys]),
        np.concatenate([first.counts, second.counts]),
        np.concatenate([first.is_update, second.is_update]),
        np.concatenate([first.slots, second.slots]),
        np.concatenate([first.order, second.order]),
    )


def rows_after(rows: KeptRows, change: KeptRows) -> KeptRows:
    """Return rows as they are after changes."""
    if not len(change.keys):
        return rows
    known, places = _known(rows, change)
    counts, order = rows.counts.copy(), rows.order.copy()
    counts[places] += change.counts[known]
    order[places] = change.order[known]
    kept = replace(rows, counts=counts, order=order)
    return concat_rows(kept.take(counts > 0), change.take((change.slots < 0) & (change.counts > 0)))


def changes_of(old: KeptRows, change: KeptRows) -> Ints:
    """Return by how many each of the rows was changed."""
    changes = np.zeros(len(old.slots), np.int64)
    known, places = _known(old, change)
    changes[places] = change.counts[known]
    return changes


def _known(old: KeptRows, change: KeptRows) -> tuple[Ints, Ints]:
    """Return which of the changes are of rows that were there, and the places of those."""
    stored = np.flatnonzero(change.slots >= 0)
    if not len(stored) or not len(old.slots):
        return stored[:0], stored[:0]
    order = np.argsort(old.slots)
    known = stored[np.isin(change.slots[stored], old.slots)]
    return known, order[np.searchsorted(old.slots[order], change.slots[known])]
