"""Carries out statements about the catalog: the manager is changed, or rows come back to be shown."""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.manager import CatalogManager, nearest
from headrace.catalog.objects import CatalogTable, CatalogView, InlineView
from headrace.errors import CatalogError
from headrace.planner import statements as s
from headrace.planner.inspection import Rows, inspect

__all__ = ["OK", "Rows", "execute"]


#: What statements give that only change something.
OK = Rows(("result",), (("OK",),))


def execute(statement: s.CatalogStatement, manager: CatalogManager) -> Rows:
    """Carry out a statement.

    Raises:
        CatalogError: What it creates is there, or what it needs is not.
    """
    match statement:
        case s.CreateTable() | s.CreateView():
            _create(statement, manager)
        case s.DropTable() | s.DropView():
            _drop(statement, manager)
        case s.AlterTable(identifier, changed) | s.AlterView(identifier, changed):
            _replace(manager, identifier, changed)
        case s.RenameTable():
            _rename(statement, manager)
        case s.CreateFunction() | s.DropFunction():
            _function(statement, manager)
        case s.LoadModule() | s.UnloadModule() | s.UseModules():
            _module(statement, manager)
        case (
            s.UseCatalog()
            | s.UseDatabase()
            | s.CreateDatabase()
            | s.AlterDatabase()
            | s.DropDatabase()
            | s.CreateCatalog()
            | s.DropCatalog()
        ):
            _database_or_catalog(statement, manager)
        case _:
            return inspect(statement, manager)
    return OK


# --- tables and views -----------------------------------------------------------------------------


def _create(statement: s.CreateTable | s.CreateView, manager: CatalogManager) -> None:
    identifier = statement.identifier
    made = statement.table if isinstance(statement, s.CreateTable) else statement.view
    find = manager.temporary_table if statement.temporary else manager.permanent_table
    if find(identifier) is not None:
        if statement.if_not_exists:
            return
        raise CatalogError(f"table or view {identifier.dotted()!r} already exists")
    put = manager.put_temporary_table if statement.temporary else manager.put_table
    put(identifier, made)


def _drop(statement: s.DropTable | s.DropView, manager: CatalogManager) -> None:
    identifier = statement.identifier
    wanted = (CatalogTable,) if isinstance(statement, s.DropTable) else (CatalogView, InlineView)
    what = "table" if isinstance(statement, s.DropTable) else "view"
    temporary = manager.temporary_table(identifier)
    if statement.temporary:
        found = temporary
    else:
        found = manager.permanent_table(identifier)
        if isinstance(temporary, wanted):
            raise CatalogError(
                f"a temporary {what} shadows {identifier.dotted()!r}",
                hint=f"DROP TEMPORARY {what.upper()} first",
            )
    if not isinstance(found, wanted):
        if statement.if_exists:
            return
        kind = f"temporary {what}" if statement.temporary else what
        views = manager.views(identifier.catalog, identifier.database)
        tables = manager.tables(identifier.catalog, identifier.database)
        known = views if what == "view" else [name for name in tables if name not in views]
        raise CatalogError(
            f"{kind} {identifier.dotted()!r} does not exist", hint=nearest(identifier.name, known)
        )
    if statement.temporary:
        manager.drop_temporary_table(identifier)
        return
    if isinstance(found, CatalogTable) and found.materialization is not None:
        raise CatalogError(
            f"{identifier.dotted()!r} is a materialized table",
            hint="use DROP MATERIALIZED TABLE, which ends its job",
        )
    manager.catalog(identifier.catalog).drop_table(identifier.database, identifier.name)


def _replace(
    manager: CatalogManager, identifier: ObjectIdentifier, changed: CatalogTable | CatalogView
) -> None:
    if manager.temporary_table(identifier) is not None:
        manager.put_temporary_table(identifier, changed)
    else:
        manager.put_table(identifier, changed)


def _rename(statement: s.RenameTable, manager: CatalogManager) -> None:
    old, new = statement.identifier, statement.new_identifier
    new = ObjectIdentifier(old.catalog, old.database, new.name)
    if manager.table(new) is not None:
        raise CatalogError(f"table or view {new.dotted()!r} already exists")
    temporary = manager.temporary_table(old)
    if temporary is not None:
        manager.drop_temporary_table(old)
        manager.put_temporary_table(new, temporary)
        return
    table = manager.permanent_table(old)
    assert table is not None
    manager.catalog(old.catalog).drop_table(old.database, old.name)
    manager.put_table(new, table)


# --- functions ------------------------------------------------------------------------------------


def _function(statement: s.CreateFunction | s.DropFunction, manager: CatalogManager) -> None:
    identifier = statement.identifier
    if isinstance(statement, s.DropFunction):
        if statement.system:
            dropped = manager.drop_system_function(identifier.name)
        elif statement.temporary:
            dropped = manager.drop_temporary_function(identifier)
        else:
            dropped = manager.permanent_function(identifier) is not None
            if dropped:
                manager.drop_function(identifier)
        if not dropped and not statement.if_exists:
            hint = nearest(identifier.name, manager.user_functions())
            raise CatalogError(f"function {identifier.dotted()!r} does not exist", hint=hint)
        return
    path = (identifier.name,) if statement.system else identifier.parts
    if manager.function(path) is not None:
        if statement.if_not_exists:
            return
        raise CatalogError(f"function {identifier.dotted()!r} already exists")
    if statement.system:
        manager.put_system_function(identifier.name, statement.function)
    elif statement.temporary:
        manager.put_temporary_function(identifier, statement.function)
    else:
        manager.put_function(identifier, statement.function)


# --- modules --------------------------------------------------------------------------------------


def _module(statement: s.LoadModule | s.UnloadModule | s.UseModules, manager: CatalogManager) -> None:
    modules = manager.modules
    match statement:
        case s.LoadModule(name, options):
            if options:
                raise CatalogError(f"module {name!r} has no options")
            modules.load(name)
        case s.UnloadModule(name):
            modules.unload(name)
        case s.UseModules(names):
            modules.use(names)


# --- databases and catalogs -----------------------------------------------------------------------


def _database_or_catalog(statement: s.CatalogStatement, manager: CatalogManager) -> None:
    match statement:
        case s.UseCatalog(name):
            manager.use_catalog(name)
        case s.UseDatabase(catalog, database):
            manager.use_database(catalog, database)
        case s.CreateDatabase(catalog, name, database_, if_not_exists):
            if manager.catalog(catalog).database(name) is None:
                manager.catalog(catalog).put_database(name, database_)
            elif not if_not_exists:
                raise CatalogError(f"database {name!r} already exists in catalog {catalog!r}")
        case s.AlterDatabase(catalog, name, properties):
            old = manager.require_database(catalog, name)
            manager.catalog(catalog).put_database(
                name, replace(old, properties={**old.properties, **properties})
            )
        case s.DropDatabase():
            _drop_database(statement, manager)
        case s.CreateCatalog():
            _create_catalog(manager, statement)
        case s.DropCatalog(name, if_exists):
            if not if_exists or name in manager.catalogs():
                manager.drop_catalog(name)


def _drop_database(statement: s.DropDatabase, manager: CatalogManager) -> None:
    catalog = manager.catalog(statement.catalog)
    if catalog.database(statement.name) is None and statement.if_exists:
        return
    manager.require_database(statement.catalog, statement.name)
    if (statement.catalog, statement.name) == (manager.current_catalog, manager.current_database):
        raise CatalogError(
            f"database {statement.name!r} is in use", hint="switch to another database first: USE name"
        )
    full = catalog.tables(statement.name) or catalog.functions(statement.name)
    if full and not statement.cascade:
        raise CatalogError(f"database {statement.name!r} is not empty", hint="DROP DATABASE ... CASCADE")
    catalog.drop_database(statement.name)


def _create_catalog(manager: CatalogManager, statement: s.CreateCatalog) -> None:
    name, properties = statement.name, dict(statement.properties)
    if name in manager.catalogs() and statement.if_not_exists:
        return
    manager.create_catalog(name, properties, statement.comment)
