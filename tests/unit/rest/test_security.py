"""Who is answered, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.errors import ConfigurationError
from headrace.rest.application import ENDPOINTS, MOST_JSON_BYTES
from headrace.rest.security import RateLimit
from headrace.rest.settings import RestSettings
from headrace.runtime.dispatcher import LiveJob
from tests.unit.rest.conftest import RestCluster, counting, wait_until

TOKEN = "a-token-that-nobody-knows"
JOB = "0" * 32


@pytest.fixture
def guarded() -> Iterator[RestCluster]:
    made = RestCluster(settings=RestSettings(bind_address="0.0.0.0", token=TOKEN))
    yield made
    made.close()


@pytest.mark.parametrize(
    "shown", [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"]
)
def test_without_the_token_nothing_is_answered(guarded: RestCluster, shown: str | None) -> None:
    headers = {} if shown is None else {"authorization": shown}
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{jobid}", JOB).replace("{vertexid}", JOB).replace("{triggerid}", JOB)
        response = guarded.ask(endpoint.method, path, **headers)
        assert response.status == 401, endpoint
        assert TOKEN.encode() not in response.body
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_with_the_token_the_cluster_answers(guarded: RestCluster) -> None:
    assert guarded.ask("GET", "/overview", authorization=f"Bearer {TOKEN}").status == 200


def test_an_address_of_the_network_needs_a_token() -> None:
    with pytest.raises(ConfigurationError, match="everybody"):
        RestSettings.from_configuration(Configuration({"rest.bind-address": "0.0.0.0"}))
    settings = RestSettings.from_configuration(
        Configuration({"rest.bind-address": "0.0.0.0", "headrace.rest.token": TOKEN})
    )
    assert settings.token == TOKEN
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_this_machine_alone_needs_none(address: str) -> None:
    assert RestSettings.from_configuration(Configuration({"rest.bind-address": address})).is_loopback


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    configuration = Configuration({"headrace.rest.token-file": str(path)})
    assert RestSettings.from_configuration(configuration).token == TOKEN
    path.write_text("short")
    with pytest.raises(ConfigurationError, match="16 characters"):
        RestSettings.from_configuration(configuration)


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"16 characters; got \*\*\*"):
        Configuration({"headrace.rest.token": "short"})


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8081", "origin": "http://evil.example"},
        {"host": "localhost:8081", "origin": "null"},
        {"host": "localhost:8081", "origin": "http://localhost:9999"},
        {"host": "localhost:8081", "sec-fetch-site": "cross-site"},
        {"host": "evil.example:8081"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "[::1"},
    ],
)
def test_the_page_of_another_site_is_refused(
    cluster: RestCluster, running: LiveJob, headers: dict[str, str]
) -> None:
    assert cluster.ask("PATCH", f"/jobs/{running.job_id}", **headers).status == 403
    assert not running.status.is_terminal_state()


@pytest.mark.parametrize("host", ["localhost:8081", "127.0.0.1:8081", "[::1]:8081"])
def test_the_own_page_is_answered(cluster: RestCluster, host: str) -> None:
    assert cluster.ask("GET", "/overview", host=host, origin=f"http://{host}").status == 200


def test_a_body_that_is_too_large_is_refused(cluster: RestCluster, running: LiveJob) -> None:
    body = {"target-directory": "x" * MOST_JSON_BYTES}
    response = cluster.ask("POST", f"/jobs/{running.job_id}/savepoints", body)
    assert response.status == 413
    assert "errors" in json.loads(response.body)


def test_too_many_requests_are_refused() -> None:
    cluster = RestCluster(settings=RestSettings(requests_per_second=3))
    statuses = [cluster.ask("GET", "/overview").status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert cluster.application.answer("GET", "/overview", client="10.0.0.9").status == 200


def test_a_client_has_its_requests_again_after_a_while() -> None:
    now = [0.0]
    limit = RateLimit(2, clock=lambda: now[0])
    assert [limit.take("a") for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [limit.take("a") for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    "path",
    [
        "/jobmanager/logs/../../etc/passwd",
        "/jobmanager/logs/..%2f..%2fetc%2fpasswd",
        "/jobmanager/logs/%2e%2e",
        "/jobmanager/logs/..\\x",
        "/jobmanager/logs/a%00b",
        "/jars/../jobs",
        "/%2e%2e/%2e%2e",
    ],
)
def test_a_path_cannot_lead_elsewhere(cluster: RestCluster, path: str) -> None:
    assert cluster.ask("GET", path).status in {400, 404}


def test_only_the_log_is_a_log_file(cluster: RestCluster) -> None:
    assert cluster.ask("GET", "/jobmanager/logs/passwd").status == 404
    assert cluster.ask("GET", "/jobmanager/logs/headrace.log").status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v2/overview", 404),
        ("POST", "/overview", 405),
        ("GET", "/jobs/xyz", 400),
        ("GET", f"/jobs/{JOB}", 404),
        ("GET", f"/jobs/{JOB}/vertices/{JOB}", 404),
        ("GET", f"/jobs/{JOB}/checkpoints/details/one", 400),
        ("POST", f"/jobs/{JOB}/savepoints", 404),
        ("GET", f"/jobs/{JOB}/savepoints/{JOB}", 404),
        ("POST", "/jars/upload", 404),
        ("POST", "/jars/x.jar/run", 404),
        ("DELETE", "/cluster", 403),
        ("POST", "/jobs", 403),
    ],
)
def test_errors_have_flinks_shape_and_a_proper_status(
    cluster: RestCluster, method: str, path: str, status: int
) -> None:
    response = cluster.ask(method, path)
    assert response.status == status
    body = json.loads(response.body)
    assert list(body) == ["errors"]
    assert all(isinstance(text, str) and text for text in body["errors"])


def test_jobs_are_not_unpacked_unless_submission_is_on() -> None:
    touched: list[bytes] = []

    def unpack(data: bytes) -> None:
        touched.append(data)

    off = RestCluster()
    off.context.unpack = unpack  # type: ignore[assignment]
    kind = {"content-type": "application/vnd.headrace.job"}
    assert off.application.answer("POST", "/jobs", b"\x80", kind).status == 403
    on = RestCluster({"web.submit.enable": "true"})
    on.context.unpack = unpack  # type: ignore[assignment]
    assert (
        on.application.answer("POST", "/jobs", b"\x80", {"content-type": "multipart/form-data"}).status == 415
    )
    assert on.application.answer("POST", "/jobs", b"\x80", kind).status == 400
    assert touched == []


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"target-directory": 7}', b"\xff", b'"x"', b'{"drain": 1}'])
def test_a_body_that_does_not_fit_is_refused(cluster: RestCluster, running: LiveJob, body: bytes) -> None:
    path = "stop" if b"drain" in body else "savepoints"
    response = cluster.application.answer("POST", f"/jobs/{running.job_id}/{path}", body)
    assert response.status == 400
    assert not running.status.is_terminal_state()


def test_secrets_are_masked_in_the_configuration_that_is_shown() -> None:
    cluster = RestCluster({"headrace.rest.token": TOKEN})
    shown = cluster.get("/jobmanager/config")
    assert {"key": "headrace.rest.token", "value": "***"} in shown
    assert TOKEN not in json.dumps(shown)


def test_an_error_of_ours_does_not_show_its_inside(cluster: RestCluster) -> None:
    cluster.context.cluster = None  # type: ignore[assignment]
    response = cluster.ask("GET", "/overview")
    assert response.status == 500
    assert b"Traceback" not in response.body
    assert b"NoneType" not in response.body


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/jobs/{job}/exceptions?maxExceptions=0", "maxExceptions must be a number from 1 to 10000; got '0'"),
        ("/jobs/{job}/exceptions?maxExceptions=%C2%B2", "maxExceptions must be a number"),
        ("/jobs/{job}/exceptions?maxExceptions=1&maxExceptions=2", "maxExceptions is given 2 times"),
        ("/jobs/{job}/accumulators?includeSerializedValue=yes", "must be true or false; got 'yes'"),
        ("/jobs/metrics?agg=mean", "agg must be like"),
        ("/jobs/metrics?agg=", "agg must be like"),
    ],
)
def test_queries_are_what_the_document_says_also_of_jobs_that_have_ended(
    cluster: RestCluster, path: str, told: str
) -> None:
    job = cluster.submit(counting(99))
    wait_until(lambda: cluster.dispatcher.live_jobs() == (), "archived")
    response = cluster.ask("GET", path.format(job=job.job_id))
    assert response.status == 400
    assert told in json.loads(response.body)["errors"][0]
