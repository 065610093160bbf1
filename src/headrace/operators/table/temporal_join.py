"""Temporal joins: each row with the version that another table had at the row's time.

    versions of a key    4 +I      7 +U           9 -D      12 +I
    a row at 6           joins the version of 4; one at 10 joins none: it was deleted at 9

Rows wait until the watermark has passed them, when all versions up to their time have arrived. Rows that arrive
behind the watermark are late and dropped. For each key, the last version that the watermark has passed is kept, and
all later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    hashes_of,
    numbers,
    quote,
    read_columns,
    with_numbers,
    written_rows,
)
from headrace.operators.table.changelog import DELETE, UPDATE_BEFORE, changes_table, empty_changes
from headrace.operators.table.declarations import JoinKind
from headrace.operators.table.frames import first_from
from headrace.operators.table.kept_rows import numbered
from headrace.operators.table.steps import KIND, Schema
from headrace.operators.table.timed_declarations import TemporalJoinDeclaration
from headrace.operators.table.timed_rows import (
    TimedRows,
    arrival_order,
    int_cells,
    joined_rows,
    merged_changes,
)
from headrace.operators.table.waiting_rows import WaitingRows
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import ColumnType, Ints
from headrace.state.row_sets import RowSet

_LEFT, _RIGHT = "left", "right"
_TIME, _GONE = "time", "gone"
_Changes = list[tuple[str, RowSet]]


class TemporalJoinOperator:
    """Joins rows with the version of their time, as a `TemporalJoinDeclaration` says."""

    def __init__(
        self, declaration: TemporalJoinDeclaration, schemas: Sequence[Schema], retracts: Sequence[bool]
    ) -> None:
        left, right = schemas
        self._declaration = declaration
        self._retracts = tuple(retracts)
        self._left_names = [column.name for column in left]
        self._right_names = [column.name for column in right]
        self._right_types = [column.arrow for column in right]
        kinds = {KIND: pa.int8()} if retracts[0] else {}
        types = {column.name: column.arrow for column in left} | kinds
        self._waiting = WaitingRows(_LEFT, types, declaration.left_time)
        self._versions = TableLayout(
            _RIGHT,
            (
                *(ColumnType(f"c{at}", kind) for at, kind in enumerate(self._right_types)),
                ColumnType(_TIME, pa.int64(), is_key=True),
                ColumnType(_GONE, pa.int64()),
            ),
            has_owners=True,
            key_words=KEY_WORDS + 1,
        )
        self.layouts = (self._waiting.layout, self._versions)
        known = [f"{quote(each)} IS NOT NULL" for each in (*declaration.right_keys, declaration.right_time)]
        self.inputs = (
            InputSpec(
                side=0,
                source=0,
                keys=declaration.left_keys,
                items=(WITH_SEQUENCE,),
                where=f"{quote(declaration.left_time)} IS NOT NULL",
            ),
            InputSpec(
                side=1,
                source=1,
                keys=declaration.right_keys,
                items=(WITH_SEQUENCE,),
                where=" AND ".join(known),
            ),
        )

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        changes: _Changes = []
        due, late = self._waiting.fresh(inputs.get(0), time)
        due = self._waiting.due(due, state[_LEFT], time, changes)
        due = due.take(np.argsort(due.order, kind="stable"))
        fresh = self._fresh_versions(inputs.get(1), time)
        if len(fresh.times):
            changes.append((_RIGHT, self._written(fresh)))
        declaration = self._declaration
        emitted = empty_changes(declaration.output, is_insert_only=declaration.is_insert_only)
        if len(due.times):
            emitted = self._emitted(due, self._versions_of(state[_RIGHT], fresh, due.owners))
        changes += self._outdated(state[_RIGHT], fresh, time)
        return EpochOutput(emitted, merged_changes(changes), late)

    # -- versions ----------------------------------------------------------------------------------------------

    def _fresh_versions(self, rows: pa.Table | None, time: EpochTime) -> TimedRows:
        """Return the versions of an epoch; the last column says whether it is one that the key is gone in."""
        if rows is None or not rows.num_rows:
            return self._no_versions()
        rows = rows.sort_by(SEQUENCE)
        kinds = rows.column(KIND).to_numpy() if self._retracts[1] else np.zeros(rows.num_rows, np.int8)
        gone = pa.array((kinds == DELETE).astype(np.int64))
        columns = [*(rows.column(name).combine_chunks() for name in self._right_names), gone]
        made = TimedRows(
            columns,
            hashes_of(rows),
            numbers(rows, self._declaration.right_time),
            arrival_order(time.epoch, rows.num_rows),
        )
        # The row as it was says nothing: the one that takes its place comes, too.
        return made.take(kinds != UPDATE_BEFORE)

    def _no_versions(self) -> TimedRows:
        none = np.empty(0, np.int64)
        columns = [pa.array([], kind) for kind in (*self._right_types, pa.int64())]
        return TimedRows(columns, np.empty((0, KEY_WORDS), np.int64), none, none)

    def _versions_of(self, table: SlotTable, fresh: TimedRows, owners: Ints) -> TimedRows:
        """Return the versions of keys, those of the epoch after those of state."""
        keys, _, _ = numbered(owners, owners[:0])
        _, slots = self._waiting.of_keys(table, keys)
        names = [f"c{at}" for at in range(len(self._right_types))]
        columns = read_columns(table, slots, [*names, _GONE])
        stored = TimedRows(
            list(columns.values()),
            table.owners_at(slots),
            int_cells(table, _TIME, slots),
            np.zeros(len(slots), np.int64),
        )
        return joined_rows(stored, fresh)

    def _written(self, rows: TimedRows) -> RowSet:
        """Return versions to write: the last one of a time takes the place of others."""
        *columns, gone = rows.columns
        named = {f"c{at}": column for at, column in enumerate(columns)}
        named |= {_TIME: pa.array(rows.times), _GONE: gone}
        written = written_rows(
            self._versions, with_numbers(rows.owners, rows.times), named, owners=rows.owners
        )
        return RowSet.merged([written], keep_removals=True)

    def _outdated(self, table: SlotTable, fresh: TimedRows, time: EpochTime) -> _Changes:
        """Return the versions that a later one, which the watermark has passed, took the place of."""
        live = table.live
        times = int_cells(table, _TIME, live)
        passed = live[(times > time.before) & (times <= time.after)]
        owners = np.concatenate([table.owners_at(passed), fresh.owners[fresh.times <= time.after]])
        if not len(owners):
            return []
        keys, _, _ = numbered(owners, owners[:0])
        at, slots = self._waiting.of_keys(table, keys)
        _, fresh_at, _ = numbered(np.concatenate([keys, fresh.owners]), keys[:0])
        # Both counted by the same keys: those of state, then those of the epoch.
        of_key = np.concatenate([fresh_at[: len(keys)][at], fresh_at[len(keys) :]])
        all_times = np.concatenate([int_cells(table, _TIME, slots), fresh.times])
        latest = np.full(int(of_key.max(initial=0)) + 1, np.iinfo(np.int64).min)
        is_passed = all_times <= time.after
        np.maximum.at(latest, of_key[is_passed], all_times[is_passed])
        gone = all_times < latest[of_key]
        changes: _Changes = []
        old = slots[gone[: len(slots)]]
        if len(old):
            rows = table.rows(old)
            removed = np.ones(len(old), np.bool_)
            changes.append((_RIGHT, RowSet(rows.keys, rows.owners, removed, rows.columns, rows.types)))
        came = fresh.take(gone[len(slots) :])
        if len(came.times):
            removed_rows = self._written(came)
            removed_rows.removed[:] = True
            changes.append((_RIGHT, removed_rows))
        return changes

    # -- what comes out ----------------------------------------------------------------------------------------

    def _emitted(self, due: TimedRows, versions: TimedRows) -> pa.Table:
        """Return rows with their versions."""
        declaration = self._declaration
        _, ids, of_versions = numbered(due.owners, versions.owners)
        order = np.lexsort((versions.order, versions.times, of_versions))
        sorted_ids, times = of_versions[order], versions.times[order]
        lows, highs = np.searchsorted(sorted_ids, ids, "left"), np.searchsorted(sorted_ids, ids, "right")
        last = first_from(times, due.times + 1, lows, highs) - 1
        found = last >= lows
        places = np.full(len(last), -1, np.int64)
        places[found] = order[last[found]]
        gone = versions.columns[-1].to_numpy(zero_copy_only=False)
        places[found] = np.where(gone[places[found]] > 0, -1, places[found])
        if declaration.kind is JoinKind.INNER:
            matched = places >= 0
            due, places = due.take(matched), places[matched]
        picks = pa.array(places, mask=places < 0)
        left = due.columns[: len(self._left_names)]
        right = [column.take(picks) for column in versions.columns[:-1]]
        names = [column.name for column in declaration.output]
        kinds = None
        if not declaration.is_insert_only:
            kinds = due.columns[-1].to_numpy(zero_copy_only=False) if self._retracts[0] else None
            kinds = np.zeros(len(places), np.int8) if kinds is None else kinds
        return changes_table(declaration.output, dict(zip(names, [*left, *right], strict=True)), kinds)
