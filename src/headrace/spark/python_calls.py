"""Python functions of a query as Spark calls them.

Rows inside values are ours on the user's side, and Spark's own on the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column as SparkColumn
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from headrace.common.types import Row, make_row
from headrace.errors import UserFunctionError
from headrace.operators.table.base import quote
from headrace.operators.table.declarations import PythonCall
from headrace.planner.user_functions import OpenedFunction
from headrace.spark.failures import carry

#: The property of Spark's tasks with the job's parameters, as JSON.
JOB_PARAMETERS: Final = "headrace.job.parameters"
#: Spark takes times from python with all their digits only.
_TIME: Final = "TIME(6)"


def result_of(call: PythonCall) -> SparkColumn:
    """Return the column with the results of a function."""
    result: SparkColumn = spark_function(call)(*(F.col(quote(name)) for name in call.arguments))
    if _spark_type(call) != call.result.spark_type:
        result = result.cast(call.result.spark_type)
    return result.alias(call.result.name)


def spark_function(call: PythonCall) -> Any:
    """Return a python function as Spark calls it."""
    kind, function = _spark_type(call), _opening(call.function)
    if call.is_pandas:
        make_vectorized: Any = pandas_udf
        made: Any = make_vectorized(_carrying(function), kind)
    else:
        has_rows = pa.types.is_nested(call.result.arrow)
        made = F.udf(_carrying(_with_rows(function, has_rows=has_rows)), kind)
    return made if call.is_deterministic else made.asNondeterministic()


def _spark_type(call: PythonCall) -> str:
    return _TIME if pa.types.is_time(call.result.arrow) else call.result.spark_type


def _opening(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function opened in the worker, with what it may know there."""
    if not isinstance(function, OpenedFunction):
        return function

    def called(*arguments: Any) -> Any:
        if not function.is_open:
            function.open(_function_context())
        return function(*arguments)

    return called


def _function_context() -> Any:
    from headrace.table.udf import FunctionContext  # few functions ask for it

    task = TaskContext.get()
    assert task is not None
    return FunctionContext(
        None,
        json.loads(task.getLocalProperty(JOB_PARAMETERS) or "{}"),
        index_of_this_subtask=task.partitionId(),
        attempt_number=task.attemptNumber(),
    )


def _with_rows(function: Callable[..., Any], *, has_rows: bool) -> Callable[..., Any]:
    """Have a function see rows of ours; ``has_rows`` says whether it may return some."""

    @wraps(function)
    def called(*arguments: Any) -> Any:
        result = function(*map(_from_spark, arguments))
        return _to_spark(result) if has_rows else result

    return called


def _from_spark(value: Any) -> Any:
    match value:
        case SparkRow():
            return make_row(tuple(value.__fields__), map(_from_spark, value), 0)
        case list():
            return list(map(_from_spark, value))
        case dict():
            return {key: _from_spark(each) for key, each in value.items()}
    return value


def _to_spark(value: Any) -> Any:
    match value:
        case Row() | tuple():
            return tuple(map(_to_spark, value))
        case list():
            return list(map(_to_spark, value))
        case dict():
            return {key: _to_spark(each) for key, each in value.items()}
    return value


def _carrying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a user's function say what it failed with."""

    @wraps(function)
    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise carry(UserFunctionError.from_exception(error, record=arguments)) from error

    # Spark looks at hints to find out what kind of function it is; ours says so itself.
    called.__annotations__ = {}
    return called
