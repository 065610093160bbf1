"""Checkpointing of one job: takes snapshots between epochs, has them written, publishes when they are complete.

    end of an epoch                       beside the next epochs            end of a later epoch
    due? -> snapshot, pin its files  -->  files synced, metadata written -> complete: commit sinks, free older ones
                                                                            failed: tolerated, or the job fails over

What is decided is decided in `CheckpointCoordinator`; where things are kept is known to `CheckpointDirectory` and
`CompletedCheckpointStore`. Here they meet the running job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.common.job_status import JobStatus
from headrace.config.options.checkpointing import RecoveryClaimMode
from headrace.errors import (
    CheckpointError,
    DamagedStateError,
    HeadraceError,
    JobCancelledError,
    RecoveryAction,
    recovery_of,
)
from headrace.graph.job_graph import JobGraph
from headrace.runtime.checkpoint.completed import CompletedCheckpointStore
from headrace.runtime.checkpoint.coordinator import (
    CheckpointCoordinator,
    Completion,
    DueSnapshot,
    PendingCheckpoint,
    Verdict,
)
from headrace.runtime.checkpoint.failure_reason import CheckpointFailureReason
from headrace.runtime.checkpoint.foreign import ForeignFiles
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.checkpoint.next_start import JobEnding
from headrace.runtime.checkpoint.parts import task_statistics
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.checkpoint.storage import (
    CheckpointDirectory,
    DoubtfulFileError,
    Skipped,
    StoredCheckpoint,
    check_files,
    load_checkpoint,
    read_files,
    secure,
)
from headrace.runtime.checkpoint.subject import BarrierTimes, CheckpointedRun, StagedOutput
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.epoch.recording import FOLDER, EpochRecorder
from headrace.runtime.high_availability.job_results import JobResults
from headrace.storage.paths import join_path

_log = logging.getLogger(__name__)

#: One writes checkpoints while another copies a large savepoint.
_WRITERS = 2
#: How often to look whether a checkpoint that is waited for has taken too long, s.
_EXPIRY_POLL_S = 0.1


@dataclass(frozen=True)
class _Writing:
    """A snapshot on its way to storage."""

    pending: PendingCheckpoint
    metadata: CheckpointMetadata
    future: Future[StoredCheckpoint]
    #: The job when the snapshot was taken.
    job: JobGraph
    #: Of a live job, what the barrier took.
    barriers: Mapping[SubtaskId, BarrierTimes]


class Checkpointing:
    """The checkpoints of one job, for as long as its master has it.

    Args:
        job_name: For messages.
        directory: Where they are kept.
        settings: The options.
        results: Where the job's end is written down.
        ensure_leader: Raises if another master has taken the job over: then nothing must be written any more.
        now_ms: The clock.
        recorder: Keeps epochs that can be replayed, in savepoints, too; None if none are.
    """

    def __init__(
        self,
        job_name: str,
        directory: CheckpointDirectory,
        settings: CheckpointSettings,
        results: JobResults,
        *,
        ensure_leader: Callable[[], None],
        now_ms: Callable[[], int],
        recorder: EpochRecorder | None = None,
    ) -> None:
        self._recorder = recorder
        self._job_name = job_name
        self._directory = directory
        self._settings = settings
        self._ensure_leader = ensure_leader
        self._now_ms = now_ms
        self.coordinator = CheckpointCoordinator(settings, job=job_name, last_id=directory.highest_id())
        self._store = CompletedCheckpointStore(retained=settings.retained, retention=settings.retention)
        self._foreign = ForeignFiles(directory.shared_directory)
        #: Whether the job has ended, and how.
        self.ending = JobEnding(job_name, directory, settings, results, now_ms)
        #: The checkpoint, or 0, that the job went back to when its state was damaged last.
        self._went_back_to: int | None = None
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="headrace-checkpoint")
        self._writing: dict[int, _Writing] = {}
        #: The savepoint that the job stops with, until that is written down. Nothing of the job may run after it.
        self._stopping: Completion | None = None

    # -- starting ----------------------------------------------------------------------------------------------

    def find_start(self) -> StoredCheckpoint | None:
        """Return what the job starts from, if anything: its own latest checkpoint, else what the options name.

        Raises:
            DamagedStateError: If nothing of what there was can be used: to start over would publish everything again.
            JobSubmissionError: If the job has ended, and must not run again by itself.
        """
        last = self.ending.find()
        if self.has_ended:
            return self.ending.unpublished_savepoint()
        self._directory.take_over()
        recovery = self._directory.latest_valid()
        if recovery.checkpoint is None and (
            unusable := [each for each in recovery.skipped if each.was_complete]
        ):
            raise self._nothing_usable(unusable)
        self.ending.undo(last, recovery.checkpoint)
        if recovery.checkpoint is not None:
            valid = self._directory.valid()
            self._store.recover(valid, foreign=self._foreign_files(valid))
            self._directory.trust(recovery.checkpoint)
            return self._note_restored(secure(recovery.checkpoint))
        if self._settings.recovery_path is None:
            return None
        stored = load_checkpoint(self._settings.recovery_path)
        check_files(stored)
        self._store.start_from(stored, claim=self._claims)
        if not self._claims:
            self._foreign.add(stored)
        return self._note_restored(stored)

    def find_restart(
        self, start: StoredCheckpoint | None, cause: BaseException | None = None
    ) -> StoredCheckpoint | None:
        """Return what the job goes back to after a failure: its latest checkpoint that is whole, else its start.

        Args:
            start: What the job started from.
            cause: Why it failed. If a state file turned out damaged, all are read to find a checkpoint without damage.

        Raises:
            DamagedStateError: If there is none, or the job has gone back to it for damage before: then it is not the
                checkpoint that is damaged, but what reads or writes.
        """
        if self._stopping is not None:
            self._stop(self._stopping)
        if self.has_ended:
            return self.ending.unpublished_savepoint()
        is_damaged = cause is not None and recovery_of(cause) is RecoveryAction.RESTORE
        recovery = self._directory.latest_valid(thorough=is_damaged)
        # Those of drivers that no longer led never counted for this one.
        unusable = [each for each in recovery.skipped if each.was_complete and not each.is_fenced]
        if recovery.checkpoint is None and (unusable or self._store.latest is not None):
            raise self._nothing_usable(unusable)
        if recovery.checkpoint is not None:
            self._directory.trust(recovery.checkpoint)
        stored = recovery.checkpoint or start
        if is_damaged:
            self._go_back_once(stored, cause)
        return None if stored is None else self._note_restored(secure(stored))

    def _go_back_once(self, stored: StoredCheckpoint | None, cause: BaseException | None) -> None:
        if stored is not None:
            with _naming_checkpoint(stored):
                read_files(stored)
        number = 0 if stored is None else stored.metadata.checkpoint_id
        if number == self._went_back_to and cause is not None:
            raise cause
        self._went_back_to = number

    @property
    def has_ended(self) -> bool:
        """Whether the job is over, and nothing is left to do but to publish what its last savepoint covers."""
        return self.ending.is_finished

    def mark_ended(self) -> None:
        """All output is out: whoever finds the job from here on has nothing to do."""
        self.ending.finished()

    @property
    def _claims(self) -> bool:
        return self._settings.claim_mode is RecoveryClaimMode.CLAIM

    def _foreign_files(self, checkpoints: list[StoredCheckpoint]) -> list[str]:
        """Files of what the job once started from: its owner keeps them, unless the job has claimed them."""
        if self._claims:
            return []
        own = self._directory.path + "/"
        named = (file.path for stored in checkpoints for file in stored.metadata.files())
        return [path for path in named if not path.startswith(own)]

    def _nothing_usable(self, skipped: Sequence[Skipped]) -> DamagedStateError:
        why = f"{skipped[0].path}: {skipped[0].reason}" if skipped else "all of them have been deleted"
        return DamagedStateError(
            f"no checkpoint of job '{self._job_name}' can be used: {why}",
            job=self._job_name,
            hint="the job has already published output, so it does not start over by itself. Start it from a savepoint "
            f"(headrace run -s PATH), restore the files from a copy, or delete {self._directory.path} to have it "
            "process its input again from the beginning",
        )

    def _note_restored(self, stored: StoredCheckpoint) -> StoredCheckpoint:
        metadata = stored.metadata
        self.coordinator.restored(
            metadata.checkpoint_id,
            self._now_ms(),
            path=stored.path,
            is_savepoint=metadata.is_savepoint,
            state_size=metadata.state_size,
        )
        return stored

    def running(self, run: CheckpointedRun) -> None:
        """The job runs (again): checkpoints fall due from now on, and files of epochs that were undone go."""
        self.coordinator.job_running(self._now_ms())
        self._foreign.forget()
        self.delete_orphans(run)

    def delete_orphans(self, run: CheckpointedRun) -> None:
        """Delete the state files that neither the run nor a checkpoint names."""
        copies = self._foreign.named()
        named = self._store.named_files() | copies | run.live_files()
        self._directory.discard((), self._directory.orphans(named, being_written=copies))

    # -- between epochs ----------------------------------------------------------------------------------------

    def after_epoch(self, run: CheckpointedRun, sinks: StagedOutput, *, is_drained: bool) -> bool:
        """Take the snapshots that are due, settle those that are written; return whether the job is to stop now.

        Raises:
            CheckpointError: If too many failed in a row.
        """
        # First: while a checkpoint counts as being written, no other one is due.
        is_stopped = self._settle(run, sinks)
        self._check(self.coordinator.expire(self._now_ms()))
        if not is_stopped and self._due(run, is_drained=is_drained):
            # What a snapshot says about sinks must not change by an older one that is completed later.
            self._wait_for_checkpoints()
            is_stopped = self._settle(run, sinks)
        for due in () if is_stopped else self._due(run, is_drained=is_drained):
            started_ms = self._now_ms() if self._is_late(run) else run.barrier_started_ms
            assert started_ms is not None
            pending = self.coordinator.start(due, started_ms, epoch=run.epoch, num_subtasks=run.num_subtasks)
            if pending is not None:
                self._begin(pending, run, sinks)
                if pending.due.stops_job:
                    # Nothing may happen after the savepoint that the job stops with.
                    self._wait_for(pending.checkpoint_id)
        return self._settle(run, sinks) or is_stopped

    def settle(self, run: CheckpointedRun, sinks: StagedOutput) -> None:
        """Take note of snapshots that are written, and of those that take too long, without beginning one.

        Raises:
            CheckpointError: If too many failed in a row.
        """
        self._settle(run, sinks)
        self._check(self.coordinator.expire(self._now_ms()))

    def expire_barrier(self, due: Iterable[DueSnapshot], run: CheckpointedRun, due_since_ms: int) -> bool:
        """Give up the snapshots that wait for the barrier of a live job, if it takes too long.

        Args:
            due: The snapshots.
            run: The live run.
            due_since_ms: Since when they are due, if that is later than the barrier was triggered.

        Returns:
            Whether they were aborted: the barrier continues, and nothing is written after it.

        Raises:
            CheckpointError: If too many failed in a row.
        """
        if run.barrier_started_ms is None:
            return False
        started_ms = max(run.barrier_started_ms, due_since_ms)
        if self._now_ms() < started_ms + self._settings.timeout_ms:
            return False
        for each in due:
            self.coordinator.start(each, started_ms, epoch=run.epoch, num_subtasks=run.num_subtasks)
        self._check(self.coordinator.expire(self._now_ms()))
        return True

    def _is_late(self, run: CheckpointedRun) -> bool:
        """Whether the last barrier was triggered too long ago for a checkpoint, or there was none."""
        started_ms = run.barrier_started_ms
        return started_ms is None or self._now_ms() >= started_ms + self._settings.timeout_ms

    @property
    def is_periodic(self) -> bool:
        """Whether checkpoints are taken by the clock."""
        return self._settings.is_enabled

    def reads_last_state(self, *, is_drained: bool) -> bool:
        """Whether a snapshot may be taken after the epoch that is planned now, even if the job ends with it."""
        return self.is_periodic or is_drained or self.coordinator.next_due_ms() is not None

    def _due(self, run: CheckpointedRun, *, is_drained: bool) -> tuple[DueSnapshot, ...]:
        if not run.keeps_state:
            return ()  # who asks for a snapshot now is told that the job has ended
        due = self.coordinator.due(self._now_ms(), some_ended=bool(run.ended), drained=is_drained)
        # A savepoint that was asked for while the barrier was on its way gets the next one, which overtakes nothing.
        return tuple(each for each in due if not (each.type.is_savepoint and run.has_in_flight))

    def final(self, run: CheckpointedRun, sinks: StagedOutput) -> None:
        """The input has ended: write one more checkpoint, so that what it covers can be published.

        Raises:
            CheckpointError: If it fails more often than is tolerated.
        """
        self.coordinator.input_ended()
        asked: Future[int] | None = None
        while not self.after_epoch(run, sinks, is_drained=True):
            # With a stop under way, its savepoint is the last one; if that fails, a checkpoint is.
            if self._settings.is_enabled and self.coordinator.stop_requested is None:
                if asked is None or (asked.done() and asked.exception() is not None):
                    asked = self.coordinator.trigger_checkpoint(self._now_ms())
                    continue
                if asked.done() and not self._writing:
                    return
            elif not self._writing:
                return
            self._wait_for(None)

    def _begin(self, pending: PendingCheckpoint, run: CheckpointedRun, sinks: StagedOutput) -> None:
        checkpoint_id = pending.checkpoint_id
        is_savepoint = pending.due.type.is_savepoint
        if not is_savepoint or pending.due.stops_job:
            sinks.cover(checkpoint_id)
        metadata = run.snapshot(
            sinks,
            kind="savepoint" if is_savepoint else "checkpoint",
            checkpoint_id=checkpoint_id,
            timestamp_ms=pending.started_ms,
        )
        self._store.pin(checkpoint_id, (file.path for file in metadata.files()))
        if not is_savepoint:
            self._foreign.promise(metadata)
        future = self._writers.submit(self._write, metadata, pending.due.target)
        self._writing[checkpoint_id] = _Writing(pending, metadata, future, run.job, run.barrier_times)

    def _write(self, metadata: CheckpointMetadata, target: str | None) -> StoredCheckpoint:
        self._ensure_leader()
        if target is not None:
            stored = write_savepoint(metadata, target)
            if self._recorder is not None:
                self._recorder.copy_to(join_path(stored.path, FOLDER))
            return stored
        return self._directory.write(self._foreign.replaced_in(metadata))

    def _settle(self, run: CheckpointedRun, sinks: StagedOutput) -> bool:
        is_stopped = False
        for checkpoint_id in sorted(self._writing):
            writing = self._writing[checkpoint_id]
            if not writing.future.done():
                continue
            del self._writing[checkpoint_id]
            error = writing.future.exception()
            if error is None:
                is_stopped |= self._complete(writing, writing.future.result(), run, sinks)
            else:
                run.checkpoint_aborted(writing.metadata)
                self._failed(checkpoint_id, error)
        return is_stopped

    def _complete(
        self, writing: _Writing, stored: StoredCheckpoint, run: CheckpointedRun, sinks: StagedOutput
    ) -> bool:
        metadata = stored.metadata
        completion = self._count(writing, stored)
        if completion is None:
            run.checkpoint_aborted(metadata)
            return False
        if metadata.is_savepoint:
            self._free(metadata.checkpoint_id)
        else:
            # From here on nothing of a savepoint that is not ours is needed.
            run.rename_files(self._foreign.copies)
            self._keep(stored)
        if completion.stops_job:
            # Before anything is published: from an older checkpoint it would be published again.
            self._stop(completion)
        if not metadata.is_savepoint or completion.stops_job:
            self._ensure_leader()
            sinks.commit(metadata.checkpoint_id)
            run.checkpoint_completed(metadata)
        return completion.stops_job

    def _count(self, writing: _Writing, stored: StoredCheckpoint) -> Completion | None:
        """Tell the coordinator of a written snapshot; None if it took too long, and the job has gone on without it."""
        metadata = stored.metadata
        completion = self.coordinator.complete(
            metadata.checkpoint_id,
            self._now_ms(),
            path=stored.path,
            state_size=metadata.state_size,
            checkpointed_size=_new_bytes(metadata),
            tasks=task_statistics(
                writing.job,
                metadata,
                started_ms=writing.pending.started_ms,
                now_ms=self._now_ms(),
                barriers=writing.barriers,
            ),
        )
        if completion is None:
            self._directory.withdraw([stored])
            self._free(metadata.checkpoint_id)
            return None
        _log.info(
            "%s %d is complete: %d bytes, %d of them new, %s",
            "savepoint" if metadata.is_savepoint else "checkpoint",
            *(metadata.checkpoint_id, metadata.state_size, _new_bytes(metadata), stored.path),
        )
        return completion

    def _keep(self, stored: StoredCheckpoint) -> None:
        """Add a complete checkpoint, and delete what it replaces."""
        freed = self._store.add(stored)
        gone = self._directory.discard(freed.checkpoints, freed.files)
        self._store.deleted(gone)
        self.coordinator.discarded(each.metadata.checkpoint_id for each in gone)

    def _stop(self, completion: Completion) -> None:
        """Write down that the job ends with a savepoint, and only then tell those who have asked for it."""
        self._stopping = completion
        self.ending.finished(savepoint=completion.path)
        self._stopping = None
        completion.stopped()

    def _failed(self, checkpoint_id: int, error: BaseException) -> None:
        self._free(checkpoint_id)
        _log.warning("checkpoint %d failed: %s", checkpoint_id, getattr(error, "message", error))
        reason = CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE
        if isinstance(error, CheckpointError):
            reason = CheckpointFailureReason.__members__.get(error.reason or "", reason)
        elif not isinstance(error, HeadraceError):
            reason = CheckpointFailureReason.IO_EXCEPTION
        self._check(self.coordinator.fail(checkpoint_id, self._now_ms(), reason, error))
        if isinstance(error.__cause__, DoubtfulFileError):
            # None of the next ones would be complete. After a restart the epochs write other files.
            raise error

    def _check(self, verdict: Verdict) -> None:
        if verdict.fail_over is not None:
            raise verdict.fail_over

    def _free(self, checkpoint_id: int) -> None:
        self._store.hold(self._directory.withdrawn)
        freed = self._store.unpin(checkpoint_id)
        self._directory.discard(freed.checkpoints, freed.files)

    def _wait_for_checkpoints(self) -> None:
        """Wait until no checkpoint is being written that may still be completed."""
        while True:
            under_way = {pending.checkpoint_id for pending in self.coordinator.pending}
            futures = [
                writing.future
                for number, writing in self._writing.items()
                if number in under_way and not writing.metadata.is_savepoint and not writing.future.done()
            ]
            if not futures:
                return
            wait(futures, timeout=_EXPIRY_POLL_S)
            self._check(self.coordinator.expire(self._now_ms()))

    def _wait_for(self, checkpoint_id: int | None) -> None:
        """Wait until one snapshot is written, or any if None."""
        futures = [
            writing.future
            for number, writing in self._writing.items()
            if checkpoint_id is None or number == checkpoint_id
        ]
        wait(futures, return_when=FIRST_COMPLETED)

    def retire(self, files: list[str]) -> None:
        """Delete state files that the job needs no more, unless a checkpoint names them."""
        if files:
            self._directory.discard((), self._store.retire(files))

    def is_waiting(self) -> bool:
        """Whether a snapshot is being written."""
        return bool(self._writing)

    # -- failures and the end ----------------------------------------------------------------------------------

    def job_failed(self, error: BaseException) -> None:
        """The run is over; of what was being written, only checkpoints count, if they are written by now."""
        self._keep_written()
        given_up = self.coordinator.job_failed(self._now_ms(), error)
        self._directory.withdraw(self._abandon())
        self._store.hold(self._directory.withdrawn)
        for checkpoint_id in given_up:
            self._free(checkpoint_id)

    def close(self, status: JobStatus, cause: BaseException | None, *, taken_over: bool) -> None:
        """The job has ended: write that down, then delete what does not stay by the options.

        Args:
            status: How it ended.
            cause: Why it failed, if it did.
            taken_over: Whether another master leads the job, or may: then everything stays as it is.
        """
        if not taken_over:
            with _saying_what_failed():
                self._keep_written()
        self.coordinator.shutdown(self._now_ms())
        if self._stopping is not None:
            self._stopping.not_stopped(cause or JobCancelledError(f"job '{self._job_name}' was cancelled"))
        abandoned = self._abandon()
        self._writers.shutdown(wait=True)
        if taken_over:
            return
        with _saying_what_failed():
            stays = self.ending.keeps_checkpoints(status)
            newest = self._store.latest if stays else None
            self.ending.record(status, None if newest is None else newest.path, cause)
            freed = self._store.end(status, stays=stays)
            self._directory.discard((*abandoned, *freed.checkpoints), freed.files)

    @property
    def keeps_files(self) -> bool:
        """Whether a checkpoint stays that names files of the job, or the next start of the job needs its directory."""
        return bool(self._store.checkpoints) or self.ending.keeps_directory

    def _keep_written(self) -> None:
        """Complete the checkpoints that are written, or are just being, although their run is over.

        What they cover is published by the run that starts from them.
        """
        for checkpoint_id, writing in sorted(self._writing.items()):
            if writing.metadata.is_savepoint or writing.future.cancel():
                continue
            if writing.future.exception() is None:
                del self._writing[checkpoint_id]
                stored = writing.future.result()
                if self._count(writing, stored) is not None:
                    self._keep(stored)

    def _abandon(self) -> list[StoredCheckpoint]:
        """Wait for what is being written; return what was, to be deleted again: it must not be found later."""
        writings = list(self._writing.values())
        self._writing.clear()
        written = [writing.future for writing in writings if not writing.future.cancel()]
        return [future.result() for future in written if future.exception() is None]


def _new_bytes(metadata: CheckpointMetadata) -> int:
    """Return the bytes that the epochs since the last checkpoint have added, as far as their versions tell."""
    return sum(
        file.size for file in metadata.files() if file.to_version == metadata.epoch and not file.is_base
    )


@contextmanager
def _naming_checkpoint(stored: StoredCheckpoint) -> Iterator[None]:
    """Say of a damaged file whose it is, and what to do."""
    try:
        yield
    except DamagedStateError as error:
        kind = "savepoint" if stored.metadata.is_savepoint else "checkpoint"
        raise DamagedStateError(
            f"{kind} {stored.path} cannot be used: {error.message}",
            hint="restore the file from a copy, or start the job from another savepoint (headrace run -s PATH)",
        ) from error


@contextmanager
def _saying_what_failed() -> Iterator[None]:
    try:
        yield
    except (OSError, HeadraceError) as error:
        _log.warning("cannot record the end of the job or delete its files: %s", error)
