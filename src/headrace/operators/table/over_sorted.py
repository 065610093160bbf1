"""OVER by a column that is not a time attribute: an added or removed row changes the results of later rows.

All rows are kept. For the keys of an epoch, the results before and after it are computed, and the difference is
emitted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import EpochOutput, EpochTime, positions_in
from headrace.operators.table.changelog import empty_changes, update_changelog, values_differ
from headrace.operators.table.frames import Block
from headrace.operators.table.kept_rows import KeptRows, KeptSide, numbered, rows_after
from headrace.operators.table.over_calls import make_measure
from headrace.operators.table.rank import Ranking
from headrace.operators.table.steps import Schema
from headrace.operators.table.timed_declarations import OverAggregateDeclaration
from headrace.state.columnar.slots import SlotTable
from headrace.state.columns import Bools, Ints


class SortedOverOperator:
    """Runs an `OverAggregateDeclaration` with an order; its frames have no start."""

    def __init__(self, declaration: OverAggregateDeclaration, schema: Schema, *, retracts: bool) -> None:
        assert declaration.order is not None
        self._declaration = declaration
        types = {column.name: column.arrow for column in schema}
        self._names = list(types)
        self._measures = [make_measure(at, call, types) for at, call in enumerate(declaration.calls)]
        self._ranking = Ranking((declaration.order,))
        self._side = KeptSide(
            "rows",
            0,
            declaration.keys,
            schema,
            declaration.ttl_ms,
            [True] * len(declaration.keys),
            retracts=retracts,
            is_ordered=True,
        )
        self.layouts = (self._side.layout,)
        self.inputs = (self._side.input,)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        table = state[self._side.name]
        change = self._side.change(inputs.get(0), table, time)
        if not len(change.owners):
            swept = change.written()
            return EpochOutput(
                empty_changes(self._declaration.output, is_insert_only=False),
                {self._side.name: swept} if len(swept) else {},
            )
        owners, ids, _ = numbered(change.owners, np.empty((0, 2), np.int64))
        old = self._side.kept(table, owners, ids, time.now_ms)
        changed = change.rows(ids)
        went, came = changed.take(changed.counts < 0), changed.take(changed.counts > 0)
        new = rows_after(rows_after(old, went), came)
        before, before_ids = self._results(old, len(owners))
        after, after_ids = self._results(new, len(owners))
        written = change.written()
        return EpochOutput(
            self._emitted(before, before_ids, after, after_ids),
            {self._side.name: written} if len(written) else {},
        )

    def _results(self, rows: KeptRows, keys: int) -> tuple[dict[str, pa.Array], Ints]:
        """Return rows in order, each as often as it is there, with their results; and what tells them apart."""
        ordered, _ = self._ranking.sorted(rows, self._names)
        columns = dict(zip(self._names, ordered.columns, strict=True))
        block = self._block(ordered, columns, keys)
        for over, measure in zip(self._declaration.calls, self._measures, strict=True):
            frames = block.frames(None, is_range=over.is_range, sees_peers=over.is_range)
            columns[over.call.result.name] = measure.of(block, frames, {}).result
        # Copies of a row are adjacent.
        is_other = np.ones(len(ordered.order), np.bool_)
        is_other[1:] = (ordered.order[1:] != ordered.order[:-1]) | (ordered.keys[1:] != ordered.keys[:-1])
        begins = np.flatnonzero(is_other)
        copies = np.arange(len(is_other)) - begins[np.cumsum(is_other) - 1]
        return columns, np.stack([ordered.keys, ordered.order, copies], 1)

    def _block(self, rows: KeptRows, columns: Mapping[str, pa.Array], keys: int) -> Block:
        """Put a row of state, of which nothing is known, before the rows of each key."""
        of_key = np.concatenate([np.arange(keys), rows.keys])
        is_state = np.arange(len(of_key)) < keys
        picks = np.lexsort((np.arange(len(of_key)), of_key))  # stable: what stands for state comes first
        assert self._declaration.order is not None
        values = columns[self._declaration.order.column]
        is_other = np.ones(len(of_key), np.bool_)
        if len(values) > 1:
            is_other[keys + 1 :] = values_differ(values.slice(0, len(values) - 1), values.slice(1))
            is_other[keys + 1 :] |= rows.keys[1:] != rows.keys[:-1]
        taken = pa.array(picks)
        seen = {name for over in self._declaration.calls for name in over.call.arguments}
        given = {
            name: pa.concat_arrays([pa.nulls(keys, columns[name].type), columns[name]]).take(taken)
            for name in seen
        }
        return Block(
            of_key[picks],
            np.zeros(len(picks), np.int64),
            ~is_state[picks],
            given,
            np.cumsum(is_other[picks]) - 1,
        )

    def _emitted(
        self, before: Mapping[str, pa.Array], before_ids: Ints, after: Mapping[str, pa.Array], after_ids: Ints
    ) -> pa.Table:
        """Tell which rows go, come, or have other results."""
        gone = np.flatnonzero(positions_in(after_ids, before_ids) < 0)
        # Rows that go, then all that are there.
        at_before = np.concatenate([gone, positions_in(before_ids, after_ids)])
        at_after = np.concatenate([np.full(len(gone), -1, np.int64), np.arange(len(after_ids))])
        old, new = _taken(before, at_before), _taken(after, at_after)
        was, is_now = at_before >= 0, at_after >= 0
        changed: Bools = np.zeros(len(was), np.bool_)
        for over in self._declaration.calls:
            changed |= values_differ(old[over.call.result.name], new[over.call.result.name])
        declaration = self._declaration
        names = [column.name for column in declaration.output]
        return update_changelog(
            declaration.output,
            dict(zip(names, old.values(), strict=True)),
            dict(zip(names, new.values(), strict=True)),
            was=was,
            is_now=is_now,
            changed=changed,
            emits_update_before=declaration.emits_update_before,
        )


def _taken(columns: Mapping[str, pa.Array], places: Ints) -> dict[str, pa.Array]:
    picks = pa.array(places, mask=places < 0)
    return {name: column.take(picks) for name, column in columns.items()}
