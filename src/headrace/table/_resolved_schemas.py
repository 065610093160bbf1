"""The resolved schema of a table: its columns as the catalog declares them, its watermark and its primary key."""

from __future__ import annotations

from headrace.catalog import objects
from headrace.planner.logical import Schema
from headrace.planner.show_create import declared_lines, with_quoted_columns
from headrace.table.catalog_columns import (
    Column,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    ResolvedSchema,
)
from headrace.table.catalog_constraints import UniqueConstraint, WatermarkSpec
from headrace.types import DataType

__all__ = ["resolved_schema"]


def resolved_schema(schema: Schema, table: objects.CatalogTable | None) -> ResolvedSchema:
    """Return the schema of a query, with what the catalog says where the query is a table of it."""
    watermarks, key = [], None
    if table is not None and table.watermark is not None:
        expression = with_quoted_columns(table.watermark.expression, table)
        watermarks.append(WatermarkSpec.of(table.watermark.column, expression))
    if table is not None and table.primary_key is not None:
        key = UniqueConstraint.primary_key(table.primary_key.name, table.primary_key.columns)
    columns = [_column(each.name, each.type, table) for each in schema]
    made = ResolvedSchema(columns, watermarks, key)
    # Which columns have time is known to the planner alone.
    made._lines = declared_lines(schema, table)
    return made


def _column(name: str, data_type: DataType, table: objects.CatalogTable | None) -> Column:
    match table.column(name) if table is not None else None:
        case objects.ComputedColumn(expression=expression) if table is not None:
            return ComputedColumn(name, data_type, None, with_quoted_columns(expression, table))
        case objects.MetadataColumn(key=key, virtual=virtual):
            return MetadataColumn(name, data_type, None, key, virtual)
        case _:
            return PhysicalColumn(name, data_type)
