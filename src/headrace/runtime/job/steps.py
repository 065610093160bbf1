"""The steps of a job: carries out what `JobLifecycle` decides, and reports the results."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.common.job_status import JobStatus
from headrace.errors import HeadraceError, LeadershipError
from headrace.graph.execution_graph import ExecutionState, build_execution_graph
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import with_parallelism
from headrace.graph.table_job import expected_rate, may_be_slow
from headrace.runtime.checkpoint.checkpointing import Checkpointing
from headrace.runtime.checkpoint.restore import RestoreReport
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint
from headrace.runtime.epoch.pacing import EpochPacer
from headrace.runtime.epoch.recording import EpochRecorder
from headrace.runtime.high_availability.job_results import JobResults, NoJobResults
from headrace.runtime.job import commands, events
from headrace.runtime.job.barriers import BarrierLoop
from headrace.runtime.job.commands import JobCommand
from headrace.runtime.job.epochs import EpochLoop, JobProgress
from headrace.runtime.job.events import JobEvent
from headrace.runtime.job.rescaling import RescaleRequests
from headrace.runtime.job.runs import MakeRunner, RunFactory, close_committers
from headrace.runtime.job.settings import JobMasterSettings
from headrace.runtime.monitoring.flame_graphs import FlameGraphs
from headrace.runtime.run.job_run import EpochSummary, JobRun
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.runtime.scheduling.autoscaler import Autoscaler
from headrace.runtime.scheduling.scheduler import Scheduler, parallelism_of
from headrace.runtime.scheduling.slots import SlotPool, endless_slots
from headrace.util import clock

_log = logging.getLogger(__name__)

#: How long to wait between looks at the slots there are, s.
_SLOTS_POLL_S = 0.1


@dataclass(frozen=True)
class JobSurroundings:
    """What the process that runs a job gives it."""

    #: Called after every epoch.
    on_epoch: Callable[[EpochSummary], None] | None = None
    now_ms: Callable[[], int] = clock.now_ms
    #: Raises if another master has taken the job over.
    ensure_leader: Callable[[], None] = lambda: None
    #: The fencing token of this master: higher than that of all before it; 0 without high availability.
    leader: int = 0
    #: Measures how long things take, in seconds.
    timer: Callable[[], float] = time.perf_counter
    #: The slots the job may take; as many as it needs if None.
    slots: SlotPool | None = None
    #: Where the job's end is written down for its next start; nowhere if None.
    results: JobResults | None = None


class JobSteps:
    """Does what is to be done for one job, in the job's thread.

    Args:
        job: The job.
        make_runner: Makes what runs epochs; called for every run.
        settings: The options.
        surroundings: The clock, leadership, slots, and whoever watches.
        lock: Guards the job and its execution graph, whose status changes under it, too.
        rescalings: Requests for another parallelism.
        check_goes_on: Raises if the job is to end.
    """

    def __init__(
        self,
        job: JobGraph,
        make_runner: MakeRunner,
        settings: JobMasterSettings,
        surroundings: JobSurroundings,
        *,
        lock: threading.RLock,
        rescalings: RescaleRequests,
        check_goes_on: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._rescalings = rescalings
        self._check_goes_on = check_goes_on
        self._now_ms = now_ms = surroundings.now_ms
        self._ensure_leader = ensure_leader = surroundings.ensure_leader
        pool = surroundings.slots or endless_slots(job.job_id)
        self.scheduler = _make_scheduler(pool, settings, job, now_ms())
        self.job = self.scheduler.planned(job)
        self.execution = build_execution_graph(self.job, now_ms())
        self.progress = JobProgress()
        #: Where the time of tasks goes, for whoever asks.
        self.flame_graphs = FlameGraphs(settings.flame_graphs)
        #: Set when a user asks for something while the job may wait for input or slots.
        self.wake = threading.Event()
        #: Set when the job is to end instead of waiting for anything.
        self._interrupted = threading.Event()
        self._directory = CheckpointDirectory(
            settings.directory, job.job_id, surroundings.leader, ensure_leader=ensure_leader
        )
        # State files go there also when there are no checkpoints.
        self._directory.ensure_writable()
        recorder = _make_recorder(settings, now_ms)
        self.checkpointing = _make_checkpointing(job.name, self._directory, settings, surroundings, recorder)
        pacer = EpochPacer(settings.pacing, expected_rate(self.job), may_be_slow=may_be_slow(self.job))
        self._epochs = self._make_epoch_loop(pacer, settings, surroundings)
        self._runs = RunFactory(
            job.name,
            make_runner,
            settings,
            self._directory,
            pacer,
            ensure_leader=ensure_leader,
            now_ms=now_ms,
            timer=surroundings.timer,
            on_news=self.wake.set,
            recorder=recorder,
        )
        self._carry_out = self._handlers()
        #: What of a savepoint found its operator; None for a job that started empty.
        self.restore_report: RestoreReport | None = None
        self.run: JobRun
        self._sinks: SinkCoordinator
        #: Whether the current run and sinks have been released.
        self._is_closed = True
        #: What the job started from.
        self.start = self.checkpointing.find_start()
        self._begin_run_from(self.start)

    def _make_epoch_loop(
        self, pacer: EpochPacer, settings: JobMasterSettings, surroundings: JobSurroundings
    ) -> EpochLoop:
        make = EpochLoop if settings.live is None else BarrierLoop
        return make(
            pacer,
            self.checkpointing,
            self.flame_graphs,
            self.progress,
            idle_poll_s=settings.idle_poll_s,
            on_epoch=self._seen_by(surroundings.on_epoch),
            wake=self.wake,
            now_ms=surroundings.now_ms,
            timer=surroundings.timer,
        )

    def _seen_by(self, watcher: Callable[[EpochSummary], None] | None) -> Callable[[EpochSummary], None]:
        def see(summary: EpochSummary) -> None:
            work_s = self._epochs.work_s(self.run, summary)
            self.scheduler.observe(work_s, summary.wall_s, self._now_ms())
            if watcher is not None:
                watcher(summary)

        return see

    def carry_out(self, command: JobCommand) -> JobEvent | None:
        """Carry out a command; return what came of it if it is a step."""
        return self._carry_out[type(command)](command)

    def _handlers(self) -> Mapping[type[JobCommand], Callable[[Any], JobEvent | None]]:
        """Return what carries out each kind of command."""
        return {
            commands.InterruptEpoch: self._interrupt,
            commands.RefuseRescaling: self._refuse_rescaling,
            commands.TakeSlots: self._take_slots,
            commands.WaitForSlots: self._wait_for_slots,
            commands.GiveUpOnSlots: self._give_up_on_slots,
            commands.Deploy: self._deploy,
            commands.CheckRequests: self._check_requests,
            commands.Drain: self._drain,
            commands.RescaleJob: self._rescale,
            commands.RunEpoch: self._run_epoch,
            commands.FinishJob: self._finish,
            commands.AbortCheckpoints: self._abort_checkpoints,
            commands.WaitBeforeRestart: self._wait_before_restart,
            commands.RestartPart: self._restart_part,
            commands.BeginRun: self._begin_run,
            commands.CloseRun: self._close_run,
            commands.ReleaseSlots: self._release_slots,
            commands.RecordResult: self._record_result,
        }

    # -- what any thread may do --------------------------------------------------------------------------------

    def _interrupt(self, _: commands.InterruptEpoch) -> None:
        self._interrupted.set()
        self.wake.set()
        self.run.runner.cancel()

    # -- from the start to the end -----------------------------------------------------------------------------

    def _take_slots(self, _: commands.TakeSlots) -> JobEvent:
        """Take the job's slots; the parallelism of an adaptive one follows them."""
        now_ms = self._now_ms()
        wanted = self.scheduler.start(self.job, now_ms)
        if wanted is None:
            return events.SlotsMissing(now_ms)
        if wanted != parallelism_of(self.job):
            self._reshape(wanted)
        return events.SlotsTaken()

    def _wait_for_slots(self, command: commands.WaitForSlots) -> JobEvent:
        if command.is_first:
            _log.info("waiting for slots: %s", self.scheduler.refusal(self.job, 0).message)
        self.wake.wait(_SLOTS_POLL_S)
        self.wake.clear()
        self._ensure_leader()
        return self._take_slots(commands.TakeSlots())

    def _give_up_on_slots(self, command: commands.GiveUpOnSlots) -> JobEvent:
        return events.Failed(self.scheduler.refusal(self.job, command.waited_ms), self._now_ms())

    def _deploy(self, _: commands.Deploy) -> JobEvent:
        self._deploy_run()
        self.checkpointing.running(self.run)
        return events.Deployed(has_ended=self.run.has_ended)

    def _deploy_run(self) -> None:
        self._epochs.deployed()
        self.execution.deploy(self._now_ms())
        for vertex_id, subtask in self.run.ended:
            self.execution.finish(vertex_id, subtask, self._now_ms())

    def _check_requests(self, command: commands.CheckRequests) -> JobEvent:
        self.wake.clear()  # first: whoever asks for something from here on is heard before the next sleep
        self._ensure_leader()
        stop = self.checkpointing.coordinator.stop_requested
        wanted = self.scheduler.follow(self.job, self._now_ms()) if command.follows_slots else None
        if wanted is not None:
            widest = max(wanted.values())
            why = self.scheduler.why_followed()
            _log.info("job '%s' adapts to %s: parallelism %s", self.job.name, why, widest)
        return events.RequestsChecked(drains=stop is not None and stop.drain, parallelism=wanted)

    def _drain(self, _: commands.Drain) -> None:
        self.run.drain()

    def _run_epoch(self, command: commands.RunEpoch) -> JobEvent:
        is_stopped = self._epochs.step(
            self.run,
            self._sinks,
            self.execution,
            self._check_goes_on,
            is_drained=command.is_drained,
        )
        return events.EpochEnded(has_ended=self.run.has_ended, is_stopped=is_stopped)

    def _finish(self, command: commands.FinishJob) -> JobEvent:
        if command.takes_checkpoint:
            self.checkpointing.final(self.run, self._sinks)
        self._ensure_leader()
        if self.run.has_ended:
            self._sinks.finish()
        self.checkpointing.mark_ended()
        return events.OutputPublished()

    # -- another parallelism -----------------------------------------------------------------------------------

    def _rescale(self, command: commands.RescaleJob) -> JobEvent:
        if command.request is None:
            self._continue_as(command.parallelism)
            return events.Rescaled()
        future = self._rescalings.take(command.request)
        if future is None:
            return events.Rescaled()
        try:
            wanted = with_parallelism(self.job, command.parallelism)
            granted = self.scheduler.require(wanted)
            if granted is None:
                future.set_exception(self.scheduler.refusal(wanted, 0))  # the job continues as it is
            else:
                if granted != parallelism_of(self.job):
                    self._continue_as(granted)
                future.set_result(None)
        except BaseException as error:
            future.set_exception(error)
            raise
        return events.Rescaled()

    def _refuse_rescaling(self, command: commands.RefuseRescaling) -> None:
        self._rescalings.refuse(command.number, command.error)

    def _continue_as(self, parallelism: Mapping[str, int]) -> None:
        """Continue with another parallelism, from where the run stands."""
        self.progress.rescales += 1
        self.scheduler.rescaled(self._now_ms())
        self._epochs.quiesce(self.run, self._sinks, self.execution, self._check_goes_on)
        self._reshape(parallelism)
        self._deploy_run()
        self.checkpointing.delete_orphans(self.run)

    def _reshape(self, parallelism: Mapping[str, int]) -> None:
        """Begin a run with another parallelism, where the last one stands."""
        job = with_parallelism(self.job, parallelism)
        make_run = self._runs.continuation(job, self.run, self._sinks)
        execution = build_execution_graph(job, self._now_ms())
        execution.set_job_status(JobStatus.RUNNING, self._now_ms())
        # For the job this is not a new start.
        execution.status_timestamps = dict(self.execution.status_timestamps)
        self.run.close()
        # If the run cannot be made, the job starts again from a checkpoint, in its new shape.
        with self._lock:
            self._check_goes_on()
            self.job = job
            self.execution = execution
        self.run = make_run()

    # -- restarts ----------------------------------------------------------------------------------------------

    def _abort_checkpoints(self, command: commands.AbortCheckpoints) -> None:
        self.checkpointing.job_failed(command.error)

    def _wait_before_restart(self, command: commands.WaitBeforeRestart) -> JobEvent:
        error = command.cause
        message = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
        _log.warning("job '%s' restarts in %d ms: %s", self.job.name, command.delay_ms, message)
        self._interrupted.wait(command.delay_ms / 1000)
        return events.DelayElapsed()

    def failed_part(self, error: BaseException) -> frozenset[str] | None:
        """Return the vertices of the regions that have failed with an error; None if the whole run has."""
        return self.run.failed_part(error)

    def _restart_part(self, command: commands.RestartPart) -> JobEvent:
        self._ensure_leader()
        self._keep_slots()
        self.run.restart(command.vertices)
        self.progress.restarts += 1
        # With those that were started before, when yet others failed.
        part = {
            vertex_id
            for vertex_id, vertex in self.execution.subtasks()
            if vertex.current.state is ExecutionState.FAILED
        }
        for vertex_id, vertex in self.execution.subtasks():
            if vertex_id in part:
                self.execution.new_attempt(vertex_id, vertex.subtask_index, self._now_ms())
        self.execution.deploy(self._now_ms(), part)
        for vertex_id, subtask in self.run.ended:
            if vertex_id in part:
                self.execution.finish(vertex_id, subtask, self._now_ms())
        return events.PartRestarted()

    def _keep_slots(self) -> None:
        """Wait until there are slots for all subtasks again: an executor may be gone with the region."""
        deadline_ms = self._now_ms() + self.scheduler.timeout_ms
        while not self.scheduler.take(self.job):
            if self._now_ms() >= deadline_ms:
                raise self.scheduler.refusal(self.job, self.scheduler.timeout_ms)
            self._interrupted.wait(_SLOTS_POLL_S)
            self._check_goes_on()
            self._ensure_leader()

    def _begin_run(self, command: commands.BeginRun) -> JobEvent:
        self._begin_run_from(self.checkpointing.find_restart(self.start, command.cause))
        self.progress.restarts += 1
        for vertex_id, vertex in self.execution.subtasks():
            self.execution.new_attempt(vertex_id, vertex.subtask_index, self._now_ms())
        return events.RunBegun(self._now_ms(), is_over=self.checkpointing.has_ended)

    def _begin_run_from(self, stored: StoredCheckpoint | None) -> None:
        begun = self._runs.begin(self.job, stored, is_over=self.checkpointing.has_ended)
        self.run, self._sinks = begun.run, begun.sinks
        self._is_closed = False
        if begun.report is not None:
            self.restore_report = begun.report

    # -- the end -----------------------------------------------------------------------------------------------

    def _close_run(self, _: commands.CloseRun) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.run.close()
            close_committers(self._sinks)

    def _release_slots(self, _: commands.ReleaseSlots) -> None:
        self.scheduler.free()

    def _record_result(self, command: commands.RecordResult) -> None:
        self.checkpointing.close(command.status, command.cause, taken_over=not self._is_ours())
        self.remove_files()

    def remove_files(self) -> None:
        """Remove the job's files, except those of checkpoints that stay; none if the job is another's now."""
        if not self.checkpointing.keeps_files and self._is_ours():
            try:
                self._directory.delete_all()
            except (OSError, LeadershipError) as error:
                _log.warning("files of job '%s' could not be deleted: %s", self.job.name, error)

    def _is_ours(self) -> bool:
        """Whether nobody else leads the job, or may."""
        if self.execution.status is JobStatus.SUSPENDED:
            return False
        try:
            self._ensure_leader()
        except LeadershipError:
            return False
        return True


def _make_scheduler(pool: SlotPool, settings: JobMasterSettings, job: JobGraph, now_ms: int) -> Scheduler:
    is_live = settings.live is not None
    autoscaler = None
    if settings.autoscaler is not None:
        autoscaler = Autoscaler(settings.autoscaler, job, now_ms, is_live=is_live)
    return Scheduler(
        pool,
        settings.adaptive,
        settings.slot_timeout_ms,
        job,
        autoscaler=autoscaler,
        is_live=is_live,
    )


def _make_checkpointing(
    job_name: str,
    directory: CheckpointDirectory,
    settings: JobMasterSettings,
    surroundings: JobSurroundings,
    recorder: EpochRecorder | None,
) -> Checkpointing:
    return Checkpointing(
        job_name,
        directory,
        settings.checkpoints,
        surroundings.results or NoJobResults(),
        ensure_leader=surroundings.ensure_leader,
        now_ms=surroundings.now_ms,
        recorder=recorder,
    )


def _make_recorder(settings: JobMasterSettings, now_ms: Callable[[], int]) -> EpochRecorder | None:
    directory = settings.recording_directory
    if directory is None:
        return None
    return EpochRecorder(directory, settings.recorded_epochs, now_ms, is_live=settings.live is not None)
