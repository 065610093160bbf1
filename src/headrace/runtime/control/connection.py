"""A connection between the driver and one subtask: length-prefixed messages, after mutual authentication.

    driver                                 subtask
      | ---- 32 random bytes (a) ----------> |
      | <--- HMAC(secret, "subtask" a), b -- |       b: 32 random bytes
      | ---- HMAC(secret, "driver" b) -----> |
      | <--- Hello ------------------------- |

Nothing is read as a message, let alone unpickled, before authentication. The secret is random, new in every run, and
reaches workers inside the packed job. The messages are not encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
import threading
from collections.abc import Callable

from headrace.errors import ClusterError
from headrace.runtime.control.messages import Message, decode, encode

#: The length of a message, and which one it is.
_HEAD = struct.Struct(">IQ")
_NONCE_BYTES = 32
_DIGEST_BYTES = 32
#: No message is larger: a report names files, and carries operator state and staged output.
MOST_BYTES = 256 << 20
#: How long either side waits for the other's part of the introduction.
_INTRODUCTION_S = 10.0


def new_secret() -> bytes:
    """Return a secret for one run."""
    return secrets.token_bytes(32)


def _proof(secret: bytes, who: bytes, nonce: bytes) -> bytes:
    return hmac.new(secret, who + nonce, hashlib.sha256).digest()


class Numbering:
    """Numbers the messages of one direction, and decides which of those that arrive are taken."""

    def __init__(self) -> None:
        self._sent = self._taken = 0

    def next(self) -> int:
        """Return the number of the next message to be sent."""
        self._sent += 1
        return self._sent

    def takes(self, number: int) -> bool:
        """Whether a message is new; one that comes a second time is not.

        Raises:
            ClusterError: If one before it is missing.
        """
        if number > self._taken + 1:
            raise ClusterError(f"messages {self._taken + 1} to {number - 1} on a control channel are missing")
        is_new = number == self._taken + 1
        self._taken = max(self._taken, number)
        return is_new


class Connection:
    """Sends and receives messages over a socket on which both sides have introduced themselves."""

    def __init__(self, channel: socket.socket) -> None:
        self._socket = channel
        self._send_lock = threading.Lock()
        self._numbering = Numbering()

    @classmethod
    def accept(cls, channel: socket.socket, secret: bytes) -> Connection | None:
        """Take a subtask that knows the secret; None for anybody else."""
        channel.settimeout(_INTRODUCTION_S)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        try:
            channel.sendall(nonce)
            answer = _exactly(channel, _DIGEST_BYTES + _NONCE_BYTES)
            if answer is None or not hmac.compare_digest(
                answer[:_DIGEST_BYTES], _proof(secret, b"subtask", nonce)
            ):
                return None
            channel.sendall(_proof(secret, b"driver", answer[_DIGEST_BYTES:]))
            channel.settimeout(None)
        except OSError:
            return None
        return cls(channel)

    @classmethod
    def open(cls, address: tuple[str, int], secret: bytes) -> Connection:
        """Connect to the driver.

        Raises:
            ClusterError: If it cannot be reached, or does not know the secret.
        """
        where = f"{address[0]}:{address[1]}"
        try:
            channel = socket.create_connection(address, _INTRODUCTION_S)
        except OSError as error:
            raise _unreachable(where, error) from error
        try:
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            theirs = _exactly(channel, _NONCE_BYTES)
            nonce = secrets.token_bytes(_NONCE_BYTES)
            channel.sendall(_proof(secret, b"subtask", theirs or b"") + nonce)
            proof = _exactly(channel, _DIGEST_BYTES)
            if proof is None or not hmac.compare_digest(proof, _proof(secret, b"driver", nonce)):
                raise ClusterError(f"the process that listens at {where} is not the driver of this job")
            channel.settimeout(None)
        except OSError as error:
            channel.close()
            raise _unreachable(where, error) from error
        except BaseException:
            channel.close()
            raise
        return cls(channel)

    def send(self, message: Message) -> None:
        """Send a message; from any thread.

        Raises:
            OSError: If the other side is gone.
            ClusterError: If the message is too large.
        """
        data = encode(message)
        if len(data) > MOST_BYTES:
            raise ClusterError(
                f"a {type(message).__name__} message has {len(data)} bytes; the limit is {MOST_BYTES}",
                hint="keep large values in keyed state, not in operator state",
            )
        with self._send_lock:
            self._socket.sendall(_HEAD.pack(len(data), self._numbering.next()) + data)

    def receive(self) -> Message | None:
        """Wait for the next message; None if the other side is gone.

        Raises:
            ClusterError: If a message is missing, or cannot be read.
        """
        while True:
            try:
                head = _exactly(self._socket, _HEAD.size)
                if head is None:
                    return None
                length, number = _HEAD.unpack(head)
                if length > MOST_BYTES:
                    return None
                data = _exactly(self._socket, length)
            except OSError:
                return None
            if data is None:
                return None
            if self._numbering.takes(number):
                return decode(data)

    def close(self) -> None:
        """Close it; a thread that waits for a message gets None."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was faster
        self._socket.close()


def _unreachable(where: str, error: OSError) -> ClusterError:
    return ClusterError(
        f"a worker cannot reach the driver at {where}: {error}",
        hint="live jobs need connections from the executors to the driver: open headrace.live.port there",
    )


def _exactly(channel: socket.socket, count: int) -> bytes | None:
    """Read so many bytes; None if the stream ends before."""
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


class ControlServer:
    """Listens for subtasks. Each that knows the secret is handled in a thread of its own.

    Args:
        host: The address to listen on.
        port: 0 for any that is free.
        secret: What subtasks must know.
        handle: Called with each connection; it is closed when the call returns.
    """

    def __init__(self, host: str, port: int, secret: bytes, handle: Callable[[Connection], None]) -> None:
        self._secret = secret
        self._handle = handle
        self._listener = socket.create_server((host, port), backlog=512)
        self._open: set[Connection] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        threading.Thread(target=self._accept, name="headrace-control", daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening, and close all connections."""
        with self._lock:
            self._is_closed = True
            connections = list(self._open)
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass
        self._listener.close()
        for connection in connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._serve, args=(channel,), name="headrace-control-subtask", daemon=True
            ).start()

    def _serve(self, channel: socket.socket) -> None:
        connection = Connection.accept(channel, self._secret)
        if connection is None:
            channel.close()
            return
        with self._lock:
            if self._is_closed:
                connection.close()
                return
            self._open.add(connection)
        try:
            self._handle(connection)
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
