"""SourceFeeder: supplies the source subtasks of a live job with slices, in its own thread.

    coordinator.plan() -> Feed to every subtask that has nothing to do -> Progress -> coordinator.advance() -> plan ...

Where a source's slices can be planned anywhere, a subtask gets a lease of its splits instead: it reads them on its
own until the next barrier, or until its splits change.

A subtask has at most one feed or lease. At a barrier, nothing is fed until all source subtasks have acknowledged it,
so the positions that coordinators then have are those at the barrier, which the checkpoint records.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Collection, Mapping

from headrace.runtime.control.messages import Feed, Lease, Recall, SubtaskProgress
from headrace.runtime.epoch.messages import SubtaskId, SubtaskPlan
from headrace.runtime.run.source_coordinator import SourceCoordinator, SourceTaskPlan

#: How long a subtask should work on a feed: a barrier waits for its end.
_TARGET_S = 0.05
#: Few: how long functions take over a record is not known yet.
_FIRST_RECORDS = 10
_MOST_RECORDS = 500_000


class _Pace:
    """How many records of one source a feed may have."""

    def __init__(self, most: int | None) -> None:
        self._most = most or _MOST_RECORDS
        self.records = min(_FIRST_RECORDS, self._most)

    def observe(self, records: int, duration_s: float) -> None:
        """Learn from a feed; one that was not full says nothing about what is possible."""
        if records * 2 < self.records and duration_s < _TARGET_S:
            return
        possible = int(records * _TARGET_S / max(duration_s, 1e-4))
        # At most doubled: the next slice may have larger records.
        self.records = min(max(1, min(possible, self.records * 2)), self._most)


class SourceFeeder:
    """Feeds the sources of one run.

    Args:
        coordinators: Of all sources, by vertex id.
        send: Sends a feed to a subtask.
        plan: Asks a coordinator for its next plan; raises what the connector fails with.
        paused: Says which subtasks of a vertex are to wait for others, by watermark alignment.
        observe: Told where a source subtask's event time stands.
        aligned: The sources, by vertex id, that may have to wait for others.
        fail: Told what a connector failed with.
        on_ended: Called when the last source has ended.
        idle_poll_s: How long to wait before sources that had nothing are asked again.
        max_records: The most records of a feed, if that is limited.
        now_ms: The clock.
    """

    def __init__(
        self,
        coordinators: Mapping[str, SourceCoordinator],
        *,
        send: Callable[[SubtaskId, Feed | Lease | Recall], None],
        plan: Callable[[str, int, frozenset[int]], Mapping[int, SourceTaskPlan] | None],
        paused: Callable[[str], frozenset[int]],
        observe: Callable[[SubtaskId, SubtaskProgress], None],
        aligned: Collection[str],
        fail: Callable[[BaseException], None],
        on_ended: Callable[[], None],
        idle_poll_s: float,
        max_records: int | None,
        now_ms: Callable[[], int],
    ) -> None:
        self._coordinators = coordinators
        self._send = send
        self._plan = plan
        self._paused = paused
        self._observe = observe
        self._aligned = aligned
        self._fail = fail
        self._on_ended = on_ended
        self._idle_poll_s = idle_poll_s
        self._now_ms = now_ms
        #: Guards the coordinators, too.
        self.changed = threading.Condition()
        self._paces = {vertex_id: _Pace(max_records) for vertex_id in coordinators}
        #: Subtasks that have a feed or a lease.
        self._busy: set[SubtaskId] = set()
        #: What each subtask was told last of the splits it has.
        self._told: dict[SubtaskId, tuple[frozenset[str], frozenset[str]]] = {}
        #: Subtasks that were asked to give their lease back.
        self._recalled: set[SubtaskId] = set()
        #: Sources that get nothing for now.
        self._held: set[str] = set()
        #: The attempt at each source, by vertex id; what an earlier one has read counts no more.
        self._attempts: dict[str, int] = {}
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="headrace-feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def hold(self, vertices: Collection[str] | None = None) -> None:
        """Feed these sources, or all, nothing until `release`."""
        with self.changed:
            self._held.update(self._coordinators if vertices is None else vertices)

    @property
    def is_held(self) -> bool:
        """Whether some source is fed nothing."""
        return bool(self._held)

    def release(self, vertices: Collection[str] | None = None) -> None:
        """Continue with these sources, or with all."""
        with self.changed:
            self._held.difference_update(self._held.copy() if vertices is None else vertices)
            self.changed.notify_all()

    def begin(self, attempts: Mapping[str, int]) -> None:
        """Start sources over, whose coordinators are new, and hold them; the caller has `changed`.

        Args:
            attempts: The number of the attempt by the source's vertex id.
        """
        self._attempts |= attempts
        for subtask in [each for each in (*self._busy, *self._told) if each.vertex_id in attempts]:
            self._busy.discard(subtask)
            self._told.pop(subtask, None)
            self._recalled.discard(subtask)
        # What is sent to a subtask that is not there yet is lost.
        self._held.update(attempts)

    def wake(self) -> None:
        """Look again: something has changed."""
        with self.changed:
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self._is_closed = True
            self.changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def has_ended(self) -> bool:
        """Whether all sources have read everything there will ever be."""
        return all(coordinator.has_ended for coordinator in self._coordinators.values())

    def progressed(self, subtask: SubtaskId, said: SubtaskProgress, attempt: int = 0) -> None:
        """Take over what a subtask of an attempt has read."""
        with self.changed:
            if attempt != self._attempts.get(subtask.vertex_id, attempt):
                return
            self._busy.discard(subtask)
            coordinator = self._coordinators[subtask.vertex_id]
            coordinator.advance(
                subtask.subtask,
                pickle.loads(said.progress),
                has_ended=said.has_ended,
                now_ms=self._now_ms(),
            )
            self._observe(subtask, said)
            if said.records:
                # Not by when it was fed: how long messages take says nothing about records.
                self._paces[subtask.vertex_id].observe(said.records, said.took_s)
            self.changed.notify_all()
        if said.has_ended and self.has_ended:
            self._on_ended()

    def _run(self) -> None:
        with self.changed:
            while not self._is_closed:
                try:
                    delay_s = self._feed()
                except Exception as error:  # noqa: BLE001 - a connector's, which may raise anything
                    self._fail(error)
                    return
                self.changed.wait(delay_s)

    def _feed(self) -> float:
        """Feed those that have nothing to do; return after how many seconds to look again."""
        delays = [self._idle_poll_s * 100]
        for vertex_id, coordinator in self._coordinators.items():
            if coordinator.has_ended or vertex_id in self._held:
                continue
            if coordinator.plans_anywhere and vertex_id not in self._aligned:
                self._lease(vertex_id, coordinator)
                continue
            busy = {each.subtask for each in self._busy if each.vertex_id == vertex_id}
            out = frozenset(busy) | self._paused(vertex_id)
            plans = self._plan(vertex_id, self._paces[vertex_id].records, out)
            for subtask, plan in (plans or {}).items():
                if subtask not in out:
                    self._feed_one(SubtaskId(vertex_id, subtask), plan)
            delay = coordinator.retry_delay()
            delays.append(self._idle_poll_s if delay is None else delay)
        return max(0.0002, min(delays))

    def _lease(self, vertex_id: str, coordinator: SourceCoordinator) -> None:
        """Give subtasks their splits to read on their own; those whose splits have changed are called back first."""
        for number, plan in coordinator.assign(self._now_ms()).items():
            subtask = SubtaskId(vertex_id, number)
            splits = (plan.open_splits, frozenset[str]())
            if subtask in self._busy:
                if self._told.get(subtask) != splits and subtask not in self._recalled:
                    self._recalled.add(subtask)
                    self._send(subtask, Recall())
                continue
            if not plan.open_splits and plan.may_get_more_splits:
                continue
            self._recalled.discard(subtask)
            self._told[subtask] = splits
            self._busy.add(subtask)
            lease = SubtaskPlan(open_splits=plan.open_splits, may_get_more_splits=plan.may_get_more_splits)
            positions = coordinator.positions(number) if plan.open_splits else []
            self._send(subtask, Lease(pickle.dumps((lease, positions), protocol=5)))

    def _feed_one(self, subtask: SubtaskId, plan: SourceTaskPlan) -> None:
        splits = (plan.open_splits, plan.idle_splits)
        can_end = not plan.open_splits and not plan.may_get_more_splits
        if not plan.slices and not can_end and self._told.get(subtask) == splits:
            return
        self._told[subtask] = splits
        self._busy.add(subtask)
        feed = SubtaskPlan(
            slices=plan.slices,
            open_splits=plan.open_splits,
            may_get_more_splits=plan.may_get_more_splits,
            idle_splits=plan.idle_splits,
        )
        self._send(subtask, Feed(pickle.dumps(feed, protocol=5)))
