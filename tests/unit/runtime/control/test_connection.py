"""The control channel: who is let in, and what is refused."""

from __future__ import annotations

import queue
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from headrace.errors import ClusterError
from headrace.runtime.control.connection import Connection, ControlServer, Numbering, new_secret
from headrace.runtime.control.messages import Acknowledge, Beat, Message, TriggerCheckpoint, decode, encode

HOST = "127.0.0.1"


@pytest.fixture
def received() -> queue.Queue[Message | None]:
    return queue.Queue()


@pytest.fixture
def secret() -> bytes:
    return new_secret()


@pytest.fixture
def server(secret: bytes, received: queue.Queue[Message | None]) -> Iterator[ControlServer]:
    def handle(connection: Connection) -> None:
        while (message := connection.receive()) is not None:
            received.put(message)
            connection.send(TriggerCheckpoint(7, 0))
        received.put(None)

    server = ControlServer(HOST, 0, secret, handle)
    yield server
    server.close()


def test_messages_go_both_ways(
    server: ControlServer, secret: bytes, received: queue.Queue[Message | None]
) -> None:
    connection = Connection.open((HOST, server.port), secret)
    connection.send(Acknowledge(3, b"report", alignment_ms=4))
    assert received.get(timeout=10) == Acknowledge(3, b"report", alignment_ms=4)
    assert connection.receive() == TriggerCheckpoint(7, 0)
    connection.close()
    assert received.get(timeout=10) is None


def test_whoever_does_not_know_the_secret_is_not_heard(
    server: ControlServer, received: queue.Queue[Message | None]
) -> None:
    with pytest.raises(ClusterError, match="is not the driver of this job"):
        Connection.open((HOST, server.port), new_secret())
    assert received.empty()


def test_another_process_on_the_port_is_not_taken_for_the_driver(secret: bytes) -> None:
    with ControlServerOf(new_secret()) as port, pytest.raises(ClusterError, match="is not the driver"):
        Connection.open((HOST, port), secret)


class ControlServerOf:
    """A server with another secret."""

    def __init__(self, secret: bytes) -> None:
        self._server = ControlServer(HOST, 0, secret, lambda connection: None)

    def __enter__(self) -> int:
        return self._server.port

    def __exit__(self, *_: object) -> None:
        self._server.close()


def test_a_driver_that_is_not_there() -> None:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ClusterError, match=f"cannot reach the driver at {HOST}:{port}"):
        Connection.open((HOST, port), new_secret())


def test_closing_a_server_ends_all_waits(server: ControlServer, secret: bytes) -> None:
    connection = Connection.open((HOST, server.port), secret)
    connection.send(Beat())
    assert connection.receive() == TriggerCheckpoint(7, 0)
    server.close()
    assert connection.receive() is None
    connection.close()


def test_invalid_messages_are_refused() -> None:
    assert decode(encode(Beat(busy_ms=3))) == Beat(busy_ms=3)
    with pytest.raises(ClusterError, match="cannot be read"):
        decode(b"\xc1 no message")


def test_a_message_that_comes_twice_is_taken_once() -> None:
    numbering = Numbering()
    assert [numbering.takes(number) for number in (1, 2, 2, 1, 3)] == [True, True, False, False, True]


def test_a_message_that_is_missing_is_noticed_with_the_next_one() -> None:
    numbering = Numbering()
    assert numbering.takes(1)
    with pytest.raises(ClusterError, match="messages 2 to 3 on a control channel are missing"):
        numbering.takes(4)


def test_a_driver_that_goes_away_while_it_is_introduced_leaves_no_socket(secret: bytes) -> None:
    with socket.create_server((HOST, 0)) as listening:

        def hang_up() -> None:
            channel, _ = listening.accept()
            # Closed with a reset, and not at the end of a stream.
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            channel.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ClusterError):
            Connection.open((HOST, listening.getsockname()[1]), secret)
        thread.join()
