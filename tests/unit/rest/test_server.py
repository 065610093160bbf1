"""The server on a real socket: clients, TLS, bodies, ports, and a client of ours."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.errors import ClusterError, ConfigurationError, JobExecutionError
from headrace.rest.client import RestClient
from headrace.rest.server import RestServer
from headrace.rest.session_executor import RemoteJob
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until

TOKEN = "a-token-that-nobody-knows"


@pytest.fixture
def server(cluster: RestCluster) -> Iterator[RestServer]:
    made = RestServer(cluster.application, RestSettings())
    made.start()
    yield made
    made.close(fetch_s=0.0)


@pytest.fixture
def client(server: RestServer) -> RestClient:
    return RestClient("localhost", server.port)


def test_a_client_reads_and_steers(client: RestClient, running: LiveJob, tmp_path: Path) -> None:
    assert client.find_job("counting") == client.find_job(running.job_id[:6]) == running.job_id
    body = {"target-directory": str(tmp_path / "sp")}
    trigger = client.ask("POST", f"/jobs/{running.job_id}/savepoints", body)["request-id"]
    result = client.finish(f"/jobs/{running.job_id}/savepoints", trigger, 30)
    assert Path(result["location"]).is_dir()
    with pytest.raises(ClusterError, match="no job with the name or id 'other'"):
        client.find_job("other")
    with pytest.raises(ClusterError, match="not found") as refused:
        client.get(f"/jobs/{'f' * 32}")
    assert refused.value.status == 404


def test_a_failed_operation_is_an_error_of_the_client(client: RestClient, running: LiveJob) -> None:
    body = {"target-directory": "/dev/null/nowhere"}
    trigger = client.ask("POST", f"/jobs/{running.job_id}/savepoints", body)["request-id"]
    with pytest.raises(ClusterError, match="/dev/null"):
        client.finish(f"/jobs/{running.job_id}/savepoints", trigger, 30)


def test_a_program_rescales_its_job_in_a_session(client: RestClient, running: LiveJob) -> None:
    job = RemoteJob(client, running.master.job, is_detached=True)
    assert job.rescale(1).result(30) is None
    assert {vertex.parallelism for vertex in running.master.job.vertices} == {1}
    with pytest.raises(ClusterError, match="parallelism"):
        job.rescale(0)


def test_a_program_says_why_its_job_in_a_session_was_started_again(
    client: RestClient, running: LiveJob, caplog: pytest.LogCaptureFixture
) -> None:
    job = RemoteJob(client, running.master.job, is_detached=True)
    running.master.failures.add(JobExecutionError("worker 3 was lost"), 1_700_000_000_000)
    job._tell_restarts()
    job._tell_restarts()
    assert caplog.text.count("job 'counting' restarts: worker 3 was lost") == 1


def test_an_unreachable_server_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = RestClient("127.0.0.1", taken.getsockname()[1], timeout_s=2)
        with pytest.raises(ClusterError, match=r"no answer from http://127\.0\.0\.1") as error:
            client.get("/overview")
    assert error.value.status is None
    assert error.value.retryable


def test_flinks_client_may_send_a_body_with_get(server: RestServer) -> None:
    connection = http.client.HTTPConnection("localhost", server.port, timeout=10)
    connection.request("GET", "/v1/jobs/overview", b"{}", {"Content-Type": "application/json; charset=UTF-8"})
    response = connection.getresponse()
    assert json.loads(response.read()) == {"jobs": []}
    assert response.getheader("Content-Type") == "application/json; charset=UTF-8"
    assert response.getheader("Server") is None
    connection.close()


def test_a_large_body_is_refused_before_it_is_read(server: RestServer) -> None:
    with socket.create_connection(("localhost", server.port), timeout=10) as client:
        client.sendall(
            b"POST /savepoint-disposal HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n{"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_large_body_in_chunks_is_refused(server: RestServer) -> None:
    with socket.create_connection(("localhost", server.port), timeout=10) as client:
        client.sendall(
            b"POST /savepoint-disposal HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(40):
                client.sendall(chunk)
        except OSError:
            pass  # the server has closed its end
        assert b" 413 " in client.recv(100)


def test_the_next_free_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        cluster = RestCluster()
        with pytest.raises(ConfigurationError, match="cannot listen"):
            RestServer(cluster.application, RestSettings(ports=(port,)))
        other = RestServer(cluster.application, RestSettings(ports=(port, 0)))
        assert other.port != port
        other.close(fetch_s=0.0)


@pytest.mark.parametrize(
    ("options", "ports"),
    [
        ({"rest.bind-port": "9000-9002,9100"}, (9000, 9001, 9002, 9100)),
        ({"rest.port": "0"}, (0,)),
        ({"rest.bind-port": "8081"}, (8081,)),
    ],
)
def test_ports_are_those_of_flinks_options(options: dict[str, str], ports: tuple[int, ...]) -> None:
    assert RestSettings.from_configuration(Configuration(options)).ports == ports


@pytest.mark.parametrize("text", ["", "x", "9-8", "70000", "1-2-3"])
def test_a_value_that_is_not_a_port_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"rest\.bind-port"):
        Configuration({"rest.bind-port": text})


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_and_a_token_protect_a_server_of_the_network(tmp_path: Path) -> None:
    certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "1",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    options = {
        "rest.bind-address": "0.0.0.0",
        "rest.port": "0",
        "headrace.rest.token": TOKEN,
        "headrace.rest.tls.certificate": certificate,
        "headrace.rest.tls.key": key,
    }
    settings = RestSettings.from_configuration(Configuration(options))
    cluster = RestCluster(settings=settings)
    server = RestServer(cluster.application, settings)
    server.start()
    try:
        assert server.url == f"https://localhost:{server.port}"
        told = Configuration({"headrace.rest.token": TOKEN, "headrace.rest.tls.authorities": certificate})
        assert RestClient.of(told, f"localhost:{server.port}").get("/jobs") == {"jobs": []}
        stranger = Configuration({"headrace.rest.tls.authorities": certificate})
        with pytest.raises(ClusterError, match="Unauthorized") as refused:
            RestClient.of(stranger, f"localhost:{server.port}").get("/jobs")
        assert refused.value.hint is not None
        with pytest.raises(ClusterError, match="certificate"):
            RestClient.of(Configuration(), f"https://localhost:{server.port}").get("/jobs")
    finally:
        server.close(fetch_s=0.0)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (None, "http://localhost:8081"),
        ("there", "http://there:8081"),
        ("there:99", "http://there:99"),
        ("https://there:99/", "https://there:99"),
    ],
)
def test_addresses_are_read(address: str | None, url: str) -> None:
    assert RestClient.of(Configuration(), address).url == url


@pytest.mark.parametrize("address", ["", "a:b", "ftp://x", "x:99999", "x/y"])
def test_a_value_that_is_not_an_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="expected an address"):
        RestClient.of(Configuration(), address)


def test_the_openapi_document_names_every_path(server: RestServer, cluster: RestCluster) -> None:
    with urllib.request.urlopen(f"{server.url}/openapi.json", timeout=10) as response:
        document = json.load(response)
    assert document["openapi"].startswith("3.1")
    assert "/v1/jobs/{jobid}/savepoints" in document["paths"]
    schemas = document["components"]["schemas"]
    assert schemas["JobLine"]["properties"]["pending-operators"] == {"type": "integer"}
    text = json.dumps(document)
    for name in set(re.findall(r"#/components/schemas/(\w+)", text)):
        assert name in schemas


# -- who asks the same again ---------------------------------------------------------------------------------------


class Asker:
    """A client that sends just these bytes, over one connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("localhost", port), timeout=10)
        self._answers = self._socket.makefile("rb")

    def ask(self, request: bytes) -> tuple[int, bytes]:
        self.send(request)
        return self.answer()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def answer(self) -> tuple[int, bytes]:
        status = int(self._answers.readline().split()[1])
        headers = http.client.parse_headers(self._answers)
        assert headers["Date"] is not None
        assert headers["Cache-Control"] == "no-store"
        return status, self._answers.read(int(headers["Content-Length"]))

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


@pytest.fixture
def asker(server: RestServer) -> Iterator[Asker]:
    made = Asker(server.port)
    yield made
    made.close()


def get(path: str, *headers: bytes) -> bytes:
    lines = [b"GET %b HTTP/1.1" % path.encode(), b"Host: localhost", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def test_a_repeated_request_gets_a_new_answer(asker: Asker, cluster: RestCluster) -> None:
    states = []
    for _ in range(3):
        states += [asker.ask(get("/jobs"))[1], asker.ask(get("/jobs"))[1]]
        job = cluster.submit(counting(100))
        job.job.result_future().result(30)
        wait_until(lambda job=job: cluster.dispatcher.history.get(job.job_id) is not None, "the archive")
    assert [len(json.loads(state)["jobs"]) for state in states] == [0, 0, 1, 1, 2, 2]


def test_the_overview_follows_jobs_and_slots(asker: Asker, cluster: RestCluster) -> None:
    def overview() -> tuple[int, int, int, int]:
        answers = [json.loads(asker.ask(get("/overview"))[1]) for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        names = ("jobs-running", "jobs-cancelled", "jobs-finished", "slots-available")
        return tuple(answers[0][name] for name in names)  # type: ignore[return-value]

    assert overview() == (0, 0, 0, 2)
    endless = cluster.submit(counting(ENDLESS))
    wait_until(lambda: len(endless.monitor.epochs()) > 0, "an epoch")
    assert overview() == (1, 0, 0, 0)
    endless.job.cancel().result(30)
    wait_until(lambda: cluster.dispatcher.history.get(endless.job_id) is not None, "the archive")
    assert overview() == (0, 1, 0, 2)
    cluster.submit(counting(100)).job.result_future().result(30)
    wait_until(lambda: len(cluster.dispatcher.history.jobs()) == 2, "the archive")
    assert overview() == (0, 1, 1, 2)
    cluster.dispatcher.history.forget(endless.job_id)
    assert overview() == (0, 0, 1, 2)


def test_a_request_in_two_pieces_is_one(asker: Asker) -> None:
    whole = get("/overview")
    first = asker.ask(whole)
    for cut in (1, 20, len(whole) - 1):
        assert asker.ask(whole) == first
        asker.send(whole[:cut])
        assert asker.ask(whole[cut:]) == first


def test_two_requests_at_once_have_two_answers(asker: Asker) -> None:
    for _ in range(3):
        asker.send(get("/jobs") + get("/config"))
        assert (asker.answer()[1].startswith(b'{"jobs"'), b"flink-version" in asker.answer()[1]) == (
            True,
            True,
        )


def test_others_in_between_have_their_own_answers(asker: Asker) -> None:
    for _ in range(3):
        assert json.loads(asker.ask(get("/jobs"))[1]) == {"jobs": []}
        assert asker.ask(get("/nowhere"))[0] == asker.ask(get("/nowhere"))[0] == 404
        assert json.loads(asker.ask(get("/jobs"))[1]) == {"jobs": []}
        assert asker.ask(get("/jobs", b"Content-Length: 2") + b"{}") == (200, b'{"jobs":[]}')


def test_what_changes_something_is_done_every_time(asker: Asker) -> None:
    request = b"POST /savepoint-disposal HTTP/1.1\r\nHost: localhost\r\nContent-Length: 27\r\n\r\n"
    request += b'{"savepoint-path": "/none"}'
    triggers = {asker.ask(request)[1] for _ in range(4)}
    assert len(triggers) == 4


def test_who_asks_the_same_too_often_is_refused() -> None:
    settings = RestSettings(requests_per_second=5, token=TOKEN)
    server = RestServer(RestCluster(settings=settings).application, settings)
    server.start()
    asker = Asker(server.port)
    try:
        shown = get("/jobs", b"Authorization: Bearer " + TOKEN.encode())
        assert 429 in {asker.ask(shown)[0] for _ in range(200)}
        assert {asker.ask(get("/jobs"))[0] for _ in range(200)} <= {401, 429}
    finally:
        asker.close()
        server.close(fetch_s=0.0)
