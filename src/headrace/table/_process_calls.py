"""Calls of process table functions in the Table API: each is a query whose FROM has the call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.catalog.functions import CatalogFunction, FunctionKind, UserFunction
from headrace.errors import JobDefinitionError, SqlValidationError
from headrace.planner.process_tables import process_of
from headrace.table._functions import load_function
from headrace.table._process_classes import ProcessTableFunction
from headrace.table.expression import Expression
from headrace.table.expressions import lit
from headrace.table.process_function import ProcessTableFunctionWrapper, ptf
from headrace.types.logical import quote_name

if TYPE_CHECKING:
    from headrace.table.table import Table
    from headrace.table.table_environment import TableEnvironment

__all__ = ["PartitionedTable", "ProcessCalls", "TableAsArgument", "from_call"]


class ProcessCalls:
    """What tables have for process table functions."""

    def partition_by(self, *fields: Expression[Any]) -> PartitionedTable:
        """Give the rows keys, for a process table function whose table has set semantics.

        Args:
            fields: Columns.
        """
        return PartitionedTable(_as_table(self), tuple(fields))

    def process(self, function: Any, *arguments: Any) -> Table:
        """Call a process table function with this table, whose rows are taken one by one.

        Args:
            function: What `ptf` made, or its name in a catalog.
            arguments: The other arguments, by place, or named with `as_argument`; None for the default.
        """
        return PartitionedTable(_as_table(self)).process(function, *arguments)

    def as_argument(self, name: str) -> TableAsArgument:
        """Give the table the name of an argument, for `from_call`."""
        return PartitionedTable(_as_table(self)).as_argument(name)

    def to_changelog(self, *arguments: Any) -> Table:
        """Return the changes of this table as insert-only rows, with what each does in a column ``op`` in front.

        Args:
            arguments: ``descriptor("op").as_argument("op")`` to name the column, and
                ``map_("INSERT", "i", "DELETE", "d").as_argument("op_mapping")`` for other codes; rows whose operation
                is not in it are left out.
        """
        return PartitionedTable(_as_table(self)).process("TO_CHANGELOG", *arguments)

    def from_changelog(self, *arguments: Any) -> Table:
        """Return the table that the codes of a column ``op`` make of these rows.

        Args:
            arguments: ``descriptor("code").as_argument("op")`` for another column, and
                ``map_("c, r", "INSERT", "d", "DELETE").as_argument("op_mapping")`` for other codes.
        """
        return PartitionedTable(_as_table(self)).process("FROM_CHANGELOG", *arguments)


def _as_table(table: Any) -> Table:
    made: Table = table
    return made


@dataclass(frozen=True)
class PartitionedTable:
    """A table with keys, and maybe an order, for a process table function."""

    table: Table
    keys: tuple[Expression[Any], ...] = ()
    order: tuple[Expression[Any], ...] = ()

    def order_by(self, *fields: Expression[Any]) -> PartitionedTable:
        """Have the rows of a key come in order: first by a time attribute, ascending."""
        return replace(self, order=tuple(fields))

    def process(self, function: Any, *arguments: Any) -> Table:
        """Call a process table function with this table.

        Args:
            function: What `ptf` made, or its name in a catalog.
            arguments: The other arguments, by place, or named with `as_argument`; None for the default.
        """
        called = _called(self.table._t_env, function)
        is_named = any(_is_named(each) for each in arguments)
        first = f"{quote_name(called.first)} => " if is_named else ""
        given = [f"{first}{self._sql()}", *_written(self.table, arguments)]
        return self.table._query(f"SELECT * FROM {called.name}({', '.join(given)})")

    def as_argument(self, name: str) -> TableAsArgument:
        """Give the table the name of an argument, for `from_call`."""
        return TableAsArgument(self, name)

    def _sql(self) -> str:
        table = self.table
        keys = ", ".join(table._sql(each) for each in table._expanded(self.keys))
        order = ", ".join(
            f"{table._sql(each)}{f' {each._order}' if each._order else ''}" for each in self.order
        )
        partition = f" PARTITION BY ({keys})" if keys else ""
        return f"TABLE {table._as_input()}{partition}{f' ORDER BY ({order})' if order else ''}"


@dataclass(frozen=True)
class TableAsArgument:
    """A table under the name of an argument."""

    table: PartitionedTable
    name: str


def from_call(t_env: TableEnvironment, function: Any, arguments: Sequence[Any]) -> Table:
    """Return the rows of a call whose arguments may be tables."""
    called = _called(t_env, function)
    tables = [each for each in arguments if _table_in(each) is not None]
    if not tables:
        raise SqlValidationError(
            f"from_call: {called.name} is called without a table", hint="pass tables, or use table.process()"
        )
    some = _table_in(tables[0])
    assert some is not None
    return some.table._query(f"SELECT * FROM {called.name}({', '.join(_written(some.table, arguments))})")


def _table_in(argument: Any) -> PartitionedTable | None:
    if isinstance(argument, TableAsArgument):
        return argument.table
    if isinstance(argument, ProcessCalls):
        return PartitionedTable(_as_table(argument))
    return argument if isinstance(argument, PartitionedTable) else None


def _is_named(argument: Any) -> bool:
    return isinstance(argument, TableAsArgument) or (
        isinstance(argument, Expression) and str(argument._pieces[0]).endswith(" => ")
    )


def _written(table: Table, arguments: Iterable[Any]) -> list[str]:
    """Return arguments as SQL."""
    made = []
    for each in arguments:
        found = _table_in(each)
        if found is not None:
            name = f"{quote_name(each.name)} => " if isinstance(each, TableAsArgument) else ""
            made.append(f"{name}{found._sql()}")
        elif each is None:
            made.append("DEFAULT")
        else:
            made.append(table._sql(each if isinstance(each, Expression) else lit(each)))
    return made


@dataclass(frozen=True)
class _Called:
    """A function as SQL calls it, and the name of its first table."""

    name: str
    first: str


def _called(t_env: TableEnvironment, function: Any) -> _Called:
    if isinstance(function, ProcessTableFunction) or (
        isinstance(function, type) and issubclass(function, ProcessTableFunction)
    ):
        function = ptf(function)
    if isinstance(function, ProcessTableFunctionWrapper):
        made = function._function()
        return _Called(quote_name(t_env._register_function(function)), _first_table(made))
    if not isinstance(function, str):
        raise JobDefinitionError(
            f"expected a process table function; got {function!r}",
            hint="make it with ptf(), or give its name",
        )
    found = t_env._manager.function(function.replace("`", "").split("."))
    if isinstance(found, CatalogFunction):
        found = load_function(function, found)
    if found is None or found.kind is not FunctionKind.PROCESS_TABLE:
        return _Called(function, "input")
    return _Called(function, _first_table(found))


def _first_table(function: UserFunction) -> str:
    return process_of(function).signature.tables[0].name
