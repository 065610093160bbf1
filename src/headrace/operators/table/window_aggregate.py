"""GROUP BY over windows: one row per key and window, emitted when the watermark has passed the window's end.

Spark has aggregated the rows of each key in the epoch by slice. Slices are kept until the last window that contains
them has fired; rows of a slice whose windows have all fired are late, and dropped (Flink's rule for windowing table
functions).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.accumulators import ColumnAccumulator, ValueChanges, rows_sql
from headrace.operators.table.base import (
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
from headrace.operators.table.changelog import changes_table, empty_changes
from headrace.operators.table.declarations import AggSpec, WindowAggregateDeclaration, WindowKind
from headrace.operators.table.group_aggregate import AggregateCalls
from headrace.operators.table.kept_rows import numbered
from headrace.operators.table.lists import best_values
from headrace.operators.table.steps import Schema
from headrace.operators.table.ttl import RowTimeToLive
from headrace.operators.table.wall_clock import instant_ms
from headrace.operators.table.window_values import SliceColumns, SlicedValues, WindowValues, window_keys
from headrace.operators.table.windows import Slices, on_the_wall
from headrace.state.columnar.slots import KEY_WORDS, SlotTable, TableLayout
from headrace.state.columns import Bools, ColumnType, Ints
from headrace.state.row_sets import RowSet

_TABLE = "slices"
_ROWS, _COUNT = "rows", "read"
#: Up to which time of the clock the windows of a slice were emitted. Savepoints have the column under this name.
_EMITTED = "told"
_START, _END = "slice_start", "slice_end"
#: Values that calls go by are distinguished by arguments and filter.
_Place = tuple[tuple[str, ...], str | None]
_KEPT = (ColumnType(_START, pa.int64(), is_key=True), ColumnType(_END, pa.int64(), is_key=True))


class WindowAggregateOperator:
    """Runs a `WindowAggregateDeclaration` over TUMBLE, HOP or CUMULATE windows, or rows that have their windows.

    Args:
        declaration: What it is.
        schema: The columns of its input.
        retracts: Whether rows of its input may be retracted.
    """

    def __init__(self, declaration: WindowAggregateDeclaration, schema: Schema, *, retracts: bool) -> None:
        self._declaration = declaration
        self._slices = Slices(declaration.window) if declaration.window is not None else None
        types = {column.name: column.arrow for column in schema}
        self._calls = window_calls(declaration, types, retracts=retracts)
        self._key_names = {key: f"k{index}" for index, key in enumerate(declaration.keys)}
        self._layout = TableLayout(
            _TABLE,
            (
                *(ColumnType(name, types[key], is_key=True) for key, name in self._key_names.items()),
                *_KEPT,
                *([ColumnType(_EMITTED, pa.int64())] if self._remembers else []),
                ColumnType(_ROWS, pa.int64()),
                *self._calls.plain_columns,
            ),
            has_owners=True,  # a slice goes where its key goes
            key_words=KEY_WORDS + 2,
        )
        derived, by_window = self._windows_of_rows()
        self._values = self._make_values(
            types, SliceColumns(derived, by_window, self._where() or ""), retracts=retracts
        )
        self.layouts = (self._layout, *(values.layout for values in self._values.values()))
        self.inputs = (
            InputSpec(
                side=0,
                source=0,
                keys=declaration.keys,
                derived=derived,
                group_by=(*declaration.keys, *by_window),
                items=(
                    (rows_sql(retracts=retracts), _ROWS),
                    *([("count(1)", _COUNT)] if retracts else []),
                    *self._calls.partials,
                ),
                where=self._where(),
            ),
            *(values.input for values in self._values.values()),
        )

    def _make_values(
        self, types: Mapping[str, pa.DataType], slices: SliceColumns, *, retracts: bool
    ) -> dict[_Place, WindowValues]:
        """Return the values that calls go by, by arguments and filter."""
        made: dict[_Place, WindowValues] = {}
        for call, _ in self._calls.by_values:
            place = (call.arguments, call.filter)
            if place not in made:
                rows = rows_sql(retracts=retracts)
                kinds = [types[each] for each in call.arguments]
                made[place] = WindowValues(len(made) + 1, self._declaration.keys, *place, kinds, rows, slices)
        return made

    def _windows_of_rows(self) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return the columns to derive that tell slices apart, and their names."""
        declaration = self._declaration
        if declaration.window is None:
            assert declaration.start is not None
            assert declaration.end is not None
            return ((quote(declaration.start), _START), (quote(declaration.end), _END)), (_START, _END)
        assert self._slices is not None
        if declaration.window.time is None:
            return (), ()
        return ((self._slices.end_sql(declaration.window.time), _END),), (_END,)

    def _where(self) -> str | None:
        """Rows without a time belong to no window."""
        declaration = self._declaration
        time = declaration.end if declaration.window is None else declaration.window.time
        return None if time is None else f"{quote(time)} IS NOT NULL"

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        table = state[_TABLE]
        time = on_the_wall(time, self._declaration.window)
        before, after = self._clock(time)
        fresh, late = self._added(inputs.get(0), table, before, time.now_ms)
        stored = self._due_slots(table, after, fresh)
        columns, keys, owners = _joined(table, stored, fresh, self._layout)
        ends, starts = _ints(columns[_END]), _ints(columns[_START])
        values: dict[_Place, SlicedValues] = {}
        value_rows: dict[str, RowSet] = {}
        for place, each in self._values.items():
            values[place], value_rows[each.layout.name] = each.advance(
                inputs.get(each.input.side), state, self._last, self._start, before, after
            )
        emitted: int | Ints = before
        touched = np.zeros(len(ends), np.bool_)
        if self._remembers:
            emitted = _ints(columns[_EMITTED])
            touched[self._due_windows(ends, starts, emitted, after)[0]] = True
            columns[_EMITTED] = pa.array(np.where(touched, after, emitted))
        output = self._fire(columns, owners, starts, ends, emitted, after, values)
        changes = self._changes(
            columns, keys, owners, len(stored), fresh, self._last(ends) - 1 <= after, touched
        )
        written = {_TABLE: changes, **value_rows}
        return EpochOutput(
            output,
            {name: each for name, each in written.items() if len(each)},
            late,
            self._next_timer(table, changes, after),
        )

    def _changes(
        self,
        columns: Mapping[str, pa.Array],
        keys: Ints,
        owners: Ints,
        stored: int,
        fresh: Mapping[str, pa.Array | Ints],
        is_over: Bools,
        touched: Bools,
    ) -> RowSet:
        """Return what state must hear of slices, the stored ones first.

        A stored slice that stays as it was needs not be written again, and one that came and went within the epoch was
        never there.
        """
        touched = touched | is_over
        if fresh:
            touched[stored:] = ~is_over[stored:] | (fresh["slots"] >= 0)
        at = np.flatnonzero(touched)
        picks = pa.array(at)
        taken = {name: column.take(picks) for name, column in columns.items()}
        return written_rows(self._layout, keys[at], taken, owners=owners[at], removed=is_over[at])

    # -- rows --------------------------------------------------------------------------------------------------

    def _clock(self, time: EpochTime) -> tuple[int, int]:
        """Return before and after in the time that windows go by."""
        window = self._declaration.window
        if window is not None and window.time is None:
            # As in Flink, the end of input does not close windows of the clock.
            return -1, time.now_ms - 1
        return time.before, time.after

    def _added(
        self, rows: pa.Table | None, table: SlotTable, before: int, now_ms: int
    ) -> tuple[dict[str, pa.Array | Ints], int]:
        """Return the slices that rows were added to, as they are now, and how many rows were late."""
        if rows is None or not rows.num_rows:
            return {}, 0
        rows = rows.combine_chunks()
        keys = hashes_of(rows)
        if _END in rows.column_names:
            ends = numbers(rows, _END)
        else:
            assert self._slices is not None
            ends = self._slices.end_of(np.full(len(keys), now_ms, np.int64))
        starts = numbers(rows, _START) if _START in rows.column_names else ends - self._slice_ms
        on_time = self._last(ends) - 1 > before
        read = _COUNT if _COUNT in rows.column_names else _ROWS
        late = int(numbers(rows, read)[~on_time].sum())
        if not on_time.all():
            rows, keys = rows.filter(pa.array(on_time)), keys[on_time]
            ends, starts = ends[on_time], starts[on_time]
            rows = rows.combine_chunks()
        row_keys = with_numbers(keys, ends, starts)
        slots = table.find(row_keys)
        names = [column.name for column in self._calls.plain_columns]
        old = read_columns(table, slots, [*names, _ROWS, *([_EMITTED] if self._remembers else [])])
        new = {name: rows.column(name).combine_chunks() for name in names}
        added: dict[str, pa.Array | Ints] = {
            **{name: rows.column(key).combine_chunks() for key, name in self._key_names.items()},
            _START: pa.array(starts),
            _END: pa.array(ends),
            _ROWS: pc.add(pc.fill_null(old[_ROWS], 0), rows.column(_ROWS).combine_chunks()),
            **({_EMITTED: pc.fill_null(old.pop(_EMITTED), -1)} if self._remembers else {}),
            **self._calls.combine(old, new),
            "keys": row_keys,
            "owners": keys,
            "slots": slots,
        }
        return added, late

    def _due_slots(self, table: SlotTable, after: int, fresh: Mapping[str, pa.Array | Ints]) -> Ints:
        """Return the stored slices that a window is due of, without those that were added to."""
        live = table.live
        ends = _raw(table, _END, live)
        due = ends - 1 <= after
        if fresh:
            is_fresh = np.zeros(table.slots, np.bool_)
            is_fresh[fresh["slots"][fresh["slots"] >= 0]] = True
            due &= ~is_fresh[live]
        return live[due]

    # -- firing ------------------------------------------------------------------------------------------------

    def _fire(
        self,
        columns: Mapping[str, pa.Array],
        owners: Ints,
        starts: Ints,
        ends: Ints,
        before: int | Ints,
        after: int,
        values: Mapping[_Place, SlicedValues],
    ) -> pa.Table:
        declaration = self._declaration
        positions, windows, window_starts = self._due_windows(ends, starts, before, after)
        if not len(positions):
            return empty_changes(declaration.output, is_insert_only=declaration.is_insert_only)
        groups = None
        if not self._is_one_slice:
            groups = _group_ids(owners[positions], windows, window_starts)
            order = np.lexsort((ends[positions], groups))  # values are listed in the order of time
            positions, windows, window_starts = positions[order], windows[order], window_starts[order]
            groups = groups[order]
        merged = {
            name: columns[name].take(pa.array(positions))
            for name in (_ROWS, *(column.name for column in self._calls.plain_columns))
        }
        rows = _ints(merged.pop(_ROWS))
        if groups is not None:
            firsts = np.flatnonzero(np.diff(groups, prepend=-1))
            rows = np.add.reduceat(rows, firsts)
            merged = self._calls.combine_groups(merged, groups)
            positions, windows, window_starts = positions[firsts], windows[firsts], window_starts[firsts]
        emitted = window_keys(owners[positions], windows, window_starts) if values else owners[:0]
        for call, accumulator in self._calls.by_values:
            sliced = values[call.arguments, call.filter]
            # Windows that were emitted before do not fire again.
            since = before if isinstance(before, int) else -1
            pairs = self._due_windows(sliced.ends, sliced.starts, since, after)
            merged.update(_of_values(call, accumulator, sliced.of_windows(*pairs, emitted)))
        results = self._calls.results(merged)
        output: dict[str, pa.Array] = {}
        names = [column.name for column in declaration.output]
        key_columns = [columns[name].take(pa.array(positions)) for name in self._key_names.values()]
        of_calls = [results[call.result.name] for call in declaration.calls]
        times = {
            "window_start": window_starts,
            "window_end": windows,
            "window_time": windows - 1,
        }
        of_windows = [pa.array(times[name] * 1000, pa.timestamp("us")) for name in declaration.properties]
        for name, array in zip(names, [*key_columns, *of_calls, *of_windows], strict=True):
            output[name] = array
        fired = changes_table(declaration.output, output, None)
        if not (rows > 0).all() or (windows[1:] < windows[:-1]).any():
            # As in Flink, windows that are over come in the order of their ends.
            order = np.argsort(windows, kind="stable")
            fired = fired.take(pa.array(order[rows[order] > 0]))
        if declaration.is_insert_only:
            return fired
        return fired.append_column("__kind", pa.array(np.zeros(fired.num_rows, np.int8)))

    def _next_timer(self, table: SlotTable, changes: RowSet, after: int) -> int | None:
        """Return when the clock closes the next window."""
        window = self._declaration.window
        if window is None or window.time is not None:
            return None
        assert self._slices is not None
        written = changes.take(~changes.removed)
        stored = _raw(table, _END, table.live)
        ends = np.concatenate([stored, _ints(written.to_arrow()[_END])]) if len(written) else stored
        _, windows = self._slices.windows(ends)
        waiting = windows[windows - 1 > after]
        return instant_ms(int(waiting.min()), window.zone) if len(waiting) else None

    def _due_windows(
        self, ends: Ints, starts: Ints, before: int | Ints, after: int
    ) -> tuple[Ints, Ints, Ints]:
        """Return the windows around slices that fire: positions of slices, ends and starts of windows.

        Args:
            ends: Of the slices.
            starts: Of the slices.
            before: Windows up to this time have fired; for all slices, or for each.
            after: Windows up to this time fire.
        """
        if self._slices is None:
            positions, windows, window_starts = np.arange(len(ends)), ends, starts
        else:
            positions, windows = self._slices.windows(ends)
            window_starts = self._slices.start_of(windows)
        since = before if isinstance(before, int) else before[positions]
        due = (windows - 1 > since) & (windows - 1 <= after)
        return positions[due], windows[due], window_starts[due]

    # -- windows -----------------------------------------------------------------------------------------------

    @property
    def _remembers(self) -> bool:
        """Whether slices say up to which time their windows were emitted: nothing else knows it of the clock."""
        window = self._declaration.window
        return window is not None and window.time is None and not self._is_one_slice

    @property
    def _is_one_slice(self) -> bool:
        """Whether a window is one slice, so that nothing of it is to be combined."""
        return self._slices is None or self._slices.spec.kind is WindowKind.TUMBLE

    @property
    def _slice_ms(self) -> int:
        assert self._slices is not None
        return self._slices.slice_ms

    def _start(self, ends: Ints) -> Ints:
        """Return the starts of slices."""
        return ends - self._slice_ms

    def _last(self, ends: Ints) -> Ints:
        """Return the end of the last window around slices."""
        return ends if self._slices is None else self._slices.last_window(ends)


def window_calls(
    declaration: WindowAggregateDeclaration, types: Mapping[str, pa.DataType], *, retracts: bool
) -> AggregateCalls:
    """Make the calls of a window aggregation; values go by slice where Spark knows the slices of rows."""
    window = declaration.window
    has_slices = window is None or (window.time is not None and window.kind is not WindowKind.SESSION)
    return AggregateCalls(
        declaration.keys,
        declaration.calls,
        types,
        RowTimeToLive(0),
        retracts=retracts,
        in_lists=not has_slices,
        merges=window is not None and window.kind is not WindowKind.TUMBLE,
    )


def _of_values(call: AggSpec, accumulator: ColumnAccumulator, values: ValueChanges) -> dict[str, pa.Array]:
    """Return the accumulator that values make."""
    function = call.function.upper()
    if function not in ("MIN", "MAX"):
        return accumulator.of_values(values)
    best = best_values(values.positions, values.values, values.count, is_min=function == "MIN")
    return {accumulator.columns[0].name: best}


def _joined(
    table: SlotTable, stored: Ints, fresh: Mapping[str, pa.Array | Ints], layout: TableLayout
) -> tuple[dict[str, pa.Array], Ints, Ints]:
    """Return stored slices with those of this epoch after them: columns, keys and owners."""
    names = [column.name for column in layout.columns]
    columns = read_columns(table, stored, names)
    if not fresh:
        return columns, table.keys_at(stored), table.owners_at(stored)
    both = {name: pa.concat_arrays([columns[name], _cast(fresh[name], columns[name].type)]) for name in names}
    keys = np.concatenate([table.keys_at(stored), fresh["keys"]])
    return both, keys, np.concatenate([table.owners_at(stored), fresh["owners"]])


def _group_ids(owners: Ints, windows: Ints, starts: Ints) -> Ints:
    """Number the groups of key and window that rows belong to."""
    keys = with_numbers(owners, windows, starts)
    _, ids, _ = numbered(keys, keys[:0])
    return ids


def _raw(table: SlotTable, name: str, slots: Ints) -> Ints:
    values = table.cells(name, slots).values
    assert values is not None
    return values.view(np.int64)


def _ints(array: pa.Array) -> Ints:
    values: Ints = array.to_numpy(zero_copy_only=False)
    return values


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
