"""A call of a process table function as a node of a table job. See `declarations`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.catalog.process_functions import ProcessSignature
from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.operators.table.declarations import Order, StatefulNode

__all__ = ["DeclaredFunction", "ProcessTableDeclaration", "ProcessedTable"]


@dataclass(frozen=True, eq=False)
class DeclaredFunction:
    """A process table function of the user's, with what it declares."""

    name: str
    implementation: Any
    signature: ProcessSignature

    def open(self, context: Any) -> None:
        """Get the function ready; the context is a `FunctionContext`."""
        self.implementation.open(context)

    def close(self) -> None:
        """Have the function release what it holds."""
        self.implementation.close()


@dataclass(frozen=True)
class ProcessedTable:
    """A table that the function is called with.

    Args:
        name: The argument.
        fields: The names of its columns, for the function.
        columns: Where they are in the rows that come.
        partition_by: Which of the fields PARTITION BY names.
        order: How rows of a key are sorted before the function sees them, after their time; None: as they come.
        time_index: Which of the fields is the time attribute of on_time.
        passes_through: Whether all its columns come out, in front of the result.
        mode: The kinds of rows that it has.
    """

    name: str
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    partition_by: tuple[int, ...] = ()
    order: tuple[Order, ...] | None = None
    time_index: int | None = None
    passes_through: bool = False
    mode: ChangelogMode = INSERT_ONLY


@dataclass(frozen=True)
class ProcessTableDeclaration(StatefulNode):
    """Calls a process table function for the rows of tables, and for timers.

    Rows of all tables come as one input: `table` says which table a row is of, and columns of other tables are NULL.
    The output is the keys once for every table that has some, or the columns that pass through; then what the function
    gives; then `rowtime`, BIGINT, if there is an on_time.

    Args:
        keys: The columns that PARTITION BY is of, the same for all tables; empty: one key for all rows.
        function: The function.
        tables: The tables, in the order of the function's arguments.
        arguments: By name, the values of scalar arguments.
        table: The INT column with a table's number.
        time: The BIGINT column with the time of rows in ms: of on_time, or what rows are sorted by; None: none.
        has_time: Whether there is an on_time.
        result_width: How many columns the function gives.
        is_single: Whether a result that is no row is a column's value.
        zone: The time zone by which tables count event time of TIMESTAMP_LTZ; None: milliseconds are UTC's.
        mode: The kinds of rows that come out.
    """

    keys: tuple[str, ...]
    function: DeclaredFunction
    tables: tuple[ProcessedTable, ...]
    arguments: tuple[tuple[str, Any], ...] = ()
    table: str = "__table"
    time: str | None = None
    has_time: bool = False
    result_width: int = 1
    is_single: bool = False
    zone: str | None = None
    mode: ChangelogMode = field(default=INSERT_ONLY)

    @property
    def goes_by_watermark(self) -> bool:
        return self.time is not None

    @property
    def user_functions(self) -> tuple[Any, ...]:
        return (self.function,)
