"""What users write: the function classes of PyFlink, and the contexts their methods get.

Every place that takes one of these takes a plain callable, too, where one method is enough. The classes are
for functions that need more: ``open`` and ``close``, the runtime context, state, side outputs.

    open(runtime_context)  ->  map(value), map(value), ...  ->  close()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.common.time import Duration, Time
from headrace.datastream._missing import missing_names
from headrace.datastream.time_domain import TimeDomain
from headrace.datastream.timerservice import TimerService
from headrace.operators.async_retry import AsyncRetryPredicate, AsyncRetryStrategy
from headrace.operators.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from headrace.operators.context import RuntimeContext
from headrace.state.descriptors import MapStateDescriptor
from headrace.state.interfaces import BroadcastState, KeyedStateStore, ReadOnlyBroadcastState

__all__ = [
    "RuntimeContext",
    "MapFunction",
    "CoMapFunction",
    "FlatMapFunction",
    "CoFlatMapFunction",
    "ReduceFunction",
    "AggregateFunction",
    "KeySelector",
    "FilterFunction",
    "Partitioner",
    "SinkFunction",
    "ProcessFunction",
    "CoProcessFunction",
    "KeyedProcessFunction",
    "KeyedCoProcessFunction",
    "TimerService",
    "WindowFunction",
    "AllWindowFunction",
    "ProcessWindowFunction",
    "ProcessAllWindowFunction",
    "PassThroughWindowFunction",
    "PassThroughAllWindowFunction",
    "JoinFunction",
    "FlatJoinFunction",
    "CoGroupFunction",
    "ProcessJoinFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "KeyedBroadcastProcessFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "Function",
    "KeyedStateStore",
    "NullByteKeySelector",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(
        __name__,
        "FunctionWrapper",
        "ReduceFunctionWrapper",
        SourceFunction="subclass headrace.connectors.base.Source and pass it to from_source()",
    )

IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
#: Another, because a class inside a generic class cannot use its variables.
W2 = TypeVar("W2")


class Function(ABC):  # noqa: B024  # as in PyFlink: the methods are there, and do nothing
    """Base of all user functions.

    A function is pickled with the job and unpickled in every subtask. Make what does not pickle (connections,
    models) in `open`. Fields that change while records are processed are not kept: use state for that.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get ready; called once in every subtask, before the first record."""

    def close(self) -> None:
        """Let go of what `open` took; called also after a failure."""


class MapFunction(Function):
    """One record in, one out.

    Example:
        >>> class Twice(MapFunction):
        ...     def map(self, value):
        ...         return 2 * value
        >>> Twice().map(21)
        42
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return what becomes of a record."""


class CoMapFunction(Function):
    """A map over two connected streams, with a method for each."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return what becomes of a record of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return what becomes of a record of the second stream."""


class FlatMapFunction(Function):
    """One record in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Return or yield what becomes of a record; None for nothing."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams, with a method for each."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Return or yield what becomes of a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Return or yield what becomes of a record of the second stream."""


class ReduceFunction(Function):
    """Makes one value of two, of the same type."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine what was reduced so far with the next value."""


class AggregateFunction(Function):
    """Adds records up in an accumulator, whose type may differ from theirs and from the result's."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return an accumulator to which nothing was added."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator with the record added."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Return the result of what was added so far."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return an accumulator that holds what both hold."""


class KeySelector(Function):
    """Finds the key of a record. The same record must always have the same key."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of a record. Must be deterministic."""


class NullByteKeySelector(KeySelector):
    """Gives every record the same key."""

    def get_key(self, value: Any) -> int:
        """Return the same key for every record."""
        return 0


class FilterFunction(Function):
    """Says which records stay."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether the record stays."""


class Partitioner(Function):
    """Chooses the subtask a record goes to."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return the index of the subtask, from 0, for a key."""


class SinkFunction(ABC):
    """Writes every record as it comes; delivery is at least once.

    When an epoch runs again after a failure its records are written again, so make a second write harmless.
    For exactly-once output, subclass `headrace.connectors.base.Sink` and use ``sink_to``.
    """

    @abstractmethod
    def invoke(self, value: Any) -> None:
        """Write one record to the external system."""


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
        """What is known of the record at hand."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks. Timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in ms; None if it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results; a pair ``(output_tag, value)`` goes to that side output."""


class KeyedProcessFunction(Function):
    """A process function on a keyed stream: it has keyed state and timers."""

    class Context(ABC):
        """What is known of the record at hand."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the record's key."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks and timers."""

        @abstractmethod
        def timestamp(self) -> int | None:
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

    class Context(ABC):
        """What is known of the record at hand."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks. Timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in ms; None if it has none."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the second stream."""


class KeyedCoProcessFunction(Function):
    """A process function over two streams keyed alike: both sides see the same state and timers."""

    class Context(ABC):
        """What is known of the record at hand."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the record's key."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the task's clocks and timers."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's, or the timer's, timestamp in ms."""

    class OnTimerContext(Context):
        """What is known of the timer at hand."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether it is an event-time or a processing-time timer."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield results for a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Return or yield results when a timer that was registered for this key fires."""
        return None


class BaseBroadcastProcessFunction(Function):
    """What the two broadcast process functions have in common."""

    class BaseContext(ABC):
        """What is known of the record at hand."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in ms; None if it has none."""

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
        """What the broadcast side gets. There is no current key."""

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


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Makes results of all records of a key in a window."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield results."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Makes results of all records in a window of a stream without a key."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield results."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """A window function that knows more: clocks, and state per window and per key."""

    class Context(ABC, Generic[W2]):
        """What is known of the window at hand."""

        @abstractmethod
        def window(self) -> W2:
            """Return the window that is being evaluated."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark the input has reached."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return state of this key in this window; clear it in `clear`."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return state of this key in all windows."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """Return or yield results."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the window's state when the window is removed."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """A process window function on a stream without a key."""

    class Context(ABC, Generic[W2]):
        """What is known of the window at hand."""

        @abstractmethod
        def window(self) -> W2:
            """Return the window that is being evaluated."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return state of this window; clear it in `clear`."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return state of all windows."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield results."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the window's state when the window is removed."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Hands on what it is given."""

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Return the records as they are."""
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Hands on what it is given."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Return the records as they are."""
        return inputs


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes one record of two that meet in a window join. Flink's; PyFlink does not have it."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """Return what becomes of a record of the first stream and one of the second with the same key."""


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes any number of records of two that meet in a window join. Flink's; PyFlink does not have it."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Iterable[OUT] | None:
        """Return or yield what becomes of two records with the same key."""


class CoGroupFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes results of all records of a key in a window, of both streams. Flink's; PyFlink does not have it.

    Example:
        >>> class LeftOuter(CoGroupFunction):
        ...     def co_group(self, first, second):
        ...         for left in first:
        ...             for right in second or [None]:
        ...                 yield left, right
        >>> list(LeftOuter().co_group([1], []))
        [(1, None)]
    """

    @abstractmethod
    def co_group(self, first: list[IN1], second: list[IN2]) -> Iterable[OUT] | None:
        """Return or yield results; one of the lists may be empty."""


class ProcessJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes results of every pair that an interval join finds. Flink's; PyFlink does not have it."""

    class Context(ABC):
        """What is known of the pair at hand."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the record of the first stream in ms."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the record of the second stream in ms."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the results: the later of the two."""

    @abstractmethod
    def process_element(
        self, left: IN1, right: IN2, ctx: ProcessJoinFunction.Context
    ) -> Iterable[OUT] | None:
        """Return or yield results; a pair ``(output_tag, value)`` goes to that side output."""


class AsyncFunction(Function, Generic[IN, OUT]):
    """A flat map that waits for answers of another system without stopping the stream.

    ``open`` and ``close`` may be coroutines, too: they run on the loop that ``async_invoke`` runs on, which is
    where clients are best made and closed. Runs in `AsyncDataStream`.
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Return results for a record, when they are there."""

    def timeout(self, value: IN) -> list[OUT]:
        """Return results for a record whose call took too long; by default that is an error."""
        raise TimeoutError(f"async_invoke took too long for {value!r}")


class AsyncFunctionDescriptor:
    """An asynchronous function with how it is to be run. `AsyncDataStream` makes them."""

    class OutputMode(Enum):
        """In which order results are handed on."""

        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy[Any],
        output_mode: OutputMode,
    ) -> None:
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode
