"""Python functions of the user's, as workers call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.operators.table.opened_functions import (
    OpenedAsyncFunction,
    OpenedAsyncTableFunction,
    OpenedFunction,
    OpenedTableFunction,
)
from headrace.operators.table.user_functions import UserAggregate
from headrace.planner.opened_lookups import LookupCall, OpenedLookup
from headrace.types.logical import ArrayType, RowType

__all__ = ["aggregate_of", "callable_of", "is_pandas"]


def is_asynchronous(implementation: Any) -> bool:
    """Whether a function, or its `eval`, is ``async def``."""
    called = getattr(implementation, "eval", implementation)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def is_pandas(function: UserFunction) -> bool:
    """Whether a function takes whole columns, as pandas series."""
    return function.kind in (FunctionKind.PANDAS_SCALAR, FunctionKind.PANDAS_AGGREGATE)


def callable_of(function: UserFunction) -> Callable[..., Any]:
    """Return what is called for each row, or for each batch of rows."""
    implementation = function.implementation
    if function.kind is FunctionKind.LOOKUP:
        assert isinstance(implementation, LookupCall)
        return OpenedLookup(implementation, function.name)
    if function.kind is FunctionKind.ASYNC_SCALAR:
        return OpenedAsyncFunction(implementation, function.name)
    if function.kind is FunctionKind.TABLE:
        result = function.result_type
        assert isinstance(result, RowType)
        made = OpenedAsyncTableFunction if is_asynchronous(implementation) else OpenedTableFunction
        return made(implementation, function.name, len(result.field_names()))
    if hasattr(implementation, "eval"):
        return OpenedFunction(implementation)
    called: Callable[..., Any] = implementation
    return called


def aggregate_of(function: UserFunction) -> UserAggregate:
    """Return an aggregate function as operators call it."""
    width = None
    if function.kind is FunctionKind.TABLE_AGGREGATE:
        rows = function.result_type
        assert isinstance(rows, ArrayType)
        assert isinstance(rows.element_type, RowType)
        width = len(rows.element_type.field_names())
    return UserAggregate(function.name, function.implementation, is_pandas(function), width)
