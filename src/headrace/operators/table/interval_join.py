"""Interval joins: rows of both sides whose times are near each other.

    left row at l    waits for right rows up to l - lower        lower <= l - r <= upper
    right row at r   waits for left rows up to r + upper

Rows are kept as long as matching rows of the other side may still arrive; the watermark frees them. A late row is
still joined with the rows that are kept. Rows of an outer side without a match are emitted when their time is over:
in the second half, after the one that finds pairs, so that Spark can check further conditions on the pairs in
between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.associations import Emitted, InputRows, associations_output
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
    written_rows,
)
from headrace.operators.table.changelog import changes_table
from headrace.operators.table.declarations import JoinAssociationsDeclaration, OuterSide
from headrace.operators.table.frames import first_from
from headrace.operators.table.kept_rows import counted_up, numbered
from headrace.operators.table.steps import Schema
from headrace.operators.table.timed_declarations import TableIntervalJoinDeclaration
from headrace.operators.table.timed_rows import (
    TimedRows,
    TimedTable,
    arrival_order,
    int_cells,
    merged_changes,
)
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_UNTIL, _COUNT, _IS_PAIRED = "until", "n", "paired"


class _Side:
    """One side: its table, and until when its rows are of use."""

    def __init__(
        self, name: str, number: int, keys: tuple[str, ...], schema: Schema, time: str | None, lasts_ms: int
    ) -> None:
        self.name = name
        self._time = time
        self.lasts_ms = lasts_ms
        self._names = [column.name for column in schema]
        self.table = TimedTable(name, [column.arrow for column in schema])
        wanted = [*keys, *([time] if time is not None else [])]
        self.input = InputSpec(
            side=number,
            source=number,
            keys=keys,
            where=" AND ".join(f"{quote(each)} IS NOT NULL" for each in wanted) or None,
            items=(WITH_SEQUENCE,),
        )

    def fresh(self, rows: pa.Table | None, time: EpochTime) -> TimedRows:
        """Return the rows of an epoch."""
        if rows is None or not rows.num_rows:
            return self.table.none()
        rows = rows.sort_by(SEQUENCE)
        times = np.full(rows.num_rows, time.now_ms, np.int64)
        return TimedRows(
            [rows.column(name).combine_chunks() for name in self._names],
            hashes_of(rows),
            times if self._time is None else numbers(rows, self._time),
            arrival_order(time.epoch, rows.num_rows),
        )

    def kept(self, table: SlotTable, owners: Ints) -> TimedRows:
        """Return the rows of keys that are kept."""
        keys, _, _ = numbered(owners, owners[:0])
        _, slots = self.table.of_keys(table, keys)
        return self.table.rows_at(table, slots)

    def is_of_use(self, times: Ints, watermark: int) -> Bools:
        """Whether rows that fit may still come when time has got so far."""
        return times + self.lasts_ms > watermark

    def changes(
        self, fresh: TimedRows, is_waiting: Bools, table: SlotTable, after: int
    ) -> list[tuple[str, RowSet]]:
        """Return the rows that wait from now on, and those that nobody comes for any more."""
        made = []
        live = table.live
        if len(live):
            gone = live[self.table.times(table, live) + self.lasts_ms < after]
            made.append((self.name, self.table.removed(table, gone)))
        stays = is_waiting & (fresh.times + self.lasts_ms >= after)
        if stays.any():
            made.append((self.name, self.table.written(fresh.take(stays))))
        return made


class IntervalJoinOperator:
    """Runs an `TableIntervalJoinDeclaration`: the pairs."""

    def __init__(
        self, declaration: TableIntervalJoinDeclaration, left: Schema, right: Schema, *, retracts: bool
    ) -> None:
        if retracts:  # as in Flink
            raise UnsupportedFeatureError.not_yet(
                "an interval join over a changelog with updates", "use insert-only rows"
            )
        self._declaration = declaration
        lower, upper = declaration.lower_ms, declaration.upper_ms
        self._left = _Side("left", 0, declaration.left_keys, left, declaration.left_time, -lower)
        self._right = _Side("right", 1, declaration.right_keys, right, declaration.right_time, upper)
        self.layouts = (self._left.table.layout, self._right.table.layout)
        self.inputs = (self._left.input, self._right.input)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        declaration = self._declaration
        before, after = (
            (time.before, time.after) if declaration.goes_by_watermark else (time.now_ms, time.now_ms)
        )
        left, right = self._left.fresh(inputs.get(0), time), self._right.fresh(inputs.get(1), time)
        left_waits = self._left.is_of_use(left.times, before)
        right_waits = self._right.is_of_use(right.times, before)
        known_left = (
            self._left.kept(state["left"], right.owners) if len(right.times) else self._left.table.none()
        )
        known_right = (
            self._right.kept(state["right"], left.owners) if len(left.times) else self._right.table.none()
        )
        parts = [
            self._pairs(left, known_right),
            self._pairs(known_left, right),
            self._pairs(left.take(left_waits), right),
            # Of rows that nobody waits for, those that the others have waited for.
            self._pairs(left.take(~left_waits), right.take(right_waits)),
        ]
        changes = self._left.changes(left, left_waits, state["left"], after)
        changes += self._right.changes(right, right_waits, state["right"], after)
        names = [column.name for column in declaration.output]
        columns = [pa.concat_arrays([part[at] for part in parts]) for at in range(len(names))]
        kinds = None if declaration.is_insert_only else np.zeros(len(columns[0]) if columns else 0, np.int8)
        table = changes_table(declaration.output, dict(zip(names, columns, strict=True)), kinds)
        return EpochOutput(table, merged_changes(changes))

    def _pairs(self, left: TimedRows, right: TimedRows) -> list[pa.Array]:
        """Return the columns of all pairs that fit."""
        declaration = self._declaration
        at_left, at_right = _near(left, right, declaration.lower_ms, declaration.upper_ms)
        picks = (pa.array(at_left), pa.array(at_right))
        return [
            *(column.take(picks[0]) for column in left.columns),
            *(column.take(picks[1]) for column in right.columns),
        ]


def _near(left: TimedRows, right: TimedRows, lower_ms: int, upper_ms: int) -> tuple[Ints, Ints]:
    """Return the places of pairs with the same key whose times are near each other."""
    _, left_ids, right_ids = numbered(left.owners, right.owners)
    order = np.lexsort((right.order, right.times, right_ids))
    ids, times = right_ids[order], right.times[order]
    lows, highs = np.searchsorted(ids, left_ids, "left"), np.searchsorted(ids, left_ids, "right")
    starts = first_from(times, left.times - upper_ms, lows, highs)
    ends = first_from(times, left.times - lower_ms + 1, starts, highs)
    counts = ends - starts
    at_left = np.repeat(np.arange(len(counts)), counts)
    return at_left, order[np.repeat(starts, counts) + counted_up(counts)]


@dataclass
class _Waiting:
    """What happened to the rows of an outer side."""

    #: Rows that are emitted without a partner, and how many of each there are.
    emitted: Emitted
    written: RowSet
    next_ms: int | None


class _OuterRows:
    """The rows of an outer side that have found no partner yet, each once with how many of it there are."""

    def __init__(self, side: OuterSide) -> None:
        self._side = side
        self.name = f"side{side.source}"
        self._names = [column.name for column in side.columns]
        kept = [ColumnType(f"c{at}", column.arrow, is_key=True) for at, column in enumerate(side.columns)]
        self.layout = TableLayout(
            self.name,
            (*kept, *(ColumnType(name, pa.int64()) for name in (_UNTIL, _COUNT, _IS_PAIRED))),
            has_owners=True,
        )
        where = None if side.window_end is None else f"{quote(side.window_end)} IS NOT NULL"
        self.input = InputSpec(side=side.source, source=side.source, keys=side.keys, where=where)

    def advance(
        self, given: InputRows, pairs: InputRows, table: SlotTable, before: int, after: int, now_ms: int
    ) -> _Waiting:
        """Add the rows of an epoch, and the pairs that were found in it."""
        side = self._side
        keys, of_rows, of_pairs = numbered(given.ids(side.ids), pairs.ids(side.ids))
        slots = table.find(keys)
        stored = read_columns(table, slots, [_UNTIL, _COUNT, _IS_PAIRED])
        until, count, paired = (
            stored[name].fill_null(0).to_numpy(zero_copy_only=False).copy()
            for name in (_UNTIL, _COUNT, _IS_PAIRED)
        )
        firsts = np.full(len(keys), -1, np.int64)
        if given.table is not None:
            times = self._times(given.table, now_ms)
            np.maximum.at(until, of_rows, times + side.lasts_ms)
            np.add.at(count, of_rows, 1)
            firsts[of_rows[::-1]] = np.arange(len(of_rows))[::-1]
        paired[of_pairs] = 1
        touched = (firsts >= 0) | (slots >= 0)
        # Rows that came, or whose partners did; then those of state that time has passed.
        is_over = (until < after) | ((firsts >= 0) & (slots < 0) & (until <= before))
        live = table.live
        passed = np.setdiff1d(live[int_cells(table, _UNTIL, live) < after], slots[slots >= 0])
        fresh = np.flatnonzero(touched & (firsts >= 0))
        old = np.flatnonzero(touched & (firsts < 0))
        columns = self._columns(given, firsts[fresh], table, np.concatenate([slots[old], passed]))
        order = np.concatenate([fresh, old])
        over = np.concatenate([is_over[order], np.ones(len(passed), np.bool_)])
        counts = np.concatenate([count[order], int_cells(table, _COUNT, passed)])
        is_paired = np.concatenate([paired[order], int_cells(table, _IS_PAIRED, passed)])
        ends = np.concatenate([until[order], int_cells(table, _UNTIL, passed)])
        owners = np.concatenate(
            [given.owners[firsts[fresh]], table.owners_at(slots[old]), table.owners_at(passed)]
        )
        all_keys = np.concatenate([keys[order], table.keys_at(passed)])
        is_known = np.concatenate([slots[order] >= 0, np.ones(len(passed), np.bool_)])
        emitted = Emitted(
            columns, np.where(over & (is_paired == 0), counts, 0), np.zeros(len(counts), np.bool_)
        )
        named = {f"c{at}": columns.column(name) for at, name in enumerate(self._names)}
        numbers_ = {_UNTIL: pa.array(ends), _COUNT: pa.array(counts), _IS_PAIRED: pa.array(is_paired)}
        written = written_rows(self.layout, all_keys, {**named, **numbers_}, owners=owners, removed=over)
        waits = [ends[~over & (is_paired == 0)], int_cells(table, _UNTIL, np.setdiff1d(live, passed))]
        next_ms = min((int(each.min()) + 1 for each in waits if len(each)), default=None)
        return _Waiting(emitted, written.take(is_known | ~over), next_ms)

    def _times(self, rows: pa.Table, now_ms: int) -> Ints:
        name = self._side.window_end
        return np.full(rows.num_rows, now_ms, np.int64) if name is None else numbers(rows, name)

    def _columns(self, given: InputRows, firsts: Ints, table: SlotTable, slots: Ints) -> pa.Table:
        """Return the columns of rows of the epoch, and of rows of state after them."""
        stored = read_columns(table, slots, [f"c{at}" for at in range(len(self._names))])
        made = {}
        for column, old in zip(self._side.columns, stored.values(), strict=True):
            parts = [old]
            if given.table is not None:
                fresh = given.table.column(column.name).combine_chunks().take(pa.array(firsts))
                parts.insert(0, fresh.cast(old.type))
            made[column.name] = pa.concat_arrays(parts)
        return pa.table(made)


class IntervalAssociationsOperator:
    """Runs `JoinAssociationsDeclaration` of an interval join: rows of outer sides that nothing has matched in time."""

    def __init__(self, declaration: JoinAssociationsDeclaration) -> None:
        self._declaration = declaration
        self._sides = [_OuterRows(side) for side in declaration.sides]
        self.layouts = tuple(side.layout for side in self._sides)
        pairs = InputSpec(side=0, source=0, keys=declaration.sides[0].pair_keys)
        self.inputs = (pairs, *(side.input for side in self._sides))

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        is_timed = self._declaration.goes_by_watermark
        before, after = (time.before, time.after) if is_timed else (time.now_ms, time.now_ms)
        pairs = InputRows.of(inputs.get(0))
        emitted: list[Emitted] = []
        changes: dict[str, RowSet] = {}
        timers: list[int] = []
        if pairs.table is not None:
            emitted.append(Emitted(pairs.table, pairs.weights, pairs.is_update))
        for side in self._sides:
            rows = InputRows.of(inputs.get(side.input.source))
            waiting = side.advance(rows, pairs, state[side.name], before, after, time.now_ms)
            emitted.append(waiting.emitted)
            if len(waiting.written):
                changes[side.name] = waiting.written
            if waiting.next_ms is not None:
                timers.append(waiting.next_ms)
        next_timer = min(timers) if timers and not is_timed else None
        return EpochOutput(associations_output(self._declaration, emitted), changes, next_timer_ms=next_timer)
