"""A conversation with an SQL gateway over REST, and what comes back: status codes and bodies, ids and times aside.

`record_screens.py` holds it with Flink's own gateway and writes flink_protocol.json; `test_protocol.py` and
`test_sql_gateway.py` hold it with headrace's.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROTOCOL = Path(__file__).parent / "flink_protocol.json"
#: What is answered otherwise than by Flink, and why.
_DIFFERENCES = Path(__file__).parent / "protocol_differences.toml"
VERSIONS = ("v1", "v2", "v3", "v4")
#: Asks for a path with a method and a body, and returns the status and what came back.
Ask = Callable[[str, str, str | None], tuple[int, str]]
_INTERNAL = 500
_MISSING = "00000000-0000-4000-8000-000000000000"
#: Without mini-batches, Flink's default, every row makes a change of its own.
_PROPERTIES = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "false",
}
_TYPES = """\
SELECT CAST(1 AS TINYINT) AS a, CAST(2 AS BIGINT) AS b, CAST(1.5 AS DECIMAL(5, 2)) AS c, 2.5E0 AS d, 'text' AS e,
 TRUE AS f, DATE '2024-02-29' AS g, TIME '12:30:00' AS h, TIMESTAMP '2024-02-29 12:30:00.123' AS i, X'0aff' AS j,
 CAST(NULL AS INT) AS k, ARRAY[1, 2] AS l, MAP['x', 1] AS m, ROW(1, 'r') AS n, INTERVAL '2' DAY AS o,
 CAST(TIMESTAMP '2024-02-29 12:30:00' AS TIMESTAMP_LTZ(3)) AS p, CAST('abc' AS CHAR(3)) AS q"""
_SOURCE = "CREATE TABLE three (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
#: Statements that start no job, and those that do.
_PLAIN = (
    "SHOW CATALOGS",
    "SHOW TABLES",
    "DESCRIBE three",
    "SET 'table.local-time-zone'",
    "USE nowhere",
)
_JOBS = (_TYPES, "SELECT n > 100000000000 AS big FROM three", "SELECT COUNT(*) AS n FROM three")


def recorded() -> dict[str, Any]:
    """Return what Flink's gateway answered, by request."""
    answers: dict[str, Any] = json.loads(PROTOCOL.read_text("utf-8"))
    return answers


def different_from_flink(answers: dict[str, Any]) -> set[str]:
    """Return the requests that are answered otherwise."""
    flink = recorded()
    return {name for name, answer in answers.items() if not _is_the_same(answer, flink[name])}


def _is_the_same(answer: Any, flink: Any) -> bool:
    """Compare two answers. Where Flink answers 500, headrace has to say whose error it is: the request is wrong (400),
    names what does not exist (404) or comes at the wrong time (409). A 500 is a bug of the server.
    """
    if flink["status"] == _INTERNAL:
        return answer["status"] in {400, 404, 409} and {**answer, "status": _INTERNAL} == flink
    return bool(answer == flink)


def listed_differences() -> set[str]:
    """Return the requests that are known to be answered otherwise; each has a reason."""
    groups = tomllib.loads(_DIFFERENCES.read_text("utf-8"))
    return {name for group in groups.values() for name in group["requests"]}


def http(endpoint: str) -> Ask:
    """Ask over a socket."""

    def ask(method: str, path: str, body: str | None) -> tuple[int, str]:
        data = None if body is None else body.encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{endpoint}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return ask


class Conversation:
    """Asks, and writes down what came back by the name of the request."""

    def __init__(self, ask: Ask, *, runs_jobs: bool) -> None:
        self._ask = ask
        self._runs_jobs = runs_jobs
        self.answers: dict[str, Any] = {}

    def hold(self) -> dict[str, Any]:
        """Ask everything; return the answers by request."""
        self._about_versions()
        for version in VERSIONS:
            self._session(version)
        self._statements(self._opened("v4"))
        self._wrong_requests(self._opened("v4"))
        return self.answers

    def _about_versions(self) -> None:
        for prefix in ("", *(f"/{version}" for version in VERSIONS), "/v9"):
            self._note("GET", f"{prefix}/api_versions")
            self._note("GET", f"{prefix}/info")
        for path in ("/v4/nowhere", "/nowhere"):
            self._note("GET", path)
        for method in ("GET", "PUT", "DELETE"):
            self._note(method, "/v4/sessions")

    def _session(self, version: str) -> None:
        """What each version has, from opening a session to its end."""
        bodies = ("{}", json.dumps({"sessionName": "mine", "properties": _PROPERTIES}))
        for body in bodies:
            opened = self._note("POST", f"/{version}/sessions", body)
        place = f"/{version}/sessions/{opened['sessionHandle']}"
        self._note("GET", place)
        self._note("POST", f"{place}/heartbeat")
        self._note(
            "POST",
            f"{place}/configure-session",
            json.dumps({"statement": "CREATE VIEW single AS SELECT 1"}),
        )
        self._note("GET", f"{place}/complete-statement", json.dumps({"statement": "SHOW TAB", "position": 8}))
        submitted = self._note("POST", f"{place}/statements", json.dumps({"statement": "SHOW TABLES"}))
        operation = f"{place}/operations/{submitted['operationHandle']}"
        self._note_rows(f"{version}: SHOW TABLES", operation, "")
        self._note("GET", f"{operation}/status")
        self._note("POST", f"{operation}/cancel")
        self._note("DELETE", f"{operation}/close")
        self._note("GET", f"{operation}/status")
        for what, body in (("materialized-tables/nothing/refresh", "{}"), ("scripts", "{}")):
            self._note("POST", f"{place}/{what}", body)
        self._note("DELETE", place)
        self._note("DELETE", place, again=True)
        self._note("POST", f"{place}/heartbeat", again=True)

    def _opened(self, version: str) -> str:
        _, text = self._ask("POST", f"/{version}/sessions", json.dumps({"properties": _PROPERTIES}))
        return f"/{version}/sessions/{json.loads(text)['sessionHandle']}"

    def _statements(self, place: str) -> None:
        self._ask("POST", f"{place}/configure-session", json.dumps({"statement": _SOURCE}))
        for row_format in ("JSON", "PLAIN_TEXT"):
            for statement in (*_PLAIN, *(_JOBS if self._runs_jobs else ())):
                _, text = self._ask("POST", f"{place}/statements", json.dumps({"statement": statement}))
                operation = f"{place}/operations/{json.loads(text)['operationHandle']}"
                self._note_rows(f"{statement} as {row_format}", operation, f"?rowFormat={row_format}")
        for statement in ("CREATE VIEW single AS SELECT 1", "SELECT 1", "SHOW TABLES", "SELEC 1", ""):
            self._note(
                "POST", f"{place}/configure-session", json.dumps({"statement": statement}), shows_body=True
            )

    def _wrong_requests(self, place: str) -> None:
        self._ask("POST", f"{place}/configure-session", json.dumps({"statement": _SOURCE}))
        bodies: tuple[str | None, ...] = (
            *(None, "", "{", "[]", "{}", '{"statement": 7}', '{"statement": null}', '{"statement": ""}'),
            *(
                '{"statement": "SHOW TABLES", "more": 1}',
                '{"statement": "SHOW TABLES", "executionTimeout": 5}',
            ),
            *('{"statement": "SHOW TABLES", "executionTimeout": "x"}', '{"statement": "SHOW TABLES;"}'),
            '{"statement": "SHOW TABLES", "executionConfig": {"parallelism.default": "2"}}',
        )
        for body in bodies:
            self._note("POST", f"{place}/statements", body, shows_body=True)
        for body in (None, "{}", '{"statement": "SHOW"}', '{"statement": "SHOW", "position": "x"}'):
            self._note("GET", f"{place}/complete-statement", body, shows_body=True)
        for statement in ("SHO", "SELECT n FROM th", "SELECT n FROM three WHERE "):
            body = json.dumps({"statement": statement, "position": len(statement)})
            self._note("GET", f"{place}/complete-statement", body, shows_body=True)
        for handle in (_MISSING, "nonsense"):
            self._note("GET", f"/v4/sessions/{handle}", shows_handle=True)
            self._note("GET", f"{place}/operations/{handle}/status", shows_handle=True)
            self._note("GET", f"{place}/operations/{handle}/result/0", shows_handle=True)
            self._note("DELETE", f"{place}/operations/{handle}/close", shows_handle=True)
        _, text = self._ask("POST", f"{place}/statements", json.dumps({"statement": "SHOW TABLES"}))
        operation = f"{place}/operations/{json.loads(text)['operationHandle']}"
        self._rows_of(operation, "")
        for token in ("7", "-1", "x", "0?rowFormat=XML", "0?rowFormat=plain_text"):
            self._note("GET", f"{operation}/result/{token}")

    def _note(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        again: bool = False,
        shows_body: bool = False,
        shows_handle: bool = False,
    ) -> Any:
        status, text = self._ask(method, path, body)
        name = f"{method} {path if shows_handle else masked(path)}" + (" again" if again else "")
        name = masked(name, keeps=(_MISSING,))
        name += f" {body}" if shows_body or (body is not None and path.endswith("/sessions")) else ""
        while name in self.answers:
            name += "'"
        self.answers[name] = {"status": status, "body": _compared(text)}
        try:
            return json.loads(text)
        except ValueError:
            return None

    def _rows_of(self, operation: str, query: str) -> list[tuple[int, Any]]:
        """Fetch all portions; return the answers, those aside that are not ready."""
        found: list[tuple[int, Any]] = []
        path: str | None = f"{operation}/result/0{query}"
        deadline = time.monotonic() + 120
        while path is not None:
            status, text = self._ask("GET", path, None)
            answer = json.loads(text)
            if answer.get("resultType") != "NOT_READY":
                found.append((status, answer))
            else:
                time.sleep(0.1)
            assert time.monotonic() < deadline, f"{path}: {text}"
            path = answer.get("nextResultUri")
        return found

    def _note_rows(self, name: str, operation: str, query: str) -> None:
        """Write down all rows, and what the first and the last answer say besides."""
        found = self._rows_of(operation, query)
        first, last = found[0], found[-1]
        if first[0] != 200:
            self.answers[name] = {"status": first[0], "body": _compared(json.dumps(first[1]))}
            return
        rows = [row for _, answer in found for row in answer.get("results", {}).get("data", [])]
        shape = {**first[1], "results": {**first[1]["results"], "data": rows}}
        ended = {key: value for key, value in last[1].items() if key != "results"}
        self.answers[name] = {
            "status": first[0],
            "body": _compared(json.dumps(shape)),
            "end": _compared(json.dumps(ended)),
        }


def _compared(text: str) -> Any:
    """Return a body without ids, without the messages of errors, and of a session with the options that were given."""
    try:
        body = json.loads(masked(text))
    except ValueError:
        return "not JSON" if text else ""
    if isinstance(body, dict) and "errors" in body:
        return {"errors": all(isinstance(each, str) and bool(each.strip()) for each in body["errors"])}
    if isinstance(body, dict) and "properties" in body:
        return {"properties": {key: body["properties"].get(key) for key in _PROPERTIES}}
    if isinstance(body, dict) and "productName" in body:
        return dict.fromkeys(body, "text")
    return body


def masked(text: str, keeps: tuple[str, ...] = ()) -> str:
    """Replace ids."""
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"
    return re.sub(pattern, lambda found: found[0] if found[0] in keeps else "<id>", text)
