"""Calls of the Table API with table and aggregate functions: each is a query with LATERAL TABLE, UNNEST or GROUP BY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.errors import SqlValidationError
from headrace.table import _pieces as pieces
from headrace.table._wrappers import RowsOfGroup, UserDefinedFunctionWrapper
from headrace.table.expression import Expression
from headrace.table.expressions import col
from headrace.types import ArrayType, DataType, RowType
from headrace.types.logical import quote_name

if TYPE_CHECKING:
    from headrace.table.table import Table
    from headrace.table.window import GroupWindow

__all__ = ["AggregatedTable", "FlatAggregateTable", "Groups", "flat_mapped", "joined_lateral", "with_keys"]

_RESULT = "$result"
#: What the rows of a function are called inside the statement.
_ROWS = quote_name("$rows")


def called(table: Table, func: Any) -> Expression[Any]:
    """Return the call of a function; the function alone gets the whole row."""
    if isinstance(func, UserDefinedFunctionWrapper):
        made = func(table._whole_row())
        return made.alias(*func._alias_names) if func._alias_names else made
    if not isinstance(func, Expression):
        raise SqlValidationError(
            f"expected the call of a function; got {func!r}", hint="make it with udtf(), udaf() or udtaf()"
        )
    return func


def flat_mapped(table: Table, func: Any) -> Table:
    """Return the rows that a table function gives for each row, without the row itself."""
    call = called(table, func)
    return table._query(f"SELECT {_ROWS}.* FROM {table._as_input()}, {_lateral(table, call)}")


def joined_lateral(table: Table, kind: str, func: Any, predicate: Expression[bool] | None) -> Table:
    """Return each row with those that a table function gives for it."""
    call = called(table, func)
    common = [name for name in call._aliases if name in table._columns]
    if common:
        raise SqlValidationError(
            f"join_lateral: the table has a column {common[0]!r} already", hint="alias() with other names"
        )
    condition = "TRUE" if predicate is None else table._sql(predicate)
    return table._query(f"SELECT * FROM {table._as_input()} {kind} {_lateral(table, call)} ON {condition}")


def _lateral(table: Table, call: Expression[Any]) -> str:
    names = f"({', '.join(map(quote_name, call._aliases))})" if call._aliases else ""
    return f"LATERAL TABLE({table._sql(call)}) AS {_ROWS}{names}"


# --- groups -------------------------------------------------------------------------------------------


def with_keys(table: Table, keys: Sequence[Expression[Any]]) -> tuple[Table, list[Expression[Any]]]:
    """Compute keys that have a name of their own first, so that `select` can use it."""
    named = [key for key in table._expanded(keys) if key._aliases]
    if named:
        table = table.add_columns(*named)
    return table, [col(key._aliases[0]) if key._aliases else key for key in table._expanded(keys)]


@dataclass(frozen=True)
class Groups:
    """The rows of a table in groups."""

    table: Table
    keys: Sequence[Expression[Any]] = ()
    window: GroupWindow | None = None

    def aggregated(self, call: Expression[Any], asked: Sequence[Expression[Any]]) -> Table:
        """Return keys, what is asked of the window, and the result of a call, for each group."""
        table, keys = with_keys(self.table, self.keys)
        plain = table._names()
        items = [table._sql(key) for key in keys if key._column is not None]
        grouped = [table._sql(key) for key in keys]
        if self.window is not None:
            grouped.insert(0, self.window._sql(plain))
            items += [
                f"{self.window._sql(plain, f'_{name.upper()}')} AS {quote_name(f'${name}')}"
                for name in self._properties(asked)
            ]
        items.append(f"{table._sql(call)} AS {quote_name(_RESULT)}")
        behind = f" GROUP BY {', '.join(grouped)}" if grouped else ""
        return table._query(f"SELECT {', '.join(items)} FROM {table._as_input()}{behind}")

    def _properties(self, asked: Sequence[Expression[Any]]) -> list[str]:
        found = {
            piece.name: None
            for each in asked
            for piece in each._pieces
            if isinstance(piece, pieces.WindowPropertyPiece)
        }
        return list(found)

    def property_of(self, alias: str, name: str) -> str:
        """Write a property of the window, which is a column of what was aggregated."""
        if self.window is None or alias != self.window.alias:
            there = "no window" if self.window is None else repr(self.window.alias)
            raise SqlValidationError(f"window {alias!r} does not exist; available: {there}")
        return quote_name(f"${name}")


class AggregatedTable:
    """Groups with the result of an aggregate function. Made by `aggregate`."""

    def __init__(self, groups: Groups, func: Any) -> None:
        self._groups = groups
        self._func = func

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute columns of the keys and of the fields of the result, by the names that `alias` gave them."""
        call = called(self._groups.table, self._func)
        made = self._groups.aggregated(_bare(call), fields)
        kept = [quote_name(name) for name in made._columns if name != _RESULT]
        result = made._plan.schema[-1].type
        parts = _parts(result)
        names = _named(call, [name for name, _ in parts])
        items = [f"{sql} AS {quote_name(name)}" for (_, sql), name in zip(parts, names, strict=True)]
        flat = made._query(f"SELECT {', '.join([*kept, *items])} FROM {made._as_input()}")
        return flat._selected(
            fields, f"FROM {flat._as_input()}", flat._names(window=self._groups.property_of)
        )


class FlatAggregateTable:
    """Groups with the rows of a table aggregate function. Made by `flat_aggregate`."""

    def __init__(self, groups: Groups, func: Any) -> None:
        self._groups = groups
        self._func = func

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute columns of the keys and of the rows, by the names that `alias` gave them."""
        call = called(self._groups.table, self._func)
        made = self._groups.aggregated(_rows_of_group(self._groups.table, _bare(call)), fields)
        kept = [quote_name(name) for name in made._columns if name != _RESULT]
        array = made._plan.schema[-1].type
        assert isinstance(array, ArrayType)
        row = array.element_type
        assert isinstance(row, RowType)
        names = ", ".join(map(quote_name, _named(call, row.field_names())))
        rows = f"UNNEST({quote_name(_RESULT)}) AS {_ROWS}({names})"
        flat = made._query(
            f"SELECT {', '.join([*kept, f'{_ROWS}.*'])} FROM {made._as_input()} CROSS JOIN {rows}"
        )
        return flat._selected(
            fields, f"FROM {flat._as_input()}", flat._names(window=self._groups.property_of)
        )


def _bare(call: Expression[Any]) -> Expression[Any]:
    return Expression(call._pieces)


def _parts(result: DataType) -> list[tuple[str, str]]:
    """Return the columns that a result is taken apart into: names, and SQL."""
    whole = quote_name(_RESULT)
    if not isinstance(result, RowType):
        return [("f0", whole)]
    return [(name, f"{whole}.{quote_name(name)}") for name in result.field_names()]


def _named(call: Expression[Any], names: Sequence[str]) -> Sequence[str]:
    """Return the names that columns get."""
    if call._aliases and len(call._aliases) != len(names):
        raise SqlValidationError(
            f"alias(): {len(call._aliases)} names for {len(names)} columns: {', '.join(names)}"
        )
    return call._aliases or names


def _rows_of_group(table: Table, call: Expression[Any]) -> Expression[Any]:
    """Return the call of a table aggregate function, for its rows as one array."""
    first, *others = call._pieces
    function: Any = None
    if isinstance(first, pieces.FunctionPiece):
        function = first.function._function()
    elif isinstance(first, str) and first.endswith("("):
        function = table._t_env._manager.function([first[:-1].strip("`")])
        others = ["(", *others]
    if not isinstance(function, UserFunction) or function.kind is not FunctionKind.TABLE_AGGREGATE:
        raise SqlValidationError(
            f"flat_aggregate(): {call!r} is not a call of a table aggregate function",
            hint="make it with udtaf()",
        )
    return Expression((pieces.FunctionPiece(_as_rows(function)), *others))


@lru_cache(maxsize=256)
def _as_rows(function: UserFunction) -> RowsOfGroup:
    """Return the same object for a function each time: it is registered once."""
    return RowsOfGroup(function)
