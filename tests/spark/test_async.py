"""Asynchronous functions on Spark."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest

from headrace.common import Time
from headrace.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, RuntimeContext
from headrace.errors import JobExecutionError
from tests.conftest import EnvironmentFactory
from tests.spark.support import run_and_collect

pytestmark = pytest.mark.spark


class Lookup(AsyncFunction[int, tuple[int, str]]):
    """Answers later to earlier records; the first call for every third one fails."""

    async def open(self, runtime_context: RuntimeContext) -> None:  # type: ignore[override]
        self.calls: defaultdict[int, int] = defaultdict(int)

    async def async_invoke(self, value: int) -> list[tuple[int, str]]:
        self.calls[value] += 1
        await asyncio.sleep(0 if value % 2 else 0.01)
        if value % 3 == 0 and self.calls[value] == 1:
            raise ConnectionError("away")
        if value == -1:
            raise LookupError("nobody has this number")
        return [(value, f"user {value}")]


RETRY: AsyncRetryStrategy[tuple[int, str]] = AsyncRetryStrategy.fixed_delay(
    2, 1, None, lambda error: isinstance(error, ConnectionError)
)


def test_records_are_enriched_over_several_epochs_in_their_order(env: EnvironmentFactory) -> None:
    numbers = env(parallelism=1, max_records=7).from_collection(list(range(20)))
    asked = AsyncDataStream.ordered_wait_with_retry(numbers, Lookup(), Time.seconds(60), RETRY, capacity=5)
    assert run_and_collect(asked) == [(n, f"user {n}") for n in range(20)]


def test_an_error_reaches_the_program_with_operator_and_record(env: EnvironmentFactory) -> None:
    numbers = env(parallelism=2).from_collection([1, -1, 2]).rebalance()
    asked = AsyncDataStream.unordered_wait(numbers, Lookup(), Time.seconds(60)).name("ask")
    with pytest.raises(JobExecutionError, match="nobody has this number") as caught:
        run_and_collect(asked)
    assert "'ask'" in str(caught.value)
    assert "-1" in str(caught.value)
