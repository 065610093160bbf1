"""Compiled plans of an environment: written to files, read again, and executed with the ids they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.catalog import CatalogManager, ObjectIdentifier
from headrace.catalog.objects import CatalogTable
from headrace.common import JobClient
from headrace.config.options import table_flink as options
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.operators.table.declarations import TableSinkDeclaration
from headrace.planner import plan_files
from headrace.planner import statements as s
from headrace.planner.logical import Scan, Sink
from headrace.planner.physical import TableTarget
from headrace.planner.show_create import HIDDEN
from headrace.planner.sql import bind, parse_statement
from headrace.storage import files
from headrace.table._functions import load_function
from headrace.table._jobs import TableJobs
from headrace.table.attachments import values_of

__all__ = ["CompiledPlans", "PlanJson"]


@dataclass(frozen=True)
class PlanJson:
    """A plan as JSON, and where it came from."""

    text: str
    place: str = "the plan"


class CompiledPlans:
    """Compiles and executes plans.

    Args:
        jobs: Plans and starts jobs.
        manager: Has the tables.
    """

    def __init__(self, jobs: TableJobs, manager: CatalogManager) -> None:
        self._jobs = jobs
        self._manager = manager

    def compile(self, sinks: Sequence[Sink]) -> PlanJson:
        """Return the plan of INSERTs.

        Raises:
            UnsupportedFeatureError: If it cannot be kept in a file.
        """
        if self._jobs.is_batch:
            raise UnsupportedFeatureError(
                "compiled plans are for STREAMING mode: Spark plans the statements of batch jobs",
                feature="COMPILE PLAN in BATCH mode",
                hint="run the statement instead",
            )
        names = ",".join(sink.identifier.dotted() for sink in sinks)
        text = plan_files.encoded_plan(
            self._jobs.nodes(self._jobs.plan_inserts(sinks)),
            f"insert-into_{names}",
            self._jobs.session_settings,
            keeps_tables=self._jobs.configuration.get(options.COMPILE_OBJECTS) == "ALL",
        )
        return PlanJson(text)

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        return files.file_exists(path)

    def write(self, path: str, plan: PlanJson, *, ignore_if_exists: bool) -> None:
        """Write a plan.

        Raises:
            SqlValidationError: If the file is there, and must not be overwritten.
        """
        overwrites = self._jobs.configuration.get(options.FORCE_RECOMPILE)
        if files.file_exists(path) and not overwrites:
            if ignore_if_exists:
                return
            raise SqlValidationError(
                f"cannot overwrite the plan {path!r}",
                hint=f"COMPILE PLAN ... IF NOT EXISTS, remove the file, or set {options.FORCE_RECOMPILE.key} to true",
            )
        if overwrites:
            files.delete_files([path])
        files.write_new_file(path, plan.text.encode())

    def read(self, path: str) -> PlanJson:
        """Read a plan.

        Raises:
            SqlValidationError: If there is no such file.
        """
        data = files.read_if_there(path)
        if data is None:
            raise SqlValidationError(f"there is no plan {path!r}", hint="COMPILE PLAN 'file' FOR INSERT ...")
        return PlanJson(data.decode(), repr(path))

    def run(self, plan: PlanJson) -> tuple[JobClient, list[str]]:
        """Start the job of a plan; return the tables it writes, too.

        Raises:
            SqlValidationError: If the plan cannot be read, or does not fit the tables there are.
        """
        found = self.load(plan)
        graph = self._jobs.graph_of(found.nodes, found.name, found.session_settings)
        sinks = [
            node.name.removeprefix("Sink: ")
            for node in found.nodes
            if isinstance(node.declaration, TableSinkDeclaration)
        ]
        return self._jobs.submit(graph), sinks

    def load(self, plan: PlanJson) -> plan_files.PlanFile:
        """Return the nodes of a plan, with the connectors of their tables."""
        return plan_files.decoded_plan(plan.text, self._source, self._sink, values_of, plan.place)

    def _source(self, table: plan_files.PlanTable) -> Any:
        return self._jobs.connectors.source_of(Scan(self._table(table), ObjectIdentifier(*table.path)))

    def _sink(self, table: plan_files.PlanTable) -> Any:
        target = TableTarget(
            ObjectIdentifier(*table.path),
            self._table(table),
            table.is_overwrite,
            table.static_partitions or {},
        )
        return self._jobs.connectors.sink_for(target).sink

    def _table(self, table: plan_files.PlanTable) -> CatalogTable:
        """Return a table of a plan: from the catalog, or as the plan has it."""
        identifier = ObjectIdentifier(*table.path)
        how = self._jobs.configuration.get(options.RESTORE_OBJECTS)
        kept = self._kept(table) if table.ddl is not None and how != "IDENTIFIER" else None
        named = None if how == "ALL_ENFORCED" else self._manager.table(identifier)
        found = getattr(named, "table", named)
        if isinstance(found, CatalogTable):
            if kept is not None and not plan_files.same_columns(kept, found):
                raise SqlValidationError(
                    f"table {identifier.dotted()!r} no longer has the columns that it had when the plan was compiled",
                    hint="compile the statement again, or set table.plan.restore.catalog-objects to ALL_ENFORCED",
                )
            return found
        if kept is None:
            raise SqlValidationError(
                f"the plan has only the name of table {identifier.dotted()!r}, and the catalog does not have it",
                hint="CREATE TABLE first",
            )
        hidden = sorted(key for key, value in kept.options.items() if HIDDEN in value)
        if hidden:
            raise SqlValidationError(
                f"table {identifier.dotted()!r}: a plan does not keep secrets, so {', '.join(hidden)} is not known",
                hint="CREATE TABLE first: options are then taken from the catalog",
            )
        return kept

    def _kept(self, table: plan_files.PlanTable) -> CatalogTable:
        statement = bind(
            parse_statement(table.ddl or ""),
            self._manager,
            load_function,
            batch=False,
            load_lookup=self._jobs.lookup_of,
        )
        assert isinstance(statement, s.CreateTable)
        return statement.table
