"""LiveControl: the driver's end of the control channel, for all subtasks of one run.

    trigger(epoch) --> source subtasks ... barriers in band ... --> every subtask acknowledges --> wait_for(epoch)

Each subtask has a connection, and a thread that reads it, so messages of a subtask are handled in order.

Subtasks belong to regions, which fail and restart independently. Messages of an earlier attempt at a region are
ignored: every attempt has a number, which a subtask sends first.
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
    #: The attempt at its region that it belongs to.
    attempt: int = 0
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


@dataclass(frozen=True)
class RegionAttempt:
    """One attempt at a region of a live run, for whoever runs its subtasks."""

    control: LiveControl
    region: int
    number: int

    def fail(self, error: BaseException) -> None:
        """Say why it cannot go on; nothing happens if another attempt has begun."""
        self.control.fail(error, self)


class LiveControl:
    """Talks to the subtasks of one run.

    Args:
        regions: The subtasks of each region.
        host: The address to listen on.
        port: The port; 0 for any.
        heartbeat_timeout_s: How long a subtask may be silent.
        on_progress: Called when a source subtask has done what it was fed, in the order of the subtask's messages, with
            the number of the attempt that it belongs to.
        on_news: Called when somebody who waits for the job should look again.
    """

    def __init__(
        self,
        regions: Sequence[Iterable[SubtaskId]],
        *,
        host: str,
        port: int = 0,
        heartbeat_timeout_s: float = 50.0,
        on_progress: Callable[[SubtaskId, SubtaskProgress, int], None],
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self._regions = [frozenset(region) for region in regions]
        self._region_of = {
            subtask: number for number, region in enumerate(self._regions) for subtask in region
        }
        #: The present attempt at each region; -1 before the first.
        self._attempts = [-1] * len(self._regions)
        self._heartbeat_timeout_s = heartbeat_timeout_s
        self._on_progress = on_progress
        self._on_news = on_news
        self.secret = new_secret()
        self._peers: dict[SubtaskId, _Peer] = {}
        self._acknowledged: dict[int, dict[SubtaskId, Acknowledged]] = {}
        #: Subtasks that have read ahead for a checkpoint more than usually waits.
        self._backlogged: set[SubtaskId] = set()
        self._changed = threading.Condition()
        #: Why regions cannot go on, by their number; the first reason of each.
        self._errors: dict[int, BaseException] = {}
        self._is_closed = False
        #: Makes an error of what a subtask said about its failure.
        self.recover: Callable[[str], HeadraceError] = TaskLostError
        #: Takes output that waits for nothing, with the id of its operator.
        self.show: Callable[[str, Sequence[object]], None] = lambda operator_id, payloads: None
        #: Called when a subtask has acknowledged a barrier.
        self.on_acknowledged: Callable[[], None] = lambda: None
        #: Takes where a subtask was found, and how often.
        self.sampled: Callable[[SubtaskId, Mapping[StackSample, int]], None] = lambda subtask, samples: None
        #: Called now and then while subtasks are waited for.
        self.on_tick: Callable[[], None] = lambda: None
        self._server = ControlServer(host, port, self.secret, self._handle)
        self.address = (host, self._server.port)

    # -- regions -------------------------------------------------------------------------------------------------

    @property
    def error(self) -> BaseException | None:
        """Why some region cannot go on; None if all can."""
        return next(iter(self._errors.values()), None)

    def failed_with(self, error: BaseException) -> frozenset[int]:
        """Return the regions that have failed, if this is what one of them has failed with; else none."""
        with self._changed:
            is_known = any(each is error for each in self._errors.values())
            return frozenset(self._errors) if is_known else frozenset()

    def has_failed(self, region: int) -> bool:
        """Whether a region cannot go on."""
        return region in self._errors

    def attempt_at(self, region: int) -> int:
        """Return how often a region was started before its present attempt."""
        return self._attempts[region]

    def begin(self, region: int) -> RegionAttempt:
        """Begin another attempt at a region, and forget what is known of the last one."""
        with self._changed:
            self._attempts[region] += 1
            left = [self._peers.pop(each) for each in self._regions[region] if each in self._peers]
            for said in self._acknowledged.values():
                for subtask in self._regions[region] & said.keys():
                    del said[subtask]
            self._backlogged -= self._regions[region]
            self._errors.pop(region, None)
            attempt = RegionAttempt(self, region, self._attempts[region])
        for peer in left:
            peer.connection.close()
        return attempt

    # -- what the driver wants -----------------------------------------------------------------------------------

    def send(self, subtask: SubtaskId, message: FromDriver) -> None:
        """Tell a subtask something; one that is gone is noticed elsewhere."""
        with self._changed:
            peer = self._peers.get(subtask)
        if peer is not None:
            try:
                peer.connection.send(message)
            except OSError:
                _log.debug("%s could not receive %s", subtask, type(message).__name__)

    def wait_running(self) -> None:
        """Wait until all subtasks run.

        Raises:
            HeadraceError: If the run fails before.
        """
        self._wait(lambda: sum(peer.is_running for peer in self._peers.values()) == len(self._region_of))

    def trigger(self, epoch: int, subtasks: Iterable[SubtaskId], *, overtakes: bool = False) -> None:
        """Have source subtasks send the barrier that ends an epoch."""
        with self._changed:
            self._acknowledged.setdefault(epoch, {})
        for subtask in sorted(subtasks):
            self.send(subtask, TriggerCheckpoint(epoch, 0, overtakes))

    def overtake(self, epoch: int) -> None:
        """Have the barrier of an epoch overtake what is on its way to subtasks that have not acknowledged it."""
        with self._changed:
            missing = self._region_of.keys() - self._acknowledged.setdefault(epoch, {}).keys()
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

    def acknowledged(self, epoch: int) -> frozenset[SubtaskId]:
        """Return who has acknowledged a barrier until now."""
        with self._changed:
            return frozenset(self._acknowledged.get(epoch, {}))

    @property
    def is_backlogged(self) -> bool:
        """Whether a subtask still processes what it has read ahead for a checkpoint."""
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

    def fail(self, error: BaseException, attempt: RegionAttempt | None = None) -> None:
        """Note why an attempt at a region, or the whole run, cannot go on; the first reason counts."""
        with self._changed:
            failed = range(len(self._regions)) if attempt is None else [attempt.region]
            for region in failed:
                is_present = attempt is None or attempt.number == self._attempts[region]
                if is_present and not self._is_closed:
                    self._errors.setdefault(region, error)
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
        for subtask in sorted(self._region_of):
            self.send(subtask, StopSubtask())

    def close(self) -> None:
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
        while True:
            with self._changed:
                if self.error is not None:
                    raise self.error
                if is_done():
                    return True
                left_s = 1.0 if until is None else min(1.0, until - self.now_s())
                if left_s <= 0:
                    return False
                self._changed.wait(left_s)
            self._check_heartbeats()
            self.on_tick()  # without the lock: what it does may wait for what subtasks say

    def _check_heartbeats(self) -> None:
        since = time.monotonic() - self._heartbeat_timeout_s
        for subtask, peer in tuple(self._peers.items()):
            if peer.seen < since and not peer.has_left:
                lost = TaskLostError(
                    f"{_name(subtask)} on {peer.host} (process {peer.pid}) has sent no heartbeat for "
                    f"{self._heartbeat_timeout_s:g} s"
                )
                self._errors.setdefault(self._region_of[subtask], lost)

    # -- what subtasks say -----------------------------------------------------------------------------------------

    def _handle(self, connection: Connection) -> None:
        hello = connection.receive()
        if not isinstance(hello, Hello) or hello.version != VERSION:
            return
        subtask = SubtaskId(hello.vertex_id, hello.subtask)
        region = self._region_of.get(subtask)
        with self._changed:
            if region is None or hello.attempt != self._attempts[region] or subtask in self._peers:
                return
            peer = _Peer(connection, hello.host, hello.pid, time.monotonic(), hello.attempt)
            self._peers[subtask] = peer
        attempt = RegionAttempt(self, region, hello.attempt)
        try:
            while (message := connection.receive()) is not None:
                peer.seen = time.monotonic()
                self._take(subtask, peer, message)
        except Exception as error:  # noqa: BLE001 - a connector's enumerator may raise anything
            attempt.fail(error)
        if not peer.has_left and not self._is_closed:
            lost = TaskLostError(f"{_name(subtask)} on {peer.host} (process {peer.pid}) was lost")
            timer = Timer(_EXPLANATION_S, attempt.fail, [lost])
            timer.daemon = True
            timer.start()

    def _take(self, subtask: SubtaskId, peer: _Peer, message: Message) -> None:
        if self._peers.get(subtask) is not peer:
            return  # of an attempt that is over
        match message:
            case SubtaskProgress():
                self._on_progress(subtask, message, peer.attempt)
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
                    if self._peers.get(subtask) is not peer:
                        return  # another attempt has begun just now
                    if message.is_backlogged:
                        self._backlogged.add(subtask)
                    self._acknowledged.setdefault(message.epoch, {})[subtask] = said
                    self._changed.notify_all()
                self.on_acknowledged()
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
                region = self._region_of[subtask]
                self.fail(self.recover(message.text), RegionAttempt(self, region, peer.attempt))
            case Goodbye():
                peer.has_left = True
            case _:
                _log.warning("%s sent a %s message", subtask, type(message).__name__)


def _name(subtask: SubtaskId) -> str:
    return f"subtask {subtask.subtask + 1} of vertex {subtask.vertex_id}"
