"""Binds statements about materialized tables."""

from __future__ import annotations

from headrace.catalog.objects import CatalogTable, RefreshMode
from headrace.planner.binder.context import Context
from headrace.planner.binder.definitions import DefinitionBinder
from headrace.planner.binder.names import partition_constants
from headrace.planner.binder.qualified import expanded_query
from headrace.planner.binder.queries import bind_query
from headrace.planner.dialect import statement_syntax as syntax
from headrace.planner.statements import (
    AlterMaterializedTable,
    CreateMaterializedTable,
    CreateTableAs,
    DropMaterializedTable,
    MaterializedTableStatement,
)

__all__ = ["bind_alter_or_drop", "bind_create"]


def bind_create(
    context: Context, node: syntax.CreateMaterializedSyntax, table: CreateTableAs
) -> CreateMaterializedTable:
    """CREATE MATERIALIZED TABLE, whose columns come from its query as those of CREATE TABLE AS do."""
    assert node.table.query is not None
    mode = None if node.mode is None else RefreshMode[node.mode]
    return CreateMaterializedTable(
        table.create, expanded_query(context, node.table.query), node.freshness, mode
    )


def bind_alter_or_drop(
    context: Context, node: syntax.AlterMaterializedSyntax | syntax.DropMaterializedSyntax
) -> MaterializedTableStatement:
    """ALTER and DROP MATERIALIZED TABLE."""
    names = DefinitionBinder(context, bind_query)
    identifier = names.qualify(node.name)
    found = context.manager.table(identifier)
    if isinstance(node, syntax.DropMaterializedSyntax) and found is None and node.if_exists:
        return DropMaterializedTable(identifier, if_exists=True)
    if found is None:
        raise names.missing("materialized table", identifier, node.name.span)
    if not isinstance(found, CatalogTable) or found.materialization is None:
        raise context.error(f"{identifier.dotted()!r} is not a materialized table", node.name.span)
    if isinstance(node, syntax.DropMaterializedSyntax):
        return DropMaterializedTable(identifier, node.if_exists)
    partition = partition_constants(context, found, identifier, node.partition)
    return AlterMaterializedTable(
        identifier,
        node.action,
        names.options(node.options),
        {name: str(value.value) for name, value in partition.items()},
    )
