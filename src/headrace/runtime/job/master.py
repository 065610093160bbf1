"""JobMaster: takes one job from its start to its end, through failures, restarts and changes of parallelism.

    something happens -> event -> JobLifecycle.handle() -> commands -> carried out here -> the next event

What is done next is decided by `JobLifecycle`, without threads or a clock. Here are the job's thread, which carries
out its steps one after the other, and the requests that come from other threads. What runs an epoch is behind
`EpochRunner`, so the same master drives Spark and the test kit.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from headrace.common.job_status import JobStatus
from headrace.errors import HeadraceError, LeadershipError
from headrace.graph.execution_graph import ExecutionState, build_execution_graph
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import with_parallelism
from headrace.graph.table_job import expected_rate
from headrace.runtime.checkpoint.checkpointing import Checkpointing
from headrace.runtime.checkpoint.restore import RestoreReport
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint
from headrace.runtime.epoch.pacing import EpochPacer
from headrace.runtime.high_availability.job_results import JobResults, NoJobResults
from headrace.runtime.job import commands, events
from headrace.runtime.job.commands import Command, Commands
from headrace.runtime.job.epochs import EpochLoop, JobProgress
from headrace.runtime.job.events import Event
from headrace.runtime.job.lifecycle import JobLifecycle
from headrace.runtime.job.runs import MakeRunner, RunFactory, close_committers
from headrace.runtime.job.settings import JobMasterSettings
from headrace.runtime.monitoring.failure_history import FailureHistory
from headrace.runtime.monitoring.flame_graphs import FlameGraphs
from headrace.runtime.run.accumulators import JobAccumulators
from headrace.runtime.run.job_run import EpochSummary, JobRun
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.runtime.run.state_registry import StateSize
from headrace.runtime.scheduling.scheduler import Scheduler, parallelism_of
from headrace.runtime.scheduling.slots import SlotPool, endless_slots
from headrace.util import clock

_log = logging.getLogger(__name__)

#: How long to wait between looks at the slots there are, s.
_SLOTS_POLL_S = 0.1
T = TypeVar("T")


class JobMaster:
    """Drives one job from its first epoch to its end.

    Args:
        job: The job.
        make_runner: Makes what runs epochs; called for every run.
        settings: The options.
        on_epoch: Called after every epoch.
        now_ms: The clock.
        ensure_leader: Raises if another master has taken the job over.
        leader: The fencing token of this master: higher than that of all before it; 0 without high availability.
        timer: Measures how long things take, in seconds.
        slots: The slots the job may take; as many as it needs if None.
        results: Where the job's end is written down for its next start; nowhere if None.
    """

    def __init__(
        self,
        job: JobGraph,
        make_runner: MakeRunner,
        settings: JobMasterSettings,
        *,
        on_epoch: Callable[[EpochSummary], None] | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
        ensure_leader: Callable[[], None] = lambda: None,
        leader: int = 0,
        timer: Callable[[], float] = time.perf_counter,
        slots: SlotPool | None = None,
        results: JobResults | None = None,
    ) -> None:
        pool = slots or endless_slots(job.job_id)
        self._scheduler = Scheduler(pool, settings.adaptive, settings.slot_timeout_ms, job)
        self.job = self._scheduler.planned(job)
        self.execution = build_execution_graph(self.job, now_ms())
        self.progress = JobProgress()
        #: Why the job failed, also where it started again.
        self.failures = FailureHistory(settings.failure_history_size)
        #: Where the time of tasks goes, for whoever asks.
        self.flame_graphs = FlameGraphs(settings.flame_graphs)
        self._settings = settings
        self._now_ms = now_ms
        self._ensure_leader = ensure_leader
        #: Set when somebody asks for something while the job may wait for input or slots.
        self._wake = threading.Event()
        #: Set when the job is to end instead of waiting for anything.
        self._interrupted = threading.Event()
        #: Guards the lifecycle and the job's status: requests come from other threads.
        self._lock = threading.RLock()
        self._rescalings: dict[int, Future[None]] = {}
        self._request_numbers = itertools.count(1)
        self._carry_out = self._hands()
        self._lifecycle = JobLifecycle(
            job.name, settings.restart.build(), random.Random(job.job_id), self._scheduler.timeout_ms
        )
        self._directory = CheckpointDirectory(
            settings.directory, job.job_id, leader, ensure_leader=ensure_leader
        )
        # State files go there also when there are no checkpoints.
        self._directory.ensure_writable()
        self._checkpointing = Checkpointing(
            job.name,
            self._directory,
            settings.checkpoints,
            results or NoJobResults(),
            ensure_leader=ensure_leader,
            now_ms=now_ms,
        )
        pacer = EpochPacer(settings.pacing, expected_rate(self.job))
        self._epochs = EpochLoop(
            pacer,
            self._checkpointing,
            self.flame_graphs,
            self.progress,
            idle_poll_s=settings.idle_poll_s,
            on_epoch=on_epoch,
            wake=self._wake,
            now_ms=now_ms,
            timer=timer,
        )
        self._runs = RunFactory(
            job.name,
            make_runner,
            settings,
            self._directory,
            pacer,
            ensure_leader=ensure_leader,
            now_ms=now_ms,
            timer=timer,
        )
        #: What of a savepoint found its operator; None for a job that started empty.
        self.restore_report: RestoreReport | None = None
        self._run: JobRun
        self._sinks: SinkCoordinator
        #: Whether the run and the sinks at hand have been let go of.
        self._is_closed = True
        self._start = self._checkpointing.find_start()
        self._begin_run_from(self._start)

    @property
    def settings(self) -> JobMasterSettings:
        """The options the master was given."""
        return self._settings

    @property
    def slots_held(self) -> int:
        """How many slots the job has; none while it waits for them, and after its end."""
        return self._scheduler.slots_held

    @property
    def checkpoints(self) -> Checkpointing:
        """The job's checkpoints."""
        return self._checkpointing

    @property
    def accumulators(self) -> JobAccumulators:
        """What the accumulators of user functions have come to."""
        return self._run.accumulators

    @property
    def restored_from(self) -> str | None:
        """The directory of the checkpoint or savepoint that the job started from."""
        return None if self._start is None else self._start.path

    @property
    def lineage(self) -> str:
        """The name of the job's present run."""
        return self._run.lineage

    def state_sizes(self) -> dict[str, StateSize]:
        """How much state each operator has, by its id."""
        return self._run.state_sizes()

    # -- events and commands -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the job to its end.

        Raises:
            JobCancelledError: After `cancel`.
            HeadraceError: The reason the job failed.
        """
        event: Event | None = events.Started(self._now_ms(), is_over=self._checkpointing.has_ended)
        while event is not None:
            try:
                event = self._tell(event)
            except BaseException as error:
                if self._lifecycle.has_ended:
                    raise
                event = events.Failed(error, self._now_ms())
        if self._lifecycle.error is not None:
            raise self._lifecycle.error

    def _tell(self, event: Event) -> Event | None:
        """Carry out what follows from an event; return the event that its last step has led to."""
        with self._lock:
            todo = self._note(self._lifecycle.handle(event))
        following: Event | None = None
        for command in todo:
            following = self._carry_out[type(command)](command)
        return following

    def _note(self, todo: Commands) -> list[Command]:
        """Note what the job has become at once, so that no other thread sees it half done; return what is left."""
        left: list[Command] = []
        for command in todo:
            match command:
                case commands.EnterStatus():
                    self._enter(command)
                case commands.RecordFailure():
                    self.failures.add(command.error, self._now_ms(), self.job)
                case _:
                    left.append(command)
        return left

    def _hands(self) -> Mapping[type[Command], Callable[[Any], Event | None]]:
        """Return what carries out each kind of command."""
        return {
            commands.InterruptEpoch: self._interrupt,
            commands.RefuseRescaling: self._refuse_rescaling,
            commands.TakeSlots: self._take_slots,
            commands.WaitForSlots: self._wait_for_slots,
            commands.GiveUpOnSlots: self._give_up_on_slots,
            commands.Deploy: self._deploy,
            commands.LookAround: self._look_around,
            commands.Drain: self._drain,
            commands.Rescale: self._rescale,
            commands.RunEpoch: self._run_epoch,
            commands.FinishJob: self._finish,
            commands.AbortCheckpoints: self._abort_checkpoints,
            commands.WaitBeforeRestart: self._wait_before_restart,
            commands.BeginRun: self._begin_run,
            commands.CloseRun: self._close_run,
            commands.ReleaseSlots: self._release_slots,
            commands.RecordResult: self._record_result,
        }

    def _enter(self, command: commands.EnterStatus) -> None:
        before, now_ms, cause = self.execution.status, self._now_ms(), command.cause
        if command.subtasks is ExecutionState.FINISHED:
            for vertex_id, vertex in self.execution.subtasks():
                self.execution.finish(vertex_id, vertex.subtask_index, now_ms)
        elif command.subtasks is ExecutionState.SCHEDULED:
            self.execution.schedule(now_ms)
        elif command.subtasks is not None:
            self.execution.end(command.subtasks, now_ms, cause)
        self.execution.set_job_status(command.status, now_ms, cause)
        why = "" if cause is None else f": {getattr(cause, 'message', None) or repr(cause)}"
        _log.info(
            "job '%s' (%s) went from %s to %s%s",
            *(self.job.name, self.job.job_id, before.name, command.status.name, why),
        )

    # -- requests, from any thread -----------------------------------------------------------------------------

    def cancel(self) -> None:
        """Ask the job to stop; returns at once."""
        self._tell(events.CancelAsked())

    def step_down(self, error: LeadershipError) -> None:
        """Stop, because another process may lead the job by now; returns at once."""
        self._tell(events.LeadershipLost(error))

    def trigger_checkpoint(self) -> Future[int]:
        """Ask for a checkpoint; the result is its number."""
        return self._woken(self._checkpointing.coordinator.trigger_checkpoint(self._now_ms()))

    def trigger_savepoint(self, target: str | None) -> Future[str]:
        """Ask for a savepoint; the result is its path."""
        return self._woken(self._checkpointing.coordinator.trigger_savepoint(self._now_ms(), target))

    def stop_with_savepoint(self, target: str | None, *, drain: bool) -> Future[str]:
        """Ask for a savepoint after which the job ends; the result is its path.

        Args:
            target: Where it goes; if None, where the options say.
            drain: Whether event time runs to its end first, so that all windows and timers fire.
        """
        coordinator = self._checkpointing.coordinator
        return self._woken(coordinator.stop_with_savepoint(self._now_ms(), target, drain=drain))

    def rescale(self, parallelism: Mapping[str, int]) -> Future[None]:
        """Ask for another parallelism of some vertices, by vertex id; it changes between two epochs.

        Raises:
            JobDefinitionError: If the job cannot have it.
        """
        with_parallelism(self.job, parallelism)  # refused now rather than later
        number, future = next(self._request_numbers), Future[None]()
        self._rescalings[number] = future
        self._tell(events.RescaleAsked(number, dict(parallelism)))
        return self._woken(future)

    def _woken(self, future: Future[T]) -> Future[T]:
        self._wake.set()
        return future

    def _interrupt(self, _: commands.InterruptEpoch) -> None:
        self._interrupted.set()
        self._wake.set()
        self._run.runner.cancel()

    def _check_goes_on(self) -> None:
        """Raise what the job is to end with, if somebody wants it to end."""
        error = self._lifecycle.error
        if error is not None:
            raise error

    # -- steps, in the job's thread ----------------------------------------------------------------------------

    def _take_slots(self, _: commands.TakeSlots) -> Event:
        """Take the job's slots; the parallelism of an adaptive one follows them."""
        now_ms = self._now_ms()
        wanted = self._scheduler.start(self.job, now_ms)
        if wanted is None:
            return events.SlotsMissing(now_ms)
        if wanted != parallelism_of(self.job):
            self._reshape(wanted)
        return events.SlotsTaken()

    def _wait_for_slots(self, command: commands.WaitForSlots) -> Event:
        if command.is_first:
            _log.info("waiting for slots: %s", self._scheduler.refusal(self.job, 0).message)
        self._wake.wait(_SLOTS_POLL_S)
        self._wake.clear()
        self._ensure_leader()
        return self._take_slots(commands.TakeSlots())

    def _give_up_on_slots(self, command: commands.GiveUpOnSlots) -> Event:
        return events.Failed(self._scheduler.refusal(self.job, command.waited_ms), self._now_ms())

    def _deploy(self, _: commands.Deploy) -> Event:
        self._deploy_run()
        self._checkpointing.running(self._run)
        return events.Deployed(has_ended=self._run.has_ended)

    def _deploy_run(self) -> None:
        self._epochs.deployed()
        self.execution.deploy(self._now_ms())
        for vertex_id, subtask in self._run.ended:
            self.execution.finish(vertex_id, subtask, self._now_ms())

    def _look_around(self, command: commands.LookAround) -> Event:
        self._wake.clear()  # first: whoever asks for something from here on is heard before the next sleep
        self._ensure_leader()
        stop = self._checkpointing.coordinator.stop_requested
        wanted = self._scheduler.follow(self.job, self._now_ms()) if command.follows_slots else None
        if wanted is not None:
            widest = max(wanted.values())
            _log.info("job '%s' follows the slots there are: parallelism %s", self.job.name, widest)
        return events.Looked(drains=stop is not None and stop.drain, parallelism=wanted)

    def _drain(self, _: commands.Drain) -> None:
        self._run.drain()

    def _run_epoch(self, _: commands.RunEpoch) -> Event:
        is_stopped = self._epochs.step(
            self._run,
            self._sinks,
            self.execution,
            self._check_goes_on,
            is_drained=self._lifecycle.is_drained,
        )
        return events.EpochEnded(has_ended=self._run.has_ended, is_stopped=is_stopped)

    def _finish(self, command: commands.FinishJob) -> Event:
        if command.takes_checkpoint:
            self._checkpointing.final(self._run, self._sinks)
        self._ensure_leader()
        if self._run.has_ended:
            self._sinks.finish()
        self._checkpointing.mark_ended()
        return events.OutputPublished()

    # -- another parallelism -----------------------------------------------------------------------------------

    def _rescale(self, command: commands.Rescale) -> Event:
        if command.request is None:
            self._continue_as(command.parallelism)
            return events.Rescaled()
        future = self._rescalings.pop(command.request)
        if not future.set_running_or_notify_cancel():
            return events.Rescaled()
        try:
            wanted = with_parallelism(self.job, command.parallelism)
            if self._scheduler.take(wanted):
                self._continue_as(command.parallelism)
                future.set_result(None)
            else:
                future.set_exception(self._scheduler.refusal(wanted, 0))  # the job goes on as it is
        except BaseException as error:
            future.set_exception(error)
            raise
        return events.Rescaled()

    def _refuse_rescaling(self, command: commands.RefuseRescaling) -> None:
        future = self._rescalings.pop(command.number)
        if future.set_running_or_notify_cancel():
            future.set_exception(command.error)

    def _continue_as(self, parallelism: Mapping[str, int]) -> None:
        """Go on with another parallelism, from where the run stands."""
        self.progress.rescales += 1
        self._reshape(parallelism)
        self._deploy_run()
        self._checkpointing.delete_orphans(self._run)

    def _reshape(self, parallelism: Mapping[str, int]) -> None:
        """Begin a run with another parallelism, where the last one stands."""
        job = with_parallelism(self.job, parallelism)
        make_run = self._runs.continuation(job, self._run, self._sinks)
        execution = build_execution_graph(job, self._now_ms())
        execution.set_job_status(JobStatus.RUNNING, self._now_ms())
        # For the job this is no new start.
        execution.status_timestamps = dict(self.execution.status_timestamps)
        self._run.close()
        # If the run cannot be made, the job starts again from a checkpoint, in its new shape.
        with self._lock:
            self._check_goes_on()
            self.job = job
            self.execution = execution
        self._run = make_run()

    # -- restarts ----------------------------------------------------------------------------------------------

    def _abort_checkpoints(self, command: commands.AbortCheckpoints) -> None:
        self._checkpointing.job_failed(command.error)

    def _wait_before_restart(self, command: commands.WaitBeforeRestart) -> Event:
        error = command.cause
        message = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
        _log.warning("job '%s' starts again in %d ms: %s", self.job.name, command.delay_ms, message)
        self._interrupted.wait(command.delay_ms / 1000)
        return events.DelayElapsed()

    def _begin_run(self, command: commands.BeginRun) -> Event:
        self._begin_run_from(self._checkpointing.find_restart(self._start, command.cause))
        self.progress.restarts += 1
        for vertex_id, vertex in self.execution.subtasks():
            self.execution.new_attempt(vertex_id, vertex.subtask_index, self._now_ms())
        return events.RunBegun(self._now_ms(), is_over=self._checkpointing.has_ended)

    def _begin_run_from(self, stored: StoredCheckpoint | None) -> None:
        begun = self._runs.begin(self.job, stored, is_over=self._checkpointing.has_ended)
        self._run, self._sinks = begun.run, begun.sinks
        self._is_closed = False
        if begun.report is not None:
            self.restore_report = begun.report

    # -- the end -----------------------------------------------------------------------------------------------

    def _close_run(self, _: commands.CloseRun) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._run.close()
            close_committers(self._sinks)

    def _release_slots(self, _: commands.ReleaseSlots) -> None:
        self._scheduler.free()

    def _record_result(self, command: commands.RecordResult) -> None:
        self._checkpointing.close(command.status, command.cause, taken_over=not self._is_ours())
        self.remove_files()

    def remove_files(self) -> None:
        """Remove the job's files, except those of checkpoints that stay; none if the job is another's now."""
        if not self._checkpointing.keeps_files and self._is_ours():
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
