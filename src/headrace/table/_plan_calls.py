"""Calls of a table environment that are about compiled plans."""

from __future__ import annotations

from headrace.errors import SqlValidationError
from headrace.planner.statements import BoundStatement, Insert, StatementSet
from headrace.table._statements import StatementRunner
from headrace.table.compiled_plan import CompiledPlan, compiled, loaded
from headrace.table.plan_reference import PlanReference
from headrace.table.table_result import TableResult

__all__ = ["PlanCalls"]


class PlanCalls:
    """The part of a table environment that compiles and executes plans."""

    _statements: StatementRunner

    def _bind_one(self, text: str) -> BoundStatement:
        raise NotImplementedError

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """Return a plan that was compiled before.

        Raises:
            SqlValidationError: If it cannot be read, or does not fit the tables there are.
        """
        return loaded(plan_reference, self._statements)

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """Compile an INSERT or a statement set.

        Raises:
            SqlValidationError: If it is another statement.
        """
        statement = self._bind_one(stmt)
        if isinstance(statement, Insert):
            return compiled([statement.sink], self._statements)
        if not isinstance(statement, StatementSet):
            raise SqlValidationError("compile_plan_sql() takes an INSERT or a statement set", sql=stmt)
        return compiled([insert.sink for insert in statement.inserts], self._statements)

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Run a plan as a job."""
        return self.load_plan(plan_reference).execute()
