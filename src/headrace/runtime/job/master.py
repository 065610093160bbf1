"""JobMaster: takes one job from its start to its end, through failures, restarts and changes of parallelism.

    something happens -> event -> JobLifecycle.handle() -> commands -> JobSteps.carry_out() -> the next event

`JobLifecycle` decides, without threads or a clock; `JobSteps` does the work. The master is between them: the job's
thread, which passes what came of each step on as the next event, and the requests of other threads. What runs an epoch
is behind `EpochRunner`, so the same master drives Spark and the test kit.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from headrace.common.job_status import JobStatus
from headrace.errors import LeadershipError
from headrace.graph.execution_graph import ExecutionGraph, ExecutionState
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import with_parallelism
from headrace.runtime.checkpoint.checkpointing import Checkpointing
from headrace.runtime.checkpoint.restore import RestoreReport
from headrace.runtime.control.messages import Beat
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.high_availability.job_results import JobResults
from headrace.runtime.job import commands, events
from headrace.runtime.job.commands import JobCommand, JobCommands
from headrace.runtime.job.epochs import JobProgress
from headrace.runtime.job.events import JobEvent
from headrace.runtime.job.lifecycle import JobLifecycle
from headrace.runtime.job.rescaling import RescaleRequests
from headrace.runtime.job.runs import MakeRunner
from headrace.runtime.job.settings import JobMasterSettings
from headrace.runtime.job.steps import JobSteps, JobSurroundings
from headrace.runtime.monitoring.failure_history import FailureHistory
from headrace.runtime.monitoring.flame_graphs import FlameGraphs
from headrace.runtime.run.accumulators import JobAccumulators
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.run.state_registry import StateSize
from headrace.runtime.scheduling.autoscaler import ScalingDecision
from headrace.runtime.scheduling.slots import SlotPool
from headrace.util import clock

_log = logging.getLogger(__name__)

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
        self.settings = settings
        #: Why the job failed, also where it started again.
        self.failures = FailureHistory(settings.failure_history_size)
        self._now_ms = now_ms
        #: Guards the lifecycle and the job's status: requests come from other threads.
        self._lock = threading.RLock()
        self._rescalings = RescaleRequests()
        self._steps = JobSteps(
            job,
            make_runner,
            settings,
            JobSurroundings(on_epoch, now_ms, ensure_leader, leader, timer, slots, results),
            lock=self._lock,
            rescalings=self._rescalings,
            check_goes_on=self._check_goes_on,
        )
        self._lifecycle = JobLifecycle(
            job.name,
            settings.restart.build(),
            random.Random(job.job_id),
            slot_timeout_ms=self._steps.scheduler.timeout_ms,
        )

    # -- what others see ---------------------------------------------------------------------------------------

    @property
    def job(self) -> JobGraph:
        """The job in its present shape."""
        return self._steps.job

    @property
    def execution(self) -> ExecutionGraph:
        """Where the job and its subtasks stand."""
        return self._steps.execution

    @property
    def progress(self) -> JobProgress:
        return self._steps.progress

    @property
    def flame_graphs(self) -> FlameGraphs:
        """Where the time of tasks goes, for whoever asks."""
        return self._steps.flame_graphs

    @property
    def restore_report(self) -> RestoreReport | None:
        """What of a savepoint found its operator; None for a job that started empty."""
        return self._steps.restore_report

    @property
    def slots_held(self) -> int:
        """How many slots the job has; none while it waits for them, and after its end."""
        return self._steps.scheduler.slots_held

    @property
    def scaling_decisions(self) -> tuple[ScalingDecision, ...]:
        """What the autoscaler has decided, the oldest first; nothing without one."""
        autoscaler = self._steps.scheduler.autoscaler
        return () if autoscaler is None else tuple(autoscaler.decisions)

    @property
    def checkpoints(self) -> Checkpointing:
        """The completed and pending checkpoints of the job."""
        return self._steps.checkpointing

    @property
    def accumulators(self) -> JobAccumulators:
        """What the accumulators of user functions have come to."""
        return self._steps.run.accumulators

    @property
    def restored_from(self) -> str | None:
        """The directory of the checkpoint or savepoint that the job started from."""
        return None if self._steps.start is None else self._steps.start.path

    @property
    def lineage(self) -> str:
        """The name of the job's present run."""
        return self._steps.run.lineage

    def beats(self) -> Mapping[SubtaskId, Beat]:
        """What subtasks of a live job said last about their time; nothing while it does not run, or in epochs."""
        return self._steps.run.beats() if self.execution.status is JobStatus.RUNNING else {}

    def state_sizes(self) -> dict[str, StateSize]:
        """How much state each operator has, by its id."""
        return self._steps.run.state_sizes()

    # -- events and commands -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the job to its end.

        Raises:
            JobCancelledError: After `cancel`.
            HeadraceError: The reason the job failed.
        """
        event: JobEvent | None = events.Started(self._now_ms(), is_over=self._steps.checkpointing.has_ended)
        while event is not None:
            try:
                event = self._tell(event)
            except BaseException as error:
                if self._lifecycle.has_ended:
                    raise
                event = events.Failed(error, self._now_ms(), self._steps.failed_part(error))
        if self._lifecycle.error is not None:
            raise self._lifecycle.error

    def _tell(self, event: JobEvent) -> JobEvent | None:
        """Carry out what follows from an event; return the event that its last step has led to."""
        with self._lock:
            todo = self._note(self._lifecycle.handle(event))
        following: JobEvent | None = None
        for command in todo:
            following = self._steps.carry_out(command)
        return following

    def _note(self, todo: JobCommands) -> list[JobCommand]:
        """Note what the job has become at once, so that no other thread sees it half done; return what is left."""
        left: list[JobCommand] = []
        for command in todo:
            match command:
                case commands.EnterStatus():
                    self._enter(command)
                case commands.FailPart():
                    self.execution.end(ExecutionState.FAILED, self._now_ms(), command.cause, command.vertices)
                case commands.RecordFailure():
                    self.failures.add(command.error, self._now_ms(), self.job)
                case _:
                    left.append(command)
        return left

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
            "job '%s' (%s) switched from %s to %s%s",
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
        return self._woken(self._steps.checkpointing.coordinator.trigger_checkpoint(self._now_ms()))

    def trigger_savepoint(self, target: str | None) -> Future[str]:
        """Ask for a savepoint; the result is its path."""
        return self._woken(self._steps.checkpointing.coordinator.trigger_savepoint(self._now_ms(), target))

    def stop_with_savepoint(self, target: str | None, *, drain: bool) -> Future[str]:
        """Ask for a savepoint after which the job ends; the result is its path.

        Args:
            target: Where it goes; if None, where the options say.
            drain: Whether event time runs to its end first, so that all windows and timers fire.
        """
        coordinator = self._steps.checkpointing.coordinator
        return self._woken(coordinator.stop_with_savepoint(self._now_ms(), target, drain=drain))

    def rescale(self, parallelism: Mapping[str, int]) -> Future[None]:
        """Ask for another parallelism of some vertices, by vertex id; it changes between two epochs.

        Raises:
            JobDefinitionError: If the job cannot have it.
        """
        with_parallelism(self.job, parallelism)  # refused now rather than later
        request, future = self._rescalings.new(parallelism)
        self._tell(request)
        return self._woken(future)

    def _woken(self, future: Future[T]) -> Future[T]:
        self._steps.wake.set()
        return future

    def _check_goes_on(self) -> None:
        """Raise what the job is to end with, if that is wanted."""
        error = self._lifecycle.error
        if error is not None:
            raise error

    # -- the end -----------------------------------------------------------------------------------------------

    def remove_files(self) -> None:
        """Remove the job's files, except those of checkpoints that stay; none if the job is another's now."""
        self._steps.remove_files()
