"""The base of catalogs that show objects they do not own: every change is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from headrace.catalog.catalog import StoredFunction, StoredTable
from headrace.catalog.objects import CatalogDatabase
from headrace.errors import CatalogError

__all__ = ["ReadOnlyCatalog"]


class ReadOnlyCatalog:
    """A catalog whose databases and tables are made elsewhere. It has no functions.

    Args:
        default_database: The database that USE CATALOG selects.
        properties: What the catalog was created with; its 'type' is named by errors.
        comment: The comment on it, if there is one.
    """

    def __init__(self, default_database: str, properties: Mapping[str, str], comment: str | None) -> None:
        self.default_database = default_database
        self.properties = properties
        self.comment = comment

    def put_database(self, name: str, database: CatalogDatabase) -> None:
        self._refuse(f"create or alter database {name!r}")

    def drop_database(self, name: str) -> None:
        self._refuse(f"drop database {name!r}")

    def views(self, database: str) -> list[str]:
        """Names of views: to this catalog, views of the database are tables."""
        return []

    def put_table(self, database: str, name: str, table: StoredTable) -> None:
        self._refuse(f"create or alter table {name!r}")

    def drop_table(self, database: str, name: str) -> None:
        self._refuse(f"drop table {name!r}")

    def functions(self, database: str) -> list[str]:
        """Return no names: this catalog has no functions."""
        return []

    def function(self, database: str, name: str) -> StoredFunction | None:
        """Return None: this catalog has no functions."""
        return None

    def put_function(self, database: str, name: str, function: StoredFunction) -> None:
        self._refuse(f"create function {name!r}")

    def drop_function(self, database: str, name: str) -> None:
        self._refuse(f"drop function {name!r}")

    def _refuse(self, what: str) -> NoReturn:
        raise CatalogError(
            f"cannot {what}: a catalog of type {self.properties['type']!r} is read-only",
            hint="change it in the database itself, or use another catalog: USE CATALOG default_catalog",
        )
