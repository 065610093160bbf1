"""Binds SHOW, DESCRIBE, USE and STOP: statements that show the catalog, choose from it, or manage jobs."""

from __future__ import annotations

from headrace.catalog.objects import CatalogTable, InlineView
from headrace.planner.binder.context import Context
from headrace.planner.binder.names import NameBinder, partition_constants
from headrace.planner.binder.tables import QueryBinding, TableBinder
from headrace.planner.dialect import statement_syntax as syntax
from headrace.planner.dialect.syntax import Name
from headrace.planner.statements import (
    CatalogStatement,
    Describe,
    DescribeCatalog,
    DescribeDatabase,
    DescribeFunction,
    JobStatement,
    LoadModule,
    Show,
    ShowColumns,
    ShowCreate,
    ShowCreateCatalog,
    ShowJobs,
    ShowPartitions,
    ShowSubject,
    StopJob,
    UnloadModule,
    UseCatalog,
    UseDatabase,
    UseModules,
)

__all__ = ["InspectionBinder"]


class InspectionBinder(NameBinder):
    """Binds statements that change no table."""

    def __init__(self, context: Context, bind_query: QueryBinding) -> None:
        super().__init__(context)
        self._bind_query = bind_query

    def bind(self, node: syntax.StatementSyntax) -> CatalogStatement | JobStatement | ShowPartitions | None:
        """The bound statement; None if it is another one."""
        match node:
            case syntax.UseSyntax() if node.kind == "CATALOG":
                return UseCatalog(self.one_name(node.name, "catalog"))
            case syntax.UseSyntax():
                return UseDatabase(*self.database(node.name))
            case syntax.UseModulesSyntax():
                return UseModules(tuple(one.name for one in node.names))
            case syntax.ModuleSyntax(loads=True):
                return LoadModule(node.name.name, self.options(node.options))
            case syntax.ModuleSyntax():
                return UnloadModule(node.name.name)
            case syntax.DescribeSyntax():
                return self._described(node)
            case syntax.ShowSyntax():
                return self._show(node)
            case syntax.ShowPartitionsSyntax():
                return self._partitions(node)
            case syntax.JobSyntax():
                return ShowJobs(node.job_id)
            case syntax.StopJobSyntax():
                return StopJob(node.job_id, node.with_savepoint, node.with_drain)
            case _:
                return None

    # --- DESCRIBE ---------------------------------------------------------------------------------

    def _described(self, node: syntax.DescribeSyntax) -> CatalogStatement:
        match node.kind:
            case "CATALOG":
                return DescribeCatalog(self.catalog(node.name), node.extended)
            case "DATABASE":
                return DescribeDatabase(*self.database(node.name), node.extended)
            case "FUNCTION":
                return DescribeFunction(node.name.path, node.extended)
            case _:
                return self._describe(node.name)

    def _describe(self, name: Name) -> Describe:
        plan, _ = TableBinder(self.context, self._bind_query, None).table_plan(name)
        identifier = self.qualify(name)
        found = self.context.manager.table(identifier)
        return Describe(identifier, None if isinstance(found, InlineView) else found, plan.schema)

    # --- SHOW -------------------------------------------------------------------------------------

    def _show(self, node: syntax.ShowSyntax) -> CatalogStatement:
        if node.subject == "CREATE CATALOG":
            assert node.source is not None
            return ShowCreateCatalog(self.catalog(node.source))
        if node.subject.startswith("CREATE "):
            return self._show_create(node)
        if node.subject == "COLUMNS":
            assert node.source is not None
            described = self._describe(node.source)
            return ShowColumns(
                described.identifier,
                described.table,
                described.fields,
                node.pattern,
                node.negated,
                node.ignore_case,
            )
        catalog = database = None
        if node.source is not None:
            if node.subject == "DATABASES":
                catalog = self.one_name(node.source, "catalog")
            elif node.subject == "CATALOGS":
                raise self.context.error("SHOW CATALOGS does not support FROM", node.source.span)
            else:
                catalog, database = self.database(node.source)
        return Show(
            ShowSubject[node.subject], catalog, database, node.pattern, node.negated, node.ignore_case
        )

    def _show_create(self, node: syntax.ShowSyntax) -> ShowCreate:
        assert node.source is not None
        identifier = self.qualify(node.source)
        found = self.context.manager.table(identifier)
        what = node.subject.partition(" ")[2].lower()
        if found is None:
            raise self.missing(what, identifier, node.source.span)
        if isinstance(found, InlineView):
            raise self.context.error(
                f"{identifier.dotted()!r} was created by a program, so there is no CREATE statement to show",
                node.source.span,
            )
        if isinstance(found, CatalogTable) != (what == "table"):
            other = "view" if what == "table" else "table"
            raise self.context.error(
                f"{identifier.dotted()!r} is a {other}", node.source.span, hint=f"SHOW CREATE {other.upper()}"
            )
        return ShowCreate(identifier, found)

    def _partitions(self, node: syntax.ShowPartitionsSyntax) -> ShowPartitions:
        identifier = self.qualify(node.table)
        found = self.context.manager.table(identifier)
        if found is None:
            raise self.missing("table", identifier, node.table.span)
        if not isinstance(found, CatalogTable) or not found.partition_keys:
            raise self.context.error(f"{identifier.dotted()!r} is not partitioned", node.table.span)
        wanted = partition_constants(self.context, found, identifier, node.partition)
        if len(wanted) < len(node.partition):
            raise self.context.error("specify a partition as column = value", node.span)
        return ShowPartitions(identifier, found, {name: str(one.value) for name, one in wanted.items()})
