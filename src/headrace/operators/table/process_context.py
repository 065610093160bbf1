"""The context of a process table function: time, timers, its tables, its state."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Protocol, overload

from headrace.common.changelog import ChangelogMode
from headrace.errors import UserFunctionError
from headrace.operators.table.declarations import Order
from headrace.operators.table.process_declarations import ProcessedTable

__all__ = ["ProcessTableContext", "OnTimerContext", "TableSemantics", "TimeContext"]

_EPOCH = datetime.datetime.fromisoformat("1970-01-01")
_MILLISECOND = datetime.timedelta(milliseconds=1)
#: The end of the year 9999, where a `datetime` ends: the watermark is behind it when the input has ended.
_LAST_MS = (datetime.datetime.fromisoformat("9999-12-31T23:59:59.999") - _EPOCH) // _MILLISECOND


class Clock(Protocol):
    """Where time stands in a call, in ms, and the timers of the key that is processed."""

    @property
    def time_ms(self) -> int | None:
        """The time of the row, or of the timer."""

    @property
    def watermark_ms(self) -> int | None:
        """How far event time has advanced."""

    @property
    def is_timer(self) -> bool:
        """Whether the call is of a timer."""

    def register(self, name: str | None, time_ms: int) -> None:
        """Set a timer; one of the same name is replaced."""

    def clear(self, name: str | None, time_ms: int | None) -> None:
        """Remove a timer by its name, or by its time if it has none."""

    def clear_all(self) -> None:
        """Remove all timers of the key."""


class TimeContext:
    """Time and timers, as milliseconds (`int`) or as `datetime` in UTC without a time zone."""

    def __init__(self, clock: Clock, conversion_class: type, function: str) -> None:
        self._clock = clock
        self._is_number = conversion_class is int
        self._function = function

    def time(self) -> Any:
        """Return the time of the row, or of the timer that fires; None if the call has no on_time."""
        return self._shown(self._clock.time_ms)

    def current_watermark(self) -> Any:
        """Return how far event time has advanced in all tables; None if no table has a watermark yet."""
        return self._shown(self._clock.watermark_ms)

    def table_watermark(self) -> Any:
        """Return how far event time has advanced in the table of the row; None in `on_timer`.

        All tables of a call advance together: it is the same as `current_watermark`.
        """
        return None if self._clock.is_timer else self.current_watermark()

    @overload
    def register_on_time(self, name: str, time: Any) -> None: ...

    @overload
    def register_on_time(self, name: Any) -> None: ...

    def register_on_time(self, name: Any, time: Any = None) -> None:
        """Set a timer, ``register_on_time(time)`` or ``register_on_time(name, time)``.

        `on_timer` is called when the watermark has passed its time. A timer with a name replaces one with the same
        name; one without is there once for each time.
        """
        if isinstance(name, str):
            if time is None:
                raise self._wrong("a timer with a name needs a time", "register_on_time('timeout', time)")
            self._clock.register(name, self._ms(time))
        else:
            self._clock.register(None, self._ms(name))

    def clear_timer(self, name_or_time: Any) -> None:
        """Remove a timer by its name, or one without a name by its time. Nothing happens if there is none."""
        if isinstance(name_or_time, str):
            self._clock.clear(name_or_time, None)
        else:
            self._clock.clear(None, self._ms(name_or_time))

    def clear_all_timers(self) -> None:
        """Remove all timers of the key."""
        self._clock.clear_all()

    def _shown(self, ms: int | None) -> Any:
        if ms is None or self._is_number:
            return ms
        return _EPOCH + min(ms, _LAST_MS) * _MILLISECOND

    def _ms(self, time: Any) -> int:
        if isinstance(time, datetime.datetime):
            if time.tzinfo is not None:
                time = time.astimezone(datetime.UTC).replace(tzinfo=None)
            return int((time - _EPOCH) // _MILLISECOND)
        if isinstance(time, int) and not isinstance(time, bool):
            return time
        raise self._wrong(
            f"cannot set a timer for {time!r}", "give a datetime, or milliseconds since 1970 as an int"
        )

    def _wrong(self, message: str, hint: str) -> UserFunctionError:
        return UserFunctionError(f"{self._function}: {message}", hint=hint)


class TableSemantics:
    """A table that the function is called with."""

    def __init__(self, table: ProcessedTable) -> None:
        self._table = table

    def column_names(self) -> tuple[str, ...]:
        """Return the names of its columns."""
        return self._table.fields

    def partition_by_columns(self) -> tuple[int, ...]:
        """Return which columns PARTITION BY names."""
        return self._table.partition_by

    def order_by_columns(self) -> tuple[int, ...]:
        """Return which columns ORDER BY names."""
        columns = self._table.columns
        return tuple(columns.index(each.column) for each in self._table.order or ())

    def order_by_directions(self) -> tuple[str, ...]:
        """Return how each of them is ordered, such as ``ASC_NULLS_FIRST``."""
        return tuple(_direction(each) for each in self._table.order or ())

    def time_column(self) -> int:
        """Return which column on_time names; -1 if none."""
        return -1 if self._table.time_index is None else self._table.time_index

    def changelog_mode(self) -> ChangelogMode:
        """Return the kinds of rows that the table has."""
        return self._table.mode


def _direction(order: Order) -> str:
    return f"{'ASC' if order.ascending else 'DESC'}_NULLS_{'FIRST' if order.nulls_first else 'LAST'}"


class ProcessTableContext:
    """What a process table function can ask and do in `eval`."""

    def __init__(
        self,
        function: str,
        tables: Mapping[str, TableSemantics],
        mode: ChangelogMode,
        clock: Clock,
        clear_state: Callable[[str | None], None],
        *,
        has_timers: bool,
    ) -> None:
        self._function = function
        self._tables = tables
        self._mode = mode
        self._clock = clock
        self._clear_state = clear_state
        self._has_timers = has_timers

    def time_context(self, conversion_class: type = datetime.datetime) -> TimeContext:
        """Return time and timers.

        Args:
            conversion_class: `datetime` for times in UTC without a time zone, or `int` for milliseconds since 1970.
        """
        if conversion_class not in (int, datetime.datetime):
            raise UserFunctionError(
                f"{self._function}: time_context() takes datetime or int; got {conversion_class!r}",
                hint="ctx.time_context(int) for milliseconds since 1970",
            )
        return TimeContext(self._clock, conversion_class, self._function)

    def table_semantics_for(self, arg_name: str) -> TableSemantics:
        """Return what is known of the table that an argument is."""
        if arg_name not in self._tables:
            raise UserFunctionError(
                f"{self._function} has no table argument {arg_name!r}",
                hint=f"its tables are {', '.join(self._tables)}",
            )
        return self._tables[arg_name]

    def clear_state(self, state_name: str) -> None:
        """Clear an entry of state of the key."""
        self._clear_state(state_name)

    def clear_all_state(self) -> None:
        """Clear all state of the key."""
        self._clear_state(None)

    def clear_all_timers(self) -> None:
        """Remove all timers of the key."""
        if self._has_timers:
            self._clock.clear_all()

    def clear_all(self) -> None:
        """Clear all state and remove all timers of the key."""
        self.clear_all_state()
        self.clear_all_timers()

    def get_changelog_mode(self) -> ChangelogMode:
        """Return the kinds of rows that the function is asked for."""
        return self._mode


class OnTimerContext(ProcessTableContext):
    """What a process table function can ask and do in `on_timer`."""

    #: The name of the timer that fires.
    timer_name: str | None = None

    def current_timer(self) -> str | None:
        """Return the name of the timer that fires; None if it has none."""
        return self.timer_name
