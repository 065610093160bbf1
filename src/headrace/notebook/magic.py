"""``%%flink_sql``: SQL statements in a cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from headrace.errors import JobDefinitionError
from headrace.notebook.display import plot, show
from headrace.table.environment_settings import EnvironmentSettings
from headrace.table.script import execute_statements
from headrace.table.table_environment import TableEnvironment
from headrace.table.table_result import TableResult

__all__ = ["FlinkSqlMagics"]

_NEW_ENVIRONMENT = "t_env"


@magics_class
class FlinkSqlMagics(Magics):
    """The magic commands of ``%load_ext headrace.notebook``."""

    @magic_arguments()
    @argument("--env", help="the variable of the table environment; by default the only one of the notebook")
    @argument("--rows", type=int, default=20, help="the most rows to show")
    @argument("--changelog", action="store_true", help="show changes instead of the table they lead to")
    @argument("--output", "-o", help="a variable for the result of the query, which is not shown")
    @argument("--plot", metavar="X,Y", help="draw column Y over column X instead of a table")
    @cell_magic
    def flink_sql(self, line: str, cell: str) -> None:
        """Execute the statements of a cell, separated by semicolons, and show their results.

        Queries are updated below the cell until they end; interrupt the kernel to cancel one. INSERT starts a job and
        returns at once, unless ``table.dml-sync`` is set.
        """
        arguments = parse_argstring(self.flink_sql, line)
        results = execute_statements(self._environment(arguments.env), cell)
        with_rows = (result for result, has_rows in results if has_rows)
        if arguments.output:
            self._keep(with_rows, arguments.output)
            return
        for result in with_rows:
            if arguments.plot:
                x, _, y = arguments.plot.partition(",")
                plot(result, x=x.strip(), y=y.strip())
            else:
                show(result, rows=arguments.rows, changelog=arguments.changelog)

    @property
    def _variables(self) -> dict[str, Any]:
        assert self.shell is not None, "magics are registered with a shell"
        variables: dict[str, Any] = self.shell.user_ns
        return variables

    def _keep(self, results: Iterator[TableResult], name: str) -> None:
        """Put the result of a cell's only query into a variable."""
        kept = next(results, None)
        if kept is None:
            raise JobDefinitionError(f"%%flink_sql --output {name}: the cell has no query")
        self._variables[name] = kept
        for second in results:
            second.collect().close()
            raise JobDefinitionError(
                f"%%flink_sql --output {name}: the cell has several queries",
                hint=f"write each into a cell of its own; {name} is the result of the first",
            )

    def _environment(self, name: str | None) -> TableEnvironment:
        variables = self._variables
        if name is not None:
            found = variables.get(name)
            if not isinstance(found, TableEnvironment):
                raise JobDefinitionError(
                    f"%%flink_sql --env {name}: there is no table environment in a variable {name!r}"
                )
            return found
        known = {
            id(each): (variable, each)
            for variable, each in variables.items()
            if isinstance(each, TableEnvironment) and not variable.startswith("_")
        }
        if len(known) > 1:
            names = ", ".join(sorted(variable for variable, _ in known.values()))
            raise JobDefinitionError(
                f"%%flink_sql: the notebook has several table environments: {names}",
                hint="name the one to use: %%flink_sql --env NAME",
            )
        if not known:
            created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
            variables[_NEW_ENVIRONMENT] = created
            return created
        return next(iter(known.values()))[1]
