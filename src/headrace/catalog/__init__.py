"""The objects that SQL names refer to: catalogs, databases, tables, views, functions. Pure data; knows types only.

`objects` holds what can be stored, `identifier` how it is named, `functions` user functions, `catalog` one
catalog in memory, and `manager` all catalogs of an environment with its temporary objects.
"""

from headrace.catalog.catalog import Catalog, InMemoryCatalog
from headrace.catalog.functions import CatalogFunction, FunctionKind, UserFunction
from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.manager import CatalogManager
from headrace.catalog.objects import (
    CatalogDatabase,
    CatalogTable,
    CatalogView,
    Column,
    ComputedColumn,
    InlineView,
    MetadataColumn,
    PhysicalColumn,
    PrimaryKey,
    WatermarkSpec,
)

__all__ = [
    "Catalog",
    "CatalogDatabase",
    "CatalogFunction",
    "CatalogManager",
    "CatalogTable",
    "CatalogView",
    "Column",
    "ComputedColumn",
    "FunctionKind",
    "InMemoryCatalog",
    "InlineView",
    "MetadataColumn",
    "ObjectIdentifier",
    "PhysicalColumn",
    "PrimaryKey",
    "UserFunction",
    "WatermarkSpec",
]
