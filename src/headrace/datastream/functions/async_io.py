"""Functions that wait for another system without blocking the stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import Any, Generic

from headrace.common.time import Duration, Time
from headrace.datastream.functions.base import IN, OUT, Function
from headrace.operators.async_retry import AsyncRetryStrategy


class AsyncFunction(Function, Generic[IN, OUT]):
    """A flat map that waits for answers of another system without stopping the stream.

    ``open`` and ``close`` may be coroutines, too: they run on the loop that ``async_invoke`` runs on, which is
    where clients are best made and closed. Runs in `AsyncDataStream`.
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> Iterable[OUT]:
        """Return the results for a record: a list, or another iterable."""

    def timeout(self, value: IN) -> Iterable[OUT]:
        """Return results for a record whose call took too long; by default that is an error."""
        raise TimeoutError(f"async_invoke took too long for {value!r}")


class AsyncFunctionDescriptor:
    """An asynchronous function with how it is to be run. `AsyncDataStream` makes them."""

    class OutputMode(Enum):
        """The order in which results are emitted."""

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
