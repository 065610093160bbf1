"""LiveControl: the driver's end of the control channel, for all subtasks of one run.

    trigger(epoch) --> source subtasks ... barriers in band ... --> every subtask acknowledges --> wait_for(epoch)

Each subtask has a connection, and a thread that reads it, so what a subtask says is taken in its order.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Timer

from headrace.errors import HeadraceError, TaskLostError
from headrace.runtime.control.connection import Connection, ControlServer, new_secret
from headrace.runtime.control.messages import (
    VERSION,
    Acknowledge,
    Beat,
    Drained,
    FromDriver,
    Goodbye,
    Hello,
    Message,
    Running,
    StopSubtask,
    SubtaskFailure,
    SubtaskOutput,
    SubtaskProgress,
    SubtaskSamples,
    TriggerCheckpoint,
)
from headrace.runtime.epoch.messages import StackSample, SubtaskId, SubtaskReport

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
    #: What it said last about its time.
    beat: Beat | None = None


@dataclass(frozen=True)
class Acknowledged:
    """What a subtask said about a barrier."""

    report: SubtaskReport
    #: When the first barrier came to it, ms since 1970.
    first_ms: int
    alignment_ms: int
    sync_ms: int
    processed_bytes: int = 0
    persisted_bytes: int = 0
    is_unaligned: bool = False


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
        #: Subtasks that have read ahead for a checkpoint more than usually waits.
        self._backlogged: set[SubtaskId] = set()
        self._changed = threading.Condition()
        #: Why the run cannot go on.
        self.error: BaseException | None = None
        self._is_closed = False
        #: Makes an error of what a subtask said of its failure.
        self.recover: Callable[[str], HeadraceError] = TaskLostError
        #: Takes output that waits for nothing, with the id of its operator.
        self.show: Callable[[str, Sequence[object]], None] = lambda operator_id, payloads: None
        #: Takes where a subtask was found, and how often.
        self.sampled: Callable[[SubtaskId, Mapping[StackSample, int]], None] = lambda subtask, samples: None
        #: Called now and then while subtasks are waited for.
        self.on_tick: Callable[[], None] = lambda: None
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

    def trigger(self, epoch: int, subtasks: Iterable[SubtaskId], *, overtakes: bool = False) -> None:
        """Have source subtasks send the barrier that ends an epoch."""
        with self._changed:
            self._acknowledged[epoch] = {}
        for subtask in sorted(subtasks):
            self.send(subtask, TriggerCheckpoint(epoch, 0, overtakes))

    def overtake(self, epoch: int) -> None:
        """Have the barrier of an epoch overtake what is on its way to subtasks that have not acknowledged it."""
        with self._changed:
            missing = self._subtasks - self._acknowledged.setdefault(epoch, {}).keys()
        for subtask in sorted(missing):
            self.send(subtask, TriggerCheckpoint(epoch, 0, overtakes=True))

    def wait_for(
        self, epoch: int, subtasks: Iterable[SubtaskId], until: float | None = None
    ) -> dict[SubtaskId, Acknowledged] | None:
        """Wait until these subtasks have acknowledged a barrier; None if that takes too long.

        Args:
            epoch: The epoch that ends with it.
            subtasks: Those that are waited for.
            until: How long to wait, by `now_s`; None for as long as it takes.

        Raises:
            HeadraceError: If the run fails before.
        """
        wanted = frozenset(subtasks)
        is_there = self._wait(lambda: wanted <= self._acknowledged[epoch].keys(), until)
        return dict(self._acknowledged[epoch]) if is_there else None

    def now_s(self) -> float:
        """Return the time by which waiting is limited."""
        return time.monotonic()

    @property
    def is_backlogged(self) -> bool:
        """Whether a subtask still works off what it has read ahead for a checkpoint."""
        return bool(self._backlogged)

    def forget(self, epoch: int) -> None:
        """Let go of what subtasks said about a barrier."""
        with self._changed:
            self._acknowledged.pop(epoch, None)

    def wake(self) -> None:
        """Have whoever waits for subtasks look around."""
        with self._changed:
            self._changed.notify_all()
        self._on_news()

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
        """Return what each subtask that is there said last about its time."""
        with self._changed:
            return {
                subtask: peer.beat
                for subtask, peer in self._peers.items()
                if peer.beat is not None and not peer.has_left
            }

    def _wait(self, is_done: Callable[[], bool], until: float | None = None) -> bool:
        """Wait until something is so, or it is too late; return whether it is."""
        with self._changed:
            while self.error is None and not is_done():
                left_s = 1.0 if until is None else min(1.0, until - self.now_s())
                if left_s <= 0:
                    return False
                self._changed.wait(left_s)
                self._check_heartbeats()
                self.on_tick()
            if self.error is not None:
                raise self.error
        return True

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
                said = Acknowledged(
                    report,
                    message.first_ms,
                    message.alignment_ms,
                    message.sync_ms,
                    message.processed_bytes,
                    message.persisted_bytes,
                    message.is_unaligned,
                )
                with self._changed:
                    if message.is_backlogged:
                        self._backlogged.add(subtask)
                    self._acknowledged.setdefault(message.epoch, {})[subtask] = said
                    self._changed.notify_all()
            case Drained():
                self._backlogged.discard(subtask)
                self._on_news()
            case Running():
                with self._changed:
                    peer.is_running = True
                    self._changed.notify_all()
            case Beat():
                peer.beat = message
            case SubtaskSamples():
                self.sampled(subtask, pickle.loads(message.samples))
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
