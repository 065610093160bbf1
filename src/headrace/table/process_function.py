"""Process table functions: rows made of whole tables, with state and timers.

PyFlink does not have them; the names come from Flink's Java API.

@ptf(result_type=DataTypes.STRING())
class Greeting(ProcessTableFunction):
def eval(self, memory: Annotated[Memory, StateHint()], input: Annotated[Row, ArgumentHint(SET_SEMANTIC_TABLE)]):
memory.count += 1
yield f"Hello {input.name}, your {memory.count} time?"

SELECT * FROM Greeting(input => TABLE names PARTITION BY name)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.catalog.process_functions import ArgumentTrait
from headrace.errors import JobDefinitionError, describe_function
from headrace.operators.table.process_context import (
    OnTimerContext,
    ProcessTableContext,
    TableSemantics,
    TimeContext,
)
from headrace.operators.table.process_declarations import DeclaredFunction
from headrace.planner.process_tables import ChangelogContext
from headrace.table._process_classes import ArgumentHint, ChangelogFunction, ProcessTableFunction, StateHint
from headrace.table._process_hints import read_signature
from headrace.table._wrappers import UserDefinedFunctionWrapper, asked_type, read_type
from headrace.types import DataType

__all__ = [
    "ArgumentHint",
    "ArgumentTrait",
    "ChangelogContext",
    "ChangelogFunction",
    "Context",
    "OnTimerContext",
    "ProcessTableFunction",
    "ProcessTableFunctionWrapper",
    "StateHint",
    "TableSemantics",
    "TimeContext",
    "ptf",
]


class ProcessTableFunctionWrapper(UserDefinedFunctionWrapper):
    """A process table function that FROM and `Table.process` can call. Made by `ptf`."""

    def __init__(
        self,
        func: ProcessTableFunction,
        result_type: Any,
        arguments: Mapping[str, ArgumentHint] | None,
        state: Mapping[str, StateHint] | None,
        deterministic: bool | None,
        name: str | None,
    ) -> None:
        super().__init__(func, None, "general", deterministic, name)
        if result_type is None:
            result_type = asked_type(func, "get_result_type")
        if result_type is None:
            raise JobDefinitionError(
                f"ptf(): {describe_function(func)} declares no result_type",
                hint="pass result_type, such as DataTypes.STRING() or 'ROW<n BIGINT, text STRING>', "
                "or define get_result_type()",
            )
        self._result_type = read_type(result_type, "ptf()")
        signature = read_signature(
            func, dict(arguments or {}), dict(state or {}), isinstance(func, ChangelogFunction)
        )
        #: The same object in all queries, so that equal calls are one.
        self._process = DeclaredFunction(self._name, func, signature)

    def __call__(self, *args: Any) -> Any:
        """Refuse to be called with columns."""
        raise JobDefinitionError(
            f"{self._name} is a process table function: it takes tables and belongs in FROM",
            hint=f"table.process({self._name}), or SELECT * FROM {self._name}(TABLE t)",
        )

    def __repr__(self) -> str:
        return f"<ProcessTableFunctionWrapper {self._name}>"

    def _function(self, name: str | None = None) -> UserFunction:
        return UserFunction(
            name or self._name, FunctionKind.PROCESS_TABLE, self._process, None, self._result_type
        )


#: What `eval` takes first, under the name that it has in Java.
Context = ProcessTableContext

_BOTH: Final = "derive a class from ProcessTableFunction, with eval()"


def ptf(
    f: ProcessTableFunction | type | None = None,
    result_type: DataType | str | None = None,
    arguments: Mapping[str, ArgumentHint] | None = None,
    state: Mapping[str, StateHint] | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Make a process table function, which makes rows of whole tables, or decorate one.

    Args:
        f: A `ProcessTableFunction`, or its class. None to decorate one.
        result_type: Type of a result: a ROW with the columns, or another type for one column. If None, what
            `get_result_type` says.
        arguments: Hints of parameters, by name, in place of those in the signature of `eval`.
        state: Hints of parameters that are state, the same.
        deterministic: Whether equal rows return equal results; True if None.
        name: What it is called; its own name if None.

    Raises:
        JobDefinitionError: If it is not a process table function, or its signature is not valid.

    Example:
        >>> from typing import Annotated
        >>> from headrace.common.types import Row
        >>> from headrace.types import DataTypes
        >>> @ptf(result_type=DataTypes.STRING())
        ... class Greeting(ProcessTableFunction):
        ...     def eval(self, input: Annotated[Row, ArgumentHint(ArgumentTrait.ROW_SEMANTIC_TABLE)]):
        ...         yield f"Hello {input.name}!"
        >>> Greeting
        <ProcessTableFunctionWrapper Greeting>
    """
    if f is None:
        return lambda function: ptf(function, result_type, arguments, state, deterministic, name)
    if isinstance(f, type):
        name = name or f.__name__
        try:
            f = f()
        except TypeError as error:
            raise JobDefinitionError(f"ptf(): cannot create {name}: {error}", hint=_BOTH) from error
    if not isinstance(f, ProcessTableFunction):
        raise JobDefinitionError(f"ptf(): expected a ProcessTableFunction; got {f!r}", hint=_BOTH)
    return ProcessTableFunctionWrapper(f, result_type, arguments, state, deterministic, name)
