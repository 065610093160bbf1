"""The calls of a table environment that look up, list and drop what its catalogs hold."""

from __future__ import annotations

from typing import Any

from headrace.catalog import CatalogManager, InlineView
from headrace.catalog.catalog import Catalog as StoredCatalog
from headrace.catalog.objects import CatalogView
from headrace.errors import CatalogError, JobDefinitionError, shorten
from headrace.planner.functions import built_in_names
from headrace.table._functions import as_user_function
from headrace.table._paths import parts_of, path_sql
from headrace.table.catalog_access import Catalog
from headrace.table.catalog_objects import CatalogDescriptor
from headrace.table.module import Module, ModuleEntry
from headrace.table.table_result import TableResult

__all__ = ["CatalogCalls"]


class CatalogCalls:
    """The part of a table environment that is about names: tables, views, functions and modules."""

    _manager: CatalogManager

    def execute_sql(self, stmt: str) -> TableResult:
        """Execute a statement; the environment overrides this."""
        raise NotImplementedError

    # --- tables and views -----------------------------------------------------------------------------

    def drop_temporary_view(self, view_path: str) -> bool:
        """Drop a temporary view; say whether there was one."""
        return self._manager.drop_temporary_table(self._manager.qualify(parts_of(view_path)))

    def drop_temporary_table(self, table_path: str) -> bool:
        """Drop a temporary table; say whether there was one."""
        return self._manager.drop_temporary_table(self._manager.qualify(parts_of(table_path)))

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a table of a catalog; say whether there was one."""
        return self._drop("TABLE", table_path, ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a view of a catalog; say whether there was one."""
        return self._drop("VIEW", view_path, ignore_if_not_exists)

    def _drop(self, what: str, path: str, ignore: bool) -> bool:
        is_there = self._manager.permanent_table(self._manager.qualify(parts_of(path))) is not None
        self.execute_sql(f"DROP {what} {'IF EXISTS ' if ignore else ''}{path_sql(path)}")
        return is_there

    # --- names ----------------------------------------------------------------------------------------

    def list_catalogs(self) -> list[str]:
        """Return the names of the catalogs."""
        return self._manager.catalogs()

    def list_databases(self) -> list[str]:
        """Return the names of the current catalog's databases."""
        return self._manager.catalog(self._manager.current_catalog).databases()

    def list_tables(self) -> list[str]:
        """Return the names of the current database's tables and views."""
        return self._manager.tables(*self._here())

    def list_views(self) -> list[str]:
        """Return the names of the current database's views."""
        return self._manager.views(*self._here())

    def list_temporary_tables(self) -> list[str]:
        """Return the names of temporary tables and views."""
        return sorted(self._temporary())

    def list_temporary_views(self) -> list[str]:
        """Return the names of temporary views."""
        return sorted(
            name for name, each in self._temporary().items() if isinstance(each, CatalogView | InlineView)
        )

    def list_functions(self) -> list[str]:
        """Return the names of all functions."""
        built_in = (name.lower() for name in built_in_names())
        return sorted({*built_in, *self.list_user_defined_functions()})

    def list_user_defined_functions(self) -> list[str]:
        """Return the names of the functions that users have added."""
        return self._manager.user_functions()

    def list_modules(self) -> list[str]:
        """Return the names of the modules in use."""
        return self._manager.modules.used()

    def list_full_modules(self) -> list[ModuleEntry]:
        """Return all modules, and whether they are in use."""
        return [ModuleEntry(name, used) for name, used in self._manager.modules.loaded()]

    def list_materialized_tables(self) -> list[str]:
        """Return the names of the materialized tables of the current database."""
        return self._manager.materialized_tables(*self._here())

    def load_module(self, module_name: str, module: Module) -> None:
        """Load a module under a name; it is in use from then on, after those before it.

        Raises:
            CatalogError: If there is a module with this name.
            JobDefinitionError: If it is not a module.
        """
        if not isinstance(module, Module):
            raise JobDefinitionError(
                f"load_module({module_name!r}): expected a Module; got {shorten(module)}",
                hint="pass HiveModule(), or CoreModule()",
            )
        self._manager.modules.load(module_name, module.kind)

    def unload_module(self, module_name: str) -> None:
        """Forget a module.

        Raises:
            CatalogError: If it is not loaded.
        """
        self._manager.modules.unload(module_name)

    def use_modules(self, *module_names: str) -> None:
        """Say which modules are in use, the first one looked at first.

        Raises:
            CatalogError: If one is not loaded, or named twice.
        """
        self._manager.modules.use(module_names)

    def _here(self) -> tuple[str, str]:
        return self._manager.current_catalog, self._manager.current_database

    def _temporary(self) -> dict[str, Any]:
        return {
            identifier.name: each
            for identifier, each in self._manager.temporary_tables().items()
            if (identifier.catalog, identifier.database) == self._here()
        }

    def get_current_catalog(self) -> str:
        """Return the name of the current catalog."""
        return self._manager.current_catalog

    def use_catalog(self, catalog_name: str) -> None:
        """Make a catalog the current one."""
        self._manager.use_catalog(catalog_name)

    def get_current_database(self) -> str:
        """Return the name of the current database."""
        return self._manager.current_database

    def use_database(self, database_name: str) -> None:
        """Make a database of the current catalog the current one."""
        self._manager.use_database(self._manager.current_catalog, database_name)

    # --- catalogs -------------------------------------------------------------------------------------

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Create a catalog, as CREATE CATALOG does.

        Raises:
            CatalogError: If there is one with this name, or its options are wrong.
        """
        self._manager.create_catalog(catalog_name, catalog_descriptor.options, catalog_descriptor.comment)

    def register_catalog(self, catalog_name: str, catalog: Catalog | StoredCatalog) -> None:
        """Give a catalog a name in this environment.

        Args:
            catalog_name: The name.
            catalog: A `Catalog`, or an object of your own with the methods of `headrace.catalog.Catalog`.

        Raises:
            CatalogError: If there is one with this name, or this is not a catalog.
        """
        stored = catalog._catalog if isinstance(catalog, Catalog) else catalog
        if not isinstance(stored, StoredCatalog):
            raise CatalogError(f"register_catalog(): expected a catalog; got {shorten(catalog)}")
        self._manager.register_catalog(catalog_name, stored)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """Return a catalog for reading and changing its objects; None if no catalog has this name."""
        known = catalog_name in self._manager.catalogs()
        return Catalog(self._manager.catalog(catalog_name)) if known else None

    # --- functions ------------------------------------------------------------------------------------

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Give a Python function a name in the current database, for as long as the environment lives."""
        identifier = self._manager.qualify(parts_of(path))
        self._manager.put_temporary_function(identifier, as_user_function(identifier.name, function))

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Give a Python function a name in every database, for as long as the environment lives."""
        self._manager.put_system_function(name, as_user_function(name, function))

    def drop_temporary_function(self, path: str) -> bool:
        """Drop a temporary function; say whether there was one."""
        return self._manager.drop_temporary_function(self._manager.qualify(parts_of(path)))

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drop a function of the environment; say whether there was one."""
        return self._manager.drop_system_function(name)

    def drop_function(self, path: str) -> bool:
        """Drop a function of a catalog; say whether there was one."""
        identifier = self._manager.qualify(parts_of(path))
        is_there = self._manager.permanent_function(identifier) is not None
        if is_there:
            self._manager.drop_function(identifier)
        return is_there
