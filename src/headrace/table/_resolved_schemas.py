"""The resolved schema of a table: its columns as the catalog declares them, its watermark and its primary key."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.catalog import objects
from headrace.planner.logical import Field, Schema
from headrace.planner.show_create import with_quoted_columns
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


@dataclass(frozen=True)
class _ResolvedText:
    """An expression of a declaration, with the type that it has."""

    text: str
    data_type: DataType

    def get_output_data_type(self) -> DataType:
        return self.data_type

    def __str__(self) -> str:
        return self.text


def resolved_schema(schema: Schema, table: objects.CatalogTable | None) -> ResolvedSchema:
    """Return the schema of a query, with what the catalog says where the query is a table of it."""
    watermarks: list[WatermarkSpec] = []
    key: UniqueConstraint | None = None
    if table is not None and table.watermark is not None:
        name = table.watermark.column
        (kind,) = (each.type for each in schema if each.name == name)
        expression = _ResolvedText(with_quoted_columns(table.watermark.expression, table), kind)
        watermarks.append(WatermarkSpec.of(name, expression))
    if table is not None and table.primary_key is not None:
        key = UniqueConstraint.primary_key(table.primary_key.name, table.primary_key.columns)
    return ResolvedSchema([_column(each, table) for each in schema], watermarks, key)


def _column(column: Field, table: objects.CatalogTable | None) -> Column:
    name, kind, shown = column.name, column.type, column.summary()
    match table.column(name) if table is not None else None:
        case objects.ComputedColumn(expression=expression) if table is not None:
            resolved = _ResolvedText(with_quoted_columns(expression, table), kind)
            return ComputedColumn(name, kind, None, resolved, shown_type=shown)
        case objects.MetadataColumn(key=key, virtual=virtual):
            return MetadataColumn(name, kind, None, key, virtual, shown_type=shown)
        case _:
            return PhysicalColumn(name, kind, shown_type=shown)
