"""The same session of a gateway, in the process and over REST: rows, errors, completion, cancelling."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from headrace.errors import ClusterError
from headrace.sql_client.client import SqlClient
from headrace.sql_client.connection import EmbeddedConnection, RemoteConnection, SessionConnection
from headrace.sql_client.feed import fetched
from headrace.table.result_kind import ResultKind
from tests.unit.gateway.test_sessions import Client


class Asking:
    """A client of REST without a socket."""

    url = "http://gateway:8083"

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        version: int = 1,
    ) -> Any:
        target = f"/v{version}{path}" + (f"?{urlencode(query)}" if query else "")
        status, answer = self._client.ask(method, target, body)
        if status >= 400:
            raise ClusterError("\n".join(answer["errors"]), status=status)
        return json.loads(json.dumps(answer))


@pytest.fixture(params=["embedded", "remote"])
def connection(request: pytest.FixtureRequest) -> Iterator[SessionConnection]:
    client = Client()
    options = {"table.display.max-column-width": "17"}
    made: SessionConnection
    if request.param == "embedded":
        made = EmbeddedConnection(client.sessions, options)
    else:
        made = RemoteConnection(Asking(client), options)  # type: ignore[arg-type]
    yield made
    made.close()
    assert client.sessions._sessions == {}
    client.sessions.close()


def answer(connection: SessionConnection, sql: str) -> tuple[list[str], list[list[Any]]]:
    statement = connection.submit(sql)
    first = fetched(statement, lambda batch: batch.fields is not None)
    assert first is not None
    assert first.fields is not None
    rows, batch = list(first.rows), first
    while not batch.is_last:
        following = fetched(statement, lambda each: bool(each.rows) or each.is_last)
        assert following is not None
        batch = following
        rows += batch.rows
    statement.close()
    return [f"{each.name} {each.type.summary()}" for each in first.fields], [list(row) for row in rows]


def test_rows_are_texts_with_the_types_of_their_columns(connection: SessionConnection) -> None:
    create = "CREATE TABLE t (id INT NOT NULL, d DECIMAL(9, 2)) WITH ('connector' = 'blackhole')"
    assert answer(connection, create)[1] == [["OK"]]
    fields, rows = answer(connection, "DESCRIBE t")
    assert fields[0].startswith("name ")
    assert rows[0][:3] == ["id", "INT", "FALSE"]
    assert rows[1][:3] == ["d", "DECIMAL(9, 2)", "TRUE"]
    assert rows[1][3] is None


def test_what_the_session_knows_is_completed(connection: SessionConnection) -> None:
    answer(connection, "CREATE TABLE visits (visitor INT) WITH ('connector' = 'blackhole')")
    assert connection.complete("DESCRIBE vi", 11) == ["visits"]
    assert "visits" in connection.complete("DESCRIBE ", 9)
    full = "default_catalog.default_database.visits"
    assert connection.complete("DESCRIBE default_catalog.d", 26) == [full]
    assert connection.properties()["table.display.max-column-width"] == "17"


def test_an_error_is_shown_as_the_gateway_says_it(connection: SessionConnection) -> None:
    printed: list[str] = []
    client = SqlClient(connection, write=printed.append, complain=printed.append)
    assert client.execute("SELECT nothing FROM nowhere") is not None
    assert printed[0].startswith(
        "table 'default_catalog.default_database.nowhere' does not exist\n  1 | SELECT"
    )
    assert "Exception" not in printed[0]
    assert client.execute("SHOW CURRENT DATABASE") is None
    assert "default_database" in printed[1]


def test_a_statement_can_be_closed_before_its_rows_are_fetched(connection: SessionConnection) -> None:
    statement = connection.submit("SHOW TABLES")
    assert fetched(statement, lambda batch: batch.fields is not None) is not None
    statement.close()
    with pytest.raises(Exception, match=r"CLOSED|does not exist"):
        statement.fetch()
    statement.close()


def test_what_kind_of_answer_it_is_comes_with_the_rows(connection: SessionConnection) -> None:
    first = fetched(connection.submit("USE default_database"), lambda batch: batch.fields is not None)
    assert first is not None
    assert first.kind is ResultKind.SUCCESS
    assert not first.is_query


def test_options_of_the_process_count_in_its_client() -> None:
    client = Client({"execution.runtime-mode": "BATCH", "headrace.rest.token": "a-secret-of-the-process"})
    connection = EmbeddedConnection(client.sessions)
    assert connection.properties() == {"execution.runtime-mode": "BATCH", "headrace.rest.token": "***"}
    connection.close()
    client.sessions.close()


def test_heartbeats_continue_while_the_gateway_cannot_be_reached_and_end_with_the_session() -> None:
    client = Client()
    asking = Asking(client)
    connection = RemoteConnection(asking)  # type: ignore[arg-type]
    assert connection.is_kept_open()
    reach = asking.ask
    asking.ask = unreachable  # type: ignore[method-assign]
    assert connection.is_kept_open()
    asking.ask = reach  # type: ignore[method-assign]
    connection.close()
    assert not connection.is_kept_open()
    client.sessions.close()


def unreachable(*asked: Any, **more: Any) -> Any:
    raise ClusterError("connection refused")
