"""Windows as values: which records belong together.

A window is a key of state and of timers, so it can be hashed and compared, never changes, and pickles small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol

from headrace.common.constants import MAX_LONG_VALUE

__all__ = ["CountWindow", "GlobalWindow", "TimeWindow", "Window"]


class Window(ABC):
    """A group of records. Your own kinds of window need ``__eq__``, ``__hash__`` and pickling, too."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the last timestamp that still belongs to the window."""


class TimeWindow(Window):
    """A span of time, from `start` up to but not including `end`. Windows sort by start, then by end.

    Args:
        start: First millisecond in it.
        end: First millisecond after it.

    Example:
        >>> window = TimeWindow(0, 5000)
        >>> window.max_timestamp(), window.intersects(TimeWindow(4000, 9000))
        (4999, True)
    """

    __slots__ = ("end", "start")

    start: int
    end: int

    def __init__(self, start: int, end: int) -> None:
        # The slots themselves: several times quicker than object.__setattr__, and windows are made per record.
        _set_start(self, start)
        _set_end(self, end)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a TimeWindow cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a TimeWindow cannot be changed: {name}")

    def max_timestamp(self) -> int:
        """Return the last millisecond in it."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch; a session continues where another one ends."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the least window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return where the window starts that a timestamp falls into. Windows tile the time before 1970, too.

        Args:
            timestamp: In milliseconds.
            offset: Where windows start, counted from a multiple of their size.
            window_size: How long they are.

        Example:
            >>> TimeWindow.get_window_start_with_offset(-1, 0, 10)
            -10
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: Merge) -> None:
        """Find windows that overlap or touch, and have each such group made one.

        Args:
            windows: In any order.
            callback: Its ``merge(to_be_merged, merge_result)`` is called for every group of two or more, in the
                order of time.
        """
        group: list[TimeWindow] = []
        merged: TimeWindow | None = None
        for window in sorted(windows):
            if merged is not None and merged.intersects(window):
                merged = merged.cover(window)
                group.append(window)
                continue
            if merged is not None and len(group) > 1:
                callback.merge(group, merged)
            merged, group = window, [window]
        if merged is not None and len(group) > 1:
            callback.merge(group, merged)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return self.start == other.start and self.end == other.end

    def __lt__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) <= (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, (self.start, self.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


_set_start = vars(TimeWindow)["start"].__set__
_set_end = vars(TimeWindow)["end"].__set__


class Merge(Protocol):
    """Takes note of windows that become one: ``MergingWindowAssigner.MergeCallback``."""

    def merge(self, to_be_merged: Sequence[TimeWindow], merge_result: TimeWindow) -> None:
        """Make one window of several."""


class CountWindow(Window):
    """A number of records that came one after the other.

    Args:
        id: Which one it is, from 0.
    """

    __slots__ = ("_id",)

    def __init__(self, id: int) -> None:
        self._id = id

    @property
    def id(self) -> int:
        """Which one it is, from 0."""
        return self._id

    def max_timestamp(self) -> int:
        """Return the largest timestamp: it has no end in time."""
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountWindow):
            return NotImplemented
        return self._id == other._id

    def __lt__(self, other: CountWindow) -> bool:
        if not isinstance(other, CountWindow):
            return NotImplemented
        return self._id < other._id

    def __hash__(self) -> int:
        return hash((CountWindow, self._id))

    def __reduce__(self) -> tuple[Any, ...]:
        return CountWindow, (self._id,)

    def __repr__(self) -> str:
        return f"CountWindow(id={self._id})"


class GlobalWindow(Window):
    """The one window that holds everything."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """Return the only instance of the global window."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """Return the largest timestamp: it has no end in time."""
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow.get, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL_WINDOW = GlobalWindow()
