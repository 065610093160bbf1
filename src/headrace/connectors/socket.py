"""Text from a TCP connection, for examples and for trying things out: `nc -lk 9999`, then type.

A socket cannot be read twice. So the driver reads it, in a thread of its own, and a slice carries the lines
themselves: what was planned is written down before it is processed, and an epoch that runs again has its
lines. What arrives while the driver is away is lost; Flink's socket source gives the same.
"""

from __future__ import annotations

import codecs
import logging
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError

_log = logging.getLogger(__name__)

_SPLIT = base.SourceSplit("socket")
_CONNECT_TIMEOUT_S = 10.0
_RECEIVE_BYTES = 1 << 16
#: Lines that may wait in the driver. With more, nothing is received and TCP makes the peer wait.
_MAX_WAITING = 50_000


@dataclass(frozen=True)
class SocketSource(base.Source):
    r"""Reads lines of UTF-8 text from a server, until it closes the connection.

    Args:
        hostname: The server.
        port: Its port.
        delimiter: What ends a line. Of lines that end with `\n`, a `\r` before it is dropped.
        max_retries: How often to reconnect when the server cannot be reached or the connection is lost; a
            negative number means forever. With 0 the end of the connection is the end of the source.
            Otherwise the source ends when the server stays away.
        retry_delay_s: Seconds between two tries.

    Raises:
        JobDefinitionError: The port is not a port, or the delimiter is empty.

    Example:
        >>> SocketSource("localhost", 9999).boundedness
        <Boundedness.CONTINUOUS_UNBOUNDED: 'CONTINUOUS_UNBOUNDED'>
    """

    hostname: str
    port: int
    delimiter: str = "\n"
    max_retries: int = 0
    retry_delay_s: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.port < 65536:
            raise JobDefinitionError(f"SocketSource: port must be between 1 and 65535; got {self.port}")
        if not self.delimiter:
            raise JobDefinitionError(
                "SocketSource: delimiter must not be empty", hint='lines end with "\\n" by default'
            )

    @property
    def boundedness(self) -> base.Boundedness:
        """Unbounded: the peer may close the connection at any time."""
        return base.Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, *, max_waiting: int = _MAX_WAITING) -> base.SplitEnumerator:
        """Make the driver's half; it connects when it is first asked for splits."""
        return _SocketEnumerator(_Connection(self, max_waiting))

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half; it never sees the socket."""
        return _PayloadReader()


@dataclass(frozen=True)
class _Lines:
    values: list[str]
    #: Whether nothing will come after these.
    is_last: bool


class _SocketEnumerator(base.SplitEnumerator):
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._is_started = False

    def discover(self) -> Sequence[base.SourceSplit]:
        if self._is_started:
            return ()
        self._is_started = True
        self._connection.start()
        return (_SPLIT,)

    @property
    def is_complete(self) -> bool:
        return self._is_started

    def start_position(self, split: base.SourceSplit) -> int:
        return 0

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        lines = self._connection.take(max_records)
        if not lines.values and not lines.is_last:
            return None
        return base.Slice(split, position, position + len(lines.values), payload=lines)

    def close(self) -> None:
        self._connection.close()


class _PayloadReader(base.SourceReader):
    def __init__(self) -> None:
        self._progress = base.SplitProgress(0, is_finished=False)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        lines: _Lines = piece.payload
        for first in range(0, len(lines.values), base.BATCH_RECORDS):
            yield Batch(lines.values[first : first + base.BATCH_RECORDS])
        self._progress = base.SplitProgress(piece.end, lines.is_last)

    def progress(self) -> base.SplitProgress:
        return self._progress


class _Connection:
    """The thread that receives, and the lines that wait to be planned."""

    def __init__(self, source: SocketSource, max_waiting: int) -> None:
        self._source = source
        self._max_waiting = max_waiting
        self._thread = threading.Thread(target=self._run, name=f"socket-{source.port}", daemon=True)
        #: Guards everything below; notified when lines are taken and when the connection is closed.
        self._changed = threading.Condition()
        self._waiting: deque[str] = deque()
        self._is_over = False
        self._error: ConnectorError | None = None
        self._socket: socket.socket | None = None
        self._is_closed = False

    def start(self) -> None:
        self._thread.start()

    def take(self, at_most: int) -> _Lines:
        """Return lines that wait; raise what ended the connection once there are none left."""
        with self._changed:
            values = list(islice(self._waiting, at_most))
            for _ in values:
                self._waiting.popleft()
            self._changed.notify_all()
            if not values and self._error is not None:
                raise self._error
            return _Lines(values, self._is_over and not self._waiting and self._error is None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            if self._socket is not None:
                _shut_down(self._socket)
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _was_closed(self) -> bool:
        return self._is_closed

    def _run(self) -> None:
        error = None
        try:
            self._receive_until_the_end()
        except ConnectorError as failure:
            error = failure
        with self._changed:
            self._error = error
            self._is_over = True

    def _receive_until_the_end(self) -> None:
        """Connect and receive, again and again as far as retries allow."""
        has_been_connected = False
        failures = 0
        while not self._was_closed():
            problem: OSError | None = None
            try:
                with socket.create_connection(
                    (self._source.hostname, self._source.port), timeout=_CONNECT_TIMEOUT_S
                ) as connected:
                    has_been_connected = True
                    failures = 0
                    self._receive(connected)
            except OSError as error:
                problem = error
            if self._was_closed():
                return
            failures += 1
            if 0 <= self._source.max_retries < failures:
                # A server that closed in good order, and then stays away, has said all it had to say.
                if problem is None or (has_been_connected and isinstance(problem, ConnectionRefusedError)):
                    return
                raise self._failed(problem, has_been_connected) from problem
            _log.warning("%s: %s; reconnecting", self._address, problem or "connection closed by the server")
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, timeout=self._source.retry_delay_s)

    def _receive(self, connected: socket.socket) -> None:
        with self._changed:
            if self._is_closed:
                return
            self._socket = connected
        connected.settimeout(None)
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        begun = ""
        try:
            while data := connected.recv(_RECEIVE_BYTES):
                *lines, begun = (begun + decoder.decode(data)).split(self._source.delimiter)
                self._offer(lines)
        finally:
            with self._changed:
                self._socket = None
            begun += decoder.decode(b"", final=True)
            if begun:
                self._offer([begun])

    def _offer(self, lines: list[str]) -> None:
        """Add lines; wait while too many are there."""
        if self._source.delimiter == "\n":
            lines = [line.removesuffix("\r") for line in lines]
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._waiting) < self._max_waiting)
            self._waiting.extend(lines)

    @property
    def _address(self) -> str:
        return f"SocketSource {self._source.hostname}:{self._source.port}"

    def _failed(self, problem: OSError, has_been_connected: bool) -> ConnectorError:
        if has_been_connected:
            return ConnectorError(
                f"{self._address}: the connection was lost: {problem}",
                hint="set max_retries to make the source reconnect",
            )
        return ConnectorError(
            f"{self._address}: cannot connect: {problem}",
            hint=f"start the server first, for example `nc -lk {self._source.port}`; set max_retries to make the "
            "source wait for it",
        )


def _shut_down(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The peer was faster; the thread will see the end.
        pass
