"""Types of catalogs, found by the option 'type' of CREATE CATALOG.

A type is something to call with the options and the comment of the statement; it returns a `Catalog`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.catalog.catalog import Catalog
from headrace.errors import CatalogError, UnsupportedFeatureError
from headrace.util.plugins import CATALOGS

__all__ = ["create_catalog"]

#: Formats of tables whose catalogs are packages of their own.
_TABLE_FORMATS: Final = ("delta", "hudi", "iceberg", "paimon")


def create_catalog(options: Mapping[str, str], comment: str | None = None) -> Catalog:
    """Make the catalog that WITH describes.

    Raises:
        CatalogError: There is no option 'type', or the catalog refuses another one.
        UnsupportedFeatureError: No package declares this type.
        ConfigurationError: The type is declared by several packages, or cannot be loaded.
    """
    kind = options.get("type")
    if kind is None:
        raise CatalogError("a catalog needs the option 'type'", hint="WITH ('type' = 'generic_in_memory')")
    made = CATALOGS.make(kind, dict(options), comment)
    if made is None and kind in _TABLE_FORMATS:
        raise UnsupportedFeatureError(
            f"catalogs of type {kind!r} are not supported: headrace cannot read or write their tables",
            feature=f"a catalog of type {kind!r}",
            hint="to read such a table, load its package into Spark and pass a DataFrame: t_env.from_spark(...)",
        )
    if made is None:
        raise UnsupportedFeatureError(
            f"unknown catalog type {kind!r}", feature=f"a catalog of type {kind!r}", hint=CATALOGS.available()
        )
    if not isinstance(made, Catalog):
        raise CATALOGS.broken(kind, f"is not a catalog, but {type(made).__name__!r}")
    return made
