"""Top-N of rows that are never retracted: only the first rows of each partition are kept.

Only the ORDER BY columns of new and kept rows are read to compute ranks; the other columns are read only for rows
that are written or emitted. A row is identified by its partition and its arrival order.

    rows of the epoch + those kept  --what they are ordered by-->  ranks before and after  -->  changes, rows to write
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    events_of,
    hashes_of,
    numbers,
    read_columns,
    with_numbers,
    written_rows,
)
from headrace.operators.table.changelog import (
    DELETE,
    INSERT,
    changes_table,
    concat_changes,
    empty_changes,
    update_changelog,
)
from headrace.operators.table.declarations import Order, RankDeclaration
from headrace.operators.table.kept_rows import events_by_key, numbered
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_TABLE = "rows"
_ORDER = "order"


class FirstRowsOperator:
    """Runs a `RankDeclaration` with a highest rank, over rows that are only ever added and have no time to live.

    Args:
        declaration: What it is.
        schema: The columns of its input.
        by_place: Whether a row that takes the place of another is an update of it.
    """

    def __init__(self, declaration: RankDeclaration, schema: Schema, *, by_place: bool) -> None:
        assert declaration.last is not None
        self._declaration = declaration
        self._first, self._last = declaration.first - 1, declaration.last
        self._by_place = by_place
        self._names = [column.name for column in schema]
        self._columns = [f"c{index}" for index in range(len(schema))]
        self._orders = [(order, self._names.index(order.column)) for order in declaration.order]
        kept = [
            ColumnType(name, column.arrow, is_key=True)
            for name, column in zip(self._columns, schema, strict=True)
        ]
        self._layout = TableLayout(
            _TABLE,
            (*kept, ColumnType(_ORDER, pa.int64(), is_key=True)),
            has_owners=True,
            key_words=KEY_WORDS + 1,
        )
        self.layouts = (self._layout,)
        self.inputs = (InputSpec(side=0, source=0, keys=declaration.partition, items=(WITH_SEQUENCE,)),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        rows = inputs.get(0)
        if rows is None or not rows.num_rows:
            declaration = self._declaration
            return EpochOutput(empty_changes(declaration.output, is_insert_only=declaration.is_insert_only))
        ranked = self._ranked(rows, state[_TABLE], time.first_place)
        output = self._by_places(ranked) if self._by_place else self._by_rows(ranked)
        if not time.keeps_state:
            return EpochOutput(output)
        written = self._written(ranked)
        return EpochOutput(output, {_TABLE: written} if len(written) else {})

    def _ranked(self, rows: pa.Table, table: SlotTable, first: int) -> _Ranked:
        """Put the epoch's rows and those kept of their partitions into one order."""
        owners = hashes_of(rows)
        partitions, ids, _ = numbered(owners, np.empty((0, KEY_WORDS), np.int64))
        at, slots = table.members(partitions)
        kept = read_columns(table, slots, [*(self._columns[place] for _, place in self._orders), _ORDER])
        came = np.empty(rows.num_rows, np.int64)
        came[np.argsort(numbers(rows, SEQUENCE), kind="stable")] = np.arange(rows.num_rows)
        came += first
        orders = np.concatenate([kept[_ORDER].to_numpy(), came])
        keys = np.concatenate([at, ids])
        codes: list[Ints] = [orders]
        for order, place in reversed(self._orders):
            new = rows.column(self._names[place]).combine_chunks()
            codes += sort_keys(pa.concat_arrays([kept[self._columns[place]], new]), order)
        sorted_ = np.lexsort([*codes, keys])
        return _Ranked(
            table=table,
            rows=rows,
            owners=owners,
            slots=slots,
            order=orders[sorted_],
            position=sorted_,
            partition=keys[sorted_],
            last=self._last,
            events=events_by_key(events_of(rows), ids, len(partitions)),
        )

    # -- what comes out ----------------------------------------------------------------------------------------

    def _by_rows(self, ranked: _Ranked) -> pa.Table:
        """Tell which rows are no longer among the first, then which are now."""
        declaration = self._declaration
        was = ranked.is_old & self._is_told(ranked.before)
        is_now = self._is_told(ranked.after)
        tables = []
        for chosen, kind in ((was & ~is_now, DELETE), (is_now & ~was, INSERT)):
            columns = self._values(ranked, np.flatnonzero(chosen))
            named = dict(zip((column.name for column in declaration.output), columns, strict=True))
            count = int(chosen.sum())
            kinds = None if declaration.is_insert_only else np.full(count, kind, np.int8)
            events = None if ranked.events is None else ranked.events[ranked.partition[chosen]]
            tables.append(changes_table(declaration.output, named, kinds, events))
        return concat_changes(tables, declaration.output, is_insert_only=declaration.is_insert_only)

    def _by_places(self, ranked: _Ranked) -> pa.Table:
        """Tell what each place holds now, where that is another row than before."""
        declaration = self._declaration
        after = np.flatnonzero(self._is_told(ranked.after))
        before = np.flatnonzero(ranked.is_old & self._is_told(ranked.before))
        # A place is never empty again; those of a partition stand in order in both.
        held = ranked.partition[before] * self._last + ranked.before[before]
        places = ranked.partition[after] * self._last + ranked.after[after]
        found = np.searchsorted(held, places)
        was = np.zeros(len(places), np.bool_)
        inside = found < len(held)
        was[inside] = held[found[inside]] == places[inside]
        old = np.full(len(places), -1, np.int64)
        old[was] = before[found[was]]
        changed = old != after
        after, old, was = after[changed], old[changed], was[changed]
        new_columns = self._values(ranked, after)
        if declaration.emits_update_before:
            old_columns = self._values(ranked, old)
        else:
            old_columns = [pa.nulls(len(after), column.type) for column in new_columns]
        if declaration.rank_column is not None:
            ranks = pa.array(ranked.after[after] + 1).cast(declaration.output[-1].arrow)
            new_columns, old_columns = [*new_columns, ranks], [*old_columns, ranks]
        names = [column.name for column in declaration.output]
        return update_changelog(
            declaration.output,
            dict(zip(names, old_columns, strict=True)),
            dict(zip(names, new_columns, strict=True)),
            was=was,
            is_now=np.ones(len(after), np.bool_),
            changed=np.ones(len(after), np.bool_),
            emits_update_before=declaration.emits_update_before,
            is_insert_only=declaration.is_insert_only,
            events=None if ranked.events is None else pa.array(ranked.events[ranked.partition[after]]),
        )

    def _is_told(self, ranks: Ints) -> Bools:
        emitted: Bools = (ranks >= self._first) & (ranks < self._last)
        return emitted

    def _values(self, ranked: _Ranked, chosen: Ints) -> list[pa.Array]:
        """Return the columns of rows by their places in the order; NULL for -1."""
        position = np.where(chosen < 0, -1, ranked.position[chosen])
        is_old = (position >= 0) & (position < len(ranked.slots))
        stored = read_columns(ranked.table, ranked.slots[position[is_old]], self._columns)
        # Those of state first, then those of the epoch.
        picks = position - len(ranked.slots) + int(is_old.sum())
        picks[is_old] = np.arange(int(is_old.sum()))
        taken = pa.array(picks, mask=position < 0)
        return [
            pa.chunked_array([stored[column], *ranked.rows.column(name).chunks]).take(taken).combine_chunks()
            for column, name in zip(self._columns, self._names, strict=True)
        ]

    # -- what is kept ------------------------------------------------------------------------------------------

    def _written(self, ranked: _Ranked) -> RowSet:
        """Return the epoch's rows that are among the first, and those kept that are no longer."""
        is_first = ranked.after < self._last
        fresh = np.flatnonzero(is_first & ~ranked.is_old)
        gone = ranked.slots[ranked.position[~is_first & ranked.is_old]]
        new = ranked.position[fresh] - len(ranked.slots)
        owners = np.concatenate([ranked.owners[new], ranked.table.owners_at(gone)])
        keys = np.concatenate(
            [with_numbers(ranked.owners[new], ranked.order[fresh]), ranked.table.keys_at(gone)]
        )
        picks = pa.array(new)
        columns = {
            column: _padded(ranked.rows.column(name).combine_chunks().take(picks), len(gone))
            for column, name in zip(self._columns, self._names, strict=True)
        }
        columns[_ORDER] = _padded(pa.array(ranked.order[fresh]), len(gone))
        removed = np.arange(len(keys)) >= len(new)
        return written_rows(self._layout, keys, columns, owners=owners, removed=removed)


@dataclass(frozen=True)
class _Ranked:
    """Rows of the epoch and of state, partition by partition in their order."""

    table: SlotTable
    rows: pa.Table
    #: The partitions of the epoch's rows.
    owners: Ints
    #: Where rows of state are.
    slots: Ints
    #: When each row came.
    order: Ints
    #: Which row it is: of state, then of the epoch.
    position: Ints
    partition: Ints
    last: int
    #: For each partition the row of the epoch that came, where that is known.
    events: Ints | None

    @property
    def is_old(self) -> Bools:
        is_old: Bools = self.position < len(self.slots)
        return is_old

    @property
    def after(self) -> Ints:
        """The rank of each row among all, from 0."""
        return self._counted(np.ones(len(self.position), np.bool_))

    @property
    def before(self) -> Ints:
        """The rank of each row of state among those, from 0; of other rows it means nothing."""
        return self._counted(self.is_old)

    def _counted(self, counts: Bools) -> Ints:
        """Return how many rows of its partition that count are before each."""
        total: Ints = np.cumsum(counts) - counts
        begins = np.flatnonzero(np.diff(self.partition, prepend=-1))
        lengths = np.diff(np.append(begins, len(self.partition)))
        ranks: Ints = total - np.repeat(total[begins], lengths)
        return ranks


def sort_keys(values: pa.Array, order: Order) -> list[Ints]:
    """Return numbers to sort values by: the last one first, as lexsort has it."""
    kind = values.type
    if pa.types.is_integer(kind) and kind.bit_width <= 64 and kind != pa.uint64():
        codes = values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        whole = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        codes = whole.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    else:
        codes = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    keys = [codes if order.ascending else ~codes]
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        keys[0] = np.where(is_null, 0, keys[0])
        keys.append((is_null != order.nulls_first).astype(np.int64))
    return keys


def _padded(array: pa.Array, count: int) -> pa.Array:
    return pa.concat_arrays([array, pa.nulls(count, array.type)]) if count else array
