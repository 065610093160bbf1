"""SHOW CREATE: the statement that would make a table, view or catalog; and how a table's columns are declared."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.objects import (
    CatalogTable,
    CatalogView,
    Column,
    ComputedColumn,
    Materialization,
    MetadataColumn,
)
from headrace.config.secrets import looks_secret, mask_uri
from headrace.planner.logical import Schema
from headrace.types.logical import quote_name, quote_text

__all__ = ["create_catalog_text", "create_table_text", "create_view_text", "declared_lines"]

#: Seconds of each unit, the longest first.
_LENGTHS = ((86_400, "DAY"), (3_600, "HOUR"), (60, "MINUTE"), (1, "SECOND"))
#: What Flink writes in place of a password.
HIDDEN = "******"


def _column(column: Column) -> str:
    comment = f" COMMENT {quote_text(column.comment)}" if column.comment else ""
    match column:
        case ComputedColumn():
            return f"{quote_name(column.name)}{_origin(column)}{comment}"
        case _:
            return f"{quote_name(column.name)} {column.type.summary()}{_origin(column)}{comment}"


def _origin(column: Column) -> str:
    """Say where the values of a column come from, if they are not stored as they are."""
    match column:
        case ComputedColumn():
            return f" AS {column.expression}"
        case MetadataColumn():
            key = f" FROM {quote_text(column.key)}" if column.key else ""
            return f" METADATA{key}{' VIRTUAL' if column.virtual else ''}"
        case _:
            return ""


def _key(table: CatalogTable) -> list[str]:
    if table.primary_key is None:
        return []
    columns = ", ".join(map(quote_name, table.primary_key.columns))
    return [f"CONSTRAINT {quote_name(table.primary_key.name)} PRIMARY KEY ({columns}) NOT ENFORCED"]


def _with(options: Mapping[str, str]) -> str:
    pairs = ",\n  ".join(
        f"{quote_text(key)} = {quote_text(HIDDEN if looks_secret(key) else mask_uri(value))}"
        for key, value in options.items()
    )
    return f"WITH (\n  {pairs}\n)"


def declared_lines(schema: Schema, table: CatalogTable | None) -> list[str]:
    """Return a line per column, and those of watermark and primary key if it is a table of the catalog."""
    origins = {column.name: _origin(column) for column in table.columns} if table is not None else {}
    lines = [f"{quote_name(each.name)} {each.summary()}{origins.get(each.name, '')}" for each in schema]
    if table is None:
        return lines
    if table.watermark is not None:
        name = table.watermark.column
        (kind,) = (each.type.summary() for each in schema if each.name == name)
        lines.append(f"WATERMARK FOR {quote_name(name)}: {kind} AS {table.watermark.expression}")
    return [*lines, *_key(table)]


def create_table_text(identifier: ObjectIdentifier, table: CatalogTable, temporary: bool = False) -> str:
    """CREATE TABLE with everything the table was made with, but for passwords."""
    if table.materialization is not None:
        return _create_materialized_text(identifier, table, table.materialization)
    lines = [_column(column) for column in table.columns]
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {quote_name(table.watermark.column)} AS {table.watermark.expression}")
    lines += _key(table)
    body = ",\n  ".join(lines)
    parts = [f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {identifier} (\n  {body}\n)"]
    return "\n".join([*parts, *_clauses(table)]) + "\n"


def _clauses(table: CatalogTable) -> list[str]:
    parts = []
    if table.comment:
        parts.append(f"COMMENT {quote_text(table.comment)}")
    if table.partition_keys:
        parts.append(f"PARTITIONED BY ({', '.join(map(quote_name, table.partition_keys))})")
    if table.options:
        parts.append(_with(table.options))
    return parts


def _create_materialized_text(
    identifier: ObjectIdentifier, table: CatalogTable, made: Materialization
) -> str:
    key = "".join(f" (\n  {line}\n)" for line in _key(table))
    seconds = int(made.freshness.total_seconds())
    length, unit = next(each for each in _LENGTHS if seconds % each[0] == 0)
    parts = [
        f"CREATE MATERIALIZED TABLE {identifier}{key}",
        *_clauses(table),
        f"FRESHNESS = INTERVAL '{seconds // length}' {unit}",
        f"REFRESH_MODE = {made.mode.value}",
        f"AS {made.query}",
    ]
    return "\n".join(parts) + "\n"


def create_catalog_text(name: str, properties: Mapping[str, str], comment: str | None) -> str:
    """CREATE CATALOG with its options, but for passwords."""
    said = f"COMMENT {quote_text(comment)}\n" if comment else ""
    return f"CREATE CATALOG {quote_name(name)}\n{said}{_with(dict(sorted(properties.items())))}\n"


def create_view_text(identifier: ObjectIdentifier, view: CatalogView, temporary: bool = False) -> str:
    """CREATE VIEW with the names of its columns and its query."""
    columns = ", ".join(quote_name(column.name) for column in view.columns)
    comment = f" COMMENT {quote_text(view.comment)}" if view.comment else ""
    kind = "TEMPORARY VIEW" if temporary else "VIEW"
    return f"CREATE {kind} {identifier} ({columns}){comment}\nAS {view.expanded_query}\n"
