"""Asynchronous table functions: their rows, how they wait and fail, and the options that say how they are called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace.catalog.functions import FunctionKind
from headrace.common.types import Row
from headrace.errors import UserFunctionError
from headrace.operators.table.opened_functions import AsyncSettings, OpenedAsyncTableFunction
from headrace.planner.user_functions import callable_of
from headrace.table import AsyncTableFunction, DataTypes, EnvironmentSettings, TableEnvironment
from headrace.table.udf import TableFunction, udtf


async def _listed(count: int) -> list[tuple[int, str]]:
    await asyncio.sleep(0)
    return [(count, f"{at}") for at in range(count)]


async def _yielded(count: int) -> AsyncIterator[tuple[int, str]]:
    for at in range(count):
        await asyncio.sleep(0)
        yield count, f"{at}"


class _OfAClass(AsyncTableFunction):
    async def eval(self, *args: Any) -> Any:
        return await _listed(*args)


class _OfAnOrdinaryClass(TableFunction):
    async def eval(self, *args: Any) -> Any:
        for at in range(args[0]):
            yield Row(args[0], f"{at}")


def _opened(function: Any, **settings: Any) -> OpenedAsyncTableFunction:
    made = udtf(function, result_types=[DataTypes.INT(), DataTypes.STRING()])._function()
    assert made.kind is FunctionKind.TABLE
    opened = callable_of(made)
    assert isinstance(opened, OpenedAsyncTableFunction)
    opened.settings = AsyncSettings(retry_delay=timedelta(0), **settings)
    return opened


@pytest.mark.parametrize("function", [_listed, _yielded, _OfAClass, _OfAnOrdinaryClass()])
def test_an_asynchronous_table_function_gives_the_rows_of_each_row_in_order(function: Any):
    opened = _opened(function)
    assert opened([(2,), (0,), (1,)]) == [[(2, "0"), (2, "1")], [], [(1, "0")]]


def test_the_rows_of_a_batch_wait_together_for_an_asynchronous_table_function():
    waiting: list[int] = []
    most = 0

    async def meet(number: int) -> list[tuple[int, str]]:
        nonlocal most
        waiting.append(number)
        most = max(most, len(waiting))
        await asyncio.sleep(0)
        waiting.remove(number)
        return [(number, "met")]

    assert len(_opened(meet, max_concurrent=3)([(each,) for each in range(10)])) == 10
    assert most == 3


def test_a_failed_call_of_an_asynchronous_table_function_is_made_again():
    calls: list[int] = []

    async def shaky(number: int) -> AsyncIterator[tuple[int, str]]:
        calls.append(number)
        yield number, "first"
        if len(calls) < 3:
            raise ConnectionError("gone")
        yield number, "second"

    assert _opened(shaky, max_attempts=3)([(7,)]) == [[(7, "first"), (7, "second")]]
    assert calls == [7, 7, 7]
    calls.clear()
    with pytest.raises(UserFunctionError, match="gone"):
        _opened(shaky, max_attempts=2)([(7,)])


def test_an_asynchronous_table_function_that_takes_too_long_names_the_option():
    async def never(number: int) -> list[tuple[int, str]]:
        await asyncio.Event().wait()
        return []

    key = "table.exec.async-table.timeout"
    opened = _opened(never, timeout=timedelta(milliseconds=1), timeout_key=key)
    with pytest.raises(UserFunctionError, match=r"never did not finish within 0\.001 s") as late:
        opened([(1,)])
    assert key in str(late.value.hint)


def test_a_row_of_an_asynchronous_table_function_with_another_width_is_refused():
    async def wide(number: int) -> list[tuple[int, ...]]:
        return [(1, 2, 3)]

    with pytest.raises(UserFunctionError, match=r"wide returned the row \(1, 2, 3\) with 3 columns"):
        _opened(wide, max_attempts=1)([(1,)])


def test_columns_of_an_asynchronous_table_function_follow_from_its_hint():
    fields = udtf(_yielded)._function().result_type
    assert [each.summary() for each in fields.field_types()] == ["BIGINT", "STRING"]


def test_options_say_how_asynchronous_table_functions_are_called():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"timeout": "7 s", "max-retries": "1", "max-concurrent-operations": "4"}.items():
        t_env.get_config().set(f"table.exec.async-table.{key}", value)
    jobs = t_env._jobs
    expected = AsyncSettings(4, timedelta(seconds=7), 2, timeout_key="table.exec.async-table.timeout")
    assert jobs._async_table_settings == expected
    t_env.get_config().set("table.exec.async-table.retry-strategy", "NO_RETRY")
    assert jobs._async_table_settings.max_attempts == 1
