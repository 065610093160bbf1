"""SocketSource against a real server on the loopback interface."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from headrace.connectors.base import Slice, SplitEnumerator
from headrace.connectors.socket import SocketSource
from headrace.errors import ConnectorError, JobDefinitionError


class Server:
    """Accepts connections one after the other; each gets what the test sends it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(10)
        self.port = self.listener.getsockname()[1]

    def accept(self) -> socket.socket:
        return self.listener.accept()[0]

    def serve(self, *parts: bytes) -> None:
        with self.accept() as connected:
            for part in parts:
                connected.sendall(part)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.listener.close()


@contextmanager
def enumerating(source: SocketSource, **options: Any) -> Iterator[tuple[SplitEnumerator, Any]]:
    enumerator = source.create_enumerator(1, **options)
    [split] = enumerator.discover()
    with closing(enumerator):
        yield enumerator, split
    assert not any(t.name.startswith(f"socket-{source.port}") for t in threading.enumerate())


def next_slice(enumerator: SplitEnumerator, split: Any, position: int, max_records: int = 1000) -> Slice:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        piece = enumerator.plan(split, position, max_records)
        if piece is not None:
            return piece
        time.sleep(0.001)
    raise AssertionError("nothing came")


def read_all(source: SocketSource, enumerator: SplitEnumerator, split: Any) -> list[str]:
    reader = source.create_reader()
    values: list[str] = []
    position: Any = 0
    while True:
        for batch in reader.read(next_slice(enumerator, split, position)):
            values += batch.values
        position = reader.progress().position
        if reader.progress().is_finished:
            return values


@pytest.mark.parametrize(
    ("parts", "delimiter", "lines"),
    [
        ([b"to be\nor not\n"], "\n", ["to be", "or not"]),
        ([b"to be\r\nor not\r\n"], "\n", ["to be", "or not"]),
        ([b"to", b" be\nor", b" not"], "\n", ["to be", "or not"]),
        (["Zürich\n".encode()[:2], "Zürich\n".encode()[2:]], "\n", ["Zürich"]),
        ([b"a||b|", b"|c"], "||", ["a", "b", "c"]),
        ([b"\n\n"], "\n", ["", ""]),
        ([], "\n", []),
    ],
)
def test_lines_are_cut_at_the_delimiter_until_the_server_closes(server, parts, delimiter, lines):
    source = SocketSource("127.0.0.1", server.port, delimiter)

    with enumerating(source) as (enumerator, split):
        server.serve(*parts)
        assert read_all(source, enumerator, split) == lines


def test_a_slice_carries_its_lines_and_can_be_read_by_anyone_again(server):
    source = SocketSource("127.0.0.1", server.port)

    with enumerating(source) as (enumerator, split):
        server.serve(b"a\nb\nc\n")
        piece = pickle.loads(pickle.dumps(next_slice(enumerator, split, 0, max_records=1)))
    reader = source.create_reader()
    for _ in range(2):
        assert [batch.values for batch in reader.read(piece)] == [["a"]]
        assert reader.progress().position == 1


def test_when_many_lines_wait_no_more_are_received(server):
    source = SocketSource("127.0.0.1", server.port)
    line = b"x" * 1023 + b"\n"

    with enumerating(source, max_waiting=10) as (enumerator, split), server.accept() as connected:
        connected.settimeout(0.2)
        # Socket buffers hold a few megabytes; then the server has to wait.
        with pytest.raises(TimeoutError):
            connected.sendall(line * 50_000)
        assert next_slice(enumerator, split, 0, max_records=5).end == 5


def test_a_server_that_is_not_there_is_an_error_that_says_what_to_do(server):
    server.listener.close()

    with enumerating(SocketSource("127.0.0.1", server.port)) as (enumerator, split):
        with pytest.raises(ConnectorError, match=f"127.0.0.1:{server.port}: cannot connect") as caught:
            next_slice(enumerator, split, 0)
    assert f"nc -lk {server.port}" in str(caught.value)
    assert caught.value.retryable


def test_with_retries_it_waits_for_the_server_and_connects_again(server):
    source = SocketSource("127.0.0.1", server.port, max_retries=-1, retry_delay_s=0.01)

    with enumerating(source) as (enumerator, split):
        server.serve(b"a\nbegun")
        server.serve(b"b\n")
        lines: list[str] = []
        while len(lines) < 3:
            lines += next_slice(enumerator, split, len(lines)).payload.values
        assert lines == ["a", "begun", "b"]


def test_when_retries_are_used_up_after_a_good_end_the_source_ends(server):
    source = SocketSource("127.0.0.1", server.port, max_retries=1, retry_delay_s=0.01)

    with enumerating(source) as (enumerator, split):
        with server.accept() as connected:
            server.listener.close()
            connected.sendall(b"a\n")
        assert read_all(source, enumerator, split) == ["a"]


def test_closing_does_not_wait_for_the_server(server):
    with enumerating(SocketSource("127.0.0.1", server.port)), server.accept():
        pass


def test_closing_ends_the_wait_for_a_retry(server):
    server.listener.close()
    source = SocketSource("127.0.0.1", server.port, max_retries=-1, retry_delay_s=3600)

    with enumerating(source) as (enumerator, split):
        assert enumerator.plan(split, 0, 10) is None


@pytest.mark.parametrize("arguments", [{"port": 0}, {"port": 65536}, {"port": 1, "delimiter": ""}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(JobDefinitionError, match="SocketSource"):
        SocketSource("localhost", **arguments)
