from __future__ import annotations

from typing import Any

import pytest

from headrace.common import Time, Types
from headrace.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from headrace.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from headrace.errors import JobDefinitionError


class Echo(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


class NotAsync(AsyncFunction[Any, Any]):
    def async_invoke(self, value: Any) -> list[Any]:  # type: ignore[override]
        return [value]


@pytest.fixture
def stream() -> Any:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([1])


@pytest.mark.parametrize(
    ("call", "is_ordered"),
    [
        (AsyncDataStream.ordered_wait, True),
        (AsyncDataStream.unordered_wait, False),
    ],
)
def test_what_is_given_reaches_the_operator(stream: Any, call: Any, is_ordered: bool) -> None:
    result = call(stream, Echo(), Time.seconds(3), 7, Types.INT())
    operator = result._transformation.declaration
    assert (operator.timeout_ms, operator.capacity, operator.is_ordered) == (3000, 7, is_ordered)
    assert operator.retry is NO_RETRY_STRATEGY
    assert result.get_type() == Types.INT()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(async_function=lambda value: [value]), "expected an instance of AsyncFunction"),
        (dict(async_function=NotAsync()), "async_invoke of NotAsync must be a coroutine"),
        (dict(timeout="5 s"), "timeout must be an amount of time, 0 for no limit; got '5 s'"),
        (dict(capacity=0), "capacity must be a whole number, at least 1; got 0"),
        (dict(data_stream=[1]), "expected a DataStream, got list"),
        (dict(async_retry_strategy=3), "expected an AsyncRetryStrategy, got int 3"),
    ],
)
def test_what_does_not_fit_is_refused(stream: Any, arguments: dict[str, Any], message: str) -> None:
    good = dict(
        data_stream=stream,
        async_function=Echo(),
        timeout=Time.seconds(1),
        async_retry_strategy=NO_RETRY_STRATEGY,
    )
    with pytest.raises(JobDefinitionError, match=message):
        AsyncDataStream.unordered_wait_with_retry(**{**good, **arguments})
