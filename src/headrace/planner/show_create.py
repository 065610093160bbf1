"""SHOW CREATE: the statement that would make a table or view."""

from __future__ import annotations

from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.objects import CatalogTable, CatalogView, Column, ComputedColumn, MetadataColumn
from headrace.types.logical import quote_name

__all__ = ["create_table_text", "create_view_text"]


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _column(column: Column) -> str:
    comment = f" COMMENT {_string(column.comment)}" if column.comment else ""
    match column:
        case ComputedColumn():
            return f"{quote_name(column.name)} AS {column.expression}{comment}"
        case MetadataColumn():
            key = f" FROM {_string(column.key)}" if column.key else ""
            virtual = " VIRTUAL" if column.virtual else ""
            return f"{quote_name(column.name)} {column.type.summary()} METADATA{key}{virtual}{comment}"
        case _:
            return f"{quote_name(column.name)} {column.type.summary()}{comment}"


def create_table_text(identifier: ObjectIdentifier, table: CatalogTable, temporary: bool = False) -> str:
    """CREATE TABLE with everything the table was made with."""
    lines = [_column(column) for column in table.columns]
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {quote_name(table.watermark.column)} AS {table.watermark.expression}")
    if table.primary_key is not None:
        columns = ", ".join(map(quote_name, table.primary_key.columns))
        lines.append(f"CONSTRAINT {quote_name(table.primary_key.name)} PRIMARY KEY ({columns}) NOT ENFORCED")
    body = ",\n  ".join(lines)
    parts = [f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {identifier} (\n  {body}\n)"]
    if table.comment:
        parts.append(f"COMMENT {_string(table.comment)}")
    if table.partition_keys:
        parts.append(f"PARTITIONED BY ({', '.join(map(quote_name, table.partition_keys))})")
    if table.options:
        pairs = ",\n  ".join(f"{_string(key)} = {_string(value)}" for key, value in table.options.items())
        parts.append(f"WITH (\n  {pairs}\n)")
    return "\n".join(parts) + "\n"


def create_view_text(identifier: ObjectIdentifier, view: CatalogView, temporary: bool = False) -> str:
    """CREATE VIEW with the names of its columns and its query."""
    columns = ", ".join(quote_name(column.name) for column in view.columns)
    comment = f" COMMENT {_string(view.comment)}" if view.comment else ""
    kind = "TEMPORARY VIEW" if temporary else "VIEW"
    return f"CREATE {kind} {identifier} ({columns}){comment}\nAS {view.expanded_query}\n"
