"""Queries of the SQL gateway's clients on Spark: rows by token, jobs that are visible and can be cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import BASE
from tests.unit.gateway.test_sessions import Client

pytestmark = pytest.mark.spark


def _pause() -> None:
    """Ask a few times a second, as a client does."""
    threading.Event().wait(0.05)


@pytest.fixture
def client(spark_session: object) -> Iterator[Client]:
    made = Client({**BASE, "parallelism.default": "1"})
    yield made
    made.sessions.close()


def test_queries_and_inserts_run_as_jobs(client: Client) -> None:
    session = client.open()
    counted = "SELECT name, COUNT(*) AS n FROM (VALUES ('a'), ('b'), ('a')) AS t(name) GROUP BY name"
    assert sorted(client.rows(session, counted)) == [["a", 2], ["b", 1]]
    assert sorted(client.rows(session, counted, "PLAIN_TEXT")) == [["a", "2"], ["b", "1"]]
    client.rows(session, "CREATE TABLE sink (name STRING) WITH ('connector' = 'blackhole')")
    assert client.rows(session, "BEGIN STATEMENT SET") == [["OK"]]
    for _ in range(2):
        assert client.rows(session, "INSERT INTO sink SELECT name FROM (VALUES ('a')) AS t(name);") == [
            ["OK"]
        ]
    [[job_id]] = client.rows(session, "END", executionConfig={"table.dml-sync": "true"})
    jobs = client.rows(session, "SHOW JOBS")
    assert [job[2] for job in jobs if job[0] == job_id] == ["FINISHED"]
    assert len(jobs) == 3


def test_a_query_that_never_ends_is_cancelled_with_its_operation(client: Client) -> None:
    session = client.open()
    client.rows(
        session, "CREATE TABLE clicks (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50')"
    )
    handle = client.submit(session, "SELECT id FROM clicks")
    place = f"/v2/sessions/{session}/operations/{handle}"
    seen: list[Any] = []
    token = 0
    deadline = time.monotonic() + 60
    while not seen and time.monotonic() < deadline:
        answer = client.ok("GET", f"{place}/result/{token}")
        seen += answer["results"]["data"]
        token += 1
        _pause()
    assert seen
    assert answer["isQueryResult"]
    assert client.ask("POST", f"{place}/cancel")[0] == 409, "the statement is FINISHED, its job runs"
    assert client.ok("DELETE", f"{place}/close") == {"status": "CLOSED"}
    statuses: list[str] = []
    while statuses != ["CANCELED"] and time.monotonic() < deadline:
        statuses = [job[2] for job in client.rows(session, "SHOW JOBS") if job[0] == answer["jobID"]]
        _pause()
    assert statuses == ["CANCELED"]
