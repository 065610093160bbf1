"""LiveControl: the driver's end of the control channel, for all subtasks of one run.

    trigger(epoch) --> source subtasks ... barriers in band ... --> every subtask acknowledges --> wait_for(epoch)

Each subtask has a connection, and a thread that reads it, so what a subtask says is taken in its order.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Timer

from headrace.errors import HeadraceError, TaskLostError
from headrace.runtime.control.connection import Connection, ControlServer, new_secret
from headrace.runtime.control.messages import (
    VERSION,
    Acknowledge,
    Beat,
    FromDriver,
    Goodbye,
    Hello,
    Message,
    Running,
    StopSubtask,
    SubtaskFailure,
    SubtaskOutput,
    SubtaskProgress,
    TriggerCheckpoint,
)
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport

_log = logging.getLogger(__name__)

#: A subtask that goes without a word: Spark, or another subtask, may know why.
_EXPLANATION_S = 1.0


@dataclass
class _Peer:
    """A subtask that has introduced itself."""

    connection: Connection
    host: str
    pid: int
    seen: float
    is_running: bool = False
    has_left: bool = False
    beat: Beat = field(default_factory=Beat)


@dataclass(frozen=True)
class Acknowledged:
    """What a subtask said about a barrier."""

    report: SubtaskReport
    #: When the first barrier came to it, ms since 1970.
    first_ms: int
    alignment_ms: int
    sync_ms: int


class LiveControl:
    """Talks to the subtasks of one run.

    Args:
        subtasks: All of them.
        host: The address to listen on.
        port: The port; 0 for any.
        heartbeat_timeout_s: How long a subtask may be silent.
        on_progress: Called when a source subtask has done what it was fed, in the order of the subtask's messages.
        on_news: Called when somebody who waits for the job should look again.
    """

    def __init__(
        self,
        subtasks: Iterable[SubtaskId],
        *,
        host: str,
        port: int = 0,
        heartbeat_timeout_s: float = 50.0,
        on_progress: Callable[[SubtaskId, SubtaskProgress], None],
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self._subtasks = frozenset(subtasks)
        self._heartbeat_timeout_s = heartbeat_timeout_s
        self._on_progress = on_progress
        self._on_news = on_news
        self.secret = new_secret()
        self._peers: dict[SubtaskId, _Peer] = {}
        self._acknowledged: dict[int, dict[SubtaskId, Acknowledged]] = {}
        self._changed = threading.Condition()
        #: Why the run cannot go on.
        self.error: BaseException | None = None
        self._is_closed = False
        #: Makes an error of what a subtask said of its failure.
        self.recover: Callable[[str], HeadraceError] = TaskLostError
        #: Takes output that waits for nothing, with the id of its operator.
        self.show: Callable[[str, Sequence[object]], None] = lambda operator_id, payloads: None
        self._server = ControlServer(host, port, self.secret, self._handle)
        self.address = (host, self._server.port)

    # -- what the driver wants -----------------------------------------------------------------------------------

    def send(self, subtask: SubtaskId, message: FromDriver) -> None:
        """Tell a subtask something; one that is gone is noticed elsewhere."""
        with self._changed:
            peer = self._peers.get(subtask)
        if peer is not None:
            try:
                peer.connection.send(message)
            except OSError:
                _log.debug("%s could not be told %s", subtask, type(message).__name__)

    def wait_running(self) -> None:
        """Wait until all subtasks run.

        Raises:
            HeadraceError: If the run fails before.
        """
        self._wait(lambda: sum(peer.is_running for peer in self._peers.values()) == len(self._subtasks))

    def trigger(self, epoch: int, subtasks: Iterable[SubtaskId]) -> None:
        """Have source subtasks send the barrier that ends an epoch."""
        with self._changed:
            self._acknowledged[epoch] = {}
        for subtask in sorted(subtasks):
            self.send(subtask, TriggerCheckpoint(epoch, 0))

    def wait_for(self, epoch: int, subtasks: Iterable[SubtaskId]) -> dict[SubtaskId, Acknowledged]:
        """Wait until these subtasks have acknowledged a barrier.

        Raises:
            HeadraceError: If the run fails before.
        """
        wanted = frozenset(subtasks)
        self._wait(lambda: wanted <= self._acknowledged[epoch].keys())
        return dict(self._acknowledged[epoch])

    def forget(self, epoch: int) -> None:
        """Let go of what subtasks said about a barrier."""
        with self._changed:
            self._acknowledged.pop(epoch, None)

    def fail(self, error: BaseException) -> None:
        """Note why the run cannot go on; the first reason counts."""
        with self._changed:
            if self.error is None and not self._is_closed:
                self.error = error
            self._changed.notify_all()
        self._on_news()

    def check(self) -> None:
        """Raise what the run failed with, if it has.

        Raises:
            HeadraceError: The reason.
        """
        self._check_heartbeats()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Have all subtasks end."""
        for subtask in sorted(self._subtasks):
            self.send(subtask, StopSubtask())

    def close(self) -> None:
        """Close all connections."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._server.close()

    def beats(self) -> dict[SubtaskId, Beat]:
        """Return what each subtask said last about its time."""
        with self._changed:
            return {subtask: peer.beat for subtask, peer in self._peers.items()}

    def _wait(self, is_done: Callable[[], bool]) -> None:
        with self._changed:
            while self.error is None and not is_done():
                self._changed.wait(1.0)
                self._check_heartbeats()
            if self.error is not None:
                raise self.error

    def _check_heartbeats(self) -> None:
        since = time.monotonic() - self._heartbeat_timeout_s
        for subtask, peer in tuple(self._peers.items()):
            if peer.seen < since and not peer.has_left and self.error is None:
                self.error = TaskLostError(
                    f"{_name(subtask)} on {peer.host} (process {peer.pid}) has given no sign of life for "
                    f"{self._heartbeat_timeout_s:g} s"
                )

    # -- what subtasks say -----------------------------------------------------------------------------------------

    def _handle(self, connection: Connection) -> None:
        hello = connection.receive()
        if not isinstance(hello, Hello) or hello.version != VERSION:
            return
        subtask = SubtaskId(hello.vertex_id, hello.subtask)
        with self._changed:
            if subtask not in self._subtasks or subtask in self._peers:
                return
            peer = self._peers[subtask] = _Peer(connection, hello.host, hello.pid, time.monotonic())
        try:
            while (message := connection.receive()) is not None:
                peer.seen = time.monotonic()
                self._take(subtask, peer, message)
        except Exception as error:  # noqa: BLE001 - a connector's enumerator may raise anything
            self.fail(error)
        if not peer.has_left and not self._is_closed:
            lost = TaskLostError(f"{_name(subtask)} on {peer.host} (process {peer.pid}) was lost")
            timer = Timer(_EXPLANATION_S, self.fail, [lost])
            timer.daemon = True
            timer.start()

    def _take(self, subtask: SubtaskId, peer: _Peer, message: Message) -> None:
        match message:
            case SubtaskProgress():
                self._on_progress(subtask, message)
            case Acknowledge():
                report = pickle.loads(message.report)
                assert isinstance(report, SubtaskReport)
                said = Acknowledged(report, message.first_ms, message.alignment_ms, message.sync_ms)
                with self._changed:
                    self._acknowledged.setdefault(message.epoch, {})[subtask] = said
                    self._changed.notify_all()
            case Running():
                with self._changed:
                    peer.is_running = True
                    self._changed.notify_all()
            case Beat():
                peer.beat = message
            case SubtaskOutput():
                self.show(message.operator_id, pickle.loads(message.committables))
            case SubtaskFailure():
                self.fail(self.recover(message.text))
            case Goodbye():
                peer.has_left = True
            case _:
                _log.warning("%s sent a %s message", subtask, type(message).__name__)


def _name(subtask: SubtaskId) -> str:
    return f"subtask {subtask.subtask + 1} of vertex {subtask.vertex_id}"
