from __future__ import annotations

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.common.job_status import JobStatus
from headrace.errors import (
    ConnectorError,
    DamagedStateError,
    InvariantViolation,
    JobCancelledError,
    LeadershipError,
    RecoveryAction,
    StateMigrationError,
    TaskLostError,
    recovery_of,
)
from headrace.graph.execution_graph import JOB_TRANSITIONS, ExecutionState
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
    JobCommand,
    JobCommands,
    JobStep,
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
from headrace.runtime.job.lifecycle import JobLifecycle, Phase
from headrace.runtime.job.restart import FixedDelay, NoRestart, RestartStrategy

TIMEOUT_MS = 1000
DELAY_MS = 50
OTHER_LEADS = LeadershipError("another process leads")
LOST = TaskLostError("a worker is gone")
DAMAGED = DamagedStateError("a file was cut short")
CHANGED = StateMigrationError("another type")


def lifecycle(restart: RestartStrategy | None = None) -> JobLifecycle:
    strategy = restart or FixedDelay(attempts=3, delay_ms=DELAY_MS)
    return JobLifecycle("words", strategy.build(), Random(0), TIMEOUT_MS)


TO_RUNNING: tuple[JobEvent, ...] = (Started(0), SlotsTaken(), Deployed())
TO_PHASE: dict[Phase, tuple[JobEvent, ...]] = {
    Phase.CREATED: (),
    Phase.SCHEDULING: TO_RUNNING[:1],
    Phase.DEPLOYING: TO_RUNNING[:2],
    Phase.RUNNING: TO_RUNNING,
    Phase.FINISHING: (*TO_RUNNING, EpochEnded(has_ended=True)),
    Phase.RESTARTING: (*TO_RUNNING, Failed(LOST, 5)),
    Phase.RECOVERING: (*TO_RUNNING, Failed(LOST, 5), DelayElapsed()),
    Phase.STOPPING: (*TO_RUNNING, CancelAsked()),
    Phase.ENDED: (*TO_RUNNING, EpochEnded(has_ended=True), OutputPublished()),
}


def in_phase(phase: Phase, restart: RestartStrategy | None = None) -> JobLifecycle:
    job = lifecycle(restart)
    for event in TO_PHASE[phase]:
        job.handle(event)
    assert job.phase is phase
    return job


def kinds(commands: JobCommands) -> tuple[type[JobCommand], ...]:
    return tuple(type(command) for command in commands)


def statuses(commands: JobCommands) -> list[JobStatus]:
    return [command.status for command in commands if isinstance(command, EnterStatus)]


# --- every phase and every event ----------------------------------------------------------------------

RESCALING = RescaleAsked(7, {"v": 2})
EVENTS: tuple[JobEvent, ...] = (
    Started(0),
    SlotsTaken(),
    SlotsMissing(1),
    Deployed(),
    RequestsChecked(),
    Rescaled(),
    EpochEnded(),
    OutputPublished(),
    DelayElapsed(),
    RunBegun(9),
    Failed(LOST, 9),
    PartRestarted(),
    CancelAsked(),
    LeadershipLost(OTHER_LEADS),
    RESCALING,
)
#: What ends a job: the last status, then what is let go of, and last of all the result.
END = (EnterStatus, CloseRun, ReleaseSlots, RecordResult)
STOPPED = (Phase.ENDED, END)
RESTART = (RecordFailure, EnterStatus, AbortCheckpoints, CloseRun, WaitBeforeRestart)
CANCELLING = (Phase.STOPPING, (EnterStatus, InterruptEpoch))
OPEN = tuple(phase for phase in Phase if phase is not Phase.ENDED)

TABLE: dict[tuple[Phase, type[JobEvent]], tuple[Phase, tuple[type[JobCommand], ...]]] = {
    (Phase.CREATED, Started): (Phase.SCHEDULING, (EnterStatus, TakeSlots)),
    (Phase.SCHEDULING, SlotsTaken): (Phase.DEPLOYING, (Deploy,)),
    (Phase.SCHEDULING, SlotsMissing): (Phase.SCHEDULING, (WaitForSlots,)),
    (Phase.DEPLOYING, Deployed): (Phase.RUNNING, (CheckRequests,)),
    (Phase.RUNNING, RequestsChecked): (Phase.RUNNING, (RunEpoch,)),
    (Phase.RUNNING, Rescaled): (Phase.RUNNING, (RunEpoch,)),
    (Phase.RUNNING, EpochEnded): (Phase.RUNNING, (CheckRequests,)),
    (Phase.FINISHING, OutputPublished): STOPPED,
    (Phase.RESTARTING, DelayElapsed): (Phase.RECOVERING, (BeginRun,)),
    (Phase.RECOVERING, RunBegun): (Phase.SCHEDULING, (EnterStatus, TakeSlots)),
    (Phase.RECOVERING, PartRestarted): (Phase.RUNNING, (EnterStatus, CheckRequests)),
    # A step may fail in every phase; of a run that is being restored there is nothing to let go of.
    **{(phase, Failed): (Phase.RESTARTING, RESTART) for phase in OPEN},
    (Phase.RESTARTING, Failed): (
        Phase.RESTARTING,
        (RecordFailure, AbortCheckpoints, CloseRun, WaitBeforeRestart),
    ),
    (Phase.RECOVERING, Failed): (Phase.RESTARTING, (RecordFailure, WaitBeforeRestart)),
    # Whoever wants the job to end is heard at once, and the step at work is the last one.
    **{(phase, CancelAsked): CANCELLING for phase in OPEN},
    (Phase.CREATED, CancelAsked): (Phase.STOPPING, (InterruptEpoch,)),
    **{(phase, LeadershipLost): (Phase.STOPPING, (InterruptEpoch,)) for phase in OPEN},
    **{(phase, RescaleAsked): (phase, ()) for phase in OPEN},
    **{(Phase.STOPPING, type(event)): STOPPED for event in EVENTS[:12]},
    (Phase.STOPPING, CancelAsked): (Phase.STOPPING, ()),
    # A job that has ended only answers.
    (Phase.ENDED, CancelAsked): (Phase.ENDED, ()),
    (Phase.ENDED, LeadershipLost): (Phase.ENDED, ()),
    (Phase.ENDED, RescaleAsked): (Phase.ENDED, (RefuseRescaling,)),
}


@pytest.mark.parametrize("phase", Phase, ids=lambda phase: phase.name)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_has_its_answer_in_every_phase(phase: Phase, event: JobEvent) -> None:
    job = in_phase(phase)
    expected = TABLE.get((phase, type(event)))
    if expected is None:
        before = vars(job).copy()
        with pytest.raises(InvariantViolation, match=f"cannot happen in phase {phase.name}"):
            job.handle(event)
        assert vars(job) == before
        return
    commands = job.handle(event)
    assert (job.phase, kinds(commands)) == expected


# --- from the start to the end ------------------------------------------------------------------------


def test_a_job_runs_epoch_after_epoch_to_its_end() -> None:
    job = in_phase(Phase.RUNNING)
    for _ in range(3):
        assert job.handle(RequestsChecked()) == (RunEpoch(),)
        assert job.handle(EpochEnded()) == (CheckRequests(follows_slots=True),)
    assert job.handle(EpochEnded(has_ended=True)) == (FinishJob(takes_checkpoint=True),)
    assert job.handle(OutputPublished()) == (
        EnterStatus(JobStatus.FINISHED, subtasks=ExecutionState.FINISHED),
        CloseRun(),
        ReleaseSlots(),
        RecordResult(JobStatus.FINISHED, None),
    )
    assert (job.status, job.error) == (JobStatus.FINISHED, None)


def test_a_job_stopped_with_a_savepoint_takes_no_other_checkpoint() -> None:
    job = in_phase(Phase.RUNNING)
    assert job.handle(EpochEnded(is_stopped=True)) == (FinishJob(takes_checkpoint=False),)


def test_a_job_restored_at_its_end_runs_no_epoch() -> None:
    job = in_phase(Phase.DEPLOYING)
    assert job.handle(Deployed(has_ended=True)) == (FinishJob(takes_checkpoint=True),)


def test_a_job_that_had_ended_only_publishes_its_output() -> None:
    job = lifecycle()
    running = EnterStatus(JobStatus.RUNNING, subtasks=ExecutionState.SCHEDULED)
    assert job.handle(Started(0, is_over=True)) == (running, Deploy())
    assert job.handle(Deployed()) == (FinishJob(takes_checkpoint=False),)


def test_sources_are_drained_once_in_a_run() -> None:
    job = in_phase(Phase.RUNNING)
    assert job.handle(RequestsChecked(drains=True)) == (Drain(), RunEpoch(is_drained=True))
    job.handle(EpochEnded())
    assert job.handle(RequestsChecked(drains=True)) == (RunEpoch(is_drained=True),)
    for event in (Failed(LOST, 5), DelayElapsed(), RunBegun(60), SlotsTaken(), Deployed()):
        job.handle(event)
    assert job.handle(RequestsChecked()) == (RunEpoch(is_drained=False),)
    job.handle(EpochEnded())
    assert job.handle(RequestsChecked(drains=True)) == (Drain(), RunEpoch(is_drained=True))


# --- slots --------------------------------------------------------------------------------------------


def test_a_job_waits_for_slots_as_long_as_it_may() -> None:
    job = lifecycle()
    job.handle(Started(100))
    assert job.handle(SlotsMissing(100)) == (WaitForSlots(is_first=True),)
    assert job.handle(SlotsMissing(100 + TIMEOUT_MS - 1)) == (WaitForSlots(is_first=False),)
    assert job.handle(SlotsMissing(100 + TIMEOUT_MS)) == (GiveUpOnSlots(TIMEOUT_MS),)


def test_a_restarted_job_waits_for_slots_again() -> None:
    job = in_phase(Phase.RECOVERING)
    job.handle(RunBegun(5000))
    assert job.handle(SlotsMissing(5000 + TIMEOUT_MS - 1)) == (WaitForSlots(is_first=True),)


# --- another parallelism ------------------------------------------------------------------------------


def test_another_parallelism_comes_between_two_epochs_and_before_the_slots() -> None:
    job = in_phase(Phase.RUNNING)
    assert job.handle(RESCALING) == ()
    assert job.handle(EpochEnded()) == (CheckRequests(follows_slots=False),)
    assert job.handle(RequestsChecked()) == (RescaleJob({"v": 2}, request=7),)
    assert job.handle(Rescaled()) == (RunEpoch(),)
    assert job.handle(EpochEnded()) == (CheckRequests(follows_slots=True),)


def test_slots_that_were_taken_are_used_before_a_request_that_came_later() -> None:
    job = in_phase(Phase.RUNNING)
    job.handle(RESCALING)
    assert job.handle(RequestsChecked(parallelism={"v": 4})) == (RescaleJob({"v": 4}),)
    job.handle(Rescaled())
    job.handle(EpochEnded())
    assert job.handle(RequestsChecked()) == (RescaleJob({"v": 2}, request=7),)


def test_the_last_of_several_requests_counts() -> None:
    job = in_phase(Phase.RUNNING)
    job.handle(RESCALING)
    (refused,) = job.handle(RescaleAsked(8, {"v": 3}))
    assert isinstance(refused, RefuseRescaling)
    assert refused.number == 7
    assert job.handle(RequestsChecked()) == (RescaleJob({"v": 3}, request=8),)


def test_a_request_survives_a_restart_and_is_refused_at_the_end() -> None:
    job = in_phase(Phase.RECOVERING)
    job.handle(RESCALING)
    for event in (RunBegun(60), SlotsTaken(), Deployed(has_ended=True)):
        job.handle(event)
    (refused,) = [each for each in job.handle(OutputPublished()) if isinstance(each, RefuseRescaling)]
    assert refused.number == 7
    assert str(refused.error) == "job 'words' has ended"


# --- failures -----------------------------------------------------------------------------------------


def test_a_failed_job_starts_again_after_the_delay_from_its_checkpoint() -> None:
    job = in_phase(Phase.RUNNING)
    assert job.handle(Failed(LOST, 5)) == (
        RecordFailure(LOST),
        EnterStatus(JobStatus.RESTARTING, LOST, ExecutionState.FAILED),
        AbortCheckpoints(LOST),
        CloseRun(),
        WaitBeforeRestart(DELAY_MS, LOST),
    )
    assert job.handle(DelayElapsed()) == (BeginRun(LOST),)
    assert statuses(job.handle(RunBegun(60))) == [JobStatus.RUNNING]


PART = frozenset({"v"})
OTHER_PART = frozenset({"w"})


def test_a_part_that_fails_starts_again_while_the_others_run() -> None:
    job = in_phase(Phase.RUNNING)
    assert job.handle(Failed(LOST, 5, PART)) == (
        RecordFailure(LOST),
        EnterStatus(JobStatus.RESTARTING, LOST),
        FailPart(PART, LOST),
        WaitBeforeRestart(DELAY_MS, LOST),
    )
    assert job.handle(DelayElapsed()) == (RestartPart(PART),)
    assert job.handle(PartRestarted()) == (EnterStatus(JobStatus.RUNNING), CheckRequests(follows_slots=True))
    assert job.phase is Phase.RUNNING


def test_a_part_that_fails_while_another_starts_again_is_next() -> None:
    job = in_phase(Phase.RUNNING)
    job.handle(Failed(LOST, 5, PART))
    job.handle(DelayElapsed())
    assert job.handle(Failed(LOST, 60, OTHER_PART)) == (
        RecordFailure(LOST),
        FailPart(OTHER_PART, LOST),
        WaitBeforeRestart(DELAY_MS, LOST),
    )
    assert job.handle(DelayElapsed()) == (RestartPart(OTHER_PART),)


def test_a_job_that_fails_while_a_part_starts_again_is_restarted_as_a_whole() -> None:
    job = in_phase(Phase.RUNNING)
    job.handle(Failed(LOST, 5, PART))
    job.handle(DelayElapsed())
    assert job.handle(Failed(LOST, 60)) == (
        RecordFailure(LOST),
        FailPart(None, LOST),
        AbortCheckpoints(LOST),
        CloseRun(),
        WaitBeforeRestart(DELAY_MS, LOST),
    )
    assert job.handle(DelayElapsed()) == (BeginRun(LOST),)


def test_damaged_state_of_a_part_is_restored_for_the_whole_job() -> None:
    commands = in_phase(Phase.RUNNING).handle(Failed(DAMAGED, 5, PART))
    assert kinds(commands) == RESTART


def test_a_failure_of_a_part_counts_for_the_restart_strategy() -> None:
    job = in_phase(Phase.RUNNING, FixedDelay(attempts=1, delay_ms=DELAY_MS))
    for event in (Failed(LOST, 5, PART), DelayElapsed(), PartRestarted()):
        job.handle(event)
    assert statuses(job.handle(Failed(LOST, 60, PART))) == [JobStatus.FAILING, JobStatus.FAILED]


def test_a_run_that_cannot_be_restored_is_one_more_failure_for_the_strategy() -> None:
    job = in_phase(Phase.RECOVERING, FixedDelay(attempts=2, delay_ms=DELAY_MS))
    down = ConnectorError("storage is down")
    assert job.handle(Failed(down, 60)) == (RecordFailure(down), WaitBeforeRestart(DELAY_MS, down))
    assert job.handle(DelayElapsed()) == (BeginRun(down),)
    commands = job.handle(Failed(down, 120))
    assert statuses(commands) == [JobStatus.FAILING, JobStatus.FAILED]
    assert commands[-1] == RecordResult(JobStatus.FAILED, down)
    assert job.error is down


def test_without_a_strategy_the_first_failure_is_the_last() -> None:
    commands = in_phase(Phase.RUNNING, NoRestart()).handle(Failed(LOST, 5))
    assert commands == (
        RecordFailure(LOST),
        EnterStatus(JobStatus.FAILING, LOST),
        EnterStatus(JobStatus.FAILED, LOST, ExecutionState.FAILED),
        CloseRun(),
        ReleaseSlots(),
        RecordResult(JobStatus.FAILED, LOST),
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CHANGED, JobStatus.FAILED),
        (InvariantViolation("a bug"), JobStatus.FAILED),
        (ConnectorError("password refused", retryable=False), JobStatus.FAILED),
        (KeyboardInterrupt(), JobStatus.FAILED),
        (OTHER_LEADS, JobStatus.SUSPENDED),
        (JobCancelledError("enough"), JobStatus.CANCELED),
    ],
)
def test_an_error_that_is_not_retryable_fails_the_job_at_once(
    error: BaseException, status: JobStatus
) -> None:
    job = in_phase(Phase.RUNNING)
    commands = job.handle(Failed(error, 5))
    assert statuses(commands)[-1] is status
    assert commands[-1] == RecordResult(status, error if status is JobStatus.FAILED else None)
    assert job.error is error


def test_damaged_state_is_restored_at_once_and_costs_no_attempt() -> None:
    job = in_phase(Phase.RUNNING, NoRestart())
    assert job.handle(Failed(DAMAGED, 5))[-1] == WaitBeforeRestart(0, DAMAGED)
    assert job.handle(DelayElapsed()) == (BeginRun(DAMAGED),)


def test_with_nothing_whole_to_restore_the_job_fails() -> None:
    job = in_phase(Phase.RECOVERING)
    assert job.handle(Failed(DAMAGED, 5))[-1] == RecordResult(JobStatus.FAILED, DAMAGED)


# --- requests to end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", OPEN, ids=lambda phase: phase.name)
def test_who_cancels_wins_over_failures_and_restarts(phase: Phase) -> None:
    job = in_phase(phase)
    job.handle(CancelAsked())
    commands = job.handle(Failed(LOST, 5))
    assert commands[-1] == RecordResult(JobStatus.CANCELED, None)
    assert RecordFailure not in kinds(commands)
    assert isinstance(job.error, JobCancelledError)


@pytest.mark.parametrize("phase", OPEN, ids=lambda phase: phase.name)
def test_a_job_that_others_lead_is_suspended_whatever_else_was_asked_for(phase: Phase) -> None:
    job = in_phase(phase)
    job.handle(CancelAsked())
    job.handle(LeadershipLost(OTHER_LEADS))
    job.handle(CancelAsked())
    assert job.handle(DelayElapsed())[-1] == RecordResult(JobStatus.SUSPENDED, None)
    assert job.error is OTHER_LEADS


def test_a_job_cancelled_while_it_publishes_is_cancelled() -> None:
    job = in_phase(Phase.FINISHING)
    assert statuses(job.handle(CancelAsked())) == [JobStatus.CANCELLING]
    assert statuses(job.handle(OutputPublished())) == [JobStatus.CANCELED]


# --- in any order -------------------------------------------------------------------------------------

ERRORS: tuple[BaseException, ...] = (
    LOST,
    DAMAGED,
    CHANGED,
    OTHER_LEADS,
    ConnectorError("down"),
    JobCancelledError("enough"),
    ValueError("of a connector"),
    KeyboardInterrupt(),
)
NOW = st.integers(0, 3 * TIMEOUT_MS)
FLAG = st.booleans()
REPORTS: dict[type[JobStep], st.SearchStrategy[JobEvent]] = {
    TakeSlots: st.one_of(st.just(SlotsTaken()), NOW.map(SlotsMissing)),
    WaitForSlots: st.one_of(st.just(SlotsTaken()), NOW.map(SlotsMissing)),
    GiveUpOnSlots: NOW.map(lambda now: Failed(LOST, now)),
    Deploy: st.builds(Deployed, has_ended=FLAG),
    CheckRequests: st.builds(RequestsChecked, drains=FLAG, parallelism=st.sampled_from([None, {"v": 2}])),
    RescaleJob: st.just(Rescaled()),
    RunEpoch: st.builds(EpochEnded, has_ended=FLAG, is_stopped=FLAG),
    FinishJob: st.just(OutputPublished()),
    WaitBeforeRestart: st.just(DelayElapsed()),
    BeginRun: st.builds(RunBegun, NOW, is_over=FLAG),
    RestartPart: st.just(PartRestarted()),
}


class AnyLife(RuleBasedStateMachine):
    """Steps end or fail, and requests come, in any order; the job's thread has one step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.step: JobCommand | None = None
        self.status = JobStatus.CREATED
        self.results: list[RecordResult] = []
        self.is_open = True
        self.wants_to_end = False
        self.asked: list[int] = []
        self.answered: list[int] = []

    @initialize(attempts=st.integers(0, 4), is_over=FLAG)
    def start(self, attempts: int, is_over: bool) -> None:
        self.job = lifecycle(FixedDelay(attempts, DELAY_MS))
        self.tell(Started(0, is_over))

    @rule(data=st.data())
    @precondition(lambda self: self.step is not None)
    def the_step_ends(self, data: st.DataObject) -> None:
        self.tell(data.draw(REPORTS[type(self.step)]))

    @rule(error=st.sampled_from(ERRORS), now=NOW, part=st.sampled_from([None, None, PART]))
    @precondition(lambda self: self.step is not None)
    def the_step_fails(self, error: BaseException, now: int, part: frozenset[str] | None) -> None:
        self.tell(Failed(error, now, part))

    @rule()
    def somebody_cancels(self) -> None:
        self.ask(CancelAsked())
        self.wants_to_end = True

    @rule()
    def leadership_is_lost(self) -> None:
        self.ask(LeadershipLost(OTHER_LEADS))
        self.wants_to_end = True

    @rule()
    def somebody_rescales(self) -> None:
        self.asked.append(len(self.asked))
        self.ask(RescaleAsked(self.asked[-1], {"v": 2}))

    def ask(self, request: JobEvent) -> None:
        """Requests are answered with what any thread may do."""
        had_ended = self.job.has_ended
        commands = self.job.handle(request)
        assert set(kinds(commands)) <= {EnterStatus, InterruptEpoch, RefuseRescaling}
        if had_ended:
            assert set(kinds(commands)) <= {RefuseRescaling}
        self.note(commands)

    def tell(self, event: JobEvent) -> None:
        """An event of the job leads to exactly one step, the last command; or to the end, and then to none."""
        commands = self.job.handle(event)
        self.note(commands)
        steps = [command for command in commands if type(command) in REPORTS]
        assert steps == ([] if self.job.has_ended else [commands[-1]])
        self.step = steps[0] if steps else None
        if self.wants_to_end:
            assert self.job.has_ended, "who wants the job to end waits for one step"
            assert self.status in self.possible_ends(event)
        if isinstance(self.step, BeginRun):
            assert not self.is_open, "a run begins when the one before it is closed"
            self.is_open = True
        if isinstance(self.step, RestartPart):
            assert self.is_open, "there is a run whose other parts go on"

    def possible_ends(self, event: JobEvent) -> set[JobStatus]:
        if isinstance(event, Failed) and not isinstance(event.error, Exception):
            return {JobStatus.FAILED}
        is_led_by_others = recovery_of(self.job.error or LOST) is RecoveryAction.HAND_OVER
        return {JobStatus.SUSPENDED if is_led_by_others else JobStatus.CANCELED}

    def note(self, commands: JobCommands) -> None:
        for command in commands:
            assert not self.results or isinstance(command, RefuseRescaling), "nothing comes behind the result"
            match command:
                case EnterStatus():
                    assert command.status in JOB_TRANSITIONS[self.status]
                    self.status = command.status
                case RecordResult():
                    self.results.append(command)
                case CloseRun():
                    self.is_open = False
                case RescaleJob(request=int(number)) | RefuseRescaling(number=number):
                    self.answered.append(number)

    @invariant()
    def a_job_that_has_ended_has_one_result(self) -> None:
        if not hasattr(self, "job"):
            return
        assert self.status is self.job.status
        assert self.status.is_terminal_state() == self.job.has_ended
        ends = [self.status] if self.job.has_ended else []
        assert [result.status for result in self.results] == ends
        if self.job.has_ended:
            assert not self.is_open
            assert (self.job.error is None) == (self.status is JobStatus.FINISHED)

    @invariant()
    def whoever_asks_for_another_parallelism_is_answered_once(self) -> None:
        assert len(set(self.answered)) == len(self.answered)
        if self.results:
            assert sorted(self.answered) == self.asked
        else:
            assert set(self.asked[:-1]) <= set(self.answered), "only the last request waits"


TestAnyLife = AnyLife.TestCase
