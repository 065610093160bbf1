"""Python functions that queries call: `udf`, `udtf`, `udaf`, `udtaf`, and what classes of functions derive from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from headrace.common._missing import missing_names
from headrace.errors import JobDefinitionError, require
from headrace.table._function_classes import (
    AggregateFunction,
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
)
from headrace.table._wrappers import (
    UserDefinedAggregateFunctionWrapper,
    UserDefinedAsyncScalarFunctionWrapper,
    UserDefinedFunctionWrapper,
    UserDefinedScalarFunctionWrapper,
    UserDefinedTableFunctionWrapper,
)
from headrace.types import DataType

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "AsyncTableFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedAggregateFunctionWrapper",
    "UserDefinedAsyncScalarFunctionWrapper",
    "UserDefinedFunction",
    "UserDefinedFunctionWrapper",
    "UserDefinedScalarFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

__getattr__ = missing_names(
    __name__,
    "DelegatingAsyncScalarFunction",
    "DelegatingPandasAggregateFunction",
    "DelegatingScalarFunction",
    "DelegationTableFunction",
    "PandasAggregateFunctionWrapper",
)


@overload
def udf(
    f: Callable[..., Any] | ScalarFunction | type,
    input_types: Any = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedScalarFunctionWrapper: ...


@overload
def udf(
    f: None = None,
    input_types: Any = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Callable[[Any], UserDefinedScalarFunctionWrapper]: ...


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Make a function that expressions and SQL can call, or decorate one.

    Args:
        f: A function, a `ScalarFunction` or an `AsyncScalarFunction`; ``async def`` functions wait together. None to
            decorate one.
        input_types: Types of its arguments; taken as they come if None.
        result_type: Type of what it returns; if None, what its hint says (`-> int` is BIGINT).
        deterministic: Whether equal arguments return equal results; True if None.
        name: What it is called; its own name if None.
        func_type: ``general`` for a value per row, ``pandas`` for a Series per batch of rows.

    Raises:
        JobDefinitionError: If it has no result type, or is nothing that can be called.

    Example:
        >>> from headrace.types import DataTypes
        >>> from headrace.table.expressions import col
        >>> @udf(result_type=DataTypes.BIGINT())
        ... def double(n):
        ...     return n * 2
        >>> double(col("price"))
        <Expression `double`(`price`)>
    """
    if func_type not in ("general", "pandas"):
        raise JobDefinitionError(f"udf(): func_type must be 'general' or 'pandas'; got {func_type!r}")
    if f is None:
        return lambda function: udf(function, input_types, result_type, deterministic, name, func_type)
    if isinstance(f, type):
        f = f()
    if isinstance(f, AsyncScalarFunction) or inspect.iscoroutinefunction(f):
        return _async(f, input_types, result_type, func_type, deterministic, name)
    if not callable(f) and not isinstance(f, ScalarFunction):
        raise JobDefinitionError(f"udf(): expected a function or a ScalarFunction; got {f!r}")
    return UserDefinedScalarFunctionWrapper(f, input_types, result_type, func_type, deterministic, name)


def _async(
    f: Any, input_types: Any, result_type: Any, func_type: str, deterministic: Any, name: str | None
) -> UserDefinedAsyncScalarFunctionWrapper:
    if func_type == "pandas":
        raise JobDefinitionError(
            "udf(): an asynchronous function takes rows one by one", hint="leave out func_type='pandas'"
        )
    return UserDefinedAsyncScalarFunctionWrapper(f, input_types, result_type, func_type, deterministic, name)


def udtf(
    f: Callable[..., Any] | TableFunction | AsyncTableFunction | type | None = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Create a table function, which returns any number of rows for each row; also as a decorator.

    Use it in ``LATERAL TABLE(f(...))``, `Table.join_lateral`, `Table.left_outer_join_lateral` and
    `Table.flat_map`.

    Args:
        f: A function, or a `TableFunction`, that yields tuples or `Row`; a value alone is a row of one column. Those
            that are ``async def``, or an `AsyncTableFunction`, return a list of them or yield them. None to decorate
            one.
        input_types: Types of its arguments; taken as they come if None.
        result_types: Types of the columns, as a list or a ROW; if None, what its hint says
            (`-> Iterator[tuple[int, str]]`).
        deterministic: Whether equal arguments return equal rows; True if None.
        name: What it is called; its own name if None.

    Raises:
        JobDefinitionError: If it has no result types, or is nothing that can be called.

    Example:
        >>> from headrace.types import DataTypes
        >>> from headrace.table.expressions import col
        >>> @udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
        ... def words(line):
        ...     for word in line.split():
        ...         yield word, len(word)
        >>> words(col("line"))
        <Expression `words`(`line`)>
    """
    if f is None:
        return lambda function: udtf(function, input_types, result_types, deterministic, name)
    if isinstance(f, type):
        f = f()
    if not callable(f) and not isinstance(f, TableFunction | AsyncTableFunction):
        raise JobDefinitionError(f"udtf(): expected a function or a TableFunction; got {f!r}")
    return UserDefinedTableFunctionWrapper(f, input_types, result_types, deterministic, name)


def udaf(
    f: Callable[..., Any] | AggregateFunction | type | None = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Create an aggregate function, which returns one value for each group; also as a decorator.

    Args:
        f: An `AggregateFunction`; with ``func_type="pandas"`` also a function of pandas Series. None to decorate one.
        input_types: Types of its arguments; taken as they come if None.
        result_type: Type of the value; if None, what `get_result_type` says.
        accumulator_type: Type of the accumulator; if None, what `get_accumulator_type` says. Any Python value may be
            one: what is kept of it in state follows from the value.
        deterministic: Whether equal rows return equal values; True if None.
        name: What it is called; its own name if None.
        func_type: ``general`` to take rows one by one, ``pandas`` for all rows of a group as Series.

    Raises:
        JobDefinitionError: If it has no result type, or is not an aggregate function.

    Example:
        >>> from headrace.types import DataTypes
        >>> from headrace.table.expressions import col
        >>> class Longest(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return [""]
        ...     def accumulate(self, accumulator, word):
        ...         accumulator[0] = max(accumulator[0], word, key=len)
        ...     def get_value(self, accumulator):
        ...         return accumulator[0]
        >>> longest = udaf(Longest(), result_type=DataTypes.STRING())
        >>> longest(col("word"))
        <Expression `Longest`(`word`)>
    """
    if func_type not in ("general", "pandas"):
        raise JobDefinitionError(f"udaf(): func_type must be 'general' or 'pandas'; got {func_type!r}")
    if f is None:
        return lambda function: udaf(
            function, input_types, result_type, accumulator_type, deterministic, name, func_type
        )
    if isinstance(f, type):
        f = f()
    require(
        isinstance(f, AggregateFunction) or (func_type == "pandas" and callable(f)),
        "udaf()",
        "an AggregateFunction",
        f,
        hint="derive a class from AggregateFunction, or pass func_type='pandas' for a function of Series",
    )
    return UserDefinedAggregateFunctionWrapper(
        f, input_types, result_type, accumulator_type, func_type, deterministic, name
    )


def udtaf(
    f: TableAggregateFunction | type | None = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Create a table aggregate function, which returns rows for each group; also as a decorator.

    Use it in `flat_aggregate` of the Table API; SQL does not support it.

    Args:
        f: A `TableAggregateFunction`; None to decorate one.
        input_types: Types of its arguments; taken as they come if None.
        result_type: A ROW with the columns; if None, what `get_result_type` says.
        accumulator_type: Type of the accumulator, as for `udaf`.
        deterministic: Whether equal rows return equal results; True if None.
        name: What it is called; its own name if None.
        func_type: ``general``.

    Raises:
        JobDefinitionError: If it has no result type, or is not a table aggregate function.
    """
    if func_type != "general":
        raise JobDefinitionError(f"udtaf(): func_type must be 'general'; got {func_type!r}")
    if f is None:
        return lambda function: udtaf(
            function, input_types, result_type, accumulator_type, deterministic, name
        )
    if isinstance(f, type):
        f = f()
    require(
        isinstance(f, TableAggregateFunction),
        "udtaf()",
        "a TableAggregateFunction",
        f,
        hint="derive a class from TableAggregateFunction, with emit_value()",
    )
    return UserDefinedAggregateFunctionWrapper(
        f, input_types, result_type, accumulator_type, func_type, deterministic, name, is_table_aggregate=True
    )
