"""All catalogs of an environment, its temporary objects, and how names without a catalog are resolved.

A temporary object hides a permanent one with the same full name, as in Flink.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from headrace.catalog.catalog import (
    Catalog,
    ConfiguredCatalog,
    InMemoryCatalog,
    StoredFunction,
    StoredTable,
)
from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.modules import Modules
from headrace.catalog.objects import CatalogDatabase, CatalogTable, InlineView, is_materialized
from headrace.catalog.store import CatalogDefinition, FileCatalogStore
from headrace.catalog.types import create_catalog
from headrace.config.configuration import Configuration
from headrace.errors import CatalogError

__all__ = ["CatalogManager", "nearest"]

TemporaryTable = StoredTable | InlineView


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A sentence that names what was probably meant, and otherwise what there is."""
    names = sorted(set(known))
    # Names without regard to capitals: the commonest mistake.
    by_lower = {candidate.lower(): candidate for candidate in reversed(names)}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    if not names:
        return None
    shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return f"available: {shown}"


class CatalogManager:
    """The names of an environment.

    Args:
        catalog_name: The catalog that is there from the start.
        database_name: Its database.
        store: Keeps the definitions of catalogs; without one they last as long as the program.
        configuration: Options of the program, for catalogs that start something.
    """

    def __init__(
        self,
        catalog_name: str = "default_catalog",
        database_name: str = "default_database",
        store: FileCatalogStore | None = None,
        configuration: Configuration | None = None,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._catalogs: dict[str, Catalog] = {catalog_name: InMemoryCatalog(database_name)}
        self.current_catalog = catalog_name
        self.current_database = database_name
        self._temporary_tables: dict[ObjectIdentifier, TemporaryTable] = {}
        self._temporary_functions: dict[ObjectIdentifier, StoredFunction] = {}
        #: Functions of the environment, found in every database.
        self._system_functions: dict[str, StoredFunction] = {}
        self.modules = Modules()

    # --- catalogs and databases -------------------------------------------------------------------

    def catalogs(self) -> list[str]:
        """Names of the catalogs."""
        return sorted({*self._catalogs, *(self._store.names() if self._store is not None else ())})

    def create_catalog(self, name: str, options: Mapping[str, str], comment: str | None = None) -> None:
        """Make the catalog that CREATE CATALOG describes, and keep its definition if there is a store.

        Raises:
            CatalogError: There is one with this name, or the options are wrong.
        """
        if name in self.catalogs():
            raise CatalogError(f"catalog {name!r} already exists")
        made = self._make(options, comment)
        if self._store is not None:
            self._store.put(name, CatalogDefinition(options, comment))
        self._catalogs[name] = made

    def register_catalog(self, name: str, catalog: Catalog) -> None:
        """Add a catalog.

        Raises:
            CatalogError: There is one with this name.
        """
        if name in self.catalogs():
            raise CatalogError(f"catalog {name!r} already exists")
        self._catalogs[name] = catalog

    def catalog(self, name: str) -> Catalog:
        """A catalog.

        Raises:
            CatalogError: There is none with this name.
        """
        if name not in self._catalogs:
            kept = self._store.get(name) if self._store is not None else None
            if kept is None:
                raise CatalogError(f"catalog {name!r} does not exist", hint=nearest(name, self.catalogs()))
            self._catalogs[name] = self._make(kept.options, kept.comment)
        return self._catalogs[name]

    def _make(self, options: Mapping[str, str], comment: str | None) -> Catalog:
        made = create_catalog(options, comment)
        if isinstance(made, ConfiguredCatalog) and self._configuration is not None:
            made.configure(self._configuration)
        return made

    def drop_catalog(self, name: str) -> None:
        """Forget a catalog; what it describes stays as it is.

        Raises:
            CatalogError: There is none with this name, or it is in use.
        """
        if name not in self.catalogs():
            self.catalog(name)  # says which name was probably meant
        if name == self.current_catalog:
            raise CatalogError(
                f"catalog {name!r} is in use", hint="switch to another catalog first: USE CATALOG name"
            )
        if self._store is not None:
            self._store.remove(name)
        self._catalogs.pop(name, None)

    def use_catalog(self, name: str) -> None:
        """Make a catalog and its default database the current ones."""
        self.current_database = self.catalog(name).default_database
        self.current_catalog = name

    def use_database(self, catalog: str, database: str) -> None:
        """Make a database the current one."""
        self.require_database(catalog, database)
        self.current_catalog, self.current_database = catalog, database

    def require_database(self, catalog: str, database: str) -> CatalogDatabase:
        """A database's description.

        Raises:
            CatalogError: There is none.
        """
        found = self.catalog(catalog).database(database)
        if found is None:
            known = self.catalog(catalog).databases()
            raise CatalogError(
                f"database {database!r} does not exist in catalog {catalog!r}", hint=nearest(database, known)
            )
        return found

    def qualify(self, path: Sequence[str]) -> ObjectIdentifier:
        """The full name of what a statement wrote with one, two or three parts.

        Raises:
            CatalogError: There are more parts.
        """
        match list(path):
            case [name]:
                return ObjectIdentifier(self.current_catalog, self.current_database, name)
            case [database, name]:
                return ObjectIdentifier(self.current_catalog, database, name)
            case [catalog, database, name]:
                return ObjectIdentifier(catalog, database, name)
            case _:
                raise CatalogError(f"a table name has one to three parts, got {'.'.join(path)}")

    # --- tables and views -------------------------------------------------------------------------

    def table(self, identifier: ObjectIdentifier) -> TemporaryTable | None:
        """A table or view, temporary ones first, or None."""
        found = self._temporary_tables.get(identifier)
        if found is not None:
            return found
        catalog = self._catalogs.get(identifier.catalog)
        return catalog.table(identifier.database, identifier.name) if catalog else None

    def permanent_table(self, identifier: ObjectIdentifier) -> StoredTable | None:
        """A table or view of the catalog, whatever temporary one hides it."""
        return self.catalog(identifier.catalog).table(identifier.database, identifier.name)

    def temporary_table(self, identifier: ObjectIdentifier) -> TemporaryTable | None:
        """A temporary table or view, or None."""
        return self._temporary_tables.get(identifier)

    def put_table(self, identifier: ObjectIdentifier, table: StoredTable) -> None:
        """Create or replace a permanent table or view."""
        self.require_database(identifier.catalog, identifier.database)
        self.catalog(identifier.catalog).put_table(identifier.database, identifier.name, table)

    def put_temporary_table(self, identifier: ObjectIdentifier, table: TemporaryTable) -> None:
        """Create or replace a temporary table or view; its catalog and database need not exist."""
        self._temporary_tables[identifier] = table

    def drop_temporary_table(self, identifier: ObjectIdentifier) -> bool:
        """Drop a temporary table or view; say whether there was one."""
        return self._temporary_tables.pop(identifier, None) is not None

    def tables(self, catalog: str, database: str) -> list[str]:
        """Names of all tables and views of a database, also of the temporary ones."""
        self.require_database(catalog, database)
        return sorted({*self.catalog(catalog).tables(database), *self._temporary_in(catalog, database)})

    def views(self, catalog: str, database: str) -> list[str]:
        """Names of all views of a database, unless a temporary table hides one, and of the temporary ones."""
        self.require_database(catalog, database)
        temporary = self._temporary_in(catalog, database)
        stored = set(self.catalog(catalog).views(database)) - temporary.keys()
        return sorted(
            stored | {name for name, each in temporary.items() if not isinstance(each, CatalogTable)}
        )

    def materialized_tables(self, catalog: str, database: str) -> list[str]:
        """Names of the materialized tables of a database."""
        return [
            name
            for name in self.tables(catalog, database)
            if is_materialized(self.table(ObjectIdentifier(catalog, database, name)))
        ]

    def _temporary_in(self, catalog: str, database: str) -> dict[str, TemporaryTable]:
        return {
            identifier.name: table
            for identifier, table in self._temporary_tables.items()
            if (identifier.catalog, identifier.database) == (catalog, database)
        }

    def temporary_tables(self) -> dict[ObjectIdentifier, TemporaryTable]:
        """All temporary tables and views."""
        return dict(self._temporary_tables)

    # --- functions --------------------------------------------------------------------------------

    def function(self, path: Sequence[str]) -> StoredFunction | None:
        """A user function: of the environment, then temporary, then of the catalog; or None."""
        if len(path) == 1 and path[0].lower() in self._system_functions:
            return self._system_functions[path[0].lower()]
        identifier = _lower(self.qualify(path))
        found = self._temporary_functions.get(identifier)
        if found is not None:
            return found
        catalog = self._catalogs.get(identifier.catalog)
        return catalog.function(identifier.database, identifier.name) if catalog else None

    def put_function(self, identifier: ObjectIdentifier, function: StoredFunction) -> None:
        """Create or replace a permanent function."""
        self.require_database(identifier.catalog, identifier.database)
        self.catalog(identifier.catalog).put_function(identifier.database, identifier.name, function)

    def permanent_function(self, identifier: ObjectIdentifier) -> StoredFunction | None:
        """A function of the catalog, or None."""
        return self.catalog(identifier.catalog).function(identifier.database, identifier.name)

    def drop_function(self, identifier: ObjectIdentifier) -> None:
        """Drop a permanent function, which is there."""
        self.catalog(identifier.catalog).drop_function(identifier.database, identifier.name)

    def put_temporary_function(self, identifier: ObjectIdentifier, function: StoredFunction) -> None:
        """Create or replace a temporary function."""
        self._temporary_functions[_lower(identifier)] = function

    def drop_temporary_function(self, identifier: ObjectIdentifier) -> bool:
        """Drop a temporary function; say whether there was one."""
        return self._temporary_functions.pop(_lower(identifier), None) is not None

    def put_system_function(self, name: str, function: StoredFunction) -> None:
        """Create or replace a function of the environment, which is found in every database."""
        self._system_functions[name.lower()] = function

    def is_system_function(self, name: str) -> bool:
        """Whether a name is that of a function of the environment."""
        return name.lower() in self._system_functions

    def drop_system_function(self, name: str) -> bool:
        """Drop a function of the environment; say whether there was one."""
        return self._system_functions.pop(name.lower(), None) is not None

    def user_functions(self) -> list[str]:
        """Names of the user functions that need no catalog or database before them."""
        here = (self.current_catalog, self.current_database)
        names = set(self._system_functions)
        names |= {one.name for one in self._temporary_functions if (one.catalog, one.database) == here}
        catalog = self._catalogs[self.current_catalog]
        if catalog.database(self.current_database) is not None:
            names |= set(catalog.functions(self.current_database))
        return sorted(names)


def _lower(identifier: ObjectIdentifier) -> ObjectIdentifier:
    """Names of functions do not mind capitals."""
    return ObjectIdentifier(identifier.catalog, identifier.database, identifier.name.lower())
