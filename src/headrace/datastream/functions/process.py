"""Process functions: they see the time, set timers and have side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from headrace.datastream.functions.base import Function
from headrace.datastream.time_domain import TimeDomain
from headrace.datastream.timerservice import TimerService


class ProcessFunction(Function):
    """A flat map that knows the record's time and can write to side outputs.

    Example:
        >>> class Parse(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         if value.isdigit():
        ...             yield int(value)
        >>> list(Parse().process_element("7", None))
        [7]
    """

    class Context(ABC):
        """What is known of the current record."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks. Timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the record's timestamp in ms; -2**63 if it has no timestamp."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results; a pair ``(output_tag, value)`` goes to that side output."""


class KeyedProcessFunction(Function):
    """A process function on a keyed stream: it has keyed state and timers."""

    class Context(ABC):
        """What is known of the current record."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the record's key."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks and timers."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the record's, or the timer's, timestamp in ms."""

    class OnTimerContext(Context):
        """What is known of the timer at hand."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether it is an event-time or a processing-time timer."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results; a pair ``(output_tag, value)`` goes to that side output."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Return or yield results when a timer that was registered for this key fires."""
        return None


class CoProcessFunction(Function):
    """A process function over two connected streams, with a method for each."""

    class Context(ProcessFunction.Context):
        """What is known of the current record, of either stream."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the second stream."""


class KeyedCoProcessFunction(Function):
    """A process function over two streams keyed alike: both sides see the same state and timers."""

    class Context(KeyedProcessFunction.Context):
        """What is known of the current record, of either stream."""

    class OnTimerContext(Context, KeyedProcessFunction.OnTimerContext):
        """What is known of the timer at hand."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Return or yield results when a timer that was registered for this key fires."""
        return None
