"""GROUP BY without a window: one row per key, changed as its input changes.

Spark has already aggregated the rows of each key in the epoch, so a key is processed once per epoch: its accumulators
are read, the differences are added, and the change is emitted as in Flink's mini-batch mode: +I for a new key, -U and
+U for a changed result, nothing for an equal one (unless state has a time to live), -D when its last row is
retracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.accumulators import ColumnAccumulator, pick, rows_sql
from headrace.operators.table.base import (
    EpochOutput,
    EpochTime,
    InputSpec,
    events_of,
    hashes_of,
    read_columns,
    written_rows,
)
from headrace.operators.table.changelog import empty_changes, update_changelog, values_differ
from headrace.operators.table.declarations import AggSpec, GroupAggregateDeclaration
from headrace.operators.table.lists import DistinctInList, best_values, make_aggregate
from headrace.operators.table.steps import Schema
from headrace.operators.table.ttl import RowTimeToLive
from headrace.operators.table.values import BagChanges, ValueBag
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_ROWS = "rows"
_GROUPS = "groups"
_EXTREMES = ("MIN", "MAX")
#: For which it makes no difference whether a value is there once or more often.
_ALWAYS_DISTINCT = (*_EXTREMES, "FIRST_VALUE", "LAST_VALUE")
#: What can be computed from the distinct values of an argument.
_BY_VALUES = (
    *("COUNT", "SUM", "SUM0", "AVG", "LISTAGG", "COLLECT", "ARRAY_AGG"),
    *("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP"),
    *_EXTREMES,
)


class GroupAggregateOperator:
    """Runs a `GroupAggregateDeclaration`.

    Args:
        declaration: What it is.
        schema: The columns of its input.
        retracts: Whether rows of its input may be retracted.
    """

    def __init__(self, declaration: GroupAggregateDeclaration, schema: Schema, *, retracts: bool) -> None:
        self._declaration = declaration
        self._ttl = RowTimeToLive(declaration.ttl_ms)
        types = {column.name: column.arrow for column in schema}
        self._calls = AggregateCalls(declaration.keys, declaration.calls, types, self._ttl, retracts=retracts)
        self._key_names = {key: f"k{index}" for index, key in enumerate(declaration.keys)}
        self._layout = TableLayout(
            _GROUPS,
            (
                *(ColumnType(name, types[key], is_key=True) for key, name in self._key_names.items()),
                ColumnType(_ROWS, pa.int64()),
                *self._calls.columns,
                *self._ttl.columns,
            ),
        )
        self.layouts = (self._layout, *(bag.layout for bag in self._calls.bags))
        self.inputs = (
            InputSpec(
                side=0,
                source=0,
                keys=declaration.keys,
                group_by=declaration.keys,
                items=((rows_sql(retracts=retracts), _ROWS), *self._calls.partials),
            ),
            *(bag.input for bag in self._calls.bags),
        )

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        table = state[_GROUPS]
        changes: dict[str, RowSet] = {}
        for layout in self.layouts:
            swept = self._ttl.sweep(state[layout.name], time.now_ms)
            if swept is not None:
                changes[layout.name] = swept
        groups = inputs.get(0)
        if groups is None or not groups.num_rows:
            declaration = self._declaration
            return EpochOutput(
                empty_changes(declaration.output, is_insert_only=declaration.is_insert_only), changes
            )
        groups = groups.combine_chunks()
        keys = hashes_of(groups)
        slots = self._ttl.alive(table, table.find(keys), time.now_ms)
        old = read_columns(table, slots, [column.name for column in (*self._calls.columns, _ROWS_COLUMN)])
        new, bag_rows = self._calls.merge(old, groups, inputs, keys, state, time.now_ms)
        for name, changed in bag_rows.items():
            _add_rows(changes, name, changed)
        was = slots >= 0
        rows = pc.add(pc.fill_null(old[_ROWS], 0), groups.column(_ROWS).combine_chunks())
        is_now = rows.to_numpy() > 0
        key_columns = {name: groups.column(key).combine_chunks() for key, name in self._key_names.items()}
        stamps = self._ttl.stamps(len(keys), time.now_ms)
        written = written_rows(
            self._layout, keys, {**key_columns, _ROWS: rows, **new, **stamps}, removed=~is_now
        )
        # What was never there need not be taken away.
        kept = was | is_now
        written = written if kept.all() else written.take(kept)
        _add_rows(changes, _GROUPS, written)
        if not self._declaration.keeps_groups:
            changes = {}
        changelog = self._changelog(key_columns, old, new, was, is_now, events_of(groups))
        return EpochOutput(changelog, changes)

    def _changelog(
        self,
        key_columns: Mapping[str, pa.Array],
        old: Mapping[str, pa.Array],
        new: Mapping[str, pa.Array],
        was: Bools,
        is_now: Bools,
        events: pa.ChunkedArray | None,
    ) -> pa.Table:
        declaration = self._declaration
        names = [column.name for column in declaration.output]
        keys = dict(zip(names, key_columns.values(), strict=False))
        before = {**keys, **self._calls.results(old)}
        after = {**keys, **self._calls.results(new)}
        results = names[len(keys) :]
        changed = np.full(len(was), bool(self._ttl))
        for name in results:
            changed |= values_differ(before[name], after[name])
        return update_changelog(
            declaration.output,
            before,
            after,
            was=was,
            is_now=is_now,
            changed=changed,
            emits_update_before=declaration.emits_update_before,
            is_insert_only=declaration.is_insert_only,
            events=events,
        )


_ROWS_COLUMN = ColumnType(_ROWS, pa.int64())


class AggregateCalls:
    """The calls of an aggregation, with the bags that some of them need.

    With ``in_lists`` values that a call goes by are a part of its accumulator, and there are no bags. So it is for
    ARRAY_AGG(DISTINCT ...) in any case: NULL is a value to it. ``merges`` says whether accumulators are combined.
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        calls: Sequence[AggSpec],
        types: Mapping[str, pa.DataType],
        ttl: RowTimeToLive,
        *,
        retracts: bool,
        in_lists: bool = False,
        merges: bool = False,
    ) -> None:
        self._calls = calls
        self._accumulators: list[ColumnAccumulator] = []
        self.bags: list[ValueBag] = []
        #: Which bag a call goes by, and which of its filters.
        self._bag_of: dict[int, tuple[ValueBag, int]] = {}
        sharing: dict[tuple[str, ...], dict[int, str | None]] = {}
        for position, call in enumerate(calls):
            needs_bag = call.arguments and (
                (call.distinct and call.function.upper() not in _ALWAYS_DISTINCT)
                or (retracts and call.function.upper() in _EXTREMES)
            )
            if needs_bag and call.function.upper() not in _BY_VALUES and call.user is None:
                raise UnsupportedFeatureError.not_yet(
                    f"{call.function}(DISTINCT ...) in a streaming query", "run the query in BATCH mode"
                )
            accumulator = make_aggregate(
                position, call, types, retracts=retracts and not needs_bag, merges=merges
            )
            is_listed = needs_bag and (
                in_lists or call.function.upper() == "ARRAY_AGG" or call.user is not None
            )
            if is_listed:
                accumulator = DistinctInList(f"a{position}", call, types, accumulator, retracts=retracts)
            self._accumulators.append(accumulator)
            if needs_bag and not is_listed:
                sharing.setdefault(call.arguments, {})[position] = call.filter
        for arguments, filters in sharing.items():
            clauses = list(dict.fromkeys(filters.values()))
            kind = types[arguments[0]]
            bag = ValueBag(len(self.bags) + 1, keys, arguments, kind, clauses, ttl, retracts=retracts)
            self.bags.append(bag)
            self._bag_of |= {at: (bag, clauses.index(clause)) for at, clause in filters.items()}

    @property
    def columns(self) -> tuple[ColumnType, ...]:
        """What state keeps per key."""
        return tuple(column for each in self._accumulators for column in each.columns)

    @property
    def plain_columns(self) -> tuple[ColumnType, ...]:
        """The same of the calls that go by no bag."""
        each = enumerate(self._accumulators)
        return tuple(
            column for at, accumulator in each if at not in self._bag_of for column in accumulator.columns
        )

    @property
    def by_values(self) -> list[tuple[AggSpec, ColumnAccumulator]]:
        """The calls that go by a bag."""
        return [(self._calls[at], self._accumulators[at]) for at in self._bag_of]

    @property
    def partials(self) -> tuple[tuple[str, str], ...]:
        """What Spark computes per key of an epoch."""
        return tuple(
            partial
            for position, each in enumerate(self._accumulators)
            if position not in self._bag_of
            for partial in each.partials
        )

    def merge(
        self,
        old: Mapping[str, pa.Array],
        groups: pa.Table,
        inputs: Mapping[int, pa.Table],
        keys: Ints,
        state: Mapping[str, SlotTable],
        now_ms: int,
    ) -> tuple[dict[str, pa.Array], dict[str, RowSet]]:
        """Add an epoch to the accumulators of its keys; returns them, and the rows of the bags."""
        changes = {
            bag.layout.name: bag.change(inputs.get(bag.input.side), keys, state[bag.layout.name], now_ms)
            for bag in self.bags
        }
        partials = {
            name: groups.column(name).combine_chunks() for name in groups.column_names if name in set(old)
        }
        merged: dict[str, pa.Array] = {}
        for position, accumulator in enumerate(self._accumulators):
            if position not in self._bag_of:
                merged.update(accumulator.merge(old, partials))
                continue
            bag, clause = self._bag_of[position]
            change = changes[bag.layout.name]
            names = [column.name for column in accumulator.columns]
            if change is None:
                merged.update({name: old[name] for name in names})
            elif self._calls[position].function.upper() in _EXTREMES:
                values = _BagValues(bag, clause, change, keys, state[bag.layout.name], now_ms)
                extreme = _Extremes(self._calls[position], values)
                merged[names[0]] = extreme.after(old[names[0]])
            else:
                merged.update(accumulator.merge(old, accumulator.of_values(change.values[clause])))
        rows = {name: change.rows for name, change in changes.items() if change is not None}
        return merged, rows

    def combine(self, first: Mapping[str, pa.Array], second: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Put accumulators together; for calls that go by no bag."""
        merged: dict[str, pa.Array] = {}
        for position, accumulator in enumerate(self._accumulators):
            if position not in self._bag_of:
                merged.update(accumulator.merge(first, second))
        return merged

    def combine_groups(self, columns: Mapping[str, pa.Array], groups: Ints) -> dict[str, pa.Array]:
        """Put the accumulators of groups together, whose rows are adjacent; one row per group."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        ranks = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
        merged = {name: column.take(pa.array(starts)) for name, column in columns.items()}
        ordinal = np.cumsum(ranks == 0) - 1
        for rank in range(1, int(ranks.max(initial=0)) + 1):
            rows = np.flatnonzero(ranks == rank)
            added = {name: column.take(pa.array(rows)) for name, column in columns.items()}
            targets = ordinal[rows]
            old = {name: column.take(pa.array(targets)) for name, column in merged.items()}
            fresh = self.combine(old, added)
            places = np.arange(len(starts))
            places[targets] = len(starts) + np.arange(len(rows))
            merged = {
                name: pa.chunked_array([column, fresh[name]]).take(pa.array(places)).combine_chunks()
                for name, column in merged.items()
            }
        return merged

    def results(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the results of all calls, by their names."""
        return {
            call.result.name: _as_type(accumulator.result(columns), call.result.arrow)
            for call, accumulator in zip(self._calls, self._accumulators, strict=True)
        }


@dataclass(frozen=True)
class _BagValues:
    """The values of a bag that count for one FILTER clause, in an epoch."""

    bag: ValueBag
    clause: int
    change: BagChanges
    keys: Ints
    state: SlotTable
    now_ms: int

    def of_keys(self, positions: Ints) -> tuple[Ints, pa.Array]:
        """Return all values that some keys have now: positions of keys, and values."""
        return self.bag.all_values(self.change, self.clause, positions, self.keys, self.state, self.now_ms)


class _Extremes:
    """MIN or MAX of values that may be taken back."""

    def __init__(self, call: AggSpec, values: _BagValues) -> None:
        self._is_min = call.function.upper() == "MIN"
        self._pick = pc.min_element_wise if self._is_min else pc.max_element_wise
        self._values = values

    def after(self, before: pa.Array) -> pa.Array:
        change = self._values.change.values[self._values.clause]
        count = len(self._values.keys)
        came = change.signs > 0
        best = best_values(
            change.positions[came], change.values.filter(pa.array(came)), count, is_min=self._is_min
        )
        after = pick(self._pick, before, best.cast(before.type))
        # Where the lowest itself is gone, all that is left of the key must be looked at.
        gone = ~came
        lost = pc.equal(change.values.filter(pa.array(gone)), before.take(pa.array(change.positions[gone])))
        losers = np.unique(change.positions[gone][pc.fill_null(lost, False).to_numpy(zero_copy_only=False)])
        if not len(losers):
            return after
        at, values = self._values.of_keys(losers)
        left = best_values(at, values, count, is_min=self._is_min)
        is_loser = np.zeros(count, np.bool_)
        is_loser[losers] = True
        return pc.if_else(pa.array(is_loser), left.cast(before.type), after)


def _add_rows(changes: dict[str, RowSet], name: str, written: RowSet) -> None:
    """Put rows that are written after those of the table to remove, without those that are written anyway."""
    swept = changes.get(name)
    changes[name] = written if swept is None else RowSet.merged([swept, written], keep_removals=True)


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
