"""Accumulators: what functions add up over a whole job, with the names of Flink's `api.common.accumulators`.

    class CountLines(MapFunction):
        def open(self, runtime_context):
            self.lines = runtime_context.get_int_counter("lines")
        def map(self, value):
            self.lines.add(1)
            return value

    env.execute().get_accumulator_result("lines")

Each subtask has its own; those of one name are merged into the result of the job. A record counts once, however
often its epoch was tried and the job was restarted. PyFlink's Python functions have no accumulators.
"""

# ruff: noqa: D102 - the base class says what methods do

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from headrace.errors import JobDefinitionError, require

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "TaskAccumulators",
]

V = TypeVar("V")
R = TypeVar("R")
A = TypeVar("A", bound="Accumulator[Any, Any]")


class Accumulator(ABC, Generic[V, R]):
    """Takes values in and has a result; two of a kind can be merged. It must pickle."""

    @abstractmethod
    def add(self, value: V) -> None:
        """Take a value in."""

    @abstractmethod
    def get_local_value(self) -> R:
        """Return the result of what this one has taken in; in a function, since the epoch began."""

    @abstractmethod
    def reset_local(self) -> None:
        """Reset the local value to that of a new accumulator."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in all that another one has."""

    def clone(self) -> Self:
        """Return one that has taken in the same."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.get_local_value()}"


class IntCounter(Accumulator[int, int]):
    """A sum of whole numbers.

    Example:
        >>> counter = IntCounter()
        >>> counter.add(3)
        >>> counter
        IntCounter 3
    """

    def __init__(self, value: int = 0) -> None:
        self._value = value

    def add(self, value: int = 1) -> None:
        self._value += value

    def get_local_value(self) -> int:
        return self._value

    def reset_local(self) -> None:
        self._value = 0

    def merge(self, other: Self) -> None:
        self._value += other._value


class LongCounter(IntCounter):
    """A sum of whole numbers; in Python they have no limit."""


class DoubleCounter(Accumulator[float, float]):
    """A sum of numbers."""

    def __init__(self, value: float = 0.0) -> None:
        self._value = value

    def add(self, value: float) -> None:
        self._value += value

    def get_local_value(self) -> float:
        return self._value

    def reset_local(self) -> None:
        self._value = 0.0

    def merge(self, other: Self) -> None:
        self._value += other._value


class _Extreme(Accumulator[Any, Any]):
    """The least or greatest value; before there is one, what any value replaces."""

    _choose: Callable[[Any, Any], Any]
    _none: Any

    def __init__(self, value: Any = None) -> None:
        self._value = self._none if value is None else value

    def add(self, value: Any) -> None:
        self._value = type(self)._choose(self._value, value)

    def get_local_value(self) -> Any:
        return self._value

    def reset_local(self) -> None:
        self._value = self._none

    def merge(self, other: Self) -> None:
        self.add(other._value)


class IntMinimum(_Extreme):
    """The minimum of whole numbers; Java's greatest int if no number was added."""

    _choose, _none = staticmethod(min), 2**31 - 1


class IntMaximum(_Extreme):
    """The maximum of whole numbers; Java's least int if no number was added."""

    _choose, _none = staticmethod(max), -(2**31)


class LongMinimum(_Extreme):
    """The minimum of whole numbers; Java's greatest long if no number was added."""

    _choose, _none = staticmethod(min), 2**63 - 1


class LongMaximum(_Extreme):
    """The maximum of whole numbers; Java's least long if no number was added."""

    _choose, _none = staticmethod(max), -(2**63)


class DoubleMinimum(_Extreme):
    """The minimum of numbers; infinity if no number was added."""

    _choose, _none = staticmethod(min), math.inf


class DoubleMaximum(_Extreme):
    """The maximum of numbers; minus infinity if no number was added."""

    _choose, _none = staticmethod(max), -math.inf


class AverageAccumulator(Accumulator[float, float]):
    """The mean of numbers; 0 if no number was added."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        self._count, self._sum = 0, 0.0

    def merge(self, other: Self) -> None:
        self._count += other._count
        self._sum += other._sum


class ListAccumulator(Accumulator[V, list[V]]):
    """All values. They travel to the driver and stay there: for few."""

    def __init__(self) -> None:
        self._values: list[V] = []

    def add(self, value: V) -> None:
        self._values.append(value)

    def get_local_value(self) -> list[V]:
        return self._values

    def reset_local(self) -> None:
        self._values = []

    def merge(self, other: Self) -> None:
        self._values.extend(other._values)


class Histogram(Accumulator[int, dict[int, int]]):
    """How often each whole number came; the result is in the order of the numbers."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        self._counts = {}

    def merge(self, other: Self) -> None:
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count


class TaskAccumulators:
    """The accumulators of one subtask: its chained functions share the names."""

    def __init__(self) -> None:
        self._by_name: dict[str, Accumulator[Any, Any]] = {}

    def add(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register one under a name that is free.

        Raises:
            JobDefinitionError: If it is taken, or this is not an accumulator.
        """
        require(
            isinstance(accumulator, Accumulator), f"add_accumulator({name!r})", "an Accumulator", accumulator
        )
        if name in self._by_name:
            raise JobDefinitionError(
                f"accumulator {name!r} is already registered in this task",
                hint="give each accumulator of a task its own name, or share one with get_accumulator()",
            )
        self._by_name[name] = accumulator

    def get(self, name: str) -> Accumulator[Any, Any] | None:
        """Find one by its name."""
        return self._by_name.get(name)

    def get_or_add(self, name: str, kind: type[A]) -> A:
        """Find one by its name, or register a new one.

        Raises:
            JobDefinitionError: If there is one of another kind.
        """
        found = self._by_name.get(name)
        if found is None:
            found = self._by_name[name] = kind()
        if not isinstance(found, kind):
            raise different_kinds(name, found, kind)
        return found

    def begin_epoch(self) -> None:
        """What comes now belongs to the next report."""
        for accumulator in self._by_name.values():
            accumulator.reset_local()

    def report(self) -> dict[str, Accumulator[Any, Any]]:
        """Return what the epoch has added, by name."""
        return {name: accumulator.clone() for name, accumulator in self._by_name.items()}


def different_kinds(name: str, found: Accumulator[Any, Any], kind: type) -> JobDefinitionError:
    """Say that one name stands for two kinds."""
    return JobDefinitionError(
        f"accumulator {name!r} is a {type(found).__name__} in one place and a {kind.__name__} in another",
        hint="give each kind its own name",
    )
