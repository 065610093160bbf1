"""Python functions that queries call: `udf`, and what classes of functions derive from."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, overload

from headrace.catalog import CatalogManager
from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.datastream._missing import missing_names
from headrace.errors import JobDefinitionError, UnsupportedFeatureError, describe_function
from headrace.metrics import MetricGroup
from headrace.planner import bind_expression
from headrace.table.expression import Expression
from headrace.table.expressions import call_object
from headrace.types import DataType

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
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
    "UserDefinedAggregateFunctionWrapper",
    "UserDefinedAsyncScalarFunctionWrapper",
    "UserDefinedTableFunctionWrapper",
)


class FunctionContext:
    """What a function learns when it is opened."""

    def __init__(
        self,
        base_metric_group: MetricGroup | None,
        job_parameters: dict[str, str] | None,
        task_name: str | None = None,
        task_name_with_subtasks: str | None = None,
        number_of_parallel_subtasks: int | None = None,
        max_number_of_parallel_subtasks: int | None = None,
        index_of_this_subtask: int | None = None,
        attempt_number: int | None = None,
    ) -> None:
        self._metric_group = base_metric_group
        self._job_parameters = job_parameters or {}
        self._task_name = task_name
        self._task_name_with_subtasks = task_name_with_subtasks
        self._number_of_parallel_subtasks = number_of_parallel_subtasks
        self._max_number_of_parallel_subtasks = max_number_of_parallel_subtasks
        self._index_of_this_subtask = index_of_this_subtask
        self._attempt_number = attempt_number

    def get_metric_group(self) -> MetricGroup:
        """Return where the function's metrics belong."""
        if self._metric_group is None:
            raise JobDefinitionError("this context has no metric group")
        return self._metric_group

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a parameter of the job."""
        return self._job_parameters.get(key, default_value)

    def get_task_name(self) -> str | None:
        """Return the name of the operator."""
        return self._task_name

    def get_task_name_with_subtasks(self) -> str | None:
        """Return the name of the operator and of its subtask."""
        return self._task_name_with_subtasks

    def get_number_of_parallel_subtasks(self) -> int | None:
        """Return how many subtasks there are."""
        return self._number_of_parallel_subtasks

    def get_max_number_of_parallel_subtasks(self) -> int | None:
        """Return how many subtasks there may ever be."""
        return self._max_number_of_parallel_subtasks

    def get_index_of_this_subtask(self) -> int | None:
        """Return which subtask this is."""
        return self._index_of_this_subtask

    def get_attempt_number(self) -> int | None:
        """Return how often it was tried before."""
        return self._attempt_number


class UserDefinedFunction:
    """What all functions have in common."""

    def open(self, function_context: FunctionContext) -> None:
        """Get ready; called in every task of an epoch before its first row."""

    def close(self) -> None:
        """Let go of resources; called in every task behind its last row, and when a row fails."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results."""
        return True


class ScalarFunction(UserDefinedFunction, ABC):
    """A value for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the value for the arguments of a row."""


class AsyncScalarFunction(UserDefinedFunction, ABC):
    """A value for each row, waited for without standing still. Not run yet."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the value for the arguments of a row."""


class TableFunction(UserDefinedFunction, ABC):
    """Rows for each row. Not run yet."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Yield the rows for the arguments of a row."""


class ImperativeAggregateFunction(UserDefinedFunction, ABC):
    """What functions over groups have in common. Not run yet."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return what a group starts with."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Take a row into a group."""

    def retract(self, accumulator: Any, *args: Any) -> None:
        """Take a row out of a group."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot retract rows: it does not implement retract()"
        )

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        """Merge other accumulators into this one, for session windows and partial aggregates."""
        raise NotImplementedError(f"{type(self).__name__} cannot merge groups: it does not implement merge()")

    def get_result_type(self) -> DataType:
        """Return the type of the result."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_result_type()")

    def get_accumulator_type(self) -> DataType:
        """Return the type of the accumulator."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_accumulator_type()")


class AggregateFunction(ImperativeAggregateFunction):
    """A value for each group. Not run yet."""

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """Return the value of a group."""


class TableAggregateFunction(ImperativeAggregateFunction):
    """Rows for each group. Not run yet."""

    @abstractmethod
    def emit_value(self, accumulator: Any) -> Any:
        """Yield the rows of a group."""


class UserDefinedFunctionWrapper:
    """A function that expressions can call. Made by `udf`."""

    def __init__(
        self,
        func: Any,
        input_types: Any,
        func_type: str,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._func = func
        self._input_types = input_types
        self._func_type = func_type
        self._deterministic = deterministic
        self._name = name or getattr(func, "__name__", None) or type(func).__name__
        self._alias_names: tuple[str, ...] = ()
        functools.update_wrapper(self, func, updated=())

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """Name the columns of the result."""
        self._alias_names = alias_names
        return self

    def __call__(self, *args: Any) -> Expression[Any]:
        return call_object(self, args)


class UserDefinedScalarFunctionWrapper(UserDefinedFunctionWrapper):
    """A scalar function that expressions can call."""

    def __init__(
        self,
        func: Any,
        input_types: Any,
        result_type: Any,
        func_type: str,
        deterministic: Any,
        name: str | None,
    ) -> None:
        super().__init__(func, input_types, func_type, deterministic, name)
        if result_type is None:
            raise JobDefinitionError(
                f"udf(): {describe_function(func)} declares no result_type",
                hint="pass result_type, such as DataTypes.BIGINT()",
            )
        self._result_type = _type(result_type)

    def _function(self, name: str | None = None) -> UserFunction:
        """Return the function as queries know it."""
        is_pandas = self._func_type == "pandas"
        types = self._input_types
        if isinstance(types, DataType | str):
            types = [types]
        deterministic = self._deterministic
        if deterministic is None:
            deterministic = (
                self._func.is_deterministic() if isinstance(self._func, UserDefinedFunction) else True
            )
        return UserFunction(
            name or self._name,
            FunctionKind.PANDAS_SCALAR if is_pandas else FunctionKind.SCALAR,
            self._func,
            None if types is None else tuple(_type(each) for each in types),
            self._result_type,
            deterministic,
        )


def _type(given: Any) -> DataType:
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        # A type is read as SQL reads it, where a CAST names one.
        cast = bind_expression(f"CAST(NULL AS {given})", (), CatalogManager())
        return cast.type
    raise JobDefinitionError(f"udf(): expected a data type such as DataTypes.BIGINT(); got {given!r}")


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
        f: A function, or a `ScalarFunction`; None to decorate one.
        input_types: Types of its arguments; taken as they come if None.
        result_type: Type of what it returns.
        deterministic: Whether equal arguments give equal results; True if None.
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
        raise JobDefinitionError(f"udf(): func_type is 'general' or 'pandas'; got {func_type!r}")
    if f is None:
        return lambda function: udf(function, input_types, result_type, deterministic, name, func_type)
    if isinstance(f, type):
        f = f()
    if isinstance(f, AsyncScalarFunction) or inspect.iscoroutinefunction(f):
        raise UnsupportedFeatureError.not_yet("an asynchronous scalar function", "use AsyncDataStream")
    if not callable(f) and not isinstance(f, ScalarFunction):
        raise JobDefinitionError(f"udf(): expected a function or a ScalarFunction; got {f!r}")
    return UserDefinedScalarFunctionWrapper(f, input_types, result_type, func_type, deterministic, name)


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Not in headrace yet."""
    raise UnsupportedFeatureError.not_yet("udtf()", "return an ARRAY from a udf, and UNNEST it")


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Not in headrace yet."""
    raise UnsupportedFeatureError.not_yet("udaf()", "use the aggregations of SQL, or a keyed stream")


def udtaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Not in headrace yet."""
    raise UnsupportedFeatureError.not_yet("udtaf()", "use a top-N query, or a keyed stream")
