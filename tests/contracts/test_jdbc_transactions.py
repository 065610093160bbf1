"""How tables of databases are read: a query for every page, or a cursor in one transaction ('scan.auto-commit')."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.catalog.objects import CatalogTable, PhysicalColumn
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Slice, Source, SourceReader
from headrace.connectors.jdbc._connections import dispose_engines
from headrace.connectors.jdbc.factory import JdbcFactory
from headrace.connectors.tables import TableRequest
from headrace.elements import Batch
from headrace.types import DataTypes
from tests.mariadb import MariaServer
from tests.postgres import PostgresServer

Server = PostgresServer | MariaServer
#: The connection that reads; those that have prepared the table may take a moment to close.
SESSIONS = """SELECT state, query FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query !~ '^(DROP|CREATE|INSERT)'"""


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    running: Server = request.getfixturevalue(request.param)
    yield running
    dispose_engines()


def source_of(server: Server, **options: str) -> Source:
    """Make a table of ten rows, and what a table with these options reads it with."""
    server.execute("DROP TABLE IF EXISTS sold")
    server.execute("CREATE TABLE sold (id INTEGER PRIMARY KEY)")
    server.execute(f"INSERT INTO sold VALUES {', '.join(f'({n})' for n in range(10))}")
    url = server.options()
    place = {"url": url.url, "username": str(url.user_name), "password": str(url.password)}
    given = {**place, "table-name": "sold", "scan.fetch-size": "4", **options}
    table = CatalogTable((PhysicalColumn("id", DataTypes.INT()),), given)
    return JdbcFactory().source(TableRequest("sold", table, TableOptions("sold", given)))


def begun(source: Source) -> tuple[SourceReader, Iterator[Batch], list[Any]]:
    """Begin to read, and read the first four rows."""
    [split] = source.create_enumerator(1).discover()
    reader = source.create_reader()
    batches = reader.read(Slice(split, None))
    first = [row[0] for row in next(batches).values]
    assert first == [0, 1, 2, 3]
    return reader, batches, first


@pytest.mark.parametrize(("auto_commit", "sees_the_row"), [("true", True), ("false", False)])
def test_rows_of_one_transaction_are_from_the_same_moment(
    server: Server, auto_commit: str, sees_the_row: bool
) -> None:
    reader, batches, _ = begun(source_of(server, **{"scan.auto-commit": auto_commit}))
    server.execute("INSERT INTO sold VALUES (99)")

    portions = [[row[0] for row in batch.values] for batch in batches]

    assert portions == [[4, 5, 6, 7], [8, 9, 99] if sees_the_row else [8, 9]]
    assert reader.progress().is_finished


def test_a_cursor_keeps_its_transaction_open_until_the_slice_is_read(postgres: PostgresServer) -> None:
    _, batches, _ = begun(source_of(postgres, **{"scan.auto-commit": "false"}))
    [(state, query)] = postgres.execute(SESSIONS)
    assert (state, query.split(" ")[0]) == ("idle in transaction", "FETCH")

    list(batches)
    assert [state for state, _ in postgres.execute(SESSIONS)] == ["idle"]
    dispose_engines()


def test_pages_of_their_own_leave_no_transaction_open(postgres: PostgresServer) -> None:
    _, batches, _ = begun(source_of(postgres))
    assert [state for state, _ in postgres.execute(SESSIONS)] == ["idle"]
    list(batches)
    dispose_engines()


def test_a_slice_that_nobody_reads_to_its_end_closes_its_transaction(postgres: PostgresServer) -> None:
    _, batches, _ = begun(source_of(postgres, **{"scan.auto-commit": "false"}))
    del batches
    assert [state for state, _ in postgres.execute(SESSIONS)] == ["idle"]
    dispose_engines()


def test_a_cursor_that_is_lost_goes_on_behind_the_last_row(postgres: PostgresServer) -> None:
    _, batches, rows = begun(source_of(postgres, **{"scan.auto-commit": "false"}))
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    )
    rows += [row[0] for batch in batches for row in batch.values]
    assert rows == list(range(10))
    dispose_engines()
