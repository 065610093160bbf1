"""Malformed requests: each is answered with a clear error, and none with an internal one."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from typing import Any, NoReturn

import pytest

from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import JobSubmissionError
from headrace.gateway.sessions import Sessions
from headrace.rest.application import RestApplication
from headrace.rest.context import RestContext
from headrace.rest.operations import Operations
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import Dispatcher
from headrace.runtime.job.history import JobHistory

STATEMENTS = (
    "SELECT id, COUNT(*) AS n FROM t WHERE name LIKE 'a%' GROUP BY id HAVING COUNT(*) > 1 ORDER BY id LIMIT 3",
    "CREATE TABLE u (id INT NOT NULL, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '5' SECOND, "
    "PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen', 'rows-per-second' = '5')",
    "INSERT INTO s SELECT id, name FROM t JOIN t AS o ON t.id = o.id",
    "SET 'parallelism.default' = '3'",
    "RESET 'parallelism.default'",
    "EXPLAIN PLAN FOR SELECT CAST(name AS DECIMAL(10, 2)), CASE WHEN id > 3 THEN 1 ELSE 0 END FROM t",
    "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '10' MINUTE)",
    "CREATE VIEW v AS SELECT name, ROW_NUMBER() OVER (PARTITION BY name ORDER BY at DESC) AS rn FROM t",
    "DESCRIBE t",
    "SHOW TABLES LIKE 't%'",
    "SHOW CREATE TABLE t",
    "USE CATALOG default_catalog",
    "ALTER TABLE t RENAME TO w",
    "DROP TABLE IF EXISTS w",
    "STOP JOB 'abc' WITH SAVEPOINT",
    "BEGIN STATEMENT SET",
    "END",
    "WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL VALUES (1), (2)",
)
ODD = (
    "",
    "'",
    "`",
    "(",
    ")",
    ";",
    "--",
    "/*",
    "*/",
    "\x00",
    "\ud800",
    "ö",
    "🜚",
    "NULL",
    "9" * 400,
    "1e999",
    "\\",
    '"',
    "%",
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1.5, "", "x", [], {}, [[]], {"a": {"b": None}}, ["x"] * 50),
    *("../..", "%00", "0", "-1", "1" * 30, "NaN", "\x00", "é" * 300),
)


class _NoJobs:
    """Runs no jobs: a statement that is right after all ends here."""

    def submit(self, job_graph: object, configuration: object) -> NoReturn:
        raise JobSubmissionError("no jobs are run here")


class Requests:
    """Asks a gateway requests that are drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        configuration = Configuration({})
        self.sessions = Sessions(ExecutionContext(configuration, {"spark": _NoJobs()}))  # type: ignore[dict-item]
        dispatcher = Dispatcher(archive=lambda job: {}, history=JobHistory())
        context = RestContext(dispatcher, configuration, Operations(), gateway=self.sessions)
        self._application = RestApplication(context, RestSettings(requests_per_second=10**9))
        self.statuses: Counter[int] = Counter()
        self._session = self._operation = ""

    def _fresh(self) -> None:
        for handle in list(self.sessions._sessions):
            self.sessions.end(handle)
        session = self.sessions.open({})
        self._session = session.handle
        for name, connector in (("t", "datagen"), ("s", "blackhole")):
            session.configure(f"CREATE TABLE {name} (id INT, name STRING) WITH ('connector' = '{connector}')")
        self._operation = session.submit("SHOW TABLES").handle

    def run(self, count: int) -> None:
        for number in range(count):
            # Some requests are right by chance, and close the session.
            if number % 1_000 == 0 or self._session not in self.sessions._sessions:
                self._fresh()
            if self._random.random() < 0.25:
                self._ask_statement()
            else:
                self._ask(*self._malformed())

    def _ask(self, method: str, target: str, body: bytes) -> Any:
        response = self._application.answer(method, target, body, {"content-type": "application/json"})
        self.statuses[response.status] += 1
        what = f"{method} {target!r} {body[:300]!r}: {response.status} {response.body[:600]!r}"
        assert response.status < 500 or response.status == 501, what
        is_page = response.status == 200 and response.content_type.startswith("text/html")
        if method == "HEAD" or is_page:
            return None
        assert response.content_type.startswith("application/json"), what
        answer = json.loads(response.body)
        if response.status >= 400:
            assert answer["errors"], what
            assert all(isinstance(each, str) and each.strip() for each in answer["errors"]), what
            assert "Traceback" not in str(answer["errors"]), what
        return answer

    def _ask_statement(self) -> None:
        """Submit a statement that is broken somewhere, and fetch what it says."""
        text = self._broken_statement()
        body = json.dumps({"statement": text}).encode("utf-8", "replace")
        answer = self._ask("POST", f"/v2/sessions/{self._session}/statements", body)
        handle = answer.get("operationHandle")
        if handle is None:
            return
        place = f"/v2/sessions/{self._session}/operations/{handle}"
        try:
            self.sessions.get(self._session).operation(handle).join(60)
        finally:
            self._ask("GET", f"{place}/result/0", b"")
            self._ask("DELETE", f"{place}/close", b"")

    def _broken_statement(self) -> str:
        choose = self._random
        words = choose.choice(STATEMENTS).split(" ")
        for _ in range(choose.randrange(1, 4)):
            at = choose.randrange(len(words)) if words else 0
            match choose.randrange(5):
                case 0:
                    del words[at : at + 1]
                case 1:
                    words.insert(at, choose.choice(ODD))
                case 2:
                    words.insert(at, choose.choice(choose.choice(STATEMENTS).split(" ")))
                case 3 if words:
                    cut = choose.randrange(len(words[at]) + 1)
                    words[at] = words[at][:cut] + choose.choice(ODD) + words[at][cut:]
                case _:
                    choose.shuffle(words)
        return " ".join(words)

    def _malformed(self) -> tuple[str, str, bytes]:
        choose = self._random
        known = [
            ("GET", "/api_versions", None),
            ("GET", "/info", None),
            ("POST", "/sessions", {"properties": {"parallelism.default": "2"}, "sessionName": "x"}),
            ("GET", f"/sessions/{self._session}", None),
            ("POST", f"/sessions/{self._session}/heartbeat", {}),
            ("POST", f"/sessions/{self._session}/configure-session", {"statement": "SHOW TABLES"}),
            (
                "GET",
                f"/sessions/{self._session}/complete-statement",
                {"statement": "SELECT na FROM t", "position": 9},
            ),
            ("POST", f"/sessions/{self._session}/statements", {"statement": "", "executionTimeout": 5}),
            ("POST", f"/sessions/{self._session}/scripts", {"script": "SELECT FROM", "executionConfig": {}}),
            (
                "POST",
                f"/sessions/{self._session}/materialized-tables/t/refresh",
                {"isPeriodic": False, "staticPartitions": {"day": "x"}},
            ),
            ("GET", f"/sessions/{self._session}/operations/{self._operation}/status", None),
            ("POST", f"/sessions/{self._session}/operations/{self._operation}/cancel", None),
            ("GET", f"/sessions/{self._session}/operations/{self._operation}/result/0?rowFormat=JSON", None),
        ]
        method, path, body = choose.choice(known)
        version = choose.choice(["", "/v1", "/v2", "/v3", "/v4", "/v5", "/v0"])
        for _ in range(choose.randrange(1, 3)):
            match choose.randrange(4):
                case 0:
                    method = choose.choice(
                        ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "BREW"]
                    )
                case 1:
                    path = self._broken_path(path)
                case 2:
                    body = self._broken_body(body)
                case _:
                    body = choose.choice(VALUES)
        return method, version + path, self._bytes(body)

    def _broken_path(self, path: str) -> str:
        choose = self._random
        parts = path.split("/")
        others = (
            "..",
            ".",
            "result",
            "sessions",
            "%2e%2e",
            "%ed%a0%80",
            "a" * 3000,
            "?rowFormat=XML",
            "?a=b&a",
        )
        odd = choose.choice([*ODD, *others])
        parts[choose.randrange(len(parts))] = odd if choose.random() < 0.8 else ""
        # A request line has bytes, and no halves of characters.
        return "/".join(parts).encode("utf-8", "replace").decode()

    def _broken_body(self, body: Any) -> Any:
        choose = self._random
        if not isinstance(body, dict) or not body:
            return choose.choice(VALUES)
        made = dict(body)
        key = choose.choice(list(made))
        match choose.randrange(3):
            case 0:
                del made[key]
            case 1:
                made[key] = choose.choice(VALUES)
            case _:
                made[choose.choice(["Statement", "position", "properties", "script", key + "x"])] = (
                    choose.choice(VALUES)
                )
        return made

    def _bytes(self, body: Any) -> bytes:
        choose = self._random
        if body is None:
            return b""
        data = json.dumps(body).encode("utf-8", "replace")
        match choose.randrange(12):
            case 0:
                return data[: choose.randrange(len(data) + 1)]
            case 1:
                return data + bytes(choose.randrange(256) for _ in range(5))
            case 2:
                return bytes(choose.randrange(256) for _ in range(choose.randrange(40)))
            case 3:
                return b"[" * choose.randrange(2_000)
        return data


def _run(seed: int, count: int) -> Counter[int]:
    requests = Requests(seed)
    try:
        requests.run(count)
    finally:
        requests.sessions.close()
    assert sum(each.name.startswith("headrace-statement") for each in threading.enumerate()) < 200
    return requests.statuses


def test_malformed_requests_are_answered_with_clear_errors() -> None:
    statuses = _run(seed=20, count=1_500)
    assert statuses[400] > 300
    assert statuses[404] > 100


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_100_000_malformed_requests_are_answered_with_clear_errors() -> None:
    statuses = _run(seed=4, count=100_000)
    assert sum(statuses.values()) >= 100_000
