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
from headrace.runtime.job.dispatcher import LiveJob
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
    with pytest.raises(ConfigurationError, match="anyone"):
        RestSettings.from_configuration(Configuration({"rest.bind-address": "0.0.0.0"}))
    settings = RestSettings.from_configuration(
        Configuration({"rest.bind-address": "0.0.0.0", "headrace.rest.token": TOKEN})
    )
    assert settings.token == TOKEN
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_a_server_on_loopback_needs_no_token(address: str) -> None:
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
        {"host": "localhost:8081", "sec-fetch-site": "same-site"},
        {"host": "localhost:8081", "referer": "http://evil.example/page"},
        {"host": "localhost:8081", "referer": "http://localhost:9999/"},
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


CROSS_SITE = (
    {"host": "localhost:8081", "origin": "http://evil.example"},
    {"host": "localhost:8081", "sec-fetch-site": "cross-site"},
    {"host": "localhost:8081", "referer": "http://evil.example/page"},
    {"host": "evil.example:8081", "origin": "http://evil.example:8081"},  # DNS rebinding
)


@pytest.mark.parametrize("headers", CROSS_SITE)
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/json"]
)
def test_nothing_that_changes_something_is_reached_from_another_site(
    cluster: RestCluster, headers: dict[str, str], content_type: str
) -> None:
    changing = [each for each in ENDPOINTS if each.method != "GET"]
    assert {"/jobs", "/headrace/programs", "/jars/upload", "/cluster"} <= {each.path for each in changing}
    for endpoint in changing:
        path = endpoint.path.replace("{jobid}", JOB).replace("{triggerid}", JOB).replace("{jarid}", "a")
        answer = cluster.ask(endpoint.method, path, {}, **headers, **{"content-type": content_type})
        assert answer.status == 403, endpoint
        assert b"another site" in answer.body or b"own machine" in answer.body


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"referer": "http://evil.example/page"},
    ],
)
def test_a_get_from_elsewhere_does_not_cancel_a_job(
    cluster: RestCluster, running: LiveJob, method: str, headers: dict[str, str]
) -> None:
    host = {"host": "localhost:8081"}
    assert cluster.ask(method, f"/jobs/{running.job_id}/yarn-cancel", **host, **headers).status == 403
    assert not running.status.is_terminal_state()


def test_the_own_page_may_cancel_a_job_with_a_get(cluster: RestCluster, running: LiveJob) -> None:
    headers = {"host": "localhost:8081", "sec-fetch-site": "same-origin"}
    assert cluster.ask("GET", f"/jobs/{running.job_id}/yarn-cancel", **headers).status == 202


def test_whoever_has_the_token_may_cancel_a_job_with_a_get(guarded: RestCluster) -> None:
    path = f"/jobs/{JOB}/yarn-cancel"
    assert guarded.ask("GET", path, authorization=f"Bearer {TOKEN}").status == 404  # reached: no such job
    assert guarded.ask("GET", path, **{"sec-fetch-site": "same-origin"}).status == 401


def test_no_other_get_changes_anything() -> None:
    """`cancel` and its like are handlers of GETs only where it is declared."""
    changing = {each.handler for each in ENDPOINTS if each.method != "GET"}
    gets = [each for each in ENDPOINTS if each.method == "GET" and each.handler in changing]
    assert [each.path for each in gets if not each.is_changing_get and "jar" not in each.path] == []


@pytest.mark.parametrize("content_type", ["", "text/plain", "multipart/form-data"])
def test_a_program_is_taken_as_json_only(content_type: str) -> None:
    cluster = RestCluster({"web.submit.enable": "true"})
    cluster.application.context.unpack = lambda data: counting(1)
    headers = {"content-type": content_type}
    answer = cluster.ask("POST", "/headrace/programs", {"name": "a.py", "source": "1"}, **headers)
    cluster.close()
    assert answer.status == 415, answer.body


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
        (
            "/jobs/{job}/exceptions?maxExceptions=0",
            "maxExceptions must be a number between 1 and 10000; got '0'",
        ),
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
