"""The triggers that come with headrace. Their logic is that of Flink's triggers of the same names.

                           fires                                               merges
EventTime, ProcessingTime  at the end of the window                            yes
Continuous...              at multiples of an interval, and at the end         yes
Count                      after so many records                               yes
Delta                      when a record is far from the one it fired at last  no
Never                      never                                               no
Purging                    with another trigger, and purges                    if the other does
ProcessingTimeout          with another trigger, or when it takes too long     no
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

from headrace.common.constants import MAX_LONG_VALUE
from headrace.common.typeinfo import TypeInformation, Types
from headrace.errors import JobDefinitionError, describe_function, shorten
from headrace.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from headrace.windowing.checks import (
    Amount,
    amount_ms,
    check_call,
    check_count,
    check_number,
    check_positive_ms,
    require_timestamp,
)
from headrace.windowing.functions import DeltaFunction, call_of
from headrace.windowing.trigger import Trigger, TriggerResult

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "Trigger",
    "TriggerResult",
]


class _Timed(Trigger[Any, Any]):
    """A trigger that waits for one of the two clocks, and works with merging windows."""

    @abstractmethod
    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Register a timer of the clock the trigger follows."""

    @abstractmethod
    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Delete a timer of the clock the trigger follows."""

    def can_merge(self) -> bool:
        """Return True: the trigger works with merging windows."""
        return True


class _ByEventTime(_Timed):
    """A trigger that waits for the watermark."""

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE: this trigger ignores processing time."""
        return TriggerResult.CONTINUE


class _ByProcessingTime(_Timed):
    """A trigger that waits for the clock."""

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE: this trigger ignores event time."""
        return TriggerResult.CONTINUE


@dataclass(frozen=True)
class EventTimeTrigger(_ByEventTime):
    """Fires when the watermark passes the end of the window, and at once for every late record after that."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """Return a trigger that fires when the watermark passes the end of the window."""
        return EventTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fire if the end has passed, else wait for it."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    # These two run for nearly every record of a session window, so they call the context themselves.

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the new window. If it has passed, the record that merged them fires."""
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of the window."""
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class ProcessingTimeTrigger(_ByProcessingTime):
    """Fires when the clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Return a trigger that fires when the clock passes the end of the window."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Wait for the end."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire the window at its end."""
        return TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the new window."""
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of the window."""
        ctx.delete_processing_time_timer(window.max_timestamp())


#: When a continuous trigger fires next; of merged windows, the earliest.
_FIRE_TIME = ReducingStateDescriptor("fire-time", min, Types.LONG())


@dataclass(frozen=True, init=False)
class _Continuous(_Timed):
    """What the continuous triggers share: the next time to fire is in state, and a timer waits for it."""

    interval_ms: int

    def __init__(self, interval: int) -> None:
        interval_ms = check_positive_ms(type(self).__name__, "interval", interval)
        object.__setattr__(self, "interval_ms", interval_ms)

    @classmethod
    def of(cls, interval: Amount) -> Self:
        """Make it with a Time, Duration or timedelta."""
        return cls(amount_ms(cls.__name__, "interval", interval))

    def register_next_fire_timestamp(
        self, time: int, window: Any, ctx: Trigger.TriggerContext, fire_timestamp_state: Any
    ) -> None:
        """Wait until an interval after a time, or until the end of the window if that is earlier."""
        next_time = min(time + self.interval_ms, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        self._register(next_time, ctx)

    def _start_at(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Wait for the first multiple of the interval after a time, unless the trigger waits already."""
        state = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() is None:
            self.register_next_fire_timestamp(time - time % self.interval_ms, window, ctx, state)

    def _on_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() != time:
            return TriggerResult.CONTINUE
        state.clear()
        # Flink registers the end again at the end and leaves it to the removal of the window to delete that timer. A
        # window of event time may be removed much later, and a timer of the clock, always due, would fire without end.
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, state)
        return TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Continue with the earliest of the intervals."""
        ctx.merge_partitioned_state(_FIRE_TIME)
        time = ctx.get_partitioned_state(_FIRE_TIME).get()
        if time is not None:
            self._register(time, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of the next interval."""
        state = ctx.get_partitioned_state(_FIRE_TIME)
        time = state.get()
        if time is not None:
            self._delete(time, ctx)
            state.clear()


class ContinuousEventTimeTrigger(_ByEventTime, _Continuous):
    """Fires again and again as the watermark passes multiples of an interval, and at the end of the window.

    Args:
        interval: In ms.
    """

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fire if the end has passed, else wait for it and for the next interval."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        self._start_at(require_timestamp(timestamp, element), window, ctx)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end and at each interval."""
        end = window.max_timestamp()
        if time == end:
            return TriggerResult.FIRE
        if end == ctx.get_current_watermark() == MAX_LONG_VALUE:
            # The input has ended, and a window without end would have intervals forever. The end comes next.
            return TriggerResult.CONTINUE
        return self._on_time(time, window, ctx)


class ContinuousProcessingTimeTrigger(_ByProcessingTime, _Continuous):
    """Fires again and again as the clock passes multiples of an interval, and at the end of the window.

    Args:
        interval: In ms.
    """

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Wait for the next interval."""
        self._start_at(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at each interval."""
        return self._on_time(time, window, ctx)


class _NoTimers(Trigger[Any, Any]):
    """A trigger that looks at records only."""

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE: this trigger ignores processing time."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE: this trigger ignores event time."""
        return TriggerResult.CONTINUE


#: Records of a window since it last fired; of merged windows, the sum.
_COUNT = ReducingStateDescriptor("count", operator.add, Types.LONG())


@dataclass(frozen=True)
class CountTrigger(_NoTimers):
    """Fires each time a number of records has arrived.

    Args:
        window_size: The number.
    """

    window_size: int

    def __post_init__(self) -> None:
        check_count(type(self).__name__, "window_size", self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Return a trigger that fires each time a window has received `window_size` more elements."""
        return CountTrigger(window_size)

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Count, and fire when the number is reached."""
        state = ctx.get_partitioned_state(_COUNT)
        state.add(1)
        if state.get() < self.window_size:
            return TriggerResult.CONTINUE
        state.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return True: the trigger works with merging windows."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Add the counts up; the next record fires if they are enough."""
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the count of the window."""
        ctx.get_partitioned_state(_COUNT).clear()


@dataclass(frozen=True)
class NeverTrigger(_NoTimers):
    """Never fires: the trigger of global windows that have no other."""

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Return CONTINUE: this trigger never fires."""
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Do nothing: this trigger keeps no state."""


@dataclass(frozen=True, repr=False)
class DeltaTrigger(_NoTimers):
    """Fires when a record is farther than a threshold from the one of the last firing (Flink's DeltaTrigger).

    Args:
        threshold: The distance that must be exceeded.
        delta_function: A callable of the earlier and the later record, or a DeltaFunction.
        state_type_info: Type of the record that is kept; pickled if None.

    Example:
        >>> DeltaTrigger.of(50.0, lambda old, new: new["km"] - old["km"]).threshold
        50.0
    """

    threshold: float
    delta_function: Any
    state_type_info: TypeInformation | None = None
    _last_element: ValueStateDescriptor = field(init=False, compare=False)

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_number(owner, "threshold", self.threshold)
        check_call(owner, "delta_function", self.delta_function, "get_delta")
        object.__setattr__(self, "_last_element", ValueStateDescriptor("last-element", self.state_type_info))

    @staticmethod
    def of(
        threshold: float, delta_function: DeltaFunction | Any, state_type_info: TypeInformation | None = None
    ) -> DeltaTrigger:
        """Return a trigger that fires when the delta to the last firing element exceeds the threshold."""
        return DeltaTrigger(threshold, delta_function, state_type_info)

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fire when the record is too far from the last one that fired; the first is only kept."""
        state = ctx.get_partitioned_state(self._last_element)
        last = state.value()
        if last is None:
            state.update(element)
            return TriggerResult.CONTINUE
        if call_of(self.delta_function, "get_delta")(last, element) <= self.threshold:
            return TriggerResult.CONTINUE
        state.update(element)
        return TriggerResult.FIRE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the record that the next ones are compared with."""
        ctx.get_partitioned_state(self._last_element).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold}, {describe_function(self.delta_function)})"


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Any]):
    """Does what another trigger does, and purges whenever that one fires.

    Args:
        nested_trigger: The other one.
    """

    nested_trigger: Trigger[Any, Any]

    def __post_init__(self) -> None:
        _check_nested(type(self).__name__, self.nested_trigger)

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Return a trigger that clears the window whenever the given trigger fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Ask the other, and purge with it."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other, and purge with it."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other, and purge with it."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Return whether the wrapped trigger works with merging windows."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Leave it to the other."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Leave it to the other."""
        self.nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


#: When the timeout of a window is up.
_TIMEOUT = ValueStateDescriptor("timeout", Types.LONG())


@dataclass(frozen=True)
class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires when another trigger fires, or after some processing time (Flink's, not in PyFlink).

    As in Flink's class of this name, every timer of the window fires: that of the timeout, any that the other trigger
    has set, whatever it says to it, and the one at which the window ends. What was in the window is purged only if the
    other trigger says so. A timeout that did not clear is not started again by the records that follow, unless
    each of them resets it.

    Args:
        nested_trigger: The other one.
        timeout_ms: How long, from the first record.
        reset_timer_on_new_record: Count from the latest record instead.
        should_clear_on_timeout: Whether the other trigger's state is cleared when the time is up.

    Example:
        >>> from headrace.common import Time
        >>> ProcessingTimeoutTrigger.of(CountTrigger.of(100), Time.seconds(1)).timeout_ms
        1000
    """

    nested_trigger: Trigger[Any, Any]
    timeout_ms: int
    reset_timer_on_new_record: bool = False
    should_clear_on_timeout: bool = True

    def __post_init__(self) -> None:
        owner = type(self).__name__
        _check_nested(owner, self.nested_trigger)
        check_positive_ms(owner, "timeout", self.timeout_ms)

    @classmethod
    def of(
        cls,
        nested_trigger: Trigger[Any, Any],
        timeout: Amount,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> Self:
        """Make it with a Time, Duration or timedelta."""
        timeout_ms = amount_ms(cls.__name__, "timeout", timeout)
        return cls(nested_trigger, timeout_ms, reset_timer_on_new_record, should_clear_on_timeout)

    def on_element(
        self, element: Any, timestamp: int | None, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Ask the other; if it does not fire, see that the timeout runs."""
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        state = ctx.get_partitioned_state(_TIMEOUT)
        running_until = state.value()
        if running_until is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(running_until)
            running_until = None
        if running_until is None:
            time = ctx.get_current_processing_time() + self.timeout_ms
            state.update(time)
            ctx.register_processing_time_timer(time)
        return result

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire, and purge if the other wants it."""
        return self._fire(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire, and purge if the other wants it."""
        return self._fire(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Stop the timeout, and leave the rest to the other."""
        state = ctx.get_partitioned_state(_TIMEOUT)
        running_until = state.value()
        if running_until is not None:
            ctx.delete_processing_time_timer(running_until)
            state.clear()
        self.nested_trigger.clear(window, ctx)

    def _fire(self, result: TriggerResult, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE


def _check_nested(owner: str, given: Any) -> None:
    if isinstance(given, Trigger):
        return
    is_class = isinstance(given, type) and issubclass(given, Trigger)
    raise JobDefinitionError(
        f"{owner}: nested_trigger must be a Trigger, got {type(given).__name__} {shorten(given)}",
        hint=f"pass an instance: {given.__name__}(...)" if is_class else "for example CountTrigger.of(10)",
    )
