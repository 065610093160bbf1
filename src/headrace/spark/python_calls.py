"""Python functions of a query as Spark calls them.

Rows inside values are ours on the user's side, and Spark's own on the other.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column as SparkColumn
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

from headrace.common.arrow_values import arrow_form, python_values
from headrace.common.types import Row, make_row
from headrace.errors import UserFunctionError
from headrace.metrics import MetricGroup
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.metrics.reports import MetricName, MetricReport
from headrace.operators.table.arrow_expression import Columns
from headrace.operators.table.base import quote
from headrace.operators.table.opened_functions import BatchFunction, OpenedFunction
from headrace.operators.table.row_steps import Caller, arguments_of, column_of
from headrace.operators.table.spark_types import spark_arrow_type
from headrace.operators.table.steps import PythonCall
from headrace.runtime.epoch.messages import CalledFunction, SubtaskId, SubtaskReport
from headrace.spark.failures import carry
from headrace.spark.function_results import checked, checked_series

if TYPE_CHECKING:
    from headrace.spark.task_messages import TaskMessages

_log = logging.getLogger(__name__)

#: The property of Spark's tasks with the job's parameters, as JSON.
JOB_PARAMETERS: Final = "headrace.job.parameters"
#: Rows that a function gets at once that takes batches; Spark's own batches have as many.
_BATCH_ROWS: Final = 65_536
#: Spark takes times from python with all their digits only.
_TIME: Final = "TIME(6)"


@dataclass(frozen=True)
class CallSite:
    """Where functions are called, as far as they may know it, and who hears of what they count.

    Args:
        vertex_id: The vertex whose rows they are called with.
        operator_id: The operator in it.
        name: What the vertex is called.
        parallelism: How many subtasks it has.
        max_parallelism: How many it may have.
        messages: What the driver hears of an epoch's tasks.
    """

    vertex_id: str
    operator_id: str
    name: str
    parallelism: int
    max_parallelism: int
    messages: TaskMessages


def result_of(call: PythonCall, site: CallSite) -> SparkColumn:
    """Return the column with the results of a function."""
    result: SparkColumn = spark_function(call, site)(*(F.col(quote(name)) for name in call.arguments))
    if _spark_type(call) != call.result.spark_type:
        result = result.cast(call.result.spark_type)
    return result.alias(call.result.name)


def spark_function(call: PythonCall, site: CallSite) -> Any:
    """Return a python function as Spark calls it."""
    kind, function = _spark_type(call), _opening(call, site)
    if isinstance(call.function, BatchFunction):
        of_arrays: Any = arrow_udf
        made: Any = of_arrays(_carrying(_of_arrays(function, call.result.arrow)), kind)
    elif call.is_pandas:
        make_vectorized: Any = pandas_udf
        made = make_vectorized(_carrying(checked_series(function, call)), kind)
    else:
        has_rows = pa.types.is_nested(call.result.arrow)
        made = F.udf(_carrying(checked(_with_rows(function, has_rows=has_rows), call)), kind)
    return made if call.is_deterministic else made.asNondeterministic()


def row_caller(site: CallSite) -> Caller:
    """Return what calls functions in a stage of packets, in one of Spark's tasks."""
    functions: dict[str, Callable[..., Any]] = {}

    def called(call: PythonCall, columns: Columns, rows: int) -> pa.Array:
        function = functions.get(call.result.name)
        if function is None:
            opening = _opening(call, site)
            function = opening if call.takes_batches else checked(opening, call)
            functions[call.result.name] = function
        arguments = [arguments_of(columns[name]) for name in call.arguments]
        given = list(zip(*arguments, strict=True)) if arguments else [()] * rows
        results = _of_batches(function, given) if call.takes_batches else _of_each(function, given)
        return column_of(results, call.result.arrow)

    return called


def _of_each(function: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> list[Any]:
    results = []
    for values in given:
        try:
            results.append(function(*values))
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=values) from error
    return results


def _of_batches(function: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> list[Any]:
    results: list[Any] = []
    for start in range(0, len(given), _BATCH_ROWS):
        batch = given[start : start + _BATCH_ROWS]
        try:
            results += function(batch)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=batch) from error
    return results


def _of_arrays(function: Callable[..., Any], kind: pa.DataType) -> Callable[..., Any]:
    """Have a function that takes the rows of a batch called with arrays."""
    kind = spark_arrow_type(kind)
    convert = arrow_form(kind)

    @wraps(function)
    def called(*arrays: Any) -> Any:
        columns = [python_values(each) for each in arrays]
        results = function(list(zip(*columns, strict=True)))
        return pa.array(results if convert is None else map(convert, results), kind)

    return called


def _spark_type(call: PythonCall) -> str:
    return _TIME if pa.types.is_time(call.result.arrow) else call.result.spark_type


def _opening(call: PythonCall, site: CallSite) -> Callable[..., Any]:
    """Have a function opened in the worker, with what it may know there, and closed when the task is over."""
    function, name = call.function, call.result.name
    if not isinstance(function, OpenedFunction):
        return function

    def called(*arguments: Any) -> Any:
        if not function.is_open:
            opened = _InTask(function, site, name)
            site.messages.tell_at_the_end(opened)
            opened.open()
        try:
            return function(*arguments)
        except BaseException:
            _close(function)
            raise

    return called


class Site(Protocol):
    """What functions may know about the vertex that they are called in."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def parallelism(self) -> int:
        """How many subtasks it has."""

    @property
    def max_parallelism(self) -> int:
        """How many it may have."""


def function_context(metrics: MetricGroup, site: Site, subtask: int) -> Any:
    """Make what a function learns when it is opened in one of Spark's tasks."""
    from headrace.table.udf import FunctionContext  # few functions ask for it

    task = TaskContext.get()
    assert task is not None
    return FunctionContext(
        metrics,
        json.loads(task.getLocalProperty(JOB_PARAMETERS) or "{}"),
        task_name=site.name,
        task_name_with_subtasks=f"{site.name} ({subtask + 1}/{site.parallelism})",
        number_of_parallel_subtasks=site.parallelism,
        max_number_of_parallel_subtasks=site.max_parallelism,
        index_of_this_subtask=subtask,
        attempt_number=task.attemptNumber(),
    )


class _InTask:
    """A function in one of Spark's tasks.

    Spark says nothing to functions when a task is over, but asks for what accumulators have, and this is put into
    one: as it is packed the function is closed, and what the driver unpacks is a `CalledFunction`.
    """

    def __init__(self, function: OpenedFunction, site: CallSite, name: str) -> None:
        task = TaskContext.get()
        assert task is not None
        self._function = function
        self._site = site
        self._place = (name, task.stageId(), task.partitionId())
        self._subtask = task.partitionId() % site.parallelism
        self._metrics = InMemoryMetricGroup()

    def open(self) -> None:
        self._function.open(function_context(self._metrics, self._site, self._subtask))

    def __reduce__(self) -> tuple[Any, ...]:
        _close(self._function)
        subtask = SubtaskId(self._site.vertex_id, self._subtask)
        told = CalledFunction(subtask, self._site.operator_id, self._place, self._metrics.reports())
        return bytes, (self._site.messages.packed(told),)


def _close(function: OpenedFunction) -> None:
    """Close a function that is not needed any more: what fails now has no row to blame."""
    try:
        function.close()
    except Exception:  # noqa: BLE001 - from a function's close(), which may raise anything
        _log.warning("a function could not be closed", exc_info=True)


def with_metrics(
    reports: Sequence[SubtaskReport], called: Iterable[CalledFunction]
) -> Sequence[SubtaskReport]:
    """Add what functions have counted to the reports of the subtasks that they count for."""
    once = {(each.subtask, each.operator_id, each.place): each.metrics for each in called}
    by_subtask: dict[SubtaskId, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for (subtask, operator_id, _), metrics in once.items():
        by_subtask[subtask][operator_id].append(metrics)
    return [
        replace(report, user_metrics=_together(report.user_metrics, by_subtask[report.subtask]))
        if report.subtask in by_subtask
        else report
        for report in reports
    ]


Metrics = Mapping[MetricName, MetricReport]


def _together(
    reported: Mapping[str, Metrics], called: Mapping[str, Sequence[Metrics]]
) -> Mapping[str, Metrics]:
    return {
        operator_id: reduce(_added, called.get(operator_id, ()), reported.get(operator_id, {}))
        for operator_id in {*reported, *called}
    }


def _added(before: Metrics, later: Metrics) -> Metrics:
    """Return the metrics of both; of one name in two kinds the later one counts."""
    added: dict[MetricName, Any] = dict(before)
    for name, report in later.items():
        earlier = added.get(name)
        added[name] = earlier.then(report) if type(earlier) is type(report) else report
    return added


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
