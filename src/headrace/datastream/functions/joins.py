"""Functions that are called with elements of two streams that belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic

from headrace.datastream.functions.base import IN1, IN2, OUT, Function


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes one record of two that meet in a window join. Flink's; PyFlink does not have it."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """Return the result for a record of the first stream and one of the second with the same key."""


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes any number of records of two that meet in a window join. Flink's; PyFlink does not have it."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Iterable[OUT] | None:
        """Return or yield the results for two records with the same key."""


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
