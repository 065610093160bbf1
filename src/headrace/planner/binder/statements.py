"""Statements: INSERT with its sink's types, statement sets, EXPLAIN; others go to `inspection` and `definitions`."""

from __future__ import annotations

from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable, MetadataColumn, PhysicalColumn
from headrace.errors import HeadraceError
from headrace.planner.binder.context import Context
from headrace.planner.binder.definitions import DefinitionBinder
from headrace.planner.binder.expressions import cast_to
from headrace.planner.binder.inspection import InspectionBinder
from headrace.planner.binder.materialized import bind_alter_or_drop, bind_create
from headrace.planner.binder.names import partition_constants
from headrace.planner.binder.queries import bind_query
from headrace.planner.coercion import can_cast, can_cast_implicitly
from headrace.planner.dialect.statement_syntax import (
    AlterMaterializedSyntax,
    CompilePlanSyntax,
    CreateMaterializedSyntax,
    CreateTableSyntax,
    DropMaterializedSyntax,
    ExecutePlanSyntax,
    ExplainSyntax,
    InsertSyntax,
    ResetSyntax,
    SetSyntax,
    StatementSetSyntax,
    StatementSyntax,
)
from headrace.planner.dialect.syntax import Query
from headrace.planner.dialect.tokens import Span
from headrace.planner.expressions import Expression, InputRef, Literal
from headrace.planner.logical import LogicalNode, OnConflict, Project, Sink
from headrace.planner.statements import (
    BoundStatement,
    CompilePlan,
    CreateTable,
    CreateTableAs,
    ExecutePlan,
    Explain,
    ExplainDetail,
    Insert,
    Reset,
    Set,
    StatementSet,
)
from headrace.planner.statements import QueryStatement as BoundQuery

__all__ = ["bind_sink", "bind_statement"]


def bind_statement(context: Context, node: StatementSyntax) -> BoundStatement:
    """The bound statement of a syntax tree."""
    match node:
        case Query():
            return BoundQuery(bind_query(context, node))
        case InsertSyntax():
            return _insert(context, node)
        case StatementSetSyntax():
            return StatementSet(tuple(_insert(context, one) for one in node.inserts))
        case ExplainSyntax():
            return _explain(context, node)
        case CompilePlanSyntax():
            bound = bind_statement(context, node.statement)
            assert isinstance(bound, Insert | StatementSet)
            inserts = (bound,) if isinstance(bound, Insert) else bound.inserts
            return CompilePlan(node.path, inserts, node.if_not_exists, node.executes)
        case ExecutePlanSyntax():
            return ExecutePlan(node.path)
        case SetSyntax():
            return Set(node.key, node.value)
        case ResetSyntax():
            return Reset(node.key)
        case CreateTableSyntax() if node.query is not None:
            return _create_table_as(context, node)
        case CreateMaterializedSyntax():
            return bind_create(context, node, _create_table_as(context, node.table))
        case AlterMaterializedSyntax() | DropMaterializedSyntax():
            return bind_alter_or_drop(context, node)
        case _:
            shown = InspectionBinder(context, bind_query).bind(node)
            return DefinitionBinder(context, bind_query).bind(node) if shown is None else shown


def _explain(context: Context, node: ExplainSyntax) -> Explain:
    bound = bind_statement(context, node.statement)
    assert isinstance(bound, BoundQuery | Insert | StatementSet)
    return Explain(bound, frozenset(ExplainDetail[one] for one in node.details))


# --- INSERT ---------------------------------------------------------------------------------------


def _insert(context: Context, node: InsertSyntax) -> Insert:
    try:
        identifier = context.manager.qualify(node.target.path)
        table = context.manager.table(identifier)
    except HeadraceError as wrong:
        raise context.catalog_error(wrong.message, node.target.span, hint=wrong.hint) from wrong
    if table is None:
        raise context.catalog_error(
            f"table {identifier.dotted()!r} does not exist",
            node.target.span,
            hint=context.near_table(identifier.name),
        )
    if not isinstance(table, CatalogTable):
        raise context.error(f"{identifier.dotted()!r} is a view; you cannot insert into it", node.target.span)
    options: dict[str, str] = {}
    for hint in node.hints:
        if hint.name != "OPTIONS":
            raise context.error(f"INSERT supports only the OPTIONS hint, not {hint.name}", hint.span)
        options.update(hint.options)
    if options:
        table = table.with_options(options)
    plan = bind_query(context, node.query)
    return Insert(_Filling(context, node, table, identifier).sink(plan))


class _Filling:
    """Which column of the sink gets which column of the query."""

    def __init__(
        self, context: Context, node: InsertSyntax, table: CatalogTable, identifier: ObjectIdentifier
    ) -> None:
        self._context, self._node, self._table, self._identifier = context, node, table, identifier
        self._columns = {column.name: column for column in table.sink_columns}

    def sink(self, plan: LogicalNode) -> Sink:
        static = self._static_partitions()
        targets = self._targets(static)
        if len(plan.schema) != len(targets):
            raise self._context.error(
                f"{self._identifier.dotted()} has {len(targets)} columns ({', '.join(targets)}), "
                f"but the query returns {len(plan.schema)}",
                self._node.query.span,
                hint="name the columns that the query fills: INSERT INTO table (column, ...) SELECT ...",
            )
        given: dict[str, Expression] = {
            name: InputRef(place, plan.schema[place].type) for place, name in enumerate(targets)
        }
        given |= static
        chosen = tuple(targets) if self._node.columns else None
        partitions = {name: str(value.value) for name, value in static.items()}
        return bind_sink(
            self._context,
            plan,
            self._table,
            self._identifier,
            given,
            self._node.query.span,
            overwrite=self._node.overwrite,
            static_partitions=partitions,
            target_columns=chosen,
            on_conflict=None if self._node.on_conflict is None else OnConflict(self._node.on_conflict),
        )

    def _static_partitions(self) -> dict[str, Literal]:
        return partition_constants(self._context, self._table, self._identifier, self._node.partition)

    def _targets(self, static: dict[str, Literal]) -> list[str]:
        if not self._node.columns:
            return [name for name in self._columns if name not in static]
        names = []
        for column in self._node.columns:
            if column.name not in self._columns:
                raise self._context.error(
                    f"{self._identifier.dotted()} has no column {column.name!r} to write",
                    column.span,
                    hint=nearest(column.name, self._columns),
                )
            if column.name in names or column.name in static:
                raise self._context.error(f"column {column.name!r} is listed twice", column.span)
            names.append(column.name)
        return names


def bind_sink(
    context: Context,
    plan: LogicalNode,
    table: CatalogTable,
    identifier: ObjectIdentifier,
    given: dict[str, Expression],
    span: Span,
    *,
    overwrite: bool = False,
    static_partitions: dict[str, str] | None = None,
    target_columns: tuple[str, ...] | None = None,
    on_conflict: OnConflict | None = None,
) -> Sink:
    """Rows of a plan as a table's columns: in its order, of its types, NULL where nothing is given."""
    expressions: list[Expression] = []
    for column in table.sink_columns:
        expressions.append(_filled(context, column, given.get(column.name), span))
    names = tuple(column.name for column in table.sink_columns)
    plain = [isinstance(one, InputRef) and one.index == place for place, one in enumerate(expressions)]
    same = all(plain) and tuple(one.name for one in plan.schema) == names
    body = plan if same else Project(plan, tuple(expressions), names)
    return Sink(
        body,
        table,
        identifier,
        overwrite,
        static_partitions or {},
        target_columns,
        on_conflict,
        context.place(span),
    )


def _filled(
    context: Context, column: PhysicalColumn | MetadataColumn, given: Expression | None, span: Span
) -> Expression:
    if given is None:
        if not column.type.is_nullable:
            raise context.error(f"column {column.name!r} is NOT NULL but gets no value", span)
        return Literal(None, column.type)
    constant = isinstance(given, Literal) and can_cast(given.type, column.type)
    if not can_cast_implicitly(given.type, column.type) and not constant:
        raise context.error(
            f"column {column.name!r} is {column.type.summary_without_null()}, but the query returns "
            f"{given.type.summary_without_null()}",
            span,
            hint=f"CAST(... AS {column.type.summary_without_null()})",
        )
    # NULL in a NOT NULL column is judged row by row (table.exec.sink.not-null-enforcer).
    return cast_to(given, column.type)


# --- CREATE TABLE AS ------------------------------------------------------------------------------


def _create_table_as(context: Context, node: CreateTableSyntax) -> CreateTableAs:
    assert node.query is not None
    plan = bind_query(context, node.query)
    names = [one.name for one in plan.schema]
    order = names
    if node.column_names:
        order = [column.name for column in node.column_names]
        for column in node.column_names:
            if column.name not in names:
                raise context.error(
                    f"the query returns no column {column.name!r}",
                    column.span,
                    hint=nearest(column.name, names),
                )
        if sorted(order) != sorted(names):
            raise context.error(
                "the column list must name exactly the columns of the query, in any order",
                node.column_names[0].span,
            )
    elif node.columns is not None:
        raise context.unsupported("CREATE TABLE with columns and AS SELECT", node.span)
    columns = tuple(PhysicalColumn(name, plan.schema[names.index(name)].type) for name in order)
    create = DefinitionBinder(context, bind_query).create_table(node, columns)
    assert isinstance(create, CreateTable)
    given: dict[str, Expression] = {
        name: InputRef(place, plan.schema[place].type) for place, name in enumerate(names)
    }
    sink = bind_sink(context, plan, create.table, create.identifier, given, node.query.span)
    return CreateTableAs(create, Insert(sink), node.replaces)
