"""Functions of the user's that are opened before their first row in a task, and closed after the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import pyarrow as pa

from headrace.common.types import Row
from headrace.errors import UserFunctionError
from headrace.operators.table.user_functions import UserAggregate, rows_in, wrong_width

__all__ = [
    "AggregateOfRows",
    "AsyncSettings",
    "BatchFunction",
    "OpenedAsyncFunction",
    "OpenedAsyncTableFunction",
    "OpenedFunction",
    "OpenedTableFunction",
]


class OpenedFunction:
    """A `ScalarFunction`, to be opened before its first row in the task that calls it, and closed after its last."""

    #: See `PythonCall`.
    takes_batches: ClassVar[bool] = False
    gives_rows: ClassVar[bool] = False

    def __init__(self, function: Any) -> None:
        self._function = function
        self.is_open = False

    def open(self, context: Any) -> None:
        """Get it ready; the context is a `FunctionContext`."""
        self.is_open = True
        opener = getattr(self._function, "open", None)
        if opener is not None:
            opener(context)

    def close(self) -> None:
        """Have it release what it holds, once."""
        if not self.is_open:
            return
        self.is_open = False
        closer = getattr(self._function, "close", None)
        if closer is not None:
            closer()

    @property
    def __name__(self) -> str:
        """The name of its class."""
        return type(self._function).__name__

    def __call__(self, *arguments: Any) -> Any:
        return self._function.eval(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function, "is_open": False}


class OpenedTableFunction(OpenedFunction):
    """A `TableFunction`, or a plain function that yields rows: called, it returns the list of them, as tuples.

    Args:
        function: The function.
        name: What messages call it.
        width: How many columns its rows have.
    """

    gives_rows = True

    def __init__(self, function: Any, name: str, width: int) -> None:
        super().__init__(function)
        self._name = name
        self._width = width

    @property
    def __name__(self) -> str:
        """What the function is called."""
        return self._name

    def __call__(self, *arguments: Any) -> Any:
        called = getattr(self._function, "eval", self._function)
        return [_row_of(self._name, each, self._width) for each in rows_in(called(*arguments))]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_name": self._name, "_width": self._width}


class AggregateOfRows(OpenedFunction):
    """An aggregate function that is called with all rows of a group at once, as BATCH mode has them.

    Args:
        function: The function.
        kind: The types of its arguments, as a struct.
    """

    def __init__(self, function: UserAggregate, kind: pa.DataType) -> None:
        super().__init__(function.implementation)
        self._aggregate = function
        self._kind = kind

    @property
    def __name__(self) -> str:
        """What the function is called."""
        return self._aggregate.name

    def __call__(self, *arguments: Any) -> Any:
        (rows,) = arguments
        return self._aggregate.value_of(
            [tuple(row)[: self._kind.num_fields] for row in rows or ()], self._kind
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_aggregate": self._aggregate, "_kind": self._kind}


@dataclass(frozen=True)
class AsyncSettings:
    """The values of the options `table.exec.async-scalar.*`, or `table.exec.async-table.*`."""

    #: How many calls may wait at a time.
    max_concurrent: int = 10
    #: How long a call may take, with all its attempts.
    timeout: timedelta = timedelta(minutes=3)
    #: How often a call that fails is tried in all.
    max_attempts: int = 3
    #: How long to wait between two attempts.
    retry_delay: timedelta = timedelta(milliseconds=100)
    #: The option that says so, for messages.
    timeout_key: str = "table.exec.async-scalar.timeout"


class BatchFunction(OpenedFunction):
    """What is called with the rows of a batch, and returns the list of their results."""

    takes_batches = True


class OpenedAsyncFunction(BatchFunction):
    """An `AsyncScalarFunction` or coroutine function: called with the rows of a batch, it returns their results."""

    def __init__(self, function: Any, name: str) -> None:
        super().__init__(function)
        self._name = name
        self.settings = AsyncSettings()

    @property
    def __name__(self) -> str:
        """What the function is called."""
        return self._name

    def __call__(self, *arguments: Any) -> Any:
        (rows,) = arguments
        return asyncio.run(self._all(rows))

    async def _all(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        slots = asyncio.Semaphore(self.settings.max_concurrent)

        async def one(row: tuple[Any, ...]) -> Any:
            async with slots:
                return await self._one(row)

        tasks = [asyncio.ensure_future(one(row)) for row in rows]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _one(self, row: tuple[Any, ...]) -> Any:
        """Call it for a row, and again if that fails, as often as settings allow."""
        timeout = self.settings.timeout.total_seconds()
        try:
            return await asyncio.wait_for(self._attempts(row), timeout)
        except TimeoutError as error:
            raise UserFunctionError(
                f"{self._name} did not finish within {timeout:g} s",
                record=row,
                hint=f"raise {self.settings.timeout_key}, or make the function faster",
            ) from error

    async def _attempts(self, row: tuple[Any, ...]) -> Any:
        called = getattr(self._function, "eval", self._function)
        for left in range(self.settings.max_attempts - 1, -1, -1):
            try:
                return await self._answer(called(*row))
            except Exception as error:
                if not left:
                    raise UserFunctionError.from_exception(error, record=row) from error
                await asyncio.sleep(self.settings.retry_delay.total_seconds())
        raise AssertionError("a call is tried at least once")

    async def _answer(self, call: Any) -> Any:
        return await call

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_name": self._name, "settings": self.settings}


class OpenedAsyncTableFunction(OpenedAsyncFunction):
    """An `AsyncTableFunction`, coroutine function or asynchronous generator: the result of a row is a list of rows.

    Args:
        function: The function.
        name: What messages call it.
        width: How many columns its rows have.
    """

    gives_rows = True

    def __init__(self, function: Any, name: str, width: int) -> None:
        super().__init__(function, name)
        self._width = width

    async def _answer(self, call: Any) -> Any:
        given = [row async for row in call] if isinstance(call, AsyncIterator) else rows_in(await call)
        return [_row_of(self._name, each, self._width) for each in given]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_width": self._width}


def _row_of(name: str, given: Any, width: int) -> tuple[Any, ...]:
    """Return what a table function gave as a row of so many columns."""
    row = tuple(given) if isinstance(given, tuple | Row) else (given,)
    if len(row) != width:
        raise wrong_width(name, row, width)
    return row
