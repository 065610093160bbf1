"""Calls of a table environment that are about compiled plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from headrace.errors import SqlValidationError
from headrace.planner.statements import BoundStatement, Insert, StatementSet
from headrace.table.compiled_plan import CompiledPlan, compiled, loaded
from headrace.table.plan_reference import PlanReference
from headrace.table.table_result import TableResult

if TYPE_CHECKING:
    from headrace.table.table_environment import TableEnvironment

__all__ = ["PlanCalls"]


class PlanCalls:
    """The part of a table environment that compiles and executes plans."""

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """Return a plan that was compiled before.

        Raises:
            SqlValidationError: If it cannot be read, or does not fit the tables there are.
        """
        return loaded(plan_reference, cast("TableEnvironment", self))

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """Compile an INSERT or a statement set.

        Raises:
            SqlValidationError: If it is another statement.
        """
        t_env = cast("TableEnvironment", self)
        statement: BoundStatement = t_env._bind_one(stmt)
        if isinstance(statement, Insert):
            return compiled([statement.sink], t_env)
        if not isinstance(statement, StatementSet):
            raise SqlValidationError("compile_plan_sql() takes an INSERT or a statement set", sql=stmt)
        return compiled([insert.sink for insert in statement.inserts], t_env)

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Run a plan as a job."""
        return self.load_plan(plan_reference).execute()
