"""A plan that is kept: its operators have the same ids whenever and by whichever version it is executed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.errors import JobDefinitionError, UnsupportedFeatureError
from headrace.table._plans import PlanJson
from headrace.table.plan_reference import FilePlanReference, JsonContentPlanReference, PlanReference
from headrace.table.table_result import TableResult

if TYPE_CHECKING:
    from headrace.planner.logical import Sink
    from headrace.planner.statements import ExplainDetail
    from headrace.table._statements import StatementRunner

__all__ = ["CompiledPlan"]


class CompiledPlan:
    """A compiled plan. Made by `compile_plan_sql` and `load_plan` of environments, and `compile_plan` of INSERTs."""

    def __init__(self, plan: PlanJson, statements: StatementRunner) -> None:
        self._plan = plan
        self._statements = statements

    def as_json_string(self) -> str:
        """Return the plan as JSON."""
        return self._plan.text

    def as_smile_bytes(self) -> bytes:
        """Refused: plans are JSON."""
        raise UnsupportedFeatureError.not_yet("as_smile_bytes()", "plans are JSON: as_json_string()")

    def print_json_string(self) -> None:
        """Print the plan as JSON."""
        print(self._plan.text)  # noqa: T201  # what it is for

    def write_to_file(self, file: str, ignore_if_exists: bool = False) -> None:
        """Write the plan to a file.

        Raises:
            SqlValidationError: If the file exists, unless ``ignore_if_exists`` is set.
        """
        self._statements.plans.write(str(file), self._plan, ignore_if_exists=ignore_if_exists)

    def get_flink_version(self) -> str:
        """Return the version of Flink whose SQL the plan was written in."""
        return "2.3"

    def execute(self) -> TableResult:
        """Run the plan as a job."""
        return self._statements.execute_plan(self._plan)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the operators of the plan as text; details are those of the statement it was compiled from."""
        if extra_details:
            raise UnsupportedFeatureError.not_yet(
                "details of a compiled plan", "explain the statement itself"
            )
        nodes = self._statements.plans.load(self._plan).nodes
        lines = [f"{node.operator_id}  {node.description or node.name}" for node in nodes]
        return "== Compiled Plan ==\n" + "\n".join(lines) + "\n"

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print what `explain` returns."""
        print(self.explain(*extra_details))  # noqa: T201  # what it is for


def compiled(sinks: Sequence[Sink], statements: StatementRunner) -> CompiledPlan:
    """Compile INSERTs that run as one job."""
    return CompiledPlan(statements.plans.compile(sinks), statements)


def loaded(reference: PlanReference, statements: StatementRunner) -> CompiledPlan:
    """Return the plan that a reference points at, checked."""
    match reference:
        case FilePlanReference():
            plan = statements.plans.read(reference.get_file())
        case JsonContentPlanReference():
            plan = PlanJson(reference.get_content())
        case _:
            raise JobDefinitionError(
                f"expected a PlanReference; got {type(reference).__name__}",
                hint="PlanReference.from_file(path)",
            )
    statements.plans.load(plan)
    return CompiledPlan(plan, statements)
