"""Carries out statements about the catalog: the manager is changed, or rows come back to be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.catalog.catalog import InMemoryCatalog
from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.manager import CatalogManager, nearest
from headrace.catalog.objects import CatalogTable, CatalogView, ComputedColumn, InlineView, MetadataColumn
from headrace.errors import CatalogError, UnsupportedFeatureError
from headrace.planner.functions import FUNCTIONS, aggregates
from headrace.planner.show_create import create_catalog_text, create_table_text, create_view_text
from headrace.planner.statements import (
    AlterDatabase,
    AlterTable,
    AlterView,
    CatalogStatement,
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    DescribeCatalog,
    DropCatalog,
    DropDatabase,
    DropFunction,
    DropTable,
    DropView,
    RenameTable,
    Show,
    ShowColumns,
    ShowCreate,
    ShowCreateCatalog,
    ShowSubject,
    UseCatalog,
    UseDatabase,
)

__all__ = ["MODULES", "OK", "Rows", "execute"]


@dataclass(frozen=True)
class Rows:
    """Rows to show, with the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


#: Where built-in functions come from.
MODULES = ("core",)
#: What statements give that only change something.
OK = Rows(("result",), (("OK",),))


def execute(statement: CatalogStatement, manager: CatalogManager) -> Rows:
    """Carry out a statement.

    Raises:
        CatalogError: What it creates is there, or what it needs is not.
    """
    match statement:
        case Show():
            return _show(statement, manager)
        case ShowColumns() | Describe():
            return _describe(statement)
        case DescribeCatalog(name):
            return _describe_catalog(name, manager.catalog(name).properties)
        case ShowCreateCatalog(name):
            return Rows(("result",), ((create_catalog_text(name, manager.catalog(name).properties),),))
        case ShowCreate(identifier, CatalogTable() as table):
            return Rows(
                ("result",), ((create_table_text(identifier, table, _is_temporary(manager, identifier)),),)
            )
        case ShowCreate(identifier, CatalogView() as view):
            return Rows(
                ("result",), ((create_view_text(identifier, view, _is_temporary(manager, identifier)),),)
            )
        case CreateTable() | DropTable() | CreateView() | DropView():
            _create_or_drop(statement, manager)
        case AlterTable(identifier, changed) | AlterView(identifier, changed):
            _replace(manager, identifier, changed)
        case RenameTable():
            _rename(statement, manager)
        case CreateFunction() | DropFunction():
            _function(statement, manager)
        case _:
            _database_or_catalog(statement, manager)
    return OK


def _is_temporary(manager: CatalogManager, identifier: ObjectIdentifier) -> bool:
    return manager.temporary_table(identifier) is not None


# --- tables and views -----------------------------------------------------------------------------


def _create_or_drop(
    statement: CreateTable | DropTable | CreateView | DropView, manager: CatalogManager
) -> None:
    identifier = statement.identifier
    if isinstance(statement, CreateTable | CreateView):
        made = statement.table if isinstance(statement, CreateTable) else statement.view
        there = (
            manager.temporary_table(identifier)
            if statement.temporary
            else manager.permanent_table(identifier)
        )
        if there is not None:
            if statement.if_not_exists:
                return
            raise CatalogError(f"there is a table or view {identifier.dotted()!r} already")
        if statement.temporary:
            manager.put_temporary_table(identifier, made)
        else:
            manager.put_table(identifier, made)
        return
    wanted = (CatalogTable,) if isinstance(statement, DropTable) else (CatalogView, InlineView)
    what = "table" if isinstance(statement, DropTable) else "view"
    temporary = manager.temporary_table(identifier)
    if statement.temporary:
        found = temporary
    else:
        found = manager.permanent_table(identifier)
        if isinstance(temporary, wanted):
            raise CatalogError(
                f"a temporary {what} hides {identifier.dotted()!r}",
                hint=f"DROP TEMPORARY {what.upper()} first",
            )
    if not isinstance(found, wanted):
        if statement.if_exists:
            return
        kind = f"temporary {what}" if statement.temporary else what
        others = manager.tables(identifier.catalog, identifier.database)
        known = [name for name, each in others.items() if isinstance(each, wanted)]
        raise CatalogError(
            f"there is no {kind} {identifier.dotted()!r}", hint=nearest(identifier.name, known)
        )
    if statement.temporary:
        manager.drop_temporary_table(identifier)
    else:
        manager.catalog(identifier.catalog).drop_table(identifier.database, identifier.name)


def _replace(
    manager: CatalogManager, identifier: ObjectIdentifier, changed: CatalogTable | CatalogView
) -> None:
    if manager.temporary_table(identifier) is not None:
        manager.put_temporary_table(identifier, changed)
    else:
        manager.put_table(identifier, changed)


def _rename(statement: RenameTable, manager: CatalogManager) -> None:
    old, new = statement.identifier, statement.new_identifier
    new = ObjectIdentifier(old.catalog, old.database, new.name)
    if manager.table(new) is not None:
        raise CatalogError(f"there is a table or view {new.dotted()!r} already")
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


def _function(statement: CreateFunction | DropFunction, manager: CatalogManager) -> None:
    identifier = statement.identifier
    if isinstance(statement, DropFunction):
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
            raise CatalogError(f"there is no function {identifier.dotted()!r}", hint=hint)
        return
    path = (identifier.name,) if statement.system else identifier.parts
    if manager.function(path) is not None:
        if statement.if_not_exists:
            return
        raise CatalogError(f"there is a function {identifier.dotted()!r} already")
    if statement.system:
        manager.put_system_function(identifier.name, statement.function)
    elif statement.temporary:
        manager.put_temporary_function(identifier, statement.function)
    else:
        manager.put_function(identifier, statement.function)


# --- databases and catalogs -----------------------------------------------------------------------


def _database_or_catalog(statement: CatalogStatement, manager: CatalogManager) -> None:
    match statement:
        case UseCatalog(name):
            manager.use_catalog(name)
        case UseDatabase(catalog, database):
            manager.use_database(catalog, database)
        case CreateDatabase(catalog, name, database_, if_not_exists):
            if manager.catalog(catalog).database(name) is None:
                manager.catalog(catalog).put_database(name, database_)
            elif not if_not_exists:
                raise CatalogError(f"there is a database {name!r} in catalog {catalog!r} already")
        case AlterDatabase(catalog, name, properties):
            old = manager.require_database(catalog, name)
            manager.catalog(catalog).put_database(
                name, replace(old, properties={**old.properties, **properties})
            )
        case DropDatabase():
            _drop_database(statement, manager)
        case CreateCatalog(name, properties, if_not_exists):
            _create_catalog(manager, name, dict(properties), if_not_exists)
        case DropCatalog(name, if_exists):
            if not if_exists or name in manager.catalogs():
                manager.drop_catalog(name)


def _drop_database(statement: DropDatabase, manager: CatalogManager) -> None:
    catalog = manager.catalog(statement.catalog)
    if catalog.database(statement.name) is None and statement.if_exists:
        return
    manager.require_database(statement.catalog, statement.name)
    if (statement.catalog, statement.name) == (manager.current_catalog, manager.current_database):
        raise CatalogError(f"database {statement.name!r} is in use", hint="USE another one first")
    full = catalog.tables(statement.name) or catalog.functions(statement.name)
    if full and not statement.cascade:
        raise CatalogError(f"database {statement.name!r} is not empty", hint="DROP DATABASE ... CASCADE")
    catalog.drop_database(statement.name)


def _create_catalog(
    manager: CatalogManager, name: str, properties: dict[str, str], if_not_exists: bool
) -> None:
    if name in manager.catalogs() and if_not_exists:
        return
    kind = properties.get("type")
    if kind is None:
        raise CatalogError("a catalog needs the option 'type'", hint="WITH ('type' = 'generic_in_memory')")
    if kind != "generic_in_memory":
        raise UnsupportedFeatureError.not_yet(f"a catalog of type {kind!r}", "use 'generic_in_memory'")
    known = {"type", "default-database"}
    if unknown := sorted(set(properties) - known):
        raise CatalogError(f"a catalog in memory has no option {unknown[0]!r}")
    manager.register_catalog(name, InMemoryCatalog(properties.get("default-database", "default"), properties))


# --- showing --------------------------------------------------------------------------------------


def _show(statement: Show, manager: CatalogManager) -> Rows:
    catalog = statement.catalog or manager.current_catalog
    database = statement.database or manager.current_database
    if statement.subject is ShowSubject.FULL_MODULES:
        return Rows(
            (ShowSubject.MODULES.value, statement.subject.value), tuple((one, True) for one in MODULES)
        )
    match statement.subject:
        case ShowSubject.MODULES:
            names = list(MODULES)
        case ShowSubject.CATALOGS:
            names = manager.catalogs()
        case ShowSubject.CURRENT_CATALOG:
            names = [manager.current_catalog]
        case ShowSubject.CURRENT_DATABASE:
            names = [manager.current_database]
        case ShowSubject.DATABASES:
            names = manager.catalog(catalog).databases()
        case ShowSubject.TABLES:
            names = list(manager.tables(catalog, database))
        case ShowSubject.VIEWS:
            found = manager.tables(catalog, database)
            names = [name for name, one in found.items() if not isinstance(one, CatalogTable)]
        case ShowSubject.USER_FUNCTIONS:
            names = manager.user_functions()
        case ShowSubject.FUNCTIONS:
            built_in = [one.name for one in FUNCTIONS.functions() if one.group != "operators"]
            names = sorted({*manager.user_functions(), *built_in, *(one.name for one in aggregates())})
    kept = [
        name for name in names if _matches(name, statement.pattern, statement.negated, statement.ignore_case)
    ]
    return Rows((statement.subject.value,), tuple((name,) for name in kept))


def _matches(name: str, pattern: str | None, negated: bool, ignore_case: bool) -> bool:
    if pattern is None:
        return True
    expression = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return bool(re.fullmatch(expression, name, flags)) != negated


def _describe_catalog(name: str, properties: Mapping[str, str]) -> Rows:
    shown = (("name", name), ("type", properties["type"]), ("comment", None))
    return Rows(("info name", "info value"), shown)


def _describe(statement: Describe | ShowColumns) -> Rows:
    table = statement.table
    comments = {one.name: one.comment for one in table.columns if one.comment} if table is not None else {}
    rows = []
    for one in statement.fields:
        if isinstance(statement, ShowColumns) and not _matches(
            one.name, statement.pattern, statement.negated, statement.ignore_case
        ):
            continue
        time = f" *{one.time.value}*" if one.time else ""
        rows.append(
            (
                one.name,
                one.type.summary_without_null() + time,
                one.type.is_nullable,
                *_details(table, one.name),
                *([comments.get(one.name)] if comments else []),
            )
        )
    columns = ("name", "type", "null", "key", "extras", "watermark", *(["comment"] if comments else []))
    return Rows(columns, tuple(rows))


def _details(
    table: CatalogTable | CatalogView | None, name: str
) -> tuple[str | None, str | None, str | None]:
    if not isinstance(table, CatalogTable):
        return None, None, None
    key = None
    if table.primary_key is not None and name in table.primary_key.columns:
        key = f"PRI({', '.join(table.primary_key.columns)})"
    extras = None
    match table.column(name):
        case ComputedColumn(expression=expression):
            extras = f"AS {expression}"
        case MetadataColumn() as column:
            extras = "METADATA" + (f" FROM '{column.key}'" if column.key else "")
            extras += " VIRTUAL" if column.virtual else ""
    watermark = table.watermark
    return key, extras, watermark.expression if watermark and watermark.column == name else None
