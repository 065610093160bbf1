"""Top-N, LIMIT, and the last row per key for sinks: the first rows of each partition, as they change.

All rows that may still become one of the first are kept; without retractions, only the first ones. The difference of
the first rows before and after the epoch is emitted: row by row, or rank by rank if ranks are emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.base import EpochOutput, EpochTime, events_of
from headrace.operators.table.changelog import DELETE, INSERT, changes_table, concat_changes, update_changelog
from headrace.operators.table.declarations import (
    Order,
    RankDeclaration,
    StatefulNode,
)
from headrace.operators.table.kept_rows import KeptRows, KeptSide, SideChange, numbered, rows_after
from headrace.operators.table.sink_declarations import SinkUpsertMaterializeDeclaration
from headrace.operators.table.steps import Schema
from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Ints
from headrace.state.row_sets import RowSet


@dataclass(frozen=True)
class Ranking:
    """Which rows come first.

    Args:
        order: What rows are ranked by.
        first: The lowest rank that is emitted.
        last: The highest; None: no end.
        newest_first: Whether, of rows that are equal in this, the newest comes first, not the oldest.
    """

    order: tuple[Order, ...]
    first: int = 1
    last: int | None = None
    newest_first: bool = False

    def sorted(self, rows: KeptRows, names: Sequence[str]) -> tuple[KeptRows, Ints]:
        """Return rows in order, partition by partition, each as often as it is there; and their ranks from 0."""
        columns: dict[str, object] = {"partition": rows.keys}
        keys: list[tuple[str, str]] = [("partition", "ascending")]
        for index, order in enumerate(self.order):
            array = rows.columns[names.index(order.column)]
            columns[f"null{index}"] = pc.is_null(array).cast(pa.int8())
            columns[f"value{index}"] = array
            keys.append((f"null{index}", "descending" if order.nulls_first else "ascending"))
            keys.append((f"value{index}", "ascending" if order.ascending else "descending"))
        columns["came"] = rows.order
        keys.append(("came", "descending" if self.newest_first else "ascending"))
        picks = pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy()
        picks = np.repeat(picks, rows.counts[picks])
        ordered = rows.take(picks)
        begins = np.flatnonzero(np.diff(ordered.keys, prepend=-1))
        lengths = np.diff(np.append(begins, len(picks)))
        return ordered, np.arange(len(picks)) - np.repeat(begins, lengths)

    def is_among(self, ranks: Ints) -> Ints:
        """Return the positions of the ranks that are emitted."""
        inside = ranks >= self.first - 1
        if self.last is not None:
            inside &= ranks < self.last
        return np.flatnonzero(inside)


def tells_places(declaration: RankDeclaration) -> bool:
    """Whether a row that takes the place of another is an update of it.

    As in Flink, that is so if ranks are emitted, or if rows before the first place are left out; not for consumers
    that go by the keys of rows alone.
    """
    has_offset = declaration.first > 1 and declaration.emits_update_before
    return declaration.rank_column is not None or has_offset


class RankOperator:
    """Runs a `RankDeclaration`, or a `SinkUpsertMaterializeDeclaration`.

    Args:
        declaration: What it is.
        schema: The columns of its input.
        partition: The columns that tell partitions apart.
        ranking: Which rows come first.
        retracts: Whether rows of its input may be retracted.
        by_place: Whether a row that takes the place of another is an update of it.
        keeps_all: Whether rows that are not among the first are kept even if nothing is ever retracted.
    """

    def __init__(
        self,
        declaration: StatefulNode,
        schema: Schema,
        partition: tuple[str, ...],
        ranking: Ranking,
        *,
        retracts: bool,
        by_place: bool,
        keeps_all: bool = False,
    ) -> None:
        self._declaration = declaration
        self._ranking = ranking
        self._by_place = by_place
        self._rank_column = declaration.rank_column if isinstance(declaration, RankDeclaration) else None
        self._names = [column.name for column in schema]
        self._keeps_all = keeps_all or retracts or ranking.last is None
        self._side = KeptSide(
            "rows",
            0,
            partition,
            schema,
            declaration.ttl_ms,
            [True] * len(partition),
            retracts=retracts,
            is_ordered=True,
            newest_counts=ranking.newest_first,
        )
        self.layouts = (self._side.layout,)
        self.inputs = (self._side.input,)

    @classmethod
    def of_rank(cls, declaration: RankDeclaration, schema: Schema, *, retracts: bool) -> RankOperator:
        """Make the operator of a `RankDeclaration`."""
        ranking = Ranking(declaration.order, declaration.first, declaration.last)
        by_place = tells_places(declaration)
        return cls(declaration, schema, declaration.partition, ranking, retracts=retracts, by_place=by_place)

    @classmethod
    def of_sink(
        cls, declaration: SinkUpsertMaterializeDeclaration, schema: Schema, *, retracts: bool
    ) -> RankOperator:
        """Make the operator of a `SinkUpsertMaterializeDeclaration`: the newest row of each key is in the sink."""
        ranking = Ranking((), last=1, newest_first=True)
        return cls(
            declaration, schema, declaration.keys, ranking, retracts=retracts, by_place=True, keeps_all=True
        )

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        table = state[self._side.name]
        change = self._side.change(inputs.get(0), table, time)
        owners, ids, _ = numbered(change.owners, np.empty((0, 2), np.int64))
        old = self._side.kept(table, owners, ids, time.now_ms)
        changed = change.rows(ids)
        went, came = changed.take(changed.counts < 0), changed.take(changed.counts > 0)
        new = rows_after(rows_after(old, went), came)
        before, before_ranks = self._ranking.sorted(old, self._names)
        after, after_ranks = self._ranking.sorted(new, self._names)
        emitted_before = self._ranking.is_among(before_ranks)
        emitted_after = self._ranking.is_among(after_ranks)
        before, before_ranks = before.take(emitted_before), before_ranks[emitted_before]
        if self._keeps_all:
            written = change.written()
        else:
            written = self._without_the_rest(change, changed, old, after, after_ranks)
        after, after_ranks = after.take(emitted_after), after_ranks[emitted_after]
        events = None
        if events_of(inputs.get(0)) is not None:
            events = np.zeros(len(owners), np.int64)
            events[ids] = change.events
        if self._by_place:
            rows = self._by_places(before, before_ranks, after, after_ranks, events)
        else:
            rows = self._by_rows(before, after, events)
        return EpochOutput(rows, {self._side.name: written} if len(written) else {})

    def _by_rows(self, before: KeptRows, after: KeptRows, events: Ints | None) -> pa.Table:
        """Tell which rows are no longer among the first, then which are now."""
        declaration = self._declaration
        # A row is known by its place in state, or by its order if it came in this epoch.
        gone = _difference(before, after)
        fresh = _difference(after, before)
        tables = []
        for rows, kind in ((gone, DELETE), (fresh, INSERT)):
            columns = dict(zip(self._names, rows.columns, strict=True))
            kinds = None if declaration.is_insert_only else np.full(len(rows.keys), kind, np.int8)
            named = _named(declaration.output, columns)
            caused = None if events is None else events[rows.keys]
            tables.append(changes_table(declaration.output, named, kinds, caused))
        return concat_changes(tables, declaration.output, is_insert_only=declaration.is_insert_only)

    def _by_places(
        self,
        before: KeptRows,
        before_ranks: Ints,
        after: KeptRows,
        after_ranks: Ints,
        events: Ints | None,
    ) -> pa.Table:
        """Tell what each place holds now."""
        declaration = self._declaration
        places = np.unique(
            np.concatenate(
                [np.stack([before.keys, before_ranks], 1), np.stack([after.keys, after_ranks], 1)]
            ),
            axis=0,
        )
        at_before, at_after = (
            _places(places, before.keys, before_ranks),
            _places(places, after.keys, after_ranks),
        )
        columns = []
        for rows, at in ((before, at_before), (after, at_after)):
            picks = pa.array(at, mask=at < 0)
            arrays = [column.take(picks) for column in rows.columns]
            if self._rank_column is not None:
                arrays.append(pa.array(places[:, 1] + 1).cast(declaration.output[-1].arrow))
            columns.append(dict(zip((c.name for c in declaration.output), arrays, strict=True)))
        was, is_now = at_before >= 0, at_after >= 0
        same = np.zeros(len(places), np.bool_)
        both = was & is_now
        same[both] = before.order[at_before[both]] == after.order[at_after[both]]
        return update_changelog(
            declaration.output,
            *columns,
            was=was,
            is_now=is_now,
            changed=~same,
            emits_update_before=declaration.emits_update_before,
            is_insert_only=declaration.is_insert_only,
            events=None if events is None else pa.array(events[places[:, 0]]),
        )

    def _without_the_rest(
        self, change: SideChange, changed: KeptRows, old: KeptRows, after: KeptRows, ranks: Ints
    ) -> RowSet:
        """Forget rows that can never be among the first again, as nothing before them is ever taken back."""
        kept = _identities(after.take(ranks < (self._ranking.last or 0)))
        change.counts = np.where(np.isin(_identities(changed), kept), change.counts, 0)
        beyond = old.take(~np.isin(_identities(old), kept))
        removed = change.again(beyond, np.zeros(len(beyond.slots), np.int64))
        return RowSet.merged([change.written(), removed], keep_removals=True)


def _difference(rows: KeptRows, others: KeptRows) -> KeptRows:
    """Return rows that are in one and not, or not as often, in the other."""
    return rows.take(~np.isin(_copies(rows), _copies(others)))


def _identities(rows: KeptRows) -> npt.NDArray[np.void]:
    """Return what tells rows apart: their partition, and when they came."""
    return _as_structs(np.stack([rows.keys, rows.order], 1))


def _copies(rows: KeptRows) -> npt.NDArray[np.void]:
    """The same, with copies of a row distinguished: the first, the second, ..."""
    positions = np.lexsort((rows.order, rows.keys))
    keys, order = rows.keys[positions], rows.order[positions]
    is_other = np.ones(len(order), np.bool_)
    is_other[1:] = (keys[1:] != keys[:-1]) | (order[1:] != order[:-1])
    begins = np.flatnonzero(is_other)
    copies = np.empty(len(order), np.int64)
    copies[positions] = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    return _as_structs(np.stack([rows.keys, rows.order, copies], 1))


def _as_structs(numbers: Ints) -> npt.NDArray[np.void]:
    fields = [(f"f{index}", np.int64) for index in range(numbers.shape[1])]
    return np.ascontiguousarray(numbers).view(fields).ravel()


def _places(places: Ints, partitions: Ints, ranks: Ints) -> Ints:
    """Return which row stands at each place, -1 for none."""
    width = int(places[:, 1].max(initial=0)) + 1
    wanted = places[:, 0] * width + places[:, 1]
    there = partitions * width + ranks
    order = np.argsort(there)
    at = np.searchsorted(there[order], wanted)
    found = np.full(len(places), -1, np.int64)
    inside = at < len(there)
    hits = np.zeros(len(places), np.bool_)
    hits[inside] = there[order][at[inside]] == wanted[inside]
    found[hits] = order[at[hits]]
    return found


def _named(output: Schema, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    return dict(zip((column.name for column in output), columns.values(), strict=True))
