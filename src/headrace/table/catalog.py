"""PyFlink's names for catalogs and what is in them."""

from __future__ import annotations

from headrace.common._missing import missing_names
from headrace.table.catalog_access import Catalog, HiveCatalog, JdbcCatalog
from headrace.table.catalog_columns import (
    Column,
    ComputedColumn,
    MetadataColumn,
    ObjectIdentifier,
    ObjectPath,
    PhysicalColumn,
    ResolvedSchema,
)
from headrace.table.catalog_constraints import Constraint, UniqueConstraint, WatermarkSpec
from headrace.table.catalog_objects import (
    CatalogBaseTable,
    CatalogColumnStatistics,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
)

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogColumnStatistics",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "CatalogTableStatistics",
    "Column",
    "ComputedColumn",
    "Constraint",
    "HiveCatalog",
    "JdbcCatalog",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]

__getattr__ = missing_names(
    __name__,
    "CatalogModel",
    "Procedure",
)
