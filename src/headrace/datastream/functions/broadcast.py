"""Process functions that share broadcast state among all subtasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic

from headrace.datastream.functions.base import IN1, IN2, KEY, OUT, Function
from headrace.datastream.time_domain import TimeDomain
from headrace.datastream.timerservice import TimerService
from headrace.state.descriptors import MapStateDescriptor
from headrace.state.interfaces import BroadcastState, ReadOnlyBroadcastState


class BaseBroadcastProcessFunction(Function):
    """What the two broadcast process functions have in common."""

    class BaseContext(ABC):
        """What is known of the current record."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the record's timestamp in ms; -2**63 if it has no timestamp."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark both inputs have reached."""

    class Context(BaseContext):
        """What the broadcast side gets: broadcast state may be changed."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """Return a broadcast state. Every subtask must change it in the same way."""

    class ReadOnlyContext(BaseContext):
        """What the other side gets: broadcast state may be read."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> ReadOnlyBroadcastState[Any, Any]:
            """Return a broadcast state to read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """A process function over a stream connected with a broadcast stream."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What the broadcast side gets."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What the other side gets."""

    @abstractmethod
    def process_element(
        self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[OUT] | None:
        """Return or yield results for a record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[OUT] | None:
        """Return or yield results for a broadcast record; every subtask sees it."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """A process function over a keyed stream connected with a broadcast stream."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """The context of the broadcast side, which has no current key."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What the keyed side gets."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks and timers."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the record's key."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """What is known of the timer at hand."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether it is an event-time or a processing-time timer."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key the timer was registered for."""

    @abstractmethod
    def process_element(
        self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[OUT] | None:
        """Return or yield results for a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Iterable[OUT] | None:
        """Return or yield results for a broadcast record; every subtask sees it."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext
    ) -> Iterable[OUT] | None:
        """Return or yield results when a timer that was registered for this key fires."""
        return None
