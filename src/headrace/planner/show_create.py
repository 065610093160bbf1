"""SHOW CREATE: the statement that would make a table, view or catalog; and how a table's columns are declared."""

from __future__ import annotations

import re
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
from headrace.planner.dialect.tokens import TokenKind, tokenize
from headrace.types.logical import MAX_LENGTH, DataType, quote_name, quote_text

__all__ = [
    "create_catalog_text",
    "create_table_text",
    "create_view_text",
    "with_quoted_columns",
]

#: Seconds of each unit, the longest first.
_LENGTHS = ((86_400, "DAY"), (3_600, "HOUR"), (60, "MINUTE"), (1, "SECOND"))
_FULL_TYPES = {"STRING": f"VARCHAR({MAX_LENGTH})", "BYTES": f"VARBINARY({MAX_LENGTH})"}
#: Names of fields are in backquotes.
_SHORT_TYPES = re.compile(r"`(?:[^`]|``)*`|\b(?:STRING|BYTES)\b")
#: What Flink writes in place of a password.
HIDDEN = "******"


def with_quoted_columns(expression: str, table: CatalogTable) -> str:
    """Write an expression over columns of a table on one line, with their names in backquotes, as Flink does."""
    names = {each.name for each in table.columns}
    pieces, end, before = [], 0, TokenKind.END
    for token in tokenize(expression):
        start, stop = token.span.start, token.span.end
        pieces.append(" " if end and expression[end:start] else "")
        # The word after a string is the unit of an interval.
        is_column = token.kind is TokenKind.WORD and token.text in names and before is not TokenKind.STRING
        pieces.append(quote_name(token.text) if is_column else expression[start:stop])
        end, before = stop, token.kind
    return "".join(pieces).strip()


def _column(column: Column, table: CatalogTable) -> str:
    comment = f" COMMENT {quote_text(column.comment)}" if column.comment else ""
    match column:
        case ComputedColumn():
            return f"{quote_name(column.name)}{_origin(column, table)}{comment}"
        case _:
            return f"{quote_name(column.name)} {_full_type(column.type)}{_origin(column, table)}{comment}"


def _full_type(data_type: DataType) -> str:
    """Write a type without the short names of the longest strings, as Flink does here."""
    return _SHORT_TYPES.sub(lambda found: _FULL_TYPES.get(found[0], found[0]), data_type.summary())


def _origin(column: Column, table: CatalogTable) -> str:
    """Say where the values of a column come from, if they are not stored as they are."""
    match column:
        case ComputedColumn():
            return f" AS {with_quoted_columns(column.expression, table)}"
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
        for key, value in sorted(options.items())
    )
    return f"WITH (\n  {pairs}\n)"


def create_table_text(identifier: ObjectIdentifier, table: CatalogTable, temporary: bool = False) -> str:
    """CREATE TABLE with everything the table was made with, but for passwords."""
    if table.materialization is not None:
        return _create_materialized_text(identifier, table, table.materialization)
    lines = [_column(column, table) for column in table.columns]
    if table.watermark is not None:
        expression = with_quoted_columns(table.watermark.expression, table)
        lines.append(f"WATERMARK FOR {quote_name(table.watermark.column)} AS {expression}")
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
    return f"CREATE CATALOG {quote_name(name)}\n{said}{_with(properties)}\n"


def create_view_text(identifier: ObjectIdentifier, view: CatalogView, temporary: bool = False) -> str:
    """CREATE VIEW with the names of its columns and its query."""
    columns = ",\n  ".join(quote_name(column.name) for column in view.columns)
    comment = f"COMMENT {quote_text(view.comment)}\n" if view.comment else ""
    kind = "TEMPORARY VIEW" if temporary else "VIEW"
    return f"CREATE {kind} {identifier} (\n  {columns}\n)\n{comment}AS {view.expanded_query}\n"
