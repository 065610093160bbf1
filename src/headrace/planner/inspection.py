"""Executes SHOW and DESCRIBE: statements that look at the catalog and return rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.catalog.catalog import StoredFunction
from headrace.catalog.functions import CatalogFunction
from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.manager import CatalogManager
from headrace.catalog.objects import CatalogTable, CatalogView, ComputedColumn, MetadataColumn
from headrace.config.secrets import looks_secret
from headrace.errors import CatalogError, UnsupportedFeatureError
from headrace.planner import statements as s
from headrace.planner.functions import (
    FUNCTIONS,
    built_in_names,
    find_aggregate,
    find_function,
    module_names,
    over_lists,
)
from headrace.planner.show_create import (
    HIDDEN,
    create_catalog_text,
    create_table_text,
    create_view_text,
    with_quoted_columns,
)

__all__ = ["Rows", "inspect"]

_NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Rows:
    """Rows to show, with the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    #: Columns whose type is BOOLEAN; the others are STRING.
    booleans: frozenset[str] = frozenset()


def inspect(statement: s.CatalogStatement, manager: CatalogManager) -> Rows:
    """Look at the catalog.

    Raises:
        CatalogError: What is to be shown is not there.
    """
    match statement:
        case s.Show():
            return _show(statement, manager)
        case s.ShowColumns() | s.Describe():
            return _describe(statement)
        case s.ShowCreate(identifier, table):
            text = create_table_text if isinstance(table, CatalogTable) else create_view_text
            return _one(text(identifier, table, _is_temporary(manager, identifier)))  # type: ignore[arg-type]  # its own kind
        case s.ShowCreateCatalog(name):
            catalog = manager.catalog(name)
            return _one(create_catalog_text(name, catalog.properties, catalog.comment))
        case s.DescribeCatalog(name, extended):
            catalog = manager.catalog(name)
            about = {"name": name, "type": catalog.properties.get("type"), "comment": catalog.comment}
            return _information(about, catalog.properties if extended else {})
        case s.DescribeDatabase(catalog_name, name, extended):
            database = manager.require_database(catalog_name, name)
            about = {"name": name, "comment": database.comment}
            return _information(about, database.properties if extended else {})
        case s.DescribeFunction():
            return _describe_function(statement, manager)
        case _:
            raise AssertionError(statement)


def _is_temporary(manager: CatalogManager, identifier: ObjectIdentifier) -> bool:
    return manager.temporary_table(identifier) is not None


def _one(text: str) -> Rows:
    return Rows(("result",), ((text,),))


def _information(about: Mapping[str, object], options: Mapping[str, str] = _NONE) -> Rows:
    shown = {
        f"option:{key}": HIDDEN if looks_secret(key) else value
        for key, value in sorted(options.items())
        if key != "type"
    }
    return Rows(("info name", "info value"), (*about.items(), *shown.items()))


# --- lists of names -------------------------------------------------------------------------------


def _show(statement: s.Show, manager: CatalogManager) -> Rows:
    columns = tuple(statement.subject.value.split(", "))
    if statement.subject is s.ShowSubject.FULL_MODULES:
        return Rows(columns, tuple(manager.modules.loaded()), frozenset({"used"}))
    kept = [
        name
        for name in _names(statement, manager)
        if _matches(name, statement.pattern, statement.negated, statement.ignore_case)
    ]
    return Rows(columns, tuple((name,) for name in kept))


def _names(statement: s.Show, manager: CatalogManager) -> list[str]:
    catalog = statement.catalog or manager.current_catalog
    database = statement.database or manager.current_database
    match statement.subject:
        case s.ShowSubject.CATALOGS:
            names = manager.catalogs()
        case s.ShowSubject.CURRENT_CATALOG:
            names = [manager.current_catalog]
        case s.ShowSubject.CURRENT_DATABASE:
            names = [manager.current_database]
        case s.ShowSubject.DATABASES:
            names = manager.catalog(catalog).databases()
        case s.ShowSubject.MATERIALIZED_TABLES:
            names = manager.materialized_tables(catalog, database)
        case s.ShowSubject.TABLES:
            names = manager.tables(catalog, database)
        case s.ShowSubject.VIEWS:
            names = manager.views(catalog, database)
        case s.ShowSubject.USER_FUNCTIONS:
            names = manager.user_functions()
        case s.ShowSubject.FUNCTIONS:
            loaded = (name for each in manager.modules.kinds_used() for name in module_names(each))
            names = sorted({*manager.user_functions(), *built_in_names(), *loaded})
        case s.ShowSubject.MODULES:
            names = manager.modules.used()
        case s.ShowSubject.PROCEDURES:
            raise UnsupportedFeatureError(
                f"SHOW PROCEDURES: catalog {catalog!r} is one in memory, which has no procedures, as in Flink",
                feature="SHOW PROCEDURES",
            )
        case _:
            names = []  # there are no jars or models
    return names


def _matches(name: str, pattern: str | None, negated: bool, ignore_case: bool) -> bool:
    if pattern is None:
        return True
    expression = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return bool(re.fullmatch(expression, name, flags)) != negated


def _describe(statement: s.Describe | s.ShowColumns) -> Rows:
    table = statement.table
    comments = {one.name: one.comment for one in table.columns if one.comment} if table is not None else {}
    rows = []
    for one in statement.fields:
        if isinstance(statement, s.ShowColumns) and not _matches(
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
    return Rows(columns, tuple(rows), frozenset({"null"}))


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
            extras = f"AS {with_quoted_columns(expression, table)}"
        case MetadataColumn() as column:
            extras = "METADATA" + (f" FROM '{column.key}'" if column.key else "")
            extras += " VIRTUAL" if column.virtual else ""
    watermark = table.watermark
    if watermark is None or watermark.column != name:
        return key, extras, None
    return key, extras, with_quoted_columns(watermark.expression, table)


# --- functions ------------------------------------------------------------------------------------


def _describe_function(statement: s.DescribeFunction, manager: CatalogManager) -> Rows:
    path = statement.path
    found = manager.function(path)
    if found is not None:
        return _information(_user_function(found, path, manager))
    name = path[-1].upper()
    listed = {one.name: one for one in over_lists()}
    built_in, aggregate = (
        find_function(name, manager.modules.kinds_used()),
        find_aggregate(name) or listed.get(name),
    )
    if len(path) > 1 or (built_in is None and aggregate is None):
        raise CatalogError(
            f"function {'.'.join(path)!r} does not exist",
            hint=FUNCTIONS.suggestion(name, manager.user_functions()),
        )
    described = {"is system function": "true", "is temporary": "false"}
    if statement.extended and aggregate is not None:
        described |= {"kind": "AGGREGATE", "signature": aggregate.shown}
    elif statement.extended and built_in is not None:
        shown = "\n".join(one.text for one in built_in.signatures)
        described |= {"kind": "SCALAR", "signature": shown or built_in.name}
    return _information(described)


def _user_function(
    function: StoredFunction, path: tuple[str, ...], manager: CatalogManager
) -> dict[str, str]:
    is_system = len(path) == 1 and manager.is_system_function(path[0])
    is_permanent = not is_system and manager.permanent_function(manager.qualify(path)) is function
    found = {
        "is system function": str(is_system).lower(),
        "is temporary": str(not is_permanent).lower(),
    }
    if isinstance(function, CatalogFunction):
        found |= {"class name": function.class_name, "function language": function.language}
        found["resource uris"] = "[]"
    return found
