"""CREATE CATALOG with 'type' = 'jdbc': the tables of a PostgreSQL, MySQL or MariaDB server, with their types."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from headrace.catalog.catalog import StoredTable
from headrace.catalog.objects import CatalogDatabase, CatalogTable, PhysicalColumn, PrimaryKey
from headrace.catalog.read_only import ReadOnlyCatalog
from headrace.connectors.jdbc._connections import transact
from headrace.connectors.jdbc.column_types import type_of_column
from headrace.connectors.jdbc.options import JdbcConnectionOptions
from headrace.errors import CatalogError

if TYPE_CHECKING:
    from sqlalchemy import Inspector

__all__ = ["JdbcCatalog", "jdbc_catalog"]

_OPTIONS: Final = ("base-url", "default-database", "username", "password")
_SYSTEM_SCHEMAS: Final = {
    *("information_schema", "mysql", "performance_schema", "sys"),
    *("pg_catalog", "pg_toast"),
}
#: The schema of PostgreSQL that a name without one stands for.
_DEFAULT_SCHEMA: Final = "public"

R = TypeVar("R")


class JdbcCatalog(ReadOnlyCatalog):
    """Databases and tables of a server. They are looked up on every request, and cannot be changed from here.

    In PostgreSQL a table is named with its schema, as in `public.orders`; `orders` alone is looked up in the schema
    `public`.

    Args:
        base_url: The server, such as ``jdbc:postgresql://localhost:5432``.
        default_database: The database that USE CATALOG selects.
        username: Who connects.
        password: With which password.
        properties: What the catalog was created with.
        comment: The comment on it, if there is one.
    """

    def __init__(
        self,
        base_url: str,
        default_database: str,
        username: str,
        password: str,
        *,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        given = {"type": "jdbc", "base-url": base_url, "default-database": default_database}
        super().__init__(default_database, properties or {**given, "username": username}, comment)
        self._base_url = base_url.rstrip("/")
        self._username = username
        self._password = password
        self._has_schemas = self._connection(default_database).database_url().dialect == "postgresql"

    def databases(self) -> list[str]:
        """Names of the server's databases, without its own."""
        return sorted(
            self._look(self.default_database, self._databases, "listing the databases") - _SYSTEM_SCHEMAS
        )

    def database(self, name: str) -> CatalogDatabase | None:
        """A database's description, or None."""
        return CatalogDatabase() if name in self.databases() else None

    def tables(self, database: str) -> list[str]:
        """Names of tables and views of a database."""

        def look(inspector: Inspector) -> list[str]:
            if not self._has_schemas:
                return [*inspector.get_table_names(), *inspector.get_view_names()]
            schemas = set(inspector.get_schema_names()) - _SYSTEM_SCHEMAS
            return [
                f"{schema}.{name}"
                for schema in schemas
                for name in (*inspector.get_table_names(schema), *inspector.get_view_names(schema))
            ]

        return sorted(self._look(database, look, f"listing the tables of {database}"))

    def table(self, database: str, name: str) -> StoredTable | None:
        """A table or view with its columns and primary key, or None.

        Raises:
            CatalogError: A column has a type that no type of SQL corresponds to.
        """
        from sqlalchemy.exc import NoSuchTableError

        schema, _, bare = name.rpartition(".") if self._has_schemas else ("", "", name)
        place = (schema or _DEFAULT_SCHEMA) if self._has_schemas else None

        def look(inspector: Inspector) -> CatalogTable | None:
            try:
                columns = inspector.get_columns(bare, schema=place)
                key = inspector.get_pk_constraint(bare, schema=place)
            except NoSuchTableError:
                return None
            names = tuple(key["constrained_columns"])
            return CatalogTable(
                tuple(
                    PhysicalColumn(
                        column["name"],
                        type_of_column(f"{database}.{name}", column),
                        comment=column.get("comment"),
                    )
                    for column in columns
                ),
                self._options(database, bare if place is None else f"{place}.{bare}"),
                primary_key=PrimaryKey(key["name"] or "PK", names) if names else None,
            )

        if self.database(database) is None:
            return None
        return self._look(database, look, f"reading the definition of table {database}.{name}")

    def _options(self, database: str, table: str) -> dict[str, str]:
        return {
            "connector": "jdbc",
            "url": f"{self._base_url}/{database}",
            "table-name": table,
            "username": self._username,
            "password": self._password,
        }

    def _connection(self, database: str) -> JdbcConnectionOptions:
        return JdbcConnectionOptions(f"{self._base_url}/{database}", self._username, self._password)

    def _databases(self, inspector: Inspector) -> set[str]:
        if not self._has_schemas:
            return set(inspector.get_schema_names())
        from sqlalchemy import text

        found = "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate"
        connection: Any = inspector.bind
        return {row[0] for row in connection.execute(text(found))}

    def _look(self, database: str, look: Callable[[Inspector], R], what: str) -> R:
        from sqlalchemy import inspect
        from sqlalchemy.exc import SAWarning

        def quietly(connection: Any) -> R:
            with warnings.catch_warnings():
                # Of a type that SQLAlchemy does not know: type_of_column names the column.
                warnings.simplefilter("ignore", SAWarning)
                return look(inspect(connection))

        return transact(
            self._connection(database),
            quietly,
            max_retries=3,
            what=f"JDBC catalog: {what}",
        )


def jdbc_catalog(options: Mapping[str, str], comment: str | None) -> JdbcCatalog:
    """Make a catalog of type `jdbc`.

    Raises:
        CatalogError: An option is missing or unknown.
        ConnectorError: The server cannot be reached.
    """
    if missing := [key for key in _OPTIONS if key not in options]:
        raise CatalogError(f"a jdbc catalog needs the option {missing[0]!r}")
    if unknown := sorted(set(options) - {"type", *_OPTIONS}):
        raise CatalogError(
            f"a jdbc catalog has no option {unknown[0]!r}", hint=f"available: {', '.join(_OPTIONS)}"
        )
    catalog = JdbcCatalog(*(options[key] for key in _OPTIONS), properties=options, comment=comment)
    if catalog.database(catalog.default_database) is None:
        raise CatalogError(f"the server of the jdbc catalog has no database {catalog.default_database!r}")
    return catalog
