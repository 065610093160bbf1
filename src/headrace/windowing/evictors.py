"""Evictors: which records of a window are left out when it fires (from Flink; PyFlink does not have them).

A window with an evictor keeps all its records until it fires, also for ``reduce`` and ``aggregate``.

    fire --> evict_before(elements) --> window function --> evict_after(elements) --> what is left stays

An element is a pair of a record and its timestamp, which is None if it has none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self

from headrace.common.constants import MIN_LONG_VALUE
from headrace.errors import describe_function
from headrace.windowing import checks
from headrace.windowing.functions import DeltaFunction, call_of

__all__ = ["CountEvictor", "DeltaEvictor", "Element", "Evictor", "TimeEvictor"]

#: A record of a window, and its timestamp.
Element = tuple[Any, int | None]


class Evictor:
    """Takes records out of a window before or after its function sees them. Subclass it for rules of your own.

    Example:
        >>> class NoneMissing(Evictor):
        ...     def evict_before(self, elements, size, window, evictor_context):
        ...         return [each for each in elements if each[0] is not None]
        >>> NoneMissing().evict_before([(None, 1), (5, 2)], 2, None, None)
        [(5, 2)]
    """

    class EvictorContext(Protocol):
        """What an evictor may ask."""

        def get_current_processing_time(self) -> int:
            """Return the processing time in ms."""

        def get_metric_group(self) -> Any:
            """Return the metric group of the operator."""

        def get_current_watermark(self) -> int:
            """Return the watermark the input has reached."""

    def evict_before(
        self, elements: list[Element], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> list[Element]:
        """Return the elements that the window function sees; the others are gone.

        Args:
            elements: All elements of the window, in arrival order.
            size: How many there are.
            window: The window.
            evictor_context: The clocks.
        """
        return elements

    def evict_after(
        self, elements: list[Element], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> list[Element]:
        """Return the elements that stay in the window when its function has seen them."""
        return elements


class _OneSided(Evictor, ABC):
    """An evictor that does the same thing either before or after the window function."""

    #: Whether it is after.
    do_evict_after: bool

    @abstractmethod
    def evict(self, elements: list[Element]) -> list[Element]:
        """Return the elements that stay in the window."""

    def evict_before(
        self, elements: list[Element], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> list[Element]:
        """Return what stays; everything, if the evictor comes after."""
        return elements if self.do_evict_after else self.evict(elements)

    def evict_after(
        self, elements: list[Element], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> list[Element]:
        """Return the elements to keep; all of them, if the evictor runs before the function."""
        return self.evict(elements) if self.do_evict_after else elements


@dataclass(frozen=True)
class CountEvictor(_OneSided):
    """Keeps a number of records, the latest.

    Args:
        max_count: The number.
        do_evict_after: Take the others out after the window function, not before.

    Example:
        >>> CountEvictor.of(2).evict([("a", 1), ("b", 2), ("c", 3)])
        [('b', 2), ('c', 3)]
    """

    max_count: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        checks.check_count(type(self).__name__, "max_count", self.max_count)

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return an evictor that keeps the last `max_count` elements."""
        return CountEvictor(max_count, do_evict_after)

    def evict(self, elements: list[Element]) -> list[Element]:
        """Return the latest elements, as many as configured."""
        return elements[-self.max_count :]


@dataclass(frozen=True)
class TimeEvictor(_OneSided):
    """Keeps records whose timestamp is less than some time before the latest.

    Without a timestamp on the first record, nothing is taken out.

    Args:
        window_size_ms: The time.
        do_evict_after: Take the others out after the window function, not before.
    """

    window_size_ms: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        checks.check_positive_ms(type(self).__name__, "window_size", self.window_size_ms)

    @classmethod
    def of(cls, window_size: checks.Amount, do_evict_after: bool = False) -> Self:
        """Make it with a Time, Duration or timedelta."""
        return cls(checks.amount_ms(cls.__name__, "window_size", window_size), do_evict_after)

    def evict(self, elements: list[Element]) -> list[Element]:
        """Return what is young enough."""
        if not elements or elements[0][1] is None:
            return elements
        too_old = max(map(_time_of, elements)) - self.window_size_ms
        return [element for element in elements if _time_of(element) > too_old]


def _time_of(element: Element) -> int:
    return MIN_LONG_VALUE if element[1] is None else element[1]


@dataclass(frozen=True, repr=False)
class DeltaEvictor(_OneSided):
    """Keeps records that are nearer to the latest than a threshold.

    Args:
        threshold: The distance from which on they go.
        delta_function: A callable of a record and the latest, or a DeltaFunction.
        do_evict_after: Take the others out after the window function, not before.
    """

    threshold: float
    delta_function: Any
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        checks.check_number(owner, "threshold", self.threshold)
        checks.check_call(owner, "delta_function", self.delta_function, "get_delta")

    @staticmethod
    def of(
        threshold: float, delta_function: DeltaFunction | Any, do_evict_after: bool = False
    ) -> DeltaEvictor:
        """Return an evictor that removes elements whose delta to the last one reaches the threshold."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[Element]) -> list[Element]:
        """Return what is near enough to the latest."""
        delta = call_of(self.delta_function, "get_delta")
        return [element for element in elements if delta(element[0], elements[-1][0]) < self.threshold]

    def __repr__(self) -> str:
        function = describe_function(self.delta_function)
        return f"DeltaEvictor({self.threshold}, {function}, {self.do_evict_after})"
