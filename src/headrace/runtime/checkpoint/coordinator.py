"""CheckpointCoordinator: decides when a checkpoint or savepoint is due, and what follows from its end.

It holds no clock and starts nothing: time comes in, decisions go out. The master asks at the end of an epoch, and
while it is idle; then it takes the snapshot and says how that went.

    trigger_...()                    due(now)            start()                complete() -> store it, tell the asker
    periodic interval  --> waiting ----------> DueSnapshot ------> in progress --fail()----> tolerated, or fail over
                              |                                        |  `------expire()--> the same
                              `------------- job_failed(), shutdown() -'

As in Flink's CheckpointCoordinator and CheckpointRequestDecider: only periodic checkpoints wait for the pause, all
checkpoints wait while too many are under way, savepoints wait for nothing.

Requests and statistics may come from other threads than the master's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import CheckpointError, ConfigurationError, InvariantViolation
from headrace.runtime.checkpoint.failure_reason import CheckpointFailureReason
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.checkpoint.statistics import (
    CheckpointRecord,
    CheckpointStatistics,
    RestoredRecord,
    SavepointFormat,
    SnapshotType,
    StatisticsSnapshot,
    TaskStatistics,
)


@dataclass(frozen=True, eq=False)
class SnapshotRequest:
    """A request for a snapshot, and the future its caller waits for."""

    type: SnapshotType
    requested_ms: int
    #: The checkpoint's number, or the savepoint's path.
    future: Future[Any] = field(default_factory=Future, repr=False)
    target: str | None = None
    format: SavepointFormat | None = None
    #: Whether event time runs to its end before the job stops.
    drain: bool = False


@dataclass(frozen=True)
class DueSnapshot:
    """One snapshot that is to be taken at this end of an epoch, and whom it serves."""

    type: SnapshotType
    is_periodic: bool = False
    requests: tuple[SnapshotRequest, ...] = ()

    @property
    def target(self) -> str | None:
        """Where a savepoint goes."""
        return self.requests[0].target if self.type.is_savepoint else None

    @property
    def format(self) -> SavepointFormat | None:
        return self.requests[0].format if self.type.is_savepoint else None

    @property
    def stops_job(self) -> bool:
        return self.type is SnapshotType.SYNC_SAVEPOINT


@dataclass(frozen=True)
class PendingCheckpoint:
    """A snapshot under way."""

    checkpoint_id: int
    due: DueSnapshot
    started_ms: int
    #: When it counts as failed.
    deadline_ms: int
    epoch: int


@dataclass(frozen=True)
class Completion:
    """What follows from a completed snapshot."""

    pending: PendingCheckpoint
    #: Older checkpoints under way that are of no use any more: drop what was written of them.
    subsumed: tuple[int, ...] = ()
    #: Where the savepoint is that the job stops with.
    path: str = ""

    def stopped(self) -> None:
        """Tell those who have asked for it that the job ends with this savepoint."""
        _run(_setter(request.future, self.path) for request in self.pending.due.requests)

    def not_stopped(self, error: BaseException) -> None:
        """Tell them that it does not."""
        _run(_raiser(request.future, error) for request in self.pending.due.requests)

    @property
    def stops_job(self) -> bool:
        """Whether the job ends now."""
        return self.pending.due.stops_job


@dataclass(frozen=True)
class Verdict:
    """What follows from failed snapshots."""

    #: Their numbers: drop what was written of them.
    failed: tuple[int, ...] = ()
    #: Set if too many failed in a row: the job must fail over, with this as the cause.
    fail_over: CheckpointError | None = None


class CheckpointCoordinator:
    """Decides about the checkpoints of one job.

    Args:
        settings: The options.
        job: Name of the job, for messages.
        last_id: The highest number a checkpoint of this job had, in any earlier run.
    """

    def __init__(self, settings: CheckpointSettings, *, job: str = "", last_id: int = 0) -> None:
        self._settings = settings
        self._job = job
        self._next_id = last_id + 1
        #: Requests that wait for an end of an epoch, in the order they came.
        self._queue: deque[SnapshotRequest] = deque()
        #: Snapshots under way by number; numbers rise.
        self._pending: dict[int, PendingCheckpoint] = {}
        #: The stop that was asked for and has not failed; also in the queue or under way.
        self._stop: SnapshotRequest | None = None
        #: When the next periodic checkpoint falls due; None while the job does not run, or without an interval.
        self._next_periodic_ms: int | None = None
        self._last_end_ms: int | None = None
        self._failures_in_a_row = 0
        #: Why there will be no more, once there are none.
        self._closed: CheckpointFailureReason | None = None
        self._statistics = CheckpointStatistics(settings.history_size)
        self._lock = threading.RLock()

    @property
    def settings(self) -> CheckpointSettings:
        return self._settings

    @property
    def next_id(self) -> int:
        """The number of the next snapshot."""
        return self._next_id

    @property
    def pending(self) -> tuple[PendingCheckpoint, ...]:
        """Snapshots under way, oldest first."""
        with self._lock:
            return tuple(self._pending.values())

    @property
    def stop_requested(self) -> SnapshotRequest | None:
        """The stop with savepoint a user asked for: with `drain`, sources must end before it is taken."""
        return self._stop

    # -- requests, from any thread -----------------------------------------------------------------------------

    def trigger_checkpoint(self, now_ms: int) -> Future[int]:
        """Request a checkpoint; the result is its number."""
        return self._enqueue(SnapshotRequest(SnapshotType.CHECKPOINT, now_ms))

    def trigger_savepoint(
        self,
        now_ms: int,
        target: str | None = None,
        savepoint_format: SavepointFormat = SavepointFormat.CANONICAL,
    ) -> Future[str]:
        """Request a savepoint; the result is its path.

        Raises:
            ConfigurationError: If neither ``target`` nor the configuration names a directory.
        """
        return self._enqueue(
            SnapshotRequest(
                SnapshotType.SAVEPOINT, now_ms, target=self._target(target), format=savepoint_format
            )
        )

    def stop_with_savepoint(
        self,
        now_ms: int,
        target: str | None = None,
        *,
        drain: bool = False,
        savepoint_format: SavepointFormat = SavepointFormat.CANONICAL,
    ) -> Future[str]:
        """Request a savepoint after which the job ends; the result is its path.

        If it fails, the job continues.

        Raises:
            ConfigurationError: If neither ``target`` nor the configuration names a directory.
        """
        request = SnapshotRequest(
            SnapshotType.SYNC_SAVEPOINT,
            now_ms,
            target=self._target(target),
            format=savepoint_format,
            drain=drain,
        )
        return self._enqueue(request)

    def _target(self, target: str | None) -> str:
        found = target or self._settings.savepoint_directory
        if not found:
            raise ConfigurationError(
                f"no directory is given for a savepoint of job '{self._job}'",
                hint="pass a directory, or set execution.checkpointing.savepoint-dir",
            )
        return found

    def _enqueue(self, request: SnapshotRequest) -> Future[Any]:
        with self._lock:
            refusal = self._refusal()
            if refusal is None:
                self._queue.append(request)
                if request.type is SnapshotType.SYNC_SAVEPOINT:
                    self._stop = request
        if refusal is not None:
            request.future.set_exception(refusal)
        return request.future

    def _refusal(self) -> CheckpointError | None:
        if self._closed is not None:
            return self._error(self._closed, None)
        if self._stop is not None:
            return CheckpointError(
                "the job is being stopped with a savepoint", job=self._job, hint="wait for that savepoint"
            )
        return None

    # -- deciding ----------------------------------------------------------------------------------------------

    def due(self, now_ms: int, *, some_ended: bool = False, drained: bool = False) -> tuple[DueSnapshot, ...]:
        """Return the snapshots to take at this end of an epoch: at most one checkpoint, then savepoints, a stop last.

        Args:
            now_ms: The time.
            some_ended: Whether subtasks have ended.
            drained: Whether the sources have ended because a stop with ``drain`` asks for it.
        """
        with self._lock:
            if self._closed is not None:
                return ()
            found = [*self._due_checkpoint(now_ms, some_ended)]
            for request in self._queue:
                if request.type is SnapshotType.SAVEPOINT:
                    found.append(DueSnapshot(request.type, requests=(request,)))
            stop = self._stop
            if stop is not None and stop in self._queue and (drained or not stop.drain):
                found.append(DueSnapshot(stop.type, requests=(stop,)))
            return tuple(found)

    def _due_checkpoint(self, now_ms: int, some_ended: bool) -> Iterable[DueSnapshot]:
        if len(self._pending) >= self._settings.effective_max_concurrent:
            return
        asked = self._asked_checkpoints()
        due_ms = self._periodic_due_ms()
        is_periodic = due_ms is not None and due_ms <= now_ms
        if some_ended and not self._settings.after_tasks_finish:
            is_periodic = False
        if asked or is_periodic:
            yield DueSnapshot(SnapshotType.CHECKPOINT, is_periodic, asked)

    def _asked_checkpoints(self) -> tuple[SnapshotRequest, ...]:
        return tuple(request for request in self._queue if request.type is SnapshotType.CHECKPOINT)

    def _periodic_due_ms(self) -> int | None:
        """When the next periodic checkpoint may start, pause included; none while the job is being stopped."""
        if self._next_periodic_ms is None or self._stop is not None:
            return None
        pause = self._settings.min_pause_ms
        return max(self._next_periodic_ms, self._last_end_ms + pause if self._last_end_ms is not None else 0)

    def next_due_ms(self) -> int | None:
        """Return when there is something to do next: start a snapshot, or give one up. None: not before a request."""
        with self._lock:
            if self._closed is not None:
                return None
            times = [pending.deadline_ms for pending in self._pending.values()]
            times += [request.requested_ms for request in self._queue if request.type.is_savepoint]
            if len(self._pending) < self._settings.effective_max_concurrent:
                times += [request.requested_ms for request in self._asked_checkpoints()]
                periodic = self._periodic_due_ms()
                times += [] if periodic is None else [periodic]
            return min(times, default=None)

    # -- what happened to a snapshot ---------------------------------------------------------------------------

    def start(
        self, due: DueSnapshot, now_ms: int, *, epoch: int, num_subtasks: int = 0
    ) -> PendingCheckpoint | None:
        """Give a due snapshot its number; None if everybody who wanted it has given up."""
        with self._lock:
            unknown = [request for request in due.requests if request not in self._queue]
            if unknown or (due.is_periodic and self._next_periodic_ms is None):
                raise InvariantViolation(f"a snapshot was started that is not due yet: {due}", story=unknown)
            for request in due.requests:
                self._queue.remove(request)
            requests = tuple(r for r in due.requests if r.future.set_running_or_notify_cancel())
            if not requests and not due.is_periodic:
                self._forget_stop(due.requests)
                return None
            due = DueSnapshot(due.type, due.is_periodic, requests)
            if due.type is SnapshotType.CHECKPOINT:
                self._move_on(now_ms)
            checkpoint_id = self._next_id
            self._next_id += 1
            pending = PendingCheckpoint(checkpoint_id, due, now_ms, now_ms + self._settings.timeout_ms, epoch)
            self._pending[checkpoint_id] = pending
            self._statistics.started(
                CheckpointRecord(
                    checkpoint_id, due.type, now_ms, num_subtasks, savepoint_format=due.format, epoch=epoch
                )
            )
            return pending

    def _move_on(self, now_ms: int) -> None:
        """Set the next periodic time: at the same rate, without making up for times that were missed."""
        interval = self._settings.effective_interval_ms
        if self._next_periodic_ms is not None and interval is not None and self._next_periodic_ms <= now_ms:
            missed = (now_ms - self._next_periodic_ms) // interval
            self._next_periodic_ms += (missed + 1) * interval

    def complete(
        self,
        checkpoint_id: int,
        now_ms: int,
        *,
        path: str,
        state_size: int = 0,
        checkpointed_size: int = 0,
        tasks: Sequence[TaskStatistics] = (),
    ) -> Completion | None:
        """Take a snapshot that is written down; None if it was aborted before: it must be deleted then.

        Who has asked for a savepoint that the job stops with hears of it by `Completion.stopped`.
        """
        settle: list[Callable[[], None]] = []
        with self._lock:
            pending = self._pending.pop(checkpoint_id, None)
            if pending is None:
                return None
            self._last_end_ms = now_ms
            self._statistics.completed(
                checkpoint_id,
                now_ms,
                path=path,
                state_size=state_size,
                checkpointed_size=checkpointed_size,
                tasks=tasks,
            )
            subsumed: tuple[int, ...] = ()
            if pending.due.type is SnapshotType.CHECKPOINT:
                self._failures_in_a_row = 0
                older = [each for each in self._pending.values() if each.checkpoint_id < checkpoint_id]
                subsumed = tuple(each.checkpoint_id for each in older if not each.due.type.is_savepoint)
                for each in subsumed:
                    settle += self._abort(each, now_ms, CheckpointFailureReason.CHECKPOINT_SUBSUMED, None)
            result = path if pending.due.type.is_savepoint else checkpoint_id
            if not pending.due.stops_job:
                settle += [_setter(request.future, result) for request in pending.due.requests]
        _run(settle)
        return Completion(pending, subsumed, path)

    def fail(
        self,
        checkpoint_id: int,
        now_ms: int,
        reason: CheckpointFailureReason,
        cause: BaseException | None = None,
    ) -> Verdict:
        """Take note that a snapshot failed; one that was aborted before changes nothing."""
        return self._fail([checkpoint_id], now_ms, reason, cause)

    def expire(self, now_ms: int) -> Verdict:
        """Give up the snapshots that have taken too long."""
        with self._lock:
            late = [each.checkpoint_id for each in self._pending.values() if each.deadline_ms <= now_ms]
        return self._fail(late, now_ms, CheckpointFailureReason.CHECKPOINT_EXPIRED, None)

    def _fail(
        self,
        checkpoint_ids: Iterable[int],
        now_ms: int,
        reason: CheckpointFailureReason,
        cause: BaseException | None,
    ) -> Verdict:
        settle: list[Callable[[], None]] = []
        failed: list[int] = []
        fail_over = None
        with self._lock:
            for checkpoint_id in checkpoint_ids:
                pending = self._pending.get(checkpoint_id)
                if pending is None:
                    continue
                failed.append(checkpoint_id)
                settle += self._abort(checkpoint_id, now_ms, reason, cause)
                # A savepoint that fails is its asker's concern: the job can still go back to its checkpoints.
                if reason.counts and not pending.due.type.is_savepoint:
                    self._failures_in_a_row += 1
            if self._failures_in_a_row > self._settings.tolerable_failures:
                fail_over = self._too_many(reason, cause)
                self._failures_in_a_row = 0
        _run(settle)
        return Verdict(tuple(failed), fail_over)

    def _abort(
        self,
        checkpoint_id: int,
        now_ms: int,
        reason: CheckpointFailureReason,
        cause: BaseException | None,
    ) -> list[Callable[[], None]]:
        pending = self._pending.pop(checkpoint_id)
        self._last_end_ms = now_ms
        error = self._error(reason, cause, checkpoint_id)
        self._statistics.failed(checkpoint_id, now_ms, error.message)
        self._forget_stop(pending.due.requests)
        return [_raiser(request.future, error) for request in pending.due.requests]

    def _forget_stop(self, requests: tuple[SnapshotRequest, ...]) -> None:
        if self._stop is not None and self._stop in requests:
            self._stop = None

    # -- the job's life ----------------------------------------------------------------------------------------

    def job_running(self, now_ms: int) -> None:
        """All tasks run: from now on checkpoints fall due, the first after one interval."""
        with self._lock:
            interval = self._settings.effective_interval_ms
            self._next_periodic_ms = None if interval is None else now_ms + interval

    def input_ended(self) -> None:
        """The job is about to end: only checkpoints that a user asks for are due."""
        with self._lock:
            self._next_periodic_ms = None

    def job_failed(self, now_ms: int, cause: BaseException | None = None) -> tuple[int, ...]:
        """Give up everything that is under way or waits: the job goes back to a checkpoint. Return the numbers."""
        with self._lock:
            self._next_periodic_ms = None
            self._failures_in_a_row = 0
        return self._abort_all(now_ms, CheckpointFailureReason.JOB_FAILURE, cause)

    def restored(
        self, checkpoint_id: int, now_ms: int, *, path: str, is_savepoint: bool, state_size: int = 0
    ) -> None:
        """Note what the job starts from; later numbers are higher."""
        with self._lock:
            self._next_id = max(self._next_id, checkpoint_id + 1)
            self._statistics.restored(RestoredRecord(checkpoint_id, now_ms, is_savepoint, path, state_size))

    def shutdown(
        self,
        now_ms: int,
        reason: CheckpointFailureReason = CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN,
    ) -> tuple[int, ...]:
        """The job has ended here: give up everything, take no more requests. Return the aborted numbers."""
        with self._lock:
            self._closed = reason
        return self._abort_all(now_ms, reason, None)

    def _abort_all(
        self, now_ms: int, reason: CheckpointFailureReason, cause: BaseException | None
    ) -> tuple[int, ...]:
        settle: list[Callable[[], None]] = []
        with self._lock:
            numbers = tuple(self._pending)
            for checkpoint_id in numbers:
                settle += self._abort(checkpoint_id, now_ms, reason, cause)
            error = self._error(reason, cause)
            for request in self._queue:
                if request.future.set_running_or_notify_cancel():
                    settle.append(_raiser(request.future, error))
            self._queue.clear()
            self._stop = None
        _run(settle)
        return numbers

    # -- statistics, from any thread ---------------------------------------------------------------------------

    def discarded(self, checkpoint_ids: Iterable[int]) -> None:
        """Note that completed checkpoints were deleted."""
        with self._lock:
            for checkpoint_id in checkpoint_ids:
                self._statistics.discarded(checkpoint_id)

    def statistics(self) -> StatisticsSnapshot:
        """Return counts, summaries and history as they are now."""
        with self._lock:
            return self._statistics.snapshot()

    # -- errors ------------------------------------------------------------------------------------------------

    def _error(
        self, reason: CheckpointFailureReason, cause: BaseException | None, checkpoint_id: int | None = None
    ) -> CheckpointError:
        what = "the snapshot" if checkpoint_id is None else f"checkpoint {checkpoint_id}"
        detail = "" if cause is None else f": {getattr(cause, 'message', None) or cause}"
        error = CheckpointError(
            f"{what} failed: {reason.message}{detail}",
            reason=reason.name,
            job=self._job or None,
            hint=_HINTS.get(reason),
        )
        error.__cause__ = cause
        return error

    def _too_many(self, reason: CheckpointFailureReason, cause: BaseException | None) -> CheckpointError:
        tolerable = self._settings.tolerable_failures
        detail = "" if cause is None else f": {getattr(cause, 'message', None) or cause}"
        error = CheckpointError(
            f"{tolerable + 1} consecutive checkpoints failed, more than "
            f"execution.checkpointing.tolerable-failed-checkpoints ({tolerable}) allows; "
            f"the last one: {reason.message}{detail}",
            reason=reason.name,
            job=self._job or None,
            hint="repair the storage, or raise execution.checkpointing.tolerable-failed-checkpoints",
        )
        error.__cause__ = cause
        return error


_HINTS = {
    CheckpointFailureReason.CHECKPOINT_EXPIRED: "raise execution.checkpointing.timeout",
    CheckpointFailureReason.JOB_FAILURE: "try again when the job is running",
}


def _setter(future: Future[Any], result: object) -> Callable[[], None]:
    return lambda: future.set_result(result)


def _raiser(future: Future[Any], error: BaseException) -> Callable[[], None]:
    return lambda: future.set_exception(error)


def _run(settle: Iterable[Callable[[], None]]) -> None:
    """Settle futures outside the lock: whoever waits may call back into the coordinator."""
    for action in settle:
        action()
