"""A query and the table it is written to, before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.planner.logical import Sink
from headrace.table.catalog_columns import ObjectIdentifier
from headrace.table.compiled_plan import CompiledPlan, compiled
from headrace.table.table_result import TableResult

if TYPE_CHECKING:
    from headrace.planner.statements import ExplainDetail
    from headrace.table.table_environment import TableEnvironment

__all__ = ["TablePipeline"]


class TablePipeline:
    """Rows on their way to a table. Made by `Table.insert_into`."""

    def __init__(self, sink: Sink, t_env: TableEnvironment) -> None:
        self._sink = sink
        self._t_env = t_env

    def execute(self) -> TableResult:
        """Run it in a separate job."""
        return self._t_env._statements.execute_inserts([self._sink])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the plan as text."""
        return self._t_env._statements.explain_inserts([self._sink], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan that `explain` returns."""
        print(self.explain(*extra_details))  # noqa: T201  # what it is for

    def get_sink_identifier(self) -> ObjectIdentifier:
        """Return the name of the table."""
        return ObjectIdentifier(*self._sink.identifier.parts)

    def compile_plan(self) -> CompiledPlan:
        """Return the plan, to be kept and executed with the same ids."""
        return compiled([self._sink], self._t_env._statements)
