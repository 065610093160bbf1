"""Several INSERTs that run as one job, and share what they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import SqlValidationError
from headrace.planner.logical import Sink
from headrace.planner.statements import Insert
from headrace.table.compiled_plan import CompiledPlan, compiled
from headrace.table.table import Table
from headrace.table.table_descriptor import TableDescriptor
from headrace.table.table_pipeline import TablePipeline
from headrace.table.table_result import TableResult

if TYPE_CHECKING:
    from headrace.planner.statements import ExplainDetail
    from headrace.table.table_environment import TableEnvironment

__all__ = ["StatementSet"]


class StatementSet:
    """INSERTs that run as one job. Made by `TableEnvironment.create_statement_set`."""

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env
        self._sinks: list[Sink] = []

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add a query and its table."""
        self._sinks.append(table_pipeline._sink)
        return self

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT.

        Raises:
            SqlValidationError: If it is another statement.
        """
        statement = self._t_env._bind_one(stmt)
        if not isinstance(statement, Insert):
            raise SqlValidationError(
                "add_insert_sql(): a statement set can only contain INSERT statements", sql=stmt
            )
        self._sinks.append(statement.sink)
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Add a table whose rows go to another one."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def attach_as_datastream(self) -> None:
        """Add the INSERTs to the stream program: `StreamExecutionEnvironment.execute` runs all as one job.

        The set is empty afterwards.

        Raises:
            SqlValidationError: If there are none.
        """
        self._t_env._attach_inserts(self._taken())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the plan of the job as text."""
        return self._t_env._statements.explain_inserts(self._sinks, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan of the job."""
        print(self.explain(*extra_details))  # noqa: T201  # what it is for

    def execute(self) -> TableResult:
        """Run the INSERTs as one job; the set is empty afterwards.

        Raises:
            SqlValidationError: If there are none.
        """
        return self._t_env._statements.execute_inserts(self._taken())

    def _taken(self) -> list[Sink]:
        if not self._sinks:
            raise SqlValidationError(
                "the statement set is empty", hint="add_insert_sql() or add_insert() first"
            )
        sinks, self._sinks = self._sinks, []
        return sinks

    def compile_plan(self) -> CompiledPlan:
        """Return the plan of the INSERTs, to be kept and executed with the same ids; the set is empty afterwards.

        Raises:
            SqlValidationError: If there are none.
        """
        return compiled(self._taken(), self._t_env._statements)
