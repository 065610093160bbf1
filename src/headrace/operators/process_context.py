"""The context objects that process functions get with each record."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any, Self

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch
from headrace.errors import JobDefinitionError, shorten
from headrace.operators.context import OperatorContext
from headrace.operators.time import TimeDomain, TimerService
from headrace.operators.timers import OperatorTimers
from headrace.state.descriptors import MapStateDescriptor
from headrace.state.interfaces import BroadcastState, ReadOnlyBroadcastState
from headrace.state.operator_state import ReadOnlyView


class TaskTimerService(TimerService):
    """The clocks of a task, as ``ctx.timer_service()``; timers need a key."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def current_processing_time(self) -> int:
        """Return the processing time in ms; the same for all records of one buffer."""
        return self._context.processing_time()

    def current_watermark(self) -> int:
        """Return the watermark that the operator's inputs have reached."""
        return self._context.watermark()

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer: on_timer is called at this processing time."""
        raise self._refusal()

    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer: on_timer is called when the watermark passes this time."""
        raise self._refusal()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a timer, if there is one for this time."""
        raise self._refusal()

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete a timer, if there is one for this time."""
        raise self._refusal()

    def _refusal(self) -> JobDefinitionError:
        return JobDefinitionError(
            f"operator '{self._context.place.operator_name}': timers need a keyed stream",
            hint="call key_by(...) before this operator",
        )


class KeyedTimerService(TaskTimerService):
    """The clocks and timers of a keyed operator; timers belong to the key of the current record."""

    def __init__(self, context: OperatorContext, timers: OperatorTimers) -> None:
        super().__init__(context)
        self._timers = timers

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer: on_timer is called at this processing time."""
        self._timers.register_processing_time(_checked(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer: on_timer is called when the watermark passes this time."""
        self._timers.register_event_time(_checked(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a timer, if there is one for this time."""
        self._timers.delete_processing_time(timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete a timer, if there is one for this time."""
        self._timers.delete_event_time(timestamp)


def _checked(timestamp: Any) -> int:
    """Refuse what is not a time here, where it is given: it would be found out when state is written down."""
    if isinstance(timestamp, int) and MIN_WATERMARK <= timestamp <= MAX_WATERMARK:
        return timestamp
    raise JobDefinitionError(
        "the time of a timer must be a whole number of milliseconds that fits 64 bits; "
        f"got {type(timestamp).__name__} {shorten(timestamp)}"
    )


class ProcessContext:
    """The context of a process function, for the current record."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._timer_service: TaskTimerService = TaskTimerService(context)
        self._time_domain: TimeDomain | None = None
        #: Timestamp of the current record; set by the operator before every call.
        self.now_at: int | None = None

    def times_of(self, batch: Batch) -> Iterable[int | None]:
        """Return one timestamp per record of a batch."""
        return repeat(None) if batch.timestamps is None else batch.timestamps

    def timestamp(self) -> int:
        """Return the record's timestamp in ms. A record without one has the least there is, -2**63, as in PyFlink."""
        return MIN_WATERMARK if self.now_at is None else self.now_at

    def timer_service(self) -> TaskTimerService:
        """Return the clocks and timers of the task."""
        return self._timer_service

    def with_timers(self, timers: OperatorTimers) -> Self:
        """Give the function timers."""
        self._timer_service = KeyedTimerService(self._context, timers)
        return self

    def at_timer(self, timestamp: int, domain: TimeDomain) -> None:
        """Be the context of a call of on_timer."""
        self.now_at = timestamp
        self._time_domain = domain

    def time_domain(self) -> TimeDomain | None:
        """Return the time domain of the timer that fired."""
        return self._time_domain

    def current_processing_time(self) -> int:
        """Return the processing time in ms."""
        return self._context.processing_time()

    def current_watermark(self) -> int:
        """Return the watermark that the operator's inputs have reached."""
        return self._context.watermark()


class KeyedProcessContext(ProcessContext):
    """The context of a keyed process function."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._current = context.require_keyed_state().current

    def get_current_key(self) -> Any:
        """Return the key of the current record."""
        return self._current.key


class BroadcastContext(ProcessContext):
    """The context of the broadcast side: broadcast state can be written."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the broadcast state under this descriptor."""
        return self._context.operator_state.get_broadcast_state(state_descriptor)


class ReadOnlyBroadcastContext(ProcessContext):
    """The context of the other side: broadcast state can be read."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Return the broadcast state under this descriptor, read-only."""
        return ReadOnlyView(self._context.operator_state.get_broadcast_state(state_descriptor))


class KeyedReadOnlyBroadcastContext(ReadOnlyBroadcastContext):
    """The context of the keyed side of a keyed broadcast process function."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._current = context.require_keyed_state().current

    def get_current_key(self) -> Any:
        """Return the key of the current record."""
        return self._current.key
