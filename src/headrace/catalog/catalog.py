"""A catalog: databases with their tables, views and functions. The one here keeps them in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from headrace.catalog.functions import CatalogFunction, UserFunction
from headrace.catalog.objects import CatalogDatabase, CatalogTable, CatalogView
from headrace.config.configuration import Configuration
from headrace.errors import CatalogError

__all__ = ["Catalog", "ConfiguredCatalog", "InMemoryCatalog", "StoredFunction", "StoredTable", "TableDetails"]

StoredTable = CatalogTable | CatalogView
StoredFunction = CatalogFunction | UserFunction


@runtime_checkable
class Catalog(Protocol):
    """What the manager asks of a catalog. Whoever implements it may assume that names were checked."""

    default_database: str
    #: What it was created with.
    properties: Mapping[str, str]
    comment: str | None

    def databases(self) -> list[str]:
        """Names of the databases."""

    def database(self, name: str) -> CatalogDatabase | None:
        """Return the description of a database; None if it does not exist."""

    def put_database(self, name: str, database: CatalogDatabase) -> None:
        """Create or replace a database."""

    def drop_database(self, name: str) -> None:
        """Drop a database and what is in it."""

    def tables(self, database: str) -> list[str]:
        """Names of tables and views of a database."""

    def views(self, database: str) -> list[str]:
        """Those names of `tables` that are views."""

    def table(self, database: str, name: str) -> StoredTable | None:
        """A table or view, or None."""

    def put_table(self, database: str, name: str, table: StoredTable) -> None:
        """Create or replace a table or view."""

    def drop_table(self, database: str, name: str) -> None:
        """Drop a table or view."""

    def functions(self, database: str) -> list[str]:
        """Names of the functions of a database."""

    def function(self, database: str, name: str) -> StoredFunction | None:
        """A function, or None."""

    def put_function(self, database: str, name: str, function: StoredFunction) -> None:
        """Create or replace a function."""

    def drop_function(self, database: str, name: str) -> None:
        """Remove a function, which must exist."""


@runtime_checkable
class ConfiguredCatalog(Protocol):
    """A catalog that needs to know the options of the program, because it may have to start something."""

    def configure(self, configuration: Configuration) -> None:
        """Take the options; called before anything is asked."""


@dataclass
class TableDetails:
    """What programs have set about a table beside its definition: partitions and statistics, by partition."""

    partitions: dict[Any, Any] = field(default_factory=dict)
    statistics: dict[Any, Any] = field(default_factory=dict)
    column_statistics: dict[Any, Any] = field(default_factory=dict)


@dataclass
class _Database:
    description: CatalogDatabase
    tables: dict[str, StoredTable] = field(default_factory=dict)
    details: dict[str, TableDetails] = field(default_factory=dict)
    functions: dict[str, StoredFunction] = field(default_factory=dict)


class InMemoryCatalog:
    """A catalog that lives as long as the program.

    Args:
        default_database: The database that is there from the start.
        properties: What the catalog was created with.
        comment: The comment on it, if there is one.
    """

    def __init__(
        self,
        default_database: str = "default",
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        self.default_database = default_database
        self.properties: Mapping[str, str] = properties or {"type": "generic_in_memory"}
        self.comment = comment
        self._databases = {default_database: _Database(CatalogDatabase())}

    def databases(self) -> list[str]:
        """Names of the databases."""
        return sorted(self._databases)

    def database(self, name: str) -> CatalogDatabase | None:
        """A database's description, or None."""
        found = self._databases.get(name)
        return found.description if found else None

    def put_database(self, name: str, database: CatalogDatabase) -> None:
        """Create a database, or replace its description."""
        if name in self._databases:
            self._databases[name].description = database
        else:
            self._databases[name] = _Database(database)

    def drop_database(self, name: str) -> None:
        """Drop a database and what is in it."""
        del self._databases[name]

    def _open(self, database: str) -> _Database:
        if database not in self._databases:
            raise CatalogError(f"database {database!r} does not exist")
        return self._databases[database]

    def tables(self, database: str) -> list[str]:
        """Names of tables and views of a database."""
        return sorted(self._open(database).tables)

    def views(self, database: str) -> list[str]:
        """Those names of `tables` that are views."""
        return sorted(
            name for name, each in self._open(database).tables.items() if isinstance(each, CatalogView)
        )

    def table(self, database: str, name: str) -> StoredTable | None:
        """A table or view, or None."""
        found = self._databases.get(database)
        return found.tables.get(name) if found else None

    def put_table(self, database: str, name: str, table: StoredTable) -> None:
        """Create or replace a table or view."""
        self._open(database).tables[name] = table

    def drop_table(self, database: str, name: str) -> None:
        """Drop a table or view."""
        del self._open(database).tables[name]
        self._open(database).details.pop(name, None)

    def details(self, database: str, name: str) -> TableDetails:
        """Partitions and statistics of a table, which must exist."""
        return self._open(database).details.setdefault(name, TableDetails())

    def functions(self, database: str) -> list[str]:
        """Names of the functions of a database."""
        return sorted(self._open(database).functions)

    def function(self, database: str, name: str) -> StoredFunction | None:
        """A function, or None. Names of functions do not mind capitals."""
        found = self._databases.get(database)
        return found.functions.get(name.lower()) if found else None

    def put_function(self, database: str, name: str, function: StoredFunction) -> None:
        """Create or replace a function."""
        self._open(database).functions[name.lower()] = function

    def drop_function(self, database: str, name: str) -> None:
        del self._open(database).functions[name.lower()]


def in_memory_catalog(options: Mapping[str, str], comment: str | None) -> InMemoryCatalog:
    """Make a catalog of type `generic_in_memory`.

    Raises:
        CatalogError: If it does not have one of the options.
    """
    known = {"type", "default-database"}
    if unknown := sorted(set(options) - known):
        raise CatalogError(f"a generic_in_memory catalog has no option {unknown[0]!r}")
    return InMemoryCatalog(options.get("default-database", "default"), options, comment)
