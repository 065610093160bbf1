"""Assigners: which windows a record belongs to.

    size 10, offset 0    |0........|10.......|20.......|      tumbling: every moment in one window
    size 10, slide 5     |0........|10.......|                sliding: in size / slide of them
                         .....|5........|15.......|
    gap 4                 x x   x         x  x                sessions: from a record to the gap after it;
                         |-----------|   |------|             windows that overlap or touch become one

An assigner is a frozen value, checked when it is made. Sizes are kept in milliseconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from headrace.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from headrace.common.serializer import TypeSerializer
from headrace.common.typeinfo import Types
from headrace.errors import JobDefinitionError, describe_function, shorten
from headrace.state.descriptors import ValueStateDescriptor
from headrace.windowing.checks import (
    Amount,
    amount_ms,
    beyond_time,
    check_call,
    check_count,
    check_offset,
    check_positive_ms,
    no_timestamp,
    require_timestamp,
)
from headrace.windowing.functions import SessionWindowTimeGapExtractor, call_of
from headrace.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    PickledWindowSerializer,
    TimeWindowSerializer,
)
from headrace.windowing.stagger import WindowStagger, check_stagger
from headrace.windowing.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow

__all__ = [
    "CountSlidingWindowAssigner",
    "CountTumblingWindowAssigner",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "GlobalWindows",
    "MergingWindowAssigner",
    "ProcessingTimeSessionWindows",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "WindowAssigner",
    "WindowStagger",
    "count_windows",
    "no_timestamp",
]

T = TypeVar("T")
W = TypeVar("W")
#: Another, because a class inside a generic class cannot use its variables.
W_contra = TypeVar("W_contra", contravariant=True)


class WindowAssigner(ABC, Generic[T, W]):
    """Decides which windows a record belongs to. Subclass it for windows of your own."""

    class WindowAssignerContext(ABC):
        """What an assigner may ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def get_runtime_context(self) -> Any:
            """Return the runtime context, with keyed state of the record's key that all its windows share."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Return the windows of a record; none drops it.

        Args:
            element: The record.
            timestamp: Its timestamp in ms; None if it has none.
            context: The clock and keyed state.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger of a program that sets none.

        Args:
            env: The execution environment.
        """

    def get_window_serializer(self) -> TypeSerializer[Any]:
        """Return how windows are written. By default they are pickled; headrace itself does not ask."""
        return PickledWindowSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark, and not by the clock of the machine."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may become one when a record closes the gap between them."""

    class MergeCallback(Protocol[W_contra]):
        """Takes note of windows that become one."""

        def merge(self, to_be_merged: Sequence[W_contra], merge_result: W_contra) -> None:
            """Make one window of several."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Find windows that belong together.

        Args:
            windows: The windows of a key.
            callback: To be called once for every group that becomes one.
        """


# ---------------------------------------------------------------------------------------------- clocks


class _TimeWindows(WindowAssigner[Any, TimeWindow]):
    """What the assigners of time windows share: a shape below, and one of the two clocks."""

    @abstractmethod
    def windows_at(self, element: Any, timestamp: int) -> list[TimeWindow]:
        """Return the windows of a record at a time."""

    def get_window_serializer(self) -> TypeSerializer[Any]:
        """Return how windows are written."""
        return TimeWindowSerializer()


class _EventTime(_TimeWindows):
    def assign_windows(
        self, element: Any, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows at the record's timestamp, the latest first.

        Raises:
            JobDefinitionError: It has none.
            UserFunctionError: A window would begin or end beyond the time there is.
        """
        at = require_timestamp(timestamp, element)
        windows = self.windows_at(element, at)
        if windows and (windows[0].end - 1 > MAX_LONG_VALUE or windows[-1].start < MIN_LONG_VALUE):
            raise beyond_time(element, at)
        return windows

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return the trigger that fires when the watermark passes the end."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Return True: windows follow event time."""
        return True


class _ProcessingTime(_TimeWindows):
    def assign_windows(
        self, element: Any, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows at the machine's time, the latest first."""
        return self.windows_at(element, context.get_current_processing_time())

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return the trigger that fires when the clock passes the end."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Return False: windows do not follow event time."""
        return False


# ------------------------------------------------------------------------------------ tumbling, sliding


@dataclass(frozen=True, init=False, repr=False)
class _Tumbling(_TimeWindows):
    #: Length of a window.
    size_ms: int
    #: Where windows start, from a multiple of their size.
    offset_ms: int
    #: Whether windows of different subtasks start at different times.
    stagger: WindowStagger = field(default=WindowStagger.ALIGNED, repr=False)

    def __init__(
        self, size: int, offset: int = 0, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "size_ms", check_positive_ms(owner, "size", size))
        object.__setattr__(self, "offset_ms", check_offset(owner, offset, size, "size"))
        object.__setattr__(self, "stagger", check_stagger(owner, window_stagger))

    @classmethod
    def of(
        cls,
        size: Amount,
        offset: Amount | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> Self:
        """Make windows of a size.

        Args:
            size: A Time, Duration or timedelta.
            offset: Where windows start. ``of(Time.hours(1), Time.minutes(15))`` is from quarter past to quarter
                past; ``of(Time.days(1), Time.hours(-8))`` is a day at UTC+8.
            window_stagger: Whether windows of all subtasks start at the same time. PyFlink does not have it.

        Raises:
            JobDefinitionError: The size is not positive, or the offset not smaller than the size.
        """
        return cls(amount_ms(cls.__name__, "size", size), _offset_ms(cls.__name__, offset), window_stagger)

    def assign_windows(
        self, element: Any, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        windows = super().assign_windows(element, timestamp, context)  # type: ignore[safe-super]  # by its clock
        if self.stagger is WindowStagger.ALIGNED:
            return windows  # type: ignore[return-value]  # both clocks return lists
        shift = self.stagger.offset_of(context.get_runtime_context(), self.size_ms)
        at = context.get_current_processing_time() if not self.is_event_time() else timestamp
        assert at is not None  # or the clock has refused the record
        start = at - (at - self.offset_ms - shift) % self.size_ms
        return [TimeWindow(start, start + self.size_ms)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.offset_ms})"

    def windows_at(self, element: Any, timestamp: int) -> list[TimeWindow]:
        """Return the one window around a time."""
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return [TimeWindow(start, start + self.size_ms)]


class TumblingEventTimeWindows(_Tumbling, _EventTime):
    """Windows of one size, one after the other, by the records' timestamps.

    Example:
        >>> from headrace.common import Time
        >>> TumblingEventTimeWindows.of(Time.seconds(5)).assign_windows("a", 7000, None)
        [TimeWindow(start=5000, end=10000)]
    """


class TumblingProcessingTimeWindows(_Tumbling, _ProcessingTime):
    """Windows of one size, one after the other, by the clock of the machine."""


@dataclass(frozen=True, init=False, repr=False)
class _Sliding(_TimeWindows):
    #: Length of a window.
    size_ms: int
    #: From the start of a window to the start of the next.
    slide_ms: int
    #: Where windows start, from a multiple of the slide.
    offset_ms: int

    def __init__(self, size: int, slide: int, offset: int = 0) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "size_ms", check_positive_ms(owner, "size", size))
        object.__setattr__(self, "slide_ms", check_positive_ms(owner, "slide", slide))
        # Flink's rule: it is the slide after which starts repeat.
        object.__setattr__(self, "offset_ms", check_offset(owner, offset, slide, "slide"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.slide_ms}, {self.offset_ms})"

    @classmethod
    def of(cls, size: Amount, slide: Amount, offset: Amount | None = None) -> Self:
        """Make windows of a size, one after every slide. The slide need not divide the size.

        Args:
            size: A Time, Duration or timedelta.
            slide: The same. If it is longer than the size, records between two windows are in none.
            offset: Where windows start; smaller than the slide.

        Raises:
            JobDefinitionError: The size or slide is not positive, or the offset not smaller than the slide.
        """
        owner = cls.__name__
        return cls(
            amount_ms(owner, "size", size), amount_ms(owner, "slide", slide), _offset_ms(owner, offset)
        )

    def windows_at(self, element: Any, timestamp: int) -> list[TimeWindow]:
        """Return the windows around a time, the latest first."""
        size, slide = self.size_ms, self.slide_ms
        last_start = timestamp - (timestamp - self.offset_ms) % slide
        return [TimeWindow(start, start + size) for start in range(last_start, timestamp - size, -slide)]


class SlidingEventTimeWindows(_Sliding, _EventTime):
    """Windows of one size that overlap, by the records' timestamps.

    Example:
        >>> from headrace.common import Time
        >>> windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
        >>> windows.assign_windows("a", 7000, None)
        [TimeWindow(start=5000, end=15000), TimeWindow(start=0, end=10000)]
    """


class SlidingProcessingTimeWindows(_Sliding, _ProcessingTime):
    """Windows of one size that overlap, by the clock of the machine."""


def _offset_ms(owner: str, offset: Amount | None) -> int:
    return 0 if offset is None else amount_ms(owner, "offset", offset)


# ------------------------------------------------------------------------------------------- sessions


class _Sessions(_TimeWindows, MergingWindowAssigner[Any, TimeWindow]):
    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Make one session of those that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True, init=False, repr=False)
class _FixedGap(_Sessions):
    #: How long a session waits for more.
    session_gap_ms: int

    def __init__(self, session_gap: int) -> None:
        gap_ms = check_positive_ms(type(self).__name__, "session gap", session_gap)
        object.__setattr__(self, "session_gap_ms", gap_ms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap_ms})"

    @classmethod
    def with_gap(cls, size: Amount) -> Self:
        """Make sessions that end when no record arrives for some time.

        Args:
            size: The gap: a Time, Duration or timedelta.

        Raises:
            JobDefinitionError: The gap is not positive.
        """
        return cls(amount_ms(cls.__name__, "size", size))

    def windows_at(self, element: Any, timestamp: int) -> list[TimeWindow]:
        """Return the session of one record."""
        return [TimeWindow(timestamp, timestamp + self.session_gap_ms)]


@dataclass(frozen=True, repr=False)
class _DynamicGap(_Sessions):
    #: Finds the gap after a record: a SessionWindowTimeGapExtractor or a callable.
    session_window_time_gap_extractor: Any

    def __post_init__(self) -> None:
        check_call(type(self).__name__, "extractor", self.session_window_time_gap_extractor, "extract")

    @classmethod
    def with_dynamic_gap(cls, extractor: SessionWindowTimeGapExtractor | Any) -> Self:
        """Make sessions whose gap depends on the record.

        Args:
            extractor: Returns the gap after a record in ms: a SessionWindowTimeGapExtractor, or a callable.
        """
        return cls(extractor)

    def windows_at(self, element: Any, timestamp: int) -> list[TimeWindow]:
        """Return the session of one record.

        Raises:
            JobDefinitionError: The extractor returned a gap that is not positive.
        """
        gap = call_of(self.session_window_time_gap_extractor, "extract")(element)
        if not isinstance(gap, int) or isinstance(gap, bool) or gap <= 0:
            raise JobDefinitionError(
                f"{self!r}: the gap must be a positive number of milliseconds, got {shorten(gap)} for record "
                f"{shorten(element)}"
            )
        return [TimeWindow(timestamp, timestamp + gap)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe_function(self.session_window_time_gap_extractor)})"


class DynamicEventTimeSessionWindows(_DynamicGap, _EventTime):
    """Sessions by the records' timestamps, with a gap that depends on the record."""


class DynamicProcessingTimeSessionWindows(_DynamicGap, _ProcessingTime):
    """Sessions by the clock of the machine, with a gap that depends on the record."""


class EventTimeSessionWindows(_FixedGap, _EventTime):
    """Sessions by the records' timestamps: a window ends when no record comes for a gap.

    Example:
        >>> from headrace.common import Time
        >>> EventTimeSessionWindows.with_gap(Time.minutes(1)).assign_windows("a", 7000, None)
        [TimeWindow(start=7000, end=67000)]
    """

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor | Any) -> DynamicEventTimeSessionWindows:
        """Make sessions whose gap depends on the record; see `DynamicEventTimeSessionWindows`."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap, _ProcessingTime):
    """Sessions by the clock of the machine: a window ends when no record comes for a gap."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Any,
    ) -> DynamicProcessingTimeSessionWindows:
        """Make sessions whose gap depends on the record; see `DynamicProcessingTimeSessionWindows`."""
        return DynamicProcessingTimeSessionWindows(extractor)


# ------------------------------------------------------------------------------------ global and count


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window for everything. It fires only with a trigger of your own."""

    @staticmethod
    def create() -> GlobalWindows:
        """Return an assigner that puts all records of a key into one window."""
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        """Return the one window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return the trigger that never fires."""
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[Any]:
        """Return how windows are written."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False: windows do not follow event time."""
        return False


class _CountWindows(WindowAssigner[Any, CountWindow]):
    """What the count windows share: they number the records of a key, in state."""

    #: How many records a window has.
    window_size: int
    _counter: ClassVar[ValueStateDescriptor]

    def _next_number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """Return the number of the current record among those of its key, from 0."""
        state = context.get_runtime_context().get_state(self._counter)
        number: int = state.value() or 0
        state.update(number + 1)
        return number

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return the trigger that fires when a window is full, and then forgets it.

        PyFlink's does not purge. A full window gets no more records, so results are the same, but it would stay in
        state for good.
        """
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> TypeSerializer[Any]:
        """Return how windows are written."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False: windows do not follow event time."""
        return False


@dataclass(frozen=True)
class CountTumblingWindowAssigner(_CountWindows):
    """Windows of a number of records of a key, one after the other.

    Args:
        window_size: The number.
    """

    window_size: int

    _counter = ValueStateDescriptor("tumble-count-assigner", Types.LONG())

    def __post_init__(self) -> None:
        check_count(type(self).__name__, "window_size", self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Make windows of a number of records."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """Return the one window that the record's number falls into."""
        return [CountWindow(self._next_number(context) // self.window_size)]


@dataclass(frozen=True)
class CountSlidingWindowAssigner(_CountWindows):
    """Sliding windows of a number of records of a key. As in PyFlink, only full windows fire.

    Java's ``countWindow(size, slide)`` also emits the shorter windows at the beginning. For that, write
    ``window(GlobalWindows.create()).trigger(CountTrigger.of(slide)).evictor(CountEvictor.of(size))``.

    Args:
        window_size: Records in a window.
        window_slide: Records from the start of a window to the start of the next.
    """

    window_size: int
    window_slide: int

    _counter = ValueStateDescriptor("slide-count-assigner", Types.LONG())

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_count(owner, "window_size", self.window_size)
        check_count(owner, "window_slide", self.window_slide)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Make windows of a number of records, one after every `window_slide`."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int | None, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """Return the windows that the record's number falls into, the latest first."""
        number = self._next_number(context)
        last = number // self.window_slide
        # Window i has the numbers from i * slide up to but not including i * slide + size.
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(index) for index in range(last, first - 1, -1)]


def count_windows(size: int, slide: int) -> WindowAssigner[Any, CountWindow]:
    """Return windows of a number of records; one after the other if the slide is 0."""
    return CountTumblingWindowAssigner(size) if slide == 0 else CountSlidingWindowAssigner(size, slide)
