"""Process table functions: `eval` for every row of the tables, `on_timer` for every timer that the watermark passes.

    rows as they came  -->  eval, with the state of their key
    rows of ORDER BY   -->  wait until the watermark has passed them, then the same in order; late ones are dropped
    the watermark      -->  on_timer, in the order of timers

Within an epoch, rows are processed first, then the watermark. Rows of several tables are processed table by table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.common.arrow_values import python_values
from headrace.common.types import Row, RowKind, make_row
from headrace.elements import MIN_WATERMARK
from headrace.errors import UserFunctionError, shorten
from headrace.operators.table.base import (
    SEQUENCE,
    WITH_SEQUENCE,
    EpochOutput,
    EpochTime,
    InputSpec,
    hashes_of,
    numbers,
)
from headrace.operators.table.changelog import changes_table
from headrace.operators.table.declarations import Order
from headrace.operators.table.process_context import OnTimerContext, ProcessTableContext, TableSemantics
from headrace.operators.table.process_declarations import ProcessTableDeclaration
from headrace.operators.table.process_state import Key, ValueEntry, make_entry
from headrace.operators.table.process_timers import TIMERS, ProcessTimer, Timers
from headrace.operators.table.steps import KIND, Schema
from headrace.operators.table.timed_rows import (
    TimedRows,
    arrival_order,
    merged_changes,
)
from headrace.operators.table.user_functions import rows_in, wrong_width
from headrace.operators.table.user_results import result_column
from headrace.operators.table.waiting_rows import WaitingRows
from headrace.operators.table.wall_clock import instant_ms, wall_clock_ms
from headrace.state.columnar.slots import SlotTable
from headrace.state.row_sets import RowSet

__all__ = ["ProcessTableOperator"]

_WAITING = "waiting"


class ProcessTableOperator:
    """Calls the function of a `ProcessTableDeclaration` with its rows and timers."""

    def __init__(self, declaration: ProcessTableDeclaration, schema: Schema, *, retracts: bool) -> None:
        self._declaration = declaration
        self._retracts = retracts
        self._columns = [column.name for column in schema]
        signature = declaration.function.signature
        self._entries = [make_entry(spec, declaration.ttl_ms) for spec in signature.states]
        self._sorts = any(each.order is not None for each in declaration.tables)
        types = {column.name: column.arrow for column in schema} | ({KIND: pa.int8()} if retracts else {})
        self._waiting = WaitingRows(_WAITING, types, declaration.time)
        self._has_timers = declaration.has_time and signature.has_timer
        self.layouts = (
            *(each.layout for each in self._entries),
            *((self._waiting.layout,) if self._sorts else ()),
            *((TIMERS,) if self._has_timers else ()),
        )
        self.inputs = (InputSpec(side=0, source=0, keys=declaration.keys, items=(WITH_SEQUENCE,)),)

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        changes: list[tuple[str, RowSet]] = []
        for each in self._entries:
            each.begin(state, time)
            changes += [(each.layout.name, rows) for rows in each.swept()]
        timers = Timers(state[TIMERS.name]) if self._has_timers else None
        run = _Run(self._declaration, self._entries, timers)
        fresh, held, late = self._split(inputs.get(0), time)
        run.watermark = time.before
        self._take(run, fresh)
        run.watermark = time.after
        if self._sorts:
            self._take(run, self._due(held, state[_WAITING], time, changes))
        if timers is not None:
            # A timer for a time that has passed waits for the watermark to move, as in Flink.
            if time.after > time.before or time.is_final:
                for timer in timers.fire(time.after):
                    run.fire(timer)
            written = timers.changes()
            changes += [] if written is None else [(TIMERS.name, written)]
        for each in self._entries:
            changes += [(each.layout.name, rows) for rows in each.changes()]
        return EpochOutput(self._emitted(run), merged_changes(changes), late)

    # -- rows --------------------------------------------------------------------------------------------------

    def _split(self, rows: pa.Table | None, time: EpochTime) -> tuple[TimedRows, TimedRows, int]:
        """Return rows that are processed as they come, rows that are sorted first, and how many of these are late."""
        if rows is None or not rows.num_rows:
            return self._waiting.none(), self._waiting.none(), 0
        declaration = self._declaration
        rows = rows.sort_by(SEQUENCE)
        columns = [rows.column(name).combine_chunks() for name in self._columns]
        columns += [rows.column(KIND).combine_chunks()] if self._retracts else []
        times = np.zeros(rows.num_rows, np.int64)
        if declaration.time is not None:
            column = rows.column(declaration.time)
            if column.null_count:
                raise UserFunctionError(
                    f"{declaration.function.name}: the time of a row is NULL, but on_time and ORDER BY need one",
                    hint="filter such rows out: WHERE ts IS NOT NULL",
                )
            times = numbers(rows, declaration.time)
        made = TimedRows(columns, hashes_of(rows), times, arrival_order(time.epoch, rows.num_rows))
        if not self._sorts:
            return made, self._waiting.none(), 0
        sorted_tables = [at for at, each in enumerate(declaration.tables) if each.order is not None]
        is_sorted = np.isin(numbers(rows, declaration.table), sorted_tables)
        is_late = is_sorted & (times <= time.before)
        return made.take(~is_sorted), made.take(is_sorted & ~is_late), int(is_late.sum())

    def _due(
        self, held: TimedRows, table: SlotTable, time: EpochTime, changes: list[tuple[str, RowSet]]
    ) -> TimedRows:
        """Return sorted rows that the watermark has passed; the others wait."""
        due = self._waiting.due(held, table, time, changes)
        return due.take(self._order(due))

    def _order(self, rows: TimedRows) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the places of rows in the order in which the function sees them: by table, key, time and columns."""
        values = dict(zip(self._columns, map(python_values, rows.columns), strict=False))
        tables = values[self._declaration.table]
        places = list(range(len(rows.times)))
        orders = [each.order or () for each in self._declaration.tables]

        def compare(one: int, other: int) -> int:
            first, second = (rows.times[one], tables[one]), (rows.times[other], tables[other])
            if first != second:
                return -1 if first < second else 1
            for order in orders[tables[one]]:
                found = _compared(values[order.column][one], values[order.column][other], order)
                if found:
                    return found
            return -1 if rows.order[one] < rows.order[other] else 1

        return np.array(sorted(places, key=cmp_to_key(compare)), np.int64)

    def _take(self, run: _Run, rows: TimedRows) -> None:
        """Call the function for rows."""
        if not len(rows.times):
            return
        for each in self._entries:
            if isinstance(each, ValueEntry):
                each.load(np.unique(rows.owners, axis=0))
        values = dict(zip(self._columns, map(python_values, rows.columns), strict=False))
        kinds = rows.columns[-1].to_pylist() if self._retracts else None
        keys = [values[name] for name in self._declaration.keys]
        tables = values[self._declaration.table]
        fields = [[values[name] for name in each.columns] for each in self._declaration.tables]
        owners = rows.owners.tolist()
        for at, table in enumerate(tables):
            row = make_row(
                self._declaration.tables[table].fields,
                [column[at] for column in fields[table]],
                0 if kinds is None else kinds[at],
            )
            one, other = owners[at]
            run.call((one, other), tuple(key[at] for key in keys), table, row, int(rows.times[at]))

    # -- what comes out ----------------------------------------------------------------------------------------

    def _emitted(self, run: _Run) -> pa.Table:
        declaration = self._declaration
        columns = list(zip(*run.rows, strict=True)) if run.rows else [()] * len(declaration.output)
        arrays = {
            column.name: result_column(declaration.function.name, values, column.arrow)
            for column, values in zip(declaration.output, columns, strict=True)
        }
        kinds = None if declaration.is_insert_only else np.array(run.kinds, np.int8)
        return changes_table(declaration.output, arrays, kinds)


def _compared(one: Any, other: Any, order: Order) -> int:
    if one is None or other is None:
        if one is other:
            return 0
        return -1 if (one is None) == order.nulls_first else 1
    if one == other:
        return 0
    return -1 if (one < other) == order.ascending else 1


class _Run:
    """The calls of an epoch, and what the function says about time during them."""

    def __init__(
        self, declaration: ProcessTableDeclaration, entries: Sequence[Any], timers: Timers | None
    ) -> None:
        self._declaration = declaration
        self._function = declaration.function
        self._entries = entries
        self._timers = timers
        self._arguments = dict(declaration.arguments)
        tables = {each.name: TableSemantics(each) for each in declaration.tables}
        shared = (self._function.name, tables, declaration.mode, self, self._clear_state)
        self._context = ProcessTableContext(*shared, has_timers=timers is not None)
        self._timer_context = OnTimerContext(*shared, has_timers=timers is not None)
        self._owner: Key = (0, 0)
        self._key: tuple[Any, ...] = ()
        self._time: int | None = None
        self.is_timer = False
        #: How far event time has advanced, as the table counts it.
        self.watermark = MIN_WATERMARK
        #: What came out, and the kind of each row.
        self.rows: list[tuple[Any, ...]] = []
        self.kinds: list[int] = []
        self._keyed_tables = sum(1 for each in declaration.tables if each.partition_by)

    # -- calls -------------------------------------------------------------------------------------------------

    def call(self, owner: Key, key: tuple[Any, ...], table: int, row: Row, time_ms: int) -> None:
        """Call `eval` for a row."""
        declaration = self._declaration
        self._enter(owner, key, time_ms if declaration.has_time else None, is_timer=False)
        given = self._declaration.tables[table]
        arguments = [
            (row if each.name == given.name else None) if each.is_table else self._arguments[each.name]
            for each in self._function.signature.arguments
        ]
        if self._function.signature.has_context:
            arguments[:0] = [self._context]
            states = self._states()
            arguments[1:1] = states
        else:
            arguments[:0] = self._states()
        front = tuple(row) if given.passes_through else key * self._keyed_tables
        self._collect(self._function.implementation.eval, arguments, front, row)

    def fire(self, timer: ProcessTimer) -> None:
        """Call `on_timer` for a timer."""
        self._enter(timer.owner, timer.key, timer.time_ms, is_timer=True)
        self._timer_context.timer_name = timer.name
        arguments = self._states()
        if self._function.signature.timer_has_context:
            arguments[:0] = [self._timer_context]
        front = timer.key * self._keyed_tables
        self._collect(self._function.implementation.on_timer, arguments, front, timer)

    def _enter(self, owner: Key, key: tuple[Any, ...], time_ms: int | None, *, is_timer: bool) -> None:
        self._owner, self._key, self._time, self.is_timer = owner, key, time_ms, is_timer

    def _states(self) -> list[Any]:
        return [entry.of_key(self._owner) for entry in self._entries]

    def _collect(self, method: Any, arguments: Sequence[Any], front: tuple[Any, ...], record: Any) -> None:
        try:
            results = list(rows_in(method(*arguments)))
        except UserFunctionError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=record) from error
        behind = (self._time,) if self._declaration.has_time else ()
        for result in results:
            self.rows.append((*front, *self._result(result), *behind))
        for entry in self._entries:
            if isinstance(entry, ValueEntry):
                entry.settle(self._owner)

    def _result(self, result: Any) -> tuple[Any, ...]:
        declaration = self._declaration
        kind = result.get_row_kind() if isinstance(result, Row) else RowKind.INSERT
        if not declaration.mode.contains(kind):
            raise UserFunctionError(
                f"{self._function.name} emitted {shorten(result)} of the kind {kind.name}, but declares "
                f"{declaration.mode}",
                hint="derive from ChangelogFunction, and have get_changelog_mode() return all kinds that it emits",
            )
        self.kinds.append(kind.value)
        if isinstance(result, Row) or (isinstance(result, tuple) and not declaration.is_single):
            values = tuple(result)
        else:
            values = (result,)
        if len(values) != declaration.result_width:
            raise wrong_width(self._function.name, values, declaration.result_width)
        return values

    # -- state and time, for contexts --------------------------------------------------------------------------

    def _clear_state(self, name: str | None) -> None:
        known = {entry.spec.name: entry for entry in self._entries}
        if name is not None and name not in known:
            raise UserFunctionError(
                f"{self._function.name} has no state {name!r}",
                hint=f"its state is {', '.join(known)}" if known else "annotate parameters with StateHint()",
            )
        for each in self._entries if name is None else [known[name]]:
            each.clear(self._owner)

    @property
    def time_ms(self) -> int | None:
        return None if self._time is None else instant_ms(self._time, self._declaration.zone)

    @property
    def watermark_ms(self) -> int | None:
        is_known = self.watermark != MIN_WATERMARK and self._declaration.time is not None
        return instant_ms(self.watermark, self._declaration.zone) if is_known else None

    def register(self, name: str | None, time_ms: int) -> None:
        timers = self._allowed()
        timers.register(
            ProcessTimer(self._owner, self._key, name, wall_clock_ms(time_ms, self._declaration.zone))
        )

    def clear(self, name: str | None, time_ms: int | None) -> None:
        at = None if time_ms is None else wall_clock_ms(time_ms, self._declaration.zone)
        self._allowed().clear(self._owner, name, at)

    def clear_all(self) -> None:
        self._allowed().clear_all(self._owner)

    def _allowed(self) -> Timers:
        if self._timers is not None:
            return self._timers
        if not self._declaration.has_time:
            message, hint = "timers need event time", "name a time attribute: on_time => DESCRIPTOR(ts)"
        else:
            message, hint = "timers need on_timer()", "define on_timer() next to eval()"
        raise UserFunctionError(f"{self._function.name}: {message}", hint=hint)
