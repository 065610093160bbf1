"""What classes of user functions derive from, and what they learn when they are opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headrace.errors import JobDefinitionError
from headrace.metrics import MetricGroup
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
    "UserDefinedFunction",
]


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
        """Release resources; called in every task after its last row, and when a row fails."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results."""
        return True


class ScalarFunction(UserDefinedFunction, ABC):
    """A value for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the value for the arguments of a row."""


class AsyncScalarFunction(UserDefinedFunction, ABC):
    """A value for each row, waited for without standing still: rows of a batch wait together."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the value for the arguments of a row."""


class TableFunction(UserDefinedFunction, ABC):
    """Rows for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Yield the rows for the arguments of a row."""


class AsyncTableFunction(UserDefinedFunction, ABC):
    """Rows for each row, waited for without standing still: rows of a batch wait together."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the list of rows for the arguments of a row, or yield them."""


def _missing(method: Any) -> Any:
    """Mark a method that only refuses, so that the planner knows whether a function has its own."""
    method.is_missing = True
    return method


class ImperativeAggregateFunction(UserDefinedFunction, ABC):
    """What functions over groups have in common."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return what a group starts with."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Take a row into a group."""

    @_missing
    def retract(self, accumulator: Any, *args: Any) -> None:
        """Take a row out of a group."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot retract rows: it does not implement retract()"
        )

    @_missing
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
    """A value for each group."""

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """Return the value of a group."""


class TableAggregateFunction(ImperativeAggregateFunction):
    """Rows for each group."""

    @abstractmethod
    def emit_value(self, accumulator: Any) -> Any:
        """Yield the rows of a group."""
