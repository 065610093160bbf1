"""User functions: as a catalog stores them, and as expressions call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.types.logical import DataType

__all__ = ["CatalogFunction", "FunctionKind", "UserFunction"]


class FunctionKind(Enum):
    """What a user function takes and gives."""

    #: A value for each row.
    SCALAR = "scalar"
    #: A column for each batch of rows, as pandas series.
    PANDAS_SCALAR = "pandas scalar"
    #: A value for each row, which is waited for; rows wait together.
    ASYNC_SCALAR = "asynchronous scalar"
    #: Any number of rows for each row.
    TABLE = "table"
    #: The rows of a table that have a key; the planner makes it of a join.
    LOOKUP = "lookup"
    #: One value for each group.
    AGGREGATE = "aggregate"
    #: One value for each group, from pandas series.
    PANDAS_AGGREGATE = "pandas aggregate"
    #: Any number of rows for each group.
    TABLE_AGGREGATE = "table aggregate"
    #: Rows made of tables, with state and timers.
    PROCESS_TABLE = "process table"


@dataclass(frozen=True)
class CatalogFunction:
    """What `CREATE FUNCTION` keeps: where the code is, not the code."""

    #: For Python `module.attribute`; a module is found on the program's path.
    class_name: str
    #: PYTHON, JAVA or SCALA; only PYTHON can be called.
    language: str


@dataclass(frozen=True)
class UserFunction:
    """A function of the user's that can be called.

    Two are equal if they are the same object in the program: what they do cannot be compared.
    """

    name: str
    kind: FunctionKind
    #: The callable, or an object with `eval`; pickled by value when it goes to workers.
    implementation: Callable[..., Any] | Any
    #: None where the program did not declare them: then whatever comes is passed on.
    argument_types: tuple[DataType, ...] | None
    result_type: DataType
    is_deterministic: bool = True
    #: The names of the columns a table function gives.
    result_names: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserFunction):
            return NotImplemented
        return self.implementation is other.implementation and self.name == other.name

    def __hash__(self) -> int:
        return hash((self.name, id(self.implementation)))
