"""JobLifecycle: decides what a job does next. Events go in, commands come out.

    CREATED --> SCHEDULING --> DEPLOYING --> RUNNING --> FINISHING --> ENDED: FINISHED
                     ^                          |
                     +-- RECOVERING <-- RESTARTING <-- an error, if the strategy allows another try; else ENDED: FAILED

    A live job may fail in part: its other regions run on while it is RESTARTING and RECOVERING, and then it is RUNNING.

    asked to cancel, or leadership lost:  STOPPING --> ENDED: CANCELED, SUSPENDED

There are no threads, files or clocks here: time is part of the events. `JobMaster` has the commands carried out and
passes the outcome of each step back as the next event. Requests may arrive in any phase and from any thread; the
commands they lead to may run in any thread, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from random import Random
from typing import Any

from headrace.common.job_status import JobStatus
from headrace.errors import (
    InvariantViolation,
    JobCancelledError,
    JobExecutionError,
    LeadershipError,
    RecoveryAction,
    recovery_of,
)
from headrace.graph.execution_graph import ExecutionState
from headrace.runtime.job.commands import (
    AbortCheckpoints,
    BeginRun,
    CheckRequests,
    CloseRun,
    Deploy,
    Drain,
    EnterStatus,
    FailPart,
    FinishJob,
    GiveUpOnSlots,
    InterruptEpoch,
    JobCommands,
    RecordFailure,
    RecordResult,
    RefuseRescaling,
    ReleaseSlots,
    RescaleJob,
    RestartPart,
    RunEpoch,
    TakeSlots,
    WaitBeforeRestart,
    WaitForSlots,
)
from headrace.runtime.job.events import (
    CancelAsked,
    DelayElapsed,
    Deployed,
    EpochEnded,
    Failed,
    JobEvent,
    LeadershipLost,
    OutputPublished,
    PartRestarted,
    RequestsChecked,
    RescaleAsked,
    Rescaled,
    RunBegun,
    SlotsMissing,
    SlotsTaken,
    Started,
)
from headrace.runtime.job.restart import RestartLogic


class Phase(Enum):
    """What the job does now."""

    CREATED = auto()
    #: It waits for slots.
    SCHEDULING = auto()
    DEPLOYING = auto()
    RUNNING = auto()
    #: Its epochs are over; output is being published.
    FINISHING = auto()
    #: It waits for its restart.
    RESTARTING = auto()
    #: A run is being restored.
    RECOVERING = auto()
    #: Somebody wants it to end, and the step at work is not over yet.
    STOPPING = auto()
    ENDED = auto()


class JobLifecycle:
    """The state machine of one job.

    Args:
        job_name: For messages.
        restart: Whether the job is restarted after a failure, and when.
        rng: Varies the delays of restarts.
        slot_timeout_ms: How long the job waits for its slots.
    """

    def __init__(self, job_name: str, restart: RestartLogic, rng: Random, slot_timeout_ms: int) -> None:
        self._job_name = job_name
        self._restart = restart
        self._rng = rng
        self._slot_timeout_ms = slot_timeout_ms
        self.phase = Phase.CREATED
        self.status = JobStatus.CREATED
        #: Why the job has ended, or is to end; None if it runs, or has finished.
        self.error: BaseException | None = None
        self._is_over = False
        #: When the job began to ask for slots.
        self._scheduled_ms = 0
        self._waits_for_slots = False
        #: Whether sources of the present run were told to end.
        self._is_drained = False
        self._rescaling: RescaleAsked | None = None
        #: Why the job is about to start again, and the vertices of the regions that do so while others run.
        self._failure: BaseException | None = None
        self._failed_part: frozenset[str] | None = None
        self._steps: Mapping[tuple[Phase, type], Callable[[Any], JobCommands]] = {
            (Phase.CREATED, Started): self._schedule,
            (Phase.SCHEDULING, SlotsTaken): self._deploy,
            (Phase.SCHEDULING, SlotsMissing): self._wait_for_slots,
            (Phase.DEPLOYING, Deployed): self._begin_epochs,
            (Phase.RUNNING, RequestsChecked): self._next_step,
            (Phase.RUNNING, Rescaled): lambda _: (RunEpoch(self._is_drained),),
            (Phase.RUNNING, EpochEnded): self._after_epoch,
            (Phase.FINISHING, OutputPublished): lambda _: self._finished(),
            (Phase.RESTARTING, DelayElapsed): self._recover,
            (Phase.RECOVERING, RunBegun): self._schedule,
            (Phase.RECOVERING, PartRestarted): lambda _: self._go_on(),
        }

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.ENDED

    def handle(self, event: JobEvent) -> JobCommands:
        """Return what is to be done about an event, in this order.

        Raises:
            InvariantViolation: If the event cannot happen in this phase.
        """
        match event:
            case CancelAsked():
                return self._cancel()
            case LeadershipLost():
                return self._step_down(event.error)
            case RescaleAsked():
                return self._ask_to_rescale(event)
        if self.has_ended:
            raise self._unexpected(event)
        if isinstance(event, Failed):
            return self._failed(event)
        if self.phase is Phase.STOPPING:
            return self._stopped()
        decide = self._steps.get((self.phase, type(event)))
        if decide is None:
            raise self._unexpected(event)
        return decide(event)

    def _unexpected(self, event: JobEvent) -> InvariantViolation:
        return InvariantViolation(
            f"job '{self._job_name}': {type(event).__name__} cannot happen in phase {self.phase.name}"
        )

    # -- requests ------------------------------------------------------------------------------------------------

    def _cancel(self) -> JobCommands:
        if self.phase in (Phase.STOPPING, Phase.ENDED):
            return ()
        is_created = self.phase is Phase.CREATED
        self.phase = Phase.STOPPING
        self.error = JobCancelledError(f"job '{self._job_name}' was cancelled", job=self._job_name)
        entered = () if is_created else self._enter(JobStatus.CANCELLING)
        return (*entered, InterruptEpoch())

    def _step_down(self, error: LeadershipError) -> JobCommands:
        """Leadership is lost: end, even if the job is being cancelled, because nothing may be written any more."""
        if self.has_ended:
            return ()
        self.phase = Phase.STOPPING
        self.error = error
        return (InterruptEpoch(),)

    def _ask_to_rescale(self, request: RescaleAsked) -> JobCommands:
        if self.has_ended:
            return (self._refusal(request, "has ended"),)
        replaced, self._rescaling = self._rescaling, request
        if replaced is None:
            return ()
        return (self._refusal(replaced, "has since received another request to rescale"),)

    def _refusal(self, request: RescaleAsked, why: str) -> RefuseRescaling:
        return RefuseRescaling(request.number, JobExecutionError(f"job '{self._job_name}' {why}"))

    # -- from the start to the end -------------------------------------------------------------------------------

    def _schedule(self, event: Started | RunBegun) -> JobCommands:
        self._is_over = event.is_over
        self._is_drained = False
        entered = self._enter(JobStatus.RUNNING, subtasks=ExecutionState.SCHEDULED)
        if event.is_over:
            return (*entered, *self._deploy(None))
        self.phase = Phase.SCHEDULING
        self._scheduled_ms, self._waits_for_slots = event.now_ms, False
        return (*entered, TakeSlots())

    def _wait_for_slots(self, event: SlotsMissing) -> JobCommands:
        waited_ms = event.now_ms - self._scheduled_ms
        if waited_ms >= self._slot_timeout_ms:
            return (GiveUpOnSlots(waited_ms),)
        is_first, self._waits_for_slots = not self._waits_for_slots, True
        return (WaitForSlots(is_first),)

    def _deploy(self, _: SlotsTaken | None) -> JobCommands:
        self.phase = Phase.DEPLOYING
        return (Deploy(),)

    def _begin_epochs(self, event: Deployed) -> JobCommands:
        self.phase = Phase.RUNNING
        return self._after_epoch(EpochEnded(has_ended=event.has_ended, is_stopped=self._is_over))

    def _after_epoch(self, event: EpochEnded) -> JobCommands:
        if event.is_stopped or event.has_ended:
            self.phase = Phase.FINISHING
            return (FinishJob(takes_checkpoint=not event.is_stopped),)
        return (CheckRequests(follows_slots=self._rescaling is None),)

    def _next_step(self, event: RequestsChecked) -> JobCommands:
        drain: JobCommands = ()
        if event.drains and not self._is_drained:
            self._is_drained = True
            drain = (Drain(),)
        if event.parallelism is not None:
            return (*drain, RescaleJob(event.parallelism))
        request, self._rescaling = self._rescaling, None
        if request is not None:
            return (*drain, RescaleJob(request.parallelism, request.number))
        return (*drain, RunEpoch(self._is_drained))

    # -- failures ------------------------------------------------------------------------------------------------

    def _failed(self, event: Failed) -> JobCommands:
        error = event.error
        if not isinstance(error, Exception):  # the process itself is to end
            return self._end(JobStatus.FAILED, error)
        if self.phase is Phase.STOPPING:
            return self._stopped()
        recovery = recovery_of(error)
        if recovery is RecoveryAction.CANCEL:
            return self._end(JobStatus.CANCELED, error)
        recorded = RecordFailure(error)
        if recovery is RecoveryAction.HAND_OVER:
            return (recorded, *self._end(JobStatus.SUSPENDED, error))
        delay_ms = self._delay_ms(recovery, event.now_ms)
        if delay_ms is None:
            return (recorded, *self._end(JobStatus.FAILED, error))
        # What is to be restored from a checkpoint is so as a whole.
        part = None if recovery is RecoveryAction.RESTORE else event.part
        if part is not None and self._runs_in_part:
            return (recorded, *self._restart_part_after(delay_ms, error, part))
        return (recorded, *self._restart_after(delay_ms, error))

    @property
    def _runs_in_part(self) -> bool:
        """Whether there is a run in which some regions may have failed."""
        return self.phase is Phase.RUNNING or (
            self.phase is Phase.RECOVERING and self._failed_part is not None
        )

    def _restart_part_after(self, delay_ms: int, error: Exception, part: frozenset[str]) -> JobCommands:
        """Let regions start again; checkpoints wait for them, and what was requested is done then."""
        self.phase = Phase.RESTARTING
        self._failure = error
        self._failed_part = part
        entered = self._enter(JobStatus.RESTARTING, cause=error)
        return (*entered, FailPart(part, error), WaitBeforeRestart(delay_ms, error))

    def _go_on(self) -> JobCommands:
        """Continue after the failed regions were restarted: all regions run."""
        self.phase = Phase.RUNNING
        self._failed_part = None
        return (*self._enter(JobStatus.RUNNING), CheckRequests(follows_slots=self._rescaling is None))

    def _delay_ms(self, recovery: RecoveryAction, now_ms: int) -> int | None:
        if recovery is RecoveryAction.FAIL:
            return None
        if recovery is RecoveryAction.RESTORE:
            # Only once: if the checkpoint to restore is damaged, too, there is nothing to go back to.
            return None if self.phase in (Phase.RESTARTING, Phase.RECOVERING) else 0
        return self._restart.on_failure(now_ms, self._rng)

    def _restart_after(self, delay_ms: int, error: Exception) -> JobCommands:
        was_partial = self._failed_part is not None
        is_running = self.phase is not Phase.RECOVERING or was_partial
        self.phase = Phase.RESTARTING
        self._failure = error
        self._failed_part = None
        wait = WaitBeforeRestart(delay_ms, error)
        if not is_running:
            return (wait,)
        entered = self._enter(JobStatus.RESTARTING, cause=error, subtasks=ExecutionState.FAILED)
        if was_partial:
            entered = (*entered, FailPart(None, error))
        return (*entered, AbortCheckpoints(error), CloseRun(), wait)

    def _recover(self, _: DelayElapsed) -> JobCommands:
        assert self._failure is not None
        self.phase = Phase.RECOVERING
        if self._failed_part is not None:
            return (RestartPart(self._failed_part),)
        return (BeginRun(self._failure),)

    # -- the end -------------------------------------------------------------------------------------------------

    def _stopped(self) -> JobCommands:
        assert self.error is not None
        hands_over = recovery_of(self.error) is RecoveryAction.HAND_OVER
        return self._end(JobStatus.SUSPENDED if hands_over else JobStatus.CANCELED, self.error)

    def _finished(self) -> JobCommands:
        return self._end(JobStatus.FINISHED, None)

    def _end(self, status: JobStatus, error: BaseException | None) -> JobCommands:
        self.phase = Phase.ENDED
        self.error = error
        cause = error if status is JobStatus.FAILED else None
        before, subtasks = _ENDS[status]
        entered = () if before is None else self._enter(before, cause=cause)
        request, self._rescaling = self._rescaling, None
        return (
            *entered,
            *self._enter(status, cause=cause, subtasks=subtasks),
            CloseRun(),
            *(() if request is None else (self._refusal(request, "has ended"),)),
            ReleaseSlots(),
            RecordResult(status, cause),
        )

    def _enter(
        self,
        status: JobStatus,
        *,
        cause: BaseException | None = None,
        subtasks: ExecutionState | None = None,
    ) -> JobCommands:
        if status is self.status:
            return ()
        self.status = status
        return (EnterStatus(status, cause, subtasks),)


#: The status before the last one, and how subtasks end.
_ENDS: Mapping[JobStatus, tuple[JobStatus | None, ExecutionState]] = {
    JobStatus.FINISHED: (None, ExecutionState.FINISHED),
    JobStatus.CANCELED: (JobStatus.CANCELLING, ExecutionState.CANCELED),
    JobStatus.SUSPENDED: (None, ExecutionState.CANCELED),
    JobStatus.FAILED: (JobStatus.FAILING, ExecutionState.FAILED),
}
