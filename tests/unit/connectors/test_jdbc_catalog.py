"""Catalogs of databases, on real servers: their tables, with types, keys and where to read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.catalog.objects import CatalogTable
from headrace.errors import CatalogError, ConnectorError
from headrace.table import EnvironmentSettings, TableEnvironment
from tests.mariadb import MariaServer
from tests.postgres import PostgresServer

_POSTGRES_TABLE = """
CREATE TABLE catalog_types (
    id BIGINT PRIMARY KEY, small SMALLINT NOT NULL, n INTEGER, flag BOOLEAN, bytes BYTEA, f REAL, d DOUBLE PRECISION,
    price NUMERIC(12, 2), free NUMERIC, code CHAR(3), name VARCHAR(20), note TEXT, day DATE, at TIME(0),
    ts TIMESTAMP(3), tz TIMESTAMPTZ
)
"""
_MARIADB_TABLE = """
CREATE TABLE catalog_types (
    a INT NOT NULL, b VARCHAR(10) NOT NULL, tiny TINYINT, flag TINYINT(1), small SMALLINT UNSIGNED, medium MEDIUMINT,
    n INT UNSIGNED, big BIGINT UNSIGNED, f FLOAT, d DOUBLE, price DECIMAL(10, 2), code CHAR(3), note LONGTEXT,
    bytes BLOB, day DATE, at TIME, ts DATETIME(3), PRIMARY KEY (b, a)
)
"""


@pytest.fixture
def t_env() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


@pytest.fixture
def shop(postgres: PostgresServer, t_env: TableEnvironment) -> Iterator[TableEnvironment]:
    postgres.execute(_POSTGRES_TABLE)
    postgres.execute("CREATE SCHEMA catalog_sales")
    postgres.execute("CREATE TABLE catalog_sales.orders (id INTEGER, places POINT)")
    t_env.execute_sql(_create_catalog(postgres, "shop"))
    yield t_env
    postgres.execute("DROP SCHEMA catalog_sales CASCADE")
    postgres.execute("DROP TABLE catalog_types")


def _create_catalog(server: PostgresServer, name: str, database: str = "postgres") -> str:
    return (
        f"CREATE CATALOG {name} WITH ('type' = 'jdbc', 'base-url' = 'jdbc:postgresql://127.0.0.1:{server.port}', "
        f"'default-database' = '{database}', 'username' = '{server.user}', 'password' = '{server.password}')"
    )


def _described(t_env: TableEnvironment, table: str) -> dict[str, str]:
    rows = t_env.execute_sql(f"DESCRIBE {table}").collect()
    return {row[0]: f"{row[1]}{'' if row[2] else ' NOT NULL'}" for row in rows}


def _first_column(t_env: TableEnvironment, statement: str) -> list[str]:
    return [row[0] for row in t_env.execute_sql(statement).collect()]


def test_postgresql_tables_appear_with_their_types(shop: TableEnvironment) -> None:
    assert _described(shop, "shop.postgres.catalog_types") == {
        "id": "BIGINT NOT NULL",
        "small": "SMALLINT NOT NULL",
        "n": "INT",
        "flag": "BOOLEAN",
        "bytes": "BYTES",
        "f": "FLOAT",
        "d": "DOUBLE",
        "price": "DECIMAL(12, 2)",
        "free": "DECIMAL(38, 18)",
        "code": "CHAR(3)",
        "name": "VARCHAR(20)",
        "note": "STRING",
        "day": "DATE",
        "at": "TIME(0)",
        "ts": "TIMESTAMP(3)",
        "tz": "TIMESTAMP_LTZ(6)",
    }


def test_postgresql_tables_are_listed_with_their_schemas(shop: TableEnvironment) -> None:
    shop.execute_sql("USE CATALOG shop")
    listed = _first_column(shop, "SHOW TABLES")
    assert {"public.catalog_types", "catalog_sales.orders"} <= set(listed)
    assert "postgres" in _first_column(shop, "SHOW DATABASES")
    assert "template1" not in _first_column(shop, "SHOW DATABASES")


def test_a_table_knows_its_key_and_where_it_is(shop: TableEnvironment, postgres: PostgresServer) -> None:
    table = shop._manager.catalog("shop").table("postgres", "public.catalog_types")
    assert isinstance(table, CatalogTable)
    assert table.primary_key is not None
    assert table.primary_key.columns == ("id",)
    assert table.options["table-name"] == "public.catalog_types"
    assert table.options["url"] == f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres"


def test_a_column_without_a_counterpart_is_named(shop: TableEnvironment) -> None:
    with pytest.raises(CatalogError, match=r"column 'places' has the type .*, which has no SQL type here"):
        shop.execute_sql("DESCRIBE shop.postgres.`catalog_sales.orders`")


def test_tables_cannot_be_made_or_dropped(shop: TableEnvironment) -> None:
    shop.execute_sql("USE CATALOG shop")
    with pytest.raises(
        CatalogError, match="cannot create or alter table 'new': a catalog of type 'jdbc' is read-only"
    ):
        shop.execute_sql("CREATE TABLE new (n INT) WITH ('connector' = 'print')")
    with pytest.raises(CatalogError, match="read-only"):
        shop.execute_sql("DROP TABLE catalog_types")


def test_a_catalog_of_an_unknown_database_is_refused(
    postgres: PostgresServer, t_env: TableEnvironment
) -> None:
    with pytest.raises(ConnectorError, match="no_such_place") as error:
        t_env.execute_sql(_create_catalog(postgres, "lost", "no_such_place"))
    assert postgres.password not in str(error.value)


def test_options_are_checked_before_anything_connects(t_env: TableEnvironment) -> None:
    with pytest.raises(CatalogError, match="needs the option 'default-database'"):
        t_env.execute_sql("CREATE CATALOG c WITH ('type' = 'jdbc', 'base-url' = 'jdbc:mysql://nowhere')")


def test_mariadb_tables_appear_with_their_types(mariadb: MariaServer, t_env: TableEnvironment) -> None:
    mariadb.execute(_MARIADB_TABLE)
    try:
        t_env.execute_sql(
            f"CREATE CATALOG my WITH ('type' = 'jdbc', 'base-url' = 'jdbc:mariadb://127.0.0.1:{mariadb.port}', "
            "'default-database' = 'test', 'username' = 'tester', 'password' = 'secret')"
        )
        t_env.execute_sql("USE CATALOG my")
        assert "catalog_types" in _first_column(t_env, "SHOW TABLES")
        assert _described(t_env, "catalog_types") == {
            "a": "INT NOT NULL",
            "b": "VARCHAR(10) NOT NULL",
            "tiny": "TINYINT",
            "flag": "BOOLEAN",
            "small": "INT",
            "medium": "INT",
            "n": "BIGINT",
            "big": "DECIMAL(20, 0)",
            "f": "FLOAT",
            "d": "DOUBLE",
            "price": "DECIMAL(10, 2)",
            "code": "CHAR(3)",
            "note": "STRING",
            "bytes": "BYTES",
            "day": "DATE",
            "at": "TIME(0)",
            "ts": "TIMESTAMP(3)",
        }
    finally:
        mariadb.execute("DROP TABLE catalog_types")
