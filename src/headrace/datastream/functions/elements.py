"""Functions that are called with one element at a time, and know neither time nor state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from headrace.datastream.functions.base import Function


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
        """Return the result for a record."""


class CoMapFunction(Function):
    """A map over two connected streams, with a method for each."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return the result for a record of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return the result for a record of the second stream."""


class FlatMapFunction(Function):
    """One record in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results for a record; None for no results."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams, with a method for each."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results for a record of the second stream."""


class ReduceFunction(Function):
    """Makes one value of two, of the same type."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the value reduced so far with the next one."""


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
        """Return the result for the values added so far."""

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
    """Decides which records to keep."""

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
