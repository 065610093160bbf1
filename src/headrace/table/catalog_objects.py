"""PyFlink's classes for what a catalog holds: databases, tables, partitions, functions, statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.catalog import objects as stored
from headrace.catalog.functions import CatalogFunction as StoredFunction
from headrace.table.schema import Schema
from headrace.table.table_schema import TableSchema

__all__ = [
    "CatalogBaseTable",
    "CatalogColumnStatistics",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "CatalogTableStatistics",
]

_UNKNOWN = -1


@dataclass(frozen=True)
class _Described:
    """Something with properties and a comment."""

    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    def get_properties(self) -> dict[str, str]:
        """Return the properties by name."""
        return dict(self.properties)

    def get_comment(self) -> str | None:
        """Return the comment, which may be empty."""
        return self.comment


class CatalogDatabase(_Described):
    """A database of a catalog.

    Example:
        >>> CatalogDatabase.create_instance({"owner": "ann"}, "of this year").get_comment()
        'of this year'
    """

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """Return the description of a database with these properties."""
        return CatalogDatabase(dict(properties), comment)

    def copy(self) -> CatalogDatabase:
        """Return the same description again."""
        return CatalogDatabase(dict(self.properties), self.comment)

    def get_description(self) -> str | None:
        """Return the comment of the object."""
        return self.comment

    def get_detailed_description(self) -> str | None:
        """Return the comment, like `get_description`."""
        return self.comment


class CatalogPartition(_Described):
    """A partition of a table."""

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogPartition:
        """Return the description of a partition with these properties."""
        return CatalogPartition(dict(properties), comment)

    def copy(self) -> CatalogPartition:
        """Return the same description again."""
        return CatalogPartition(dict(self.properties), self.comment)

    def get_description(self) -> str | None:
        """Return None: partitions have no description, as in Flink."""
        return None

    def get_detailed_description(self) -> str | None:
        """Return None: partitions have no description, as in Flink."""
        return None


@dataclass(frozen=True)
class CatalogPartitionSpec:
    """The values of a partition's columns, of all or of the first ones."""

    partition_spec: Mapping[str, str]

    def get_partition_spec(self) -> dict[str, str]:
        """Return the values by column."""
        return dict(self.partition_spec)

    def __hash__(self) -> int:
        return hash(frozenset(self.partition_spec.items()))

    def __str__(self) -> str:
        return (
            "CatalogPartitionSpec{{"
            + ", ".join(f"{key}={each}" for key, each in self.partition_spec.items())
            + "}}"
        )


@dataclass(frozen=True)
class CatalogBaseTable:
    """A table or a view of a catalog. Make one with `create_table` or `create_view`."""

    schema: Schema
    options: Mapping[str, str]
    comment: str | None
    partition_keys: tuple[str, ...] = ()
    #: Of a view: the query as it was written, and with full names of tables.
    queries: tuple[str, str] | None = None

    @staticmethod
    def create_table(
        schema: TableSchema | Schema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Describe a table by its columns and the options of its connector."""
        return CatalogBaseTable(_as_schema(schema), dict(properties or {}), comment, tuple(partition_keys))

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: TableSchema | Schema,
        properties: Mapping[str, str],
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Describe a view by its query, once as it was written and once with the full names of tables."""
        queries = (original_query, expanded_query)
        return CatalogBaseTable(_as_schema(schema), dict(properties), comment, queries=queries)

    @staticmethod
    def _of(found: stored.CatalogTable | stored.CatalogView) -> CatalogBaseTable:
        """Show what a catalog has stored."""
        if isinstance(found, stored.CatalogView):
            queries = (found.original_query, found.expanded_query)
            return CatalogBaseTable(_schema_of(found.columns), found.options, found.comment, queries=queries)
        schema = _schema_of(found.columns, found.watermark, found.primary_key)
        return CatalogBaseTable(schema, found.options, found.comment, found.partition_keys)

    def get_options(self) -> dict[str, str]:
        """Return the options of WITH by name."""
        return dict(self.options)

    def get_unresolved_schema(self) -> Schema:
        """Return the columns, the watermark and the primary key."""
        return self.schema

    def get_comment(self) -> str:
        """Return the comment; an empty string if there is no comment."""
        return self.comment or ""

    def copy(self) -> CatalogBaseTable:
        """Return the same description again."""
        return CatalogBaseTable(
            self.schema, dict(self.options), self.comment, self.partition_keys, self.queries
        )

    def get_description(self) -> str | None:
        """Return the comment of the object."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """Return None: tables have no longer description."""
        return None


@dataclass(frozen=True)
class CatalogFunction:
    """A function of a catalog: where its code is."""

    class_name: str
    function_language: str = "PYTHON"

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """Describe a function by ``module.attribute``."""
        return CatalogFunction(class_name, function_language.upper())

    def get_class_name(self) -> str:
        """Return where the code is."""
        return self.class_name

    def copy(self) -> CatalogFunction:
        """Return the same description again."""
        return CatalogFunction(self.class_name, self.function_language)

    def get_description(self) -> str | None:
        """Return what Flink says about every function."""
        return "This is a user-defined function"

    def get_detailed_description(self) -> str | None:
        """Return what Flink says about every function."""
        return self.get_description()

    def get_function_language(self) -> str:
        """Return the language: PYTHON, JAVA or SCALA."""
        return self.function_language

    def get_options(self) -> dict[str, str]:
        """Return the options: functions have none."""
        return {}

    def _stored(self) -> StoredFunction:
        return StoredFunction(self.class_name, self.function_language)


@dataclass(frozen=True)
class CatalogTableStatistics:
    """How large a table or partition is; -1 where it is not known."""

    row_count: int = _UNKNOWN
    field_count: int = _UNKNOWN
    total_size: int = _UNKNOWN
    raw_data_size: int = _UNKNOWN
    properties: Mapping[str, str] = field(default_factory=dict)

    def get_row_count(self) -> int:
        """Return how many rows there are."""
        return self.row_count

    def get_field_count(self) -> int:
        """Return how many files there are; the name is PyFlink's."""
        return self.field_count

    def get_total_size(self) -> int:
        """Return the size in bytes."""
        return self.total_size

    def get_raw_data_size(self) -> int:
        """Return the size in memory, in bytes."""
        return self.raw_data_size

    def get_properties(self) -> dict[str, str]:
        """Return the properties by name."""
        return dict(self.properties)

    def copy(self) -> CatalogTableStatistics:
        """Return the same statistics again."""
        return CatalogTableStatistics(
            self.row_count, self.field_count, self.total_size, self.raw_data_size, dict(self.properties)
        )


@dataclass(frozen=True)
class CatalogColumnStatistics:
    """Statistics of columns, by their names. Headrace keeps them and does not use them."""

    column_statistics_data: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def get_column_statistics_data(self) -> dict[str, Any]:
        """Return the statistics by column."""
        return dict(self.column_statistics_data)

    def get_properties(self) -> dict[str, str]:
        """Return the properties by name."""
        return dict(self.properties)

    def copy(self) -> CatalogColumnStatistics:
        """Return the same statistics again."""
        return CatalogColumnStatistics(dict(self.column_statistics_data), dict(self.properties))


@dataclass(frozen=True)
class CatalogDescriptor:
    """A catalog to create: its name and its options. Made by `of`, taken by `TableEnvironment.create_catalog`."""

    catalog_name: str
    options: Mapping[str, str]
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Any, comment: str | None = None) -> CatalogDescriptor:
        """Describe a catalog.

        Args:
            catalog_name: Its name.
            configuration: The options, as a `Configuration`.
            comment: What it is for.
        """
        return CatalogDescriptor(catalog_name, configuration.to_dict(), comment)


def _as_schema(schema: TableSchema | Schema) -> Schema:
    if isinstance(schema, Schema):
        return schema
    fields = schema.get_field_names(), schema.get_field_data_types()
    return Schema.new_builder().from_fields(*fields).build()


def _schema_of(
    columns: Sequence[stored.Column],
    watermark: stored.WatermarkSpec | None = None,
    key: stored.PrimaryKey | None = None,
) -> Schema:
    builder = Schema.new_builder()
    for column in columns:
        match column:
            case stored.ComputedColumn():
                builder.column_by_expression(column.name, column.expression)
            case stored.MetadataColumn():
                builder.column_by_metadata(column.name, column.type, column.key, column.virtual)
            case _:
                builder.column(column.name, column.type)
    if watermark is not None:
        builder.watermark(watermark.column, watermark.expression)
    if key is not None:
        builder.primary_key_named(key.name, *key.columns)
    return builder.build()
