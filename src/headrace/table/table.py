"""`Table`: a query that is put together call by call. Every call is a query of SQL over the table before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable
from headrace.common._older_names import OLDER_METHODS, older_method
from headrace.errors import SqlValidationError, shorten
from headrace.planner.logical import LogicalNode
from headrace.table._column_names import with_default_names
from headrace.table._pieces import ColumnsPiece, FlattenPiece, Names
from headrace.table._process_calls import ProcessCalls
from headrace.table._resolved_schemas import resolved_schema
from headrace.table._row_based import (
    AggregatedTable,
    FlatAggregateTable,
    Groups,
    flat_mapped,
    joined_lateral,
    with_keys,
)
from headrace.table.catalog_columns import ResolvedSchema
from headrace.table.expression import Expression
from headrace.table.expressions import col, row
from headrace.table.table_result import TableResult
from headrace.table.table_schema import TableSchema
from headrace.table.window import GroupWindow, OverWindow
from headrace.types import DataTypes, RowType
from headrace.types.logical import quote_name

if TYPE_CHECKING:
    import pandas as pd

    from headrace.planner.statements import ExplainDetail
    from headrace.table._wrappers import (
        UserDefinedAggregateFunctionWrapper,
        UserDefinedScalarFunctionWrapper,
        UserDefinedTableFunctionWrapper,
    )
    from headrace.table.table_descriptor import TableDescriptor
    from headrace.table.table_environment import TableEnvironment
    from headrace.table.table_pipeline import TablePipeline

__all__ = [
    "AggregatedTable",
    "FlatAggregateTable",
    "GroupWindowedTable",
    "GroupedTable",
    "OverWindowedTable",
    "Table",
    "WindowGroupedTable",
]


class Table(ProcessCalls):
    """Rows with named columns: a query, which runs when it is executed or inserted somewhere.

    Example:
        >>> from headrace.table import EnvironmentSettings, TableEnvironment
        >>> from headrace.table.expressions import col, row
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> orders = t_env.from_elements([(1, "tea"), (2, "rum")], ["id", "drink"])
        >>> orders.filter(col("id") > 1).select(col("drink").upper_case.alias("loud")).print_schema()
        (
          `loud` STRING
        )
    """

    def __init__(self, plan: LogicalNode, t_env: TableEnvironment) -> None:
        self._plan = plan
        self._t_env = t_env
        self._name: str | None = None
        #: The table of the catalog that it is, as a whole; None for everything that is computed.
        self._declared: CatalogTable | None = None
        #: The query that it was asked for with, if it was.
        self._text: str | None = None

    # --- columns and rows ---------------------------------------------------------------------------

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute columns; aggregations are over all rows."""
        return self._selected(fields, f"FROM {self._as_input()}")

    def alias(self, field: str, *fields: str) -> Table:
        """Rename the columns, first come first served."""
        names = [field, *fields]
        own = self._columns
        if len(names) > len(own):
            raise SqlValidationError(f"alias(): {len(names)} names for {len(own)} columns: {', '.join(own)}")
        renamed = [
            f"{quote_name(old)} AS {quote_name(names[at] if at < len(names) else old)}"
            for at, old in enumerate(own)
        ]
        return self._query(f"SELECT {', '.join(renamed)} FROM {self._as_input()}")

    def filter(self, predicate: Expression[bool]) -> Table:
        """Keep the rows for which a condition is true."""
        kept = self._query(f"SELECT * FROM {self._as_input()} WHERE {self._sql(predicate)}")
        kept._declared = self._declared
        return kept

    def where(self, predicate: Expression[bool]) -> Table:
        """Keep the rows for which a condition is true."""
        return self.filter(predicate)

    def distinct(self) -> Table:
        """Keep each row once."""
        return self._query(f"SELECT DISTINCT * FROM {self._as_input()}")

    def add_columns(self, *fields: Expression[Any]) -> Table:
        """Add computed columns after the existing ones."""
        return self.select(*map(col, self._columns), *fields)

    def add_or_replace_columns(self, *fields: Expression[Any]) -> Table:
        """Compute columns; one with the name of an old one takes its place."""
        new = {field._aliases[0] if field._aliases else field._column or "": field for field in fields}
        kept = [new.pop(name) if name in new else col(name) for name in self._columns]
        return self.select(*kept, *new.values())

    def rename_columns(self, *fields: Expression[Any]) -> Table:
        """Give columns other names: ``col("a").alias("b")``."""
        names = {field._column: field._aliases[0] for field in fields if field._aliases}
        self._check_columns("rename_columns", [name or "" for name in names])
        return self.select(
            *(col(name).alias(names[name]) if name in names else col(name) for name in self._columns)
        )

    def drop_columns(self, *fields: Expression[Any]) -> Table:
        """Remove the given columns from the table."""
        gone = {name for field in self._expanded(fields) if (name := field._column) is not None}
        self._check_columns("drop_columns", gone)
        return self.select(*(col(name) for name in self._columns if name not in gone))

    def map(self, func: Expression[Any] | UserDefinedScalarFunctionWrapper) -> Table:
        """Call a function for each row; the fields of the ROW that it returns are the columns.

        Args:
            func: The call of a function; or the function alone, which then gets the whole row as a `Row`, and
                if it is a `pandas` one all rows as a DataFrame.
        """
        if not isinstance(func, Expression):
            func = func(self._whole_row())
        made = self.select(func.alias("f0"))
        result = made._plan.schema[0].type
        if not isinstance(result, RowType):
            return made
        return made.select(*(col("f0").get(name).alias(name) for name in result.field_names()))

    def flat_map(self, func: Expression[Any] | UserDefinedTableFunctionWrapper) -> Table:
        """Call a table function for each row, and replace the row by its results.

        Args:
            func: The call of a function that `udtf` made; or the function alone, which then gets the whole row.
        """
        return flat_mapped(self, func)

    # --- groups and windows -------------------------------------------------------------------------

    def group_by(self, *fields: Expression[Any]) -> GroupedTable:
        """Group rows by values; `select` then aggregates each group."""
        return GroupedTable(self, fields)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Put rows into windows; `group_by` then groups by them."""
        if not isinstance(window, GroupWindow):
            raise SqlValidationError(
                f"window(): expected a window with a name; got {window!r}",
                hint='Tumble.over(lit(10).minutes).on(col("ts")).alias("w")',
            )
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Name windows of earlier rows; `select` then aggregates over them."""
        return OverWindowedTable(self, over_windows)

    def aggregate(self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper) -> AggregatedTable:
        """Aggregate all rows with a function that `udaf` made; `select` then takes fields of its result.

        Args:
            func: The call, with `alias` to name the fields; or the function alone, which then gets whole rows.
        """
        return AggregatedTable(Groups(self), func)

    def flat_aggregate(
        self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper
    ) -> FlatAggregateTable:
        """Aggregate all rows with a function that `udtaf` made; `select` then takes columns of its rows."""
        return FlatAggregateTable(Groups(self), func)

    # --- two tables ---------------------------------------------------------------------------------

    def join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Join with another table; the two have no column name in common."""
        return self._joined("JOIN", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Join, and keep rows of this table that have no partner."""
        return self._joined("LEFT JOIN", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Join, and keep rows of the other table that have no partner."""
        return self._joined("RIGHT JOIN", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Join, and keep rows of both tables that have no partner."""
        return self._joined("FULL JOIN", right, join_predicate)

    def join_lateral(
        self,
        table_function_call: Expression[Any] | UserDefinedTableFunctionWrapper,
        join_predicate: Expression[bool] | None = None,
    ) -> Table:
        """Join each row with the rows that a table function returns for it.

        Args:
            table_function_call: The call, with `alias` to name the columns; or the function alone, which then gets the
                whole row.
            join_predicate: Which pairs stay; all if None.
        """
        return joined_lateral(self, "JOIN", table_function_call, join_predicate)

    def left_outer_join_lateral(
        self,
        table_function_call: Expression[Any] | UserDefinedTableFunctionWrapper,
        join_predicate: Expression[bool] | None = None,
    ) -> Table:
        """Join each row with the rows that a table function returns for it, and keep rows without results."""
        return joined_lateral(self, "LEFT JOIN", table_function_call, join_predicate)

    def minus(self, right: Table) -> Table:
        """Keep the rows that the other table has not, each once."""
        return self._combined("EXCEPT", right)

    def minus_all(self, right: Table) -> Table:
        """Take away each row as often as the other table has it."""
        return self._combined("EXCEPT ALL", right)

    def union(self, right: Table) -> Table:
        """Put the rows of both together, each once."""
        return self._combined("UNION", right)

    def union_all(self, right: Table) -> Table:
        """Put the rows of both together."""
        return self._combined("UNION ALL", right)

    def intersect(self, right: Table) -> Table:
        """Keep the rows that both have, each once."""
        return self._combined("INTERSECT", right)

    def intersect_all(self, right: Table) -> Table:
        """Keep the rows that both have, as often as both have them."""
        return self._combined("INTERSECT ALL", right)

    # --- order --------------------------------------------------------------------------------------

    def order_by(self, *fields: Expression[Any]) -> Table:
        """Sort the rows; in a stream with `fetch` or `limit`."""
        # As in Flink, where NULL comes is not what it is in SQL: after all others, or before them if it goes down.
        order = ", ".join(
            f"{self._sql(field)} {'DESC NULLS FIRST' if field._order == 'DESC' else 'ASC NULLS LAST'}"
            for field in self._expanded(fields)
        )
        return self._query(f"SELECT * FROM {self._as_input()} ORDER BY {order}")

    def offset(self, offset: int) -> Table:
        """Leave out the first rows."""
        return self._query(f"SELECT * FROM {self._as_input()} OFFSET {int(offset)} ROWS")

    def fetch(self, fetch: int) -> Table:
        """Keep the first rows."""
        return self._query(f"SELECT * FROM {self._as_input()} LIMIT {int(fetch)}")

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Keep the first rows after some others."""
        return self.offset(offset).fetch(fetch) if offset else self.fetch(fetch)

    # --- looking at it ------------------------------------------------------------------------------

    def get_schema(self) -> TableSchema:
        """Return names and types of the columns."""
        return TableSchema(self._columns, [each.type for each in self._plan.schema])

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the schema with resolved column types."""
        return resolved_schema(self._plan.schema, self._declared)

    def print_schema(self) -> None:
        """Print the columns; of a table of the catalog how they are declared, too."""
        print(self.get_resolved_schema())  # noqa: T201  # what it is for

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the plan as text."""
        return self._t_env._statements.explain_query(self._plan, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan that `explain` returns."""
        print(self.explain(*extra_details))  # noqa: T201  # what it is for

    # --- running it ---------------------------------------------------------------------------------

    def execute(self) -> TableResult:
        """Run the query; its rows come to the program while it runs."""
        return self._t_env._statements.execute_query(self._plan)

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TableResult:
        """Write the rows to a table, in a separate job.

        Args:
            table_path_or_descriptor: The table's name, or its description.
            overwrite: Whether what the table has is replaced.
        """
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TablePipeline:
        """Say where the rows go; it runs when the pipeline is executed, or the statement set it is added to."""
        from headrace.table.table_pipeline import TablePipeline

        sink = self._t_env._bind_insert(self, table_path_or_descriptor, overwrite)
        return TablePipeline(sink, self._t_env)

    def to_pandas(self) -> pd.DataFrame:
        """Run the query to its end and return its rows; rows that were retracted are not included."""
        return self._t_env._to_pandas(self._plan)

    def to_spark(self) -> Any:
        """Run the query to its end and return its rows as a DataFrame of PySpark, with the types of the columns.

        Rows of a query that only adds rows go through files; those that are left of one that also retracts rows are
        gathered in this process first.

        Raises:
            JobDefinitionError: If a source of the query never ends.
        """
        return self._t_env._to_spark(self._plan)

    # --- inside -------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Expression[Any]:
        # Only asked for names that are not methods: columns.
        if name.startswith("_") or name not in self._columns:
            if name in OLDER_METHODS["Table"]:
                older_method(self, name)
            raise AttributeError(
                f"the table has no column or method {name!r}; {nearest(name, self._columns)}"
            )
        return col(name)

    def __str__(self) -> str:
        """Return the name SQL reads this table by: ``t_env.sql_query(f"SELECT * FROM {table}")``."""
        return self._as_input()

    def __repr__(self) -> str:
        columns = ", ".join(f"{each.name} {each.summary()}" for each in self._plan.schema)
        return f"<Table ({columns})>"

    @property
    def _columns(self) -> list[str]:
        return [each.name for each in self._plan.schema]

    def _as_input(self) -> str:
        if self._name is None:
            self._name = self._t_env._register_inline(self._plan)
        return self._name

    def _names(self, **more: Any) -> Names:
        return Names(self._t_env._register_function, lambda table: table._as_input(), **more)

    def _sql(self, expression: Expression[Any], names: Names | None = None) -> str:
        return _checked(expression)._sql(names or self._names())

    def _items(self, fields: Sequence[Expression[Any]], names: Names | None = None) -> str:
        names = names or self._names()
        items = []
        for field in self._expanded(fields):
            alias = f" AS {quote_name(field._aliases[0])}" if field._aliases else ""
            items.append(self._sql(field, names) + alias)
        return ", ".join(items)

    def _expanded(self, fields: Iterable[Expression[Any]]) -> list[Expression[Any]]:
        """Write `with_columns` and its like out."""
        expanded: list[Expression[Any]] = []
        for field in fields:
            match _checked(field)._pieces:
                case (ColumnsPiece() as chosen,):
                    expanded += [col(name) for name in self._chosen(chosen)]
                case ("*",):
                    expanded += [col(name) for name in self._columns]
                case (FlattenPiece(row),):
                    expanded += self._flattened(row)
                case _:
                    expanded.append(field)
        return expanded

    def _flattened(self, row: Expression[Any]) -> list[Expression[Any]]:
        kind = self.select(row)._plan.schema[0].type
        if not isinstance(kind, RowType):
            return [row]
        prefix = f"{row._column}$" if row._column is not None else ""
        return [row.get(name).alias(prefix + name) for name in kind.field_names()]

    def _chosen(self, chosen: ColumnsPiece) -> list[str]:
        own = self._columns
        if chosen.chosen is None:
            return own
        names: list[str] = []
        for each in chosen.chosen:
            match each:
                case Expression() if each._column is not None:
                    names.append(each._column)
                case Expression(_pieces=(ColumnsPiece(chosen=(start, end)),)):
                    first, last = self._position(start), self._position(end)
                    names += own[first : last + 1]
                case int() | str():
                    names.append(own[self._position(each)])
                case _:
                    raise SqlValidationError(f"with_columns(): expected columns; got {each!r}")
        self._check_columns("with_columns", names)
        return [name for name in own if name not in names] if chosen.is_inverted else names

    def _position(self, column: str | int) -> int:
        if isinstance(column, int):
            return column - 1
        self._check_columns("with_columns", [column])
        return self._columns.index(column)

    def _check_once(self, fields: Iterable[Expression[Any]]) -> None:
        names = Counter(field._aliases[0] if field._aliases else field._column for field in fields)
        for name, times in names.items():
            if name is not None and times > 1:
                raise SqlValidationError(
                    f"{times} columns are named {name!r}",
                    hint="give one of them another name: alias(); or change it: add_or_replace_columns()",
                )

    def _check_columns(self, call: str, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self._columns]
        if unknown:
            raise SqlValidationError(
                f"{call}(): column {unknown[0]!r} not found; available: {', '.join(self._columns)}"
            )

    def _whole_row(self) -> Expression[Any]:
        fields = [DataTypes.FIELD(each.name, each.type) for each in self._plan.schema]
        return row(*map(col, self._columns)).cast(DataTypes.ROW(fields))

    def _query(self, sql: str) -> Table:
        return Table(self._t_env._bind_query(sql), self._t_env)

    def _selected(self, fields: Sequence[Expression[Any]], rest: str, names: Names | None = None) -> Table:
        """SELECT fields; those without a name get one."""
        chosen = self._expanded(fields)
        self._check_once(chosen)
        plan = self._t_env._bind_query(f"SELECT {self._items(fields, names)} {rest}")
        unnamed = {at for at, field in enumerate(chosen) if not field._aliases}
        return Table(with_default_names(plan, unnamed), self._t_env)

    def _joined(self, kind: str, right: Table, predicate: Expression[bool] | None) -> Table:
        common = [name for name in self._columns if name in _checked_table("join", right)._columns]
        if common:
            raise SqlValidationError(
                f"join: both tables have a column {common[0]!r}",
                hint="rename one of them first, with alias() or rename_columns()",
            )
        condition = "TRUE" if predicate is None else self._sql(predicate)
        return self._query(f"SELECT * FROM {self._as_input()} {kind} {right._as_input()} ON {condition}")

    def _combined(self, operation: str, right: Table) -> Table:
        other = _checked_table(operation.lower().replace("except", "minus").replace(" ", "_"), right)
        return self._query(f"SELECT * FROM {self._as_input()} {operation} SELECT * FROM {other._as_input()}")


class GroupedTable:
    """A table whose rows are grouped. Made by `Table.group_by`."""

    def __init__(self, table: Table, fields: Sequence[Expression[Any]]) -> None:
        self._table = table
        self._fields = fields

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute a row for each group, of its keys and of aggregations."""
        table, keys = with_keys(self._table, self._fields)
        grouped = ", ".join(table._sql(key) for key in keys)
        return table._selected(fields, f"FROM {table._as_input()} GROUP BY {grouped}")

    def aggregate(self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper) -> AggregatedTable:
        """Aggregate each group with a function that `udaf` made; `select` then takes fields of its result."""
        return AggregatedTable(Groups(self._table, self._fields), func)

    def flat_aggregate(
        self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper
    ) -> FlatAggregateTable:
        """Aggregate each group with a function that `udtaf` made; `select` then takes columns of its rows."""
        return FlatAggregateTable(Groups(self._table, self._fields), func)


class GroupWindowedTable:
    """A table whose rows are in windows. Made by `Table.window`."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._window = window

    def group_by(self, *fields: Expression[Any]) -> WindowGroupedTable:
        """Group rows by the window, which must be among the fields, and by other values."""
        named = [field for field in fields if _checked(field)._column == self._window.alias]
        if not named:
            raise SqlValidationError(
                f"group_by(): the window {self._window.alias!r} is missing from the grouping",
                hint=f"group_by(col({self._window.alias!r}), ...)",
            )
        return WindowGroupedTable(
            self._table, self._window, [each for each in fields if each is not named[0]]
        )


class WindowGroupedTable:
    """A table whose rows are grouped by a window and other values. Made by `GroupWindowedTable.group_by`."""

    def __init__(self, table: Table, window: GroupWindow, fields: Sequence[Expression[Any]]) -> None:
        self._table = table
        self._window = window
        self._fields = fields

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute a row for each group and window: ``col("w").start`` and ``.end`` are the window's."""
        table, keys = with_keys(self._table, self._fields)
        window = self._window

        def property_of(alias: str, name: str) -> str:
            if alias != window.alias:
                raise SqlValidationError(
                    f"window {alias!r} does not exist; the window here is {window.alias!r}"
                )
            return window._sql(plain, f"_{name.upper()}")

        plain = table._names()
        names = table._names(window=property_of)
        grouped = ", ".join([window._sql(plain), *(table._sql(key) for key in keys)])
        return table._selected(fields, f"FROM {table._as_input()} GROUP BY {grouped}", names)

    def aggregate(self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper) -> AggregatedTable:
        """Aggregate each group and window with a function that `udaf` made; `select` then takes its fields."""
        return AggregatedTable(Groups(self._table, self._fields, self._window), func)

    def flat_aggregate(
        self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper
    ) -> FlatAggregateTable:
        """Aggregate each group and window with a function that `udtaf` made."""
        return FlatAggregateTable(Groups(self._table, self._fields, self._window), func)


class OverWindowedTable:
    """A table with windows of earlier rows. Made by `Table.over_window`."""

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table = table
        self._windows = {window.alias: window for window in windows}

    def select(self, *fields: Expression[Any]) -> Table:
        """Compute columns; aggregations go over the window that `over` names."""
        table = self._table
        plain = table._names()

        def window(alias: str) -> str:
            if alias not in self._windows:
                raise SqlValidationError(
                    f"window {alias!r} does not exist; available: {', '.join(self._windows)}"
                )
            return self._windows[alias]._sql(plain)

        names = table._names(over=window)
        return table._selected(fields, f"FROM {table._as_input()}", names)


def _checked_table(call: str, table: Any) -> Table:
    if not isinstance(table, Table):
        raise SqlValidationError(
            f"{call}(): expected a Table; got {shorten(table)}", hint="t_env.from_path('name') is a table"
        )
    return table


def _checked(expression: Any) -> Expression[Any]:
    if not isinstance(expression, Expression):
        hint = "columns are col('name'), constants lit(value)"
        if callable(expression):
            hint = f"it is a function: write {getattr(expression, '__name__', 'it')}(...)"
        raise SqlValidationError(f"expected an expression such as col('name'); got {expression!r}", hint=hint)
    return expression
