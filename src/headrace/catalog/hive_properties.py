"""Tables as properties of text, with the names that Flink's Hive catalog gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headrace.catalog.objects import (
    CatalogTable,
    Column,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    PrimaryKey,
    WatermarkSpec,
)
from headrace.types.logical import DataType

__all__ = ["from_properties", "to_properties"]

_SCHEMA: Final = "schema"
_WATERMARK: Final = f"{_SCHEMA}.watermark.0"
_KEY: Final = f"{_SCHEMA}.primary-key"
_PARTITION: Final = "partition.keys"
_COMMENT: Final = "comment"


def to_properties(table: CatalogTable) -> dict[str, str]:
    """Write a table as properties: its options, and its schema below `schema.`."""
    made = dict(table.options)
    for at, column in enumerate(table.columns):
        made |= {f"{_SCHEMA}.{at}.{key}": value for key, value in _column_properties(column)}
    if table.watermark is not None:
        rowtime = table.column(table.watermark.column)
        made[f"{_WATERMARK}.rowtime"] = table.watermark.column
        made[f"{_WATERMARK}.strategy.expr"] = table.watermark.expression
        if rowtime is not None:
            made[f"{_WATERMARK}.strategy.data-type"] = rowtime.type.summary()
    if table.primary_key is not None:
        made[f"{_KEY}.name"] = table.primary_key.name
        made[f"{_KEY}.columns"] = ",".join(table.primary_key.columns)
    for at, name in enumerate(table.partition_keys):
        made[f"{_PARTITION}.{at}.name"] = name
    if table.comment is not None:
        made[_COMMENT] = table.comment
    return made


def _column_properties(column: Column) -> Iterator[tuple[str, str]]:
    yield "name", column.name
    yield "data-type", column.type.summary()
    if isinstance(column, ComputedColumn):
        yield "expr", column.expression
    if isinstance(column, MetadataColumn):
        yield "metadata", column.metadata_key
        yield "virtual", str(column.virtual).lower()
    if column.comment is not None:
        yield "comment", column.comment


def from_properties(properties: Mapping[str, str], parse_type: Callable[[str], DataType]) -> CatalogTable:
    """Read a table that `to_properties`, or Flink, has written.

    Args:
        properties: The properties.
        parse_type: Reads a type of SQL.
    """
    columns: list[Column] = []
    while f"{_SCHEMA}.{len(columns)}.name" in properties:
        start = f"{_SCHEMA}.{len(columns)}."
        columns.append(
            _column(
                {
                    key.removeprefix(start): value
                    for key, value in properties.items()
                    if key.startswith(start)
                },
                parse_type,
            )
        )
    keys: list[str] = []
    while (key := f"{_PARTITION}.{len(keys)}.name") in properties:
        keys.append(properties[key])
    rowtime = properties.get(f"{_WATERMARK}.rowtime")
    names = properties.get(f"{_KEY}.columns")
    ours = (f"{_SCHEMA}.", f"{_PARTITION}.")
    return CatalogTable(
        tuple(columns),
        {
            key: value
            for key, value in properties.items()
            if not key.startswith(ours) and key not in (_COMMENT, _SCHEMA)
        },
        watermark=None
        if rowtime is None
        else WatermarkSpec(rowtime, properties[f"{_WATERMARK}.strategy.expr"]),
        primary_key=None
        if names is None
        else PrimaryKey(properties.get(f"{_KEY}.name", "PK"), tuple(names.split(","))),
        partition_keys=tuple(keys),
        comment=properties.get(_COMMENT),
    )


def _column(values: Mapping[str, str], parse_type: Callable[[str], DataType]) -> Column:
    name, kind, comment = values["name"], parse_type(values["data-type"]), values.get("comment")
    if "expr" in values:
        return ComputedColumn(name, kind, values["expr"], comment=comment)
    if "metadata" in values:
        key = values["metadata"]
        is_virtual = values.get("virtual") == "true"
        return MetadataColumn(name, kind, None if key == name else key, is_virtual, comment=comment)
    return PhysicalColumn(name, kind, comment=comment)
