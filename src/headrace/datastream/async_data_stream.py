"""Asynchronous functions on a stream, under PyFlink's name: `AsyncDataStream`."""

from __future__ import annotations

import inspect
from typing import Any

from headrace.common.time import Duration, Time, as_millis
from headrace.common.typeinfo import TypeInformation
from headrace.datastream._checks import check_function, check_type, kind_and_value
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from headrace.errors import JobDefinitionError
from headrace.operators.async_wait import AsyncWaitDeclaration

__all__ = ["AsyncDataStream"]

_NO_RETRY = AsyncRetryStrategy.no_restart()
_ORDERED = AsyncFunctionDescriptor.OutputMode.ORDERED
_UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED


class AsyncDataStream:
    """Asks outside systems for many records at once, instead of waiting for one after the other.

    Example:
        >>> from headrace.datastream import AsyncFunction, StreamExecutionEnvironment
        >>> class Greet(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [f"hello {value}"]
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> names = env.from_collection(["ann", "bob"])
        >>> AsyncDataStream.ordered_wait(names, Greet(), Time.seconds(1)).get_name()
        'async wait operator'
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results as they arrive; only watermarks keep their place between the records.

        Args:
            data_stream: The stream.
            async_function: Its ``async_invoke`` is called once a record.
            timeout: How long a record may take; after that, the function's ``timeout`` returns its results.
            capacity: How many records may be in progress in a subtask.
            output_type: Type of the results.

        Raises:
            JobDefinitionError: An argument is of another kind.
        """
        described = AsyncFunctionDescriptor(async_function, timeout, capacity, _NO_RETRY, _UNORDERED)
        return _wait("unordered_wait", data_stream, described, output_type)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results as they arrive, and retry calls as the strategy says; the timeout covers all attempts."""
        described = AsyncFunctionDescriptor(
            async_function, timeout, capacity, async_retry_strategy, _UNORDERED
        )
        return _wait("unordered_wait_with_retry", data_stream, described, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order of the records. The arguments are those of `unordered_wait`."""
        described = AsyncFunctionDescriptor(async_function, timeout, capacity, _NO_RETRY, _ORDERED)
        return _wait("ordered_wait", data_stream, described, output_type)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order of the records, and retry calls as the strategy says."""
        described = AsyncFunctionDescriptor(async_function, timeout, capacity, async_retry_strategy, _ORDERED)
        return _wait("ordered_wait_with_retry", data_stream, described, output_type)


def _wait(
    call: str, stream: DataStream, described: AsyncFunctionDescriptor, output_type: TypeInformation | None
) -> DataStream:
    if not isinstance(stream, DataStream):
        raise JobDefinitionError(f"{call}(): expected a DataStream, got {kind_and_value(stream)}")
    function, retry = described.async_function, described.async_retry_strategy
    capacity: object = described.capacity
    check_function(call, function, AsyncFunction)
    if not inspect.iscoroutinefunction(function.async_invoke):
        raise JobDefinitionError(
            f"{call}(): async_invoke of {type(function).__name__} must be a coroutine",
            hint="declare it with `async def async_invoke(self, value)`",
        )
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
        raise JobDefinitionError(f"{call}(): capacity must be a whole number, at least 1; got {capacity!r}")
    if not isinstance(retry, AsyncRetryStrategy):
        raise JobDefinitionError(
            f"{call}(): expected an AsyncRetryStrategy, got {kind_and_value(retry)}",
            hint="make one with AsyncRetryStrategy.fixed_delay(...) or exponential_backoff(...)",
        )
    operator = AsyncWaitDeclaration(
        function,
        timeout_ms=_checked_timeout(call, described.timeout),
        capacity=capacity,
        is_ordered=described.output_mode is _ORDERED,
        retry=retry,
    )
    return stream._transform("async wait operator", operator, check_type(call, output_type))


def _checked_timeout(call: str, timeout: Any) -> int:
    try:
        timeout_ms = as_millis(timeout)
    except TypeError:
        timeout_ms = -1
    if timeout_ms < 0:
        raise JobDefinitionError(
            f"{call}(): timeout must be an amount of time, 0 for no limit; got {timeout!r}",
            hint="for instance Time.seconds(10)",
        )
    return timeout_ms
