"""JobMaster: takes one job from its start to its end, through failures, restarts and changes of parallelism.

    start -> run -> FINISHED            a run is a row of epochs: see `JobRun`
      ^       |
      |       +-- fails -> restart strategy: wait, then a new run from the last completed checkpoint; or FAILED
      +-------+-- rescaled -> a new run with other parallelism, from where the last one stands

It owns the job's execution graph, decides which run there is, and has what it staged published. What runs an epoch is
behind `EpochRunner`, so the same master drives Spark and the test kit.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import uuid4

from headrace.common.job_status import JobStatus
from headrace.connectors.base import Committer
from headrace.errors import (
    DamagedStateError,
    HeadraceError,
    JobCancelledError,
    JobExecutionError,
    LeadershipError,
    UserFunctionError,
)
from headrace.graph.execution_graph import ExecutionState, build_execution_graph
from headrace.graph.job_graph import JobGraph, OperatorNode
from headrace.graph.rescaling import with_parallelism
from headrace.graph.table_job import expected_rate
from headrace.runtime.checkpoint.checkpointing import Checkpointing
from headrace.runtime.checkpoint.restore import RestoreReport, StartingPoint, starting_point
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint
from headrace.runtime.epoch.back_pressure import TimeShares, time_shares, work_time
from headrace.runtime.epoch.log import EpochNumbers
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.epoch.pacing import EpochPacer, PacingSettings
from headrace.runtime.epoch.phases import PhaseClock
from headrace.runtime.high_availability.job_results import JobResults, NoJobResults
from headrace.runtime.job.restart import NoRestart, RestartStrategy, is_fatal
from headrace.runtime.monitoring.failure_history import FailureHistory
from headrace.runtime.monitoring.flame_graphs import FlameGraphs, FlameGraphSettings
from headrace.runtime.run.accumulators import JobAccumulators
from headrace.runtime.run.job_run import EpochRunner, EpochSummary, JobRun, NoEpochs, RunSettings
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.runtime.run.state_registry import StateSize
from headrace.runtime.scheduling.adaptive_scheduler import AdaptiveSettings
from headrace.runtime.scheduling.scheduler import Scheduler, parallelism_of
from headrace.runtime.scheduling.slots import SlotPool, endless_slots
from headrace.state.key_secret import KeySecret
from headrace.util import clock

_log = logging.getLogger(__name__)

#: An idle job asks its sources after one, two, ... at most this many poll intervals.
_MOST_PATIENCE = 5
_LEAST_DELAY_S = 0.001
#: How long to wait between looks at a snapshot that is being written, s.
_WRITING_POLL_S = 0.01
#: How long to wait between looks at the slots there are, s.
_SLOTS_POLL_S = 0.1
T = TypeVar("T")
#: Makes what runs the epochs of a job under a lineage, with the secret of its keys.
MakeRunner = Callable[[JobGraph, str, KeySecret], EpochRunner]


@dataclass(frozen=True)
class JobMasterSettings:
    """The options the master itself reads."""

    #: Where the job keeps state and checkpoints, each job below its own id.
    directory: str
    pacing: PacingSettings
    idle_poll_s: float = 0.01
    epoch_retries: int = 3
    max_changes: int = 16
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    restart: RestartStrategy = field(default_factory=NoRestart)
    #: Set if the parallelism follows the slots.
    adaptive: AdaptiveSettings | None = None
    #: How long a job waits for slots.
    slot_timeout_ms: int = 300_000
    #: From one latency marker to the next; 0 for none.
    latency_interval_ms: int = 0
    #: Failures that are remembered.
    failure_history_size: int = 16
    flame_graphs: FlameGraphSettings = field(default_factory=FlameGraphSettings)


@dataclass
class JobProgress:
    """Running totals of a job."""

    epochs: int = 0
    records: int = 0
    watermark: int | None = None
    #: How often the job was started again after a failure.
    restarts: int = 0
    #: How often its parallelism was changed.
    rescales: int = 0


@dataclass(frozen=True)
class _Rescaling:
    """Somebody wants another parallelism."""

    parallelism: Mapping[str, int]
    future: Future[None] = field(default_factory=Future)

    def refuse(self, error: BaseException) -> None:
        """Say why it is not done, unless nobody wants to know any more."""
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


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
        job = self._scheduler.planned(job)
        self.job = job
        self.progress = JobProgress()
        #: What of a savepoint found its operator; None for a job that started empty.
        self.restore_report: RestoreReport | None = None
        #: Why the job failed, also where it started again.
        self.failures = FailureHistory(settings.failure_history_size)
        #: Where the time of tasks goes, for whoever asks.
        self.flame_graphs = FlameGraphs(settings.flame_graphs)
        self._make_runner = make_runner
        self._settings = settings
        self._on_epoch = on_epoch
        self._now_ms = now_ms
        self._ensure_leader = ensure_leader
        self._timer = timer
        #: Where the time starts that the next epoch's subtasks are asked about.
        self._shares_since = timer()
        #: How long output was published since then, by the operator id of the sink.
        self._publishing_s: dict[str, float] = {}
        self._phases = PhaseClock(timer)
        self.execution = build_execution_graph(job, now_ms())
        self._directory = CheckpointDirectory(
            settings.directory, job.job_id, leader, ensure_leader=ensure_leader
        )
        self._pacer = EpochPacer(settings.pacing, expected_rate(job))
        self._restart = settings.restart.build()
        self._random = random.Random(job.job_id)
        self._cancelled = threading.Event()
        #: Why the job is another's now.
        self._stepped_down: LeadershipError | None = None
        #: Set when somebody asks for something while the master may be asleep.
        self._wake = threading.Event()
        self._rescaling: _Rescaling | None = None
        self._is_drained = False
        #: Whether the run and the sinks at hand have been let go of.
        self._is_closed = False
        #: Guards the job's status: `cancel` comes from another thread.
        self._status_lock = threading.Lock()
        self._shown_warnings: set[str] = set()
        # State files go there also when there are no checkpoints.
        self._directory.ensure_writable()
        self._epoch_numbers = EpochNumbers(self._directory.path)
        self._checkpointing = Checkpointing(
            job.name,
            self._directory,
            settings.checkpoints,
            results or NoJobResults(),
            ensure_leader=ensure_leader,
            now_ms=now_ms,
        )
        self._start = self._checkpointing.find_start()
        self._sinks, self._run = self._begin_run(self._start)

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

    # -- life --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the job to its end.

        Raises:
            JobCancelledError: After `cancel`.
            HeadraceError: The reason the job failed.
        """
        status, cause = JobStatus.FAILED, None
        try:
            while not self._run_once():
                pass
            status = JobStatus.FINISHED
        except JobCancelledError:
            status = JobStatus.CANCELED
            self.execution.end(ExecutionState.CANCELED, self._now_ms())
            self._enter(JobStatus.CANCELLING, JobStatus.CANCELED)
            raise
        except LeadershipError:
            status = JobStatus.SUSPENDED
            self.execution.end(ExecutionState.CANCELED, self._now_ms())
            self._enter(JobStatus.SUSPENDED)
            raise
        except BaseException as error:
            cause = error
            self.execution.end(ExecutionState.FAILED, self._now_ms(), error)
            self._enter(JobStatus.FAILING, JobStatus.FAILED, cause=error)
            raise
        finally:
            self._close(status, cause)

    def _run_once(self) -> bool:
        """Run until the job is over, and return True; or until it has failed and is to start again."""
        try:
            self._enter(JobStatus.RUNNING)
            self.execution.schedule(self._now_ms())
            if not self._checkpointing.has_ended:
                self._take_slots()
            self._deploy()
            self._checkpointing.running(self._run)
            self._run_epochs()
        except JobCancelledError:
            raise
        except Exception as error:
            self._check_not_cancelled()
            self.failures.add(error, self._now_ms(), self.job)
            delay_ms = self._delay_before_restart(error)
            if delay_ms is None:
                raise
            self._restart_after(delay_ms, error)
            return False
        return True

    def _run_epochs(self) -> None:
        idle_polls = 0
        is_stopped = self._checkpointing.has_ended
        while not (is_stopped or self._run.has_ended):
            self._wake.clear()  # first: whoever asks for something from here on is heard before the next sleep
            self._check_not_cancelled()
            self._ensure_leader()
            self._follow_requests()
            started = self._timer()
            published_s = 0.0
            summary = None
            self._phases.begin()
            plan = self._run.plan()
            self._phases.planned()
            if plan is None:
                idle_polls += 1
                self._sinks.commit_in_time(self._now_ms())
            else:
                idle_polls = 0
                plan = self.flame_graphs.sampled(plan, self._now_ms())
                summary = self._run.run(plan, self._check_not_cancelled)
                published_s += self._finish_epoch(summary)
            is_stopped = self._checkpointing.after_epoch(
                self._run, self._sinks, is_drained=self._is_drained and self._run.has_ended
            )
            settled_s = self._note_publications()
            self._phases.settled(settled_s)
            published_s += settled_s
            if summary is not None:
                self._pacer.observe(
                    duration_s=self._timer() - started - published_s,
                    work_s=work_time(self.job, summary.reports),
                    most_records=summary.most_records,
                    most_bytes=summary.most_bytes,
                )
            if plan is None and not is_stopped:
                self._wake.wait(self._idle_delay(idle_polls))
                self._phases.waited()
        if not is_stopped:
            self._checkpointing.final(self._run, self._sinks)
        self._ensure_leader()
        if self._run.has_ended:
            self._sinks.finish()
        self._checkpointing.mark_ended()
        self._finish()

    def _finish_epoch(self, summary: EpochSummary) -> float:
        """Do what follows an epoch, and return for how many seconds its output was published."""
        self._pacer.read(summary.epoch, summary.most_records)
        self._sinks.add(summary.epoch, summary.reports)
        self.flame_graphs.add(summary.reports, self._now_ms())
        published_s = self._note_publications()
        for report in summary.reports:
            if report.has_ended:
                self.execution.finish(*report.subtask, self._now_ms())
        self._checkpointing.retire(self._run.tidy_state())
        phases = self._phases.epoch(published_s, self._run.tries)
        wall_s, shares = self._take_shares(summary, phases.before.waiting_s)
        self._observe(replace(summary, wall_s=wall_s, shares=shares, phases=phases))
        return published_s

    def _note_publications(self) -> float:
        """Learn from what was published, and return how long that took."""
        total_s = 0.0
        for publication in self._sinks.take_publications():
            duration_s = sum(publication.duration_s.values())
            self._pacer.published(publication.epochs, duration_s)
            for operator_id, seconds in publication.duration_s.items():
                self._publishing_s[operator_id] = self._publishing_s.get(operator_id, 0.0) + seconds
            total_s += duration_s
        return total_s

    def _take_shares(
        self, summary: EpochSummary, waiting_s: float
    ) -> tuple[float, dict[SubtaskId, TimeShares]]:
        """Return the time since this was last asked, and how subtasks spent it."""
        now = self._timer()
        wall_s = now - self._shares_since
        shares = time_shares(self.job, summary.reports, wall_s, self._publishing_s, waiting_s)
        self._shares_since, self._publishing_s = now, {}
        return wall_s, shares

    def _finish(self) -> None:
        """All subtasks are done, or the job was stopped with a savepoint."""
        with self._status_lock:
            self._check_not_cancelled()
            for vertex_id, vertex in self.execution.subtasks():
                self.execution.finish(vertex_id, vertex.subtask_index, self._now_ms())
            self._set_status(JobStatus.FINISHED)

    def _enter(self, *statuses: JobStatus, cause: BaseException | None = None) -> None:
        """Go through statuses, past one that `cancel` has entered already."""
        with self._status_lock:
            for status in statuses:
                if status != self.execution.status:
                    self._set_status(status, cause)

    def _set_status(self, status: JobStatus, cause: BaseException | None = None) -> None:
        before = self.execution.status
        self.execution.set_job_status(status, self._now_ms(), cause)
        why = "" if cause is None else f": {getattr(cause, 'message', None) or repr(cause)}"
        _log.info(
            "job '%s' (%s) went from %s to %s%s",
            *(self.job.name, self.job.job_id, before.name, status.name, why),
        )

    def _check_not_cancelled(self) -> None:
        if self._stepped_down is not None:
            raise self._stepped_down
        if self._cancelled.is_set():
            raise JobCancelledError(f"job '{self.job.name}' was cancelled", job=self.job.name)

    # -- requests, from any thread -----------------------------------------------------------------------------

    def cancel(self) -> None:
        """Ask the job to stop; returns at once."""
        with self._status_lock:
            if self._cancelled.is_set():
                return
            self._cancelled.set()
            if self.execution.status in (JobStatus.RUNNING, JobStatus.RESTARTING):
                self._set_status(JobStatus.CANCELLING)
        self._wake.set()
        self._run.runner.cancel()

    def step_down(self, error: LeadershipError) -> None:
        """Stop, because another process may lead the job by now; returns at once."""
        self._stepped_down = error
        self._wake.set()
        self._run.runner.cancel()

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
        request = _Rescaling(dict(parallelism))
        if self.execution.status.is_terminal_state():
            request.future.set_exception(JobExecutionError(f"job '{self.job.name}' has ended"))
            return request.future
        with self._status_lock:
            replaced, self._rescaling = self._rescaling, request
        if replaced is not None:
            replaced.refuse(
                JobExecutionError(f"job '{self.job.name}' was asked for another parallelism since")
            )
        return self._woken(request.future)

    def _woken(self, future: Future[T]) -> Future[T]:
        self._wake.set()
        return future

    def _follow_requests(self) -> None:
        stop = self._checkpointing.coordinator.stop_requested
        if stop is not None and stop.drain and not self._is_drained:
            self._is_drained = True
            self._run.drain()
        with self._status_lock:
            request, self._rescaling = self._rescaling, None
        if request is not None and request.future.set_running_or_notify_cancel():
            self._follow_rescaling(request)
        elif (wanted := self._scheduler.follow(self.job, self._now_ms())) is not None:
            widest = max(wanted.values())
            _log.info("job '%s' follows the slots there are: parallelism %s", self.job.name, widest)
            self._rescale(wanted)

    def _follow_rescaling(self, request: _Rescaling) -> None:
        wanted = with_parallelism(self.job, request.parallelism)
        if not self._scheduler.take(wanted):
            request.refuse(self._scheduler.refusal(wanted, 0))  # the job goes on as it is
            return
        try:
            self._rescale(request.parallelism)
        except BaseException as error:
            request.refuse(error)
            raise
        request.future.set_result(None)

    def _take_slots(self) -> None:
        """Wait until the job has its slots; the parallelism of an adaptive one follows them.

        Raises:
            NoResourceAvailableError: If they do not come in time.
        """
        since_ms, has_told = self._now_ms(), False
        while (wanted := self._scheduler.start(self.job, self._now_ms())) is None:
            waited_ms = self._now_ms() - since_ms
            if waited_ms >= self._scheduler.timeout_ms:
                raise self._scheduler.refusal(self.job, waited_ms)
            if not has_told:
                has_told = True
                _log.info("waiting for slots: %s", self._scheduler.refusal(self.job, waited_ms).message)
            self._wake.wait(_SLOTS_POLL_S)
            self._wake.clear()
            self._check_not_cancelled()
            self._ensure_leader()
        if wanted != parallelism_of(self.job):
            self._reshape(wanted)

    # -- runs --------------------------------------------------------------------------------------------------

    def _begin_run(self, stored: StoredCheckpoint | None) -> tuple[SinkCoordinator, JobRun]:
        """Make a run from a checkpoint on; what it covers is published, in case that was not done before."""
        lineage = uuid4().hex[:12]
        start = StartingPoint()
        if stored is not None:
            ignores = self._settings.checkpoints.ignore_unclaimed_state
            start, self.restore_report = starting_point(
                self.job, stored.metadata, lineage, allow_non_restored=ignores
            )
            for line in self.restore_report.lines():
                _log.info("job '%s' from %s: %s", self.job.name, stored.path, line)
        sinks = SinkCoordinator(
            self.job,
            self._directory.path,
            is_checkpointed=self._settings.checkpoints.publishes_with_checkpoints,
            blaming=self._blaming,
            timer=self._timer,
        )
        try:
            if stored is not None:
                self._ensure_leader()
                sinks.restore(start.sinks, stored.metadata.epoch)
            return sinks, self._make_run(lineage, start)
        except BaseException:
            _close_all(sinks.closers())
            raise

    def _make_run(self, lineage: str, start: StartingPoint) -> JobRun:
        settings = RunSettings(
            lineage,
            self._directory.path,
            epoch_retries=self._settings.epoch_retries,
            max_changes=self._settings.max_changes,
            latency_interval_ms=self._settings.latency_interval_ms,
        )
        runner: EpochRunner = NoEpochs()
        if not self._checkpointing.has_ended:
            runner = self._make_runner(self.job, lineage, start.key_secret)
        try:
            return JobRun(
                self.job,
                runner,
                settings,
                self._pacer,
                start,
                numbers=self._epoch_numbers,
                blaming=self._blaming,
                now_ms=self._now_ms,
                timer=self._timer,
            )
        except BaseException:
            runner.close()
            raise

    def _delay_before_restart(self, error: Exception) -> int | None:
        if isinstance(error, DamagedStateError):
            return (
                0  # back to a checkpoint that is whole, if there is one; no strategy helps if there is none
            )
        if is_fatal(error):
            return None
        return self._restart.on_failure(self._now_ms(), self._random)

    def _restart_after(self, delay_ms: int, error: Exception) -> None:
        """Give the run up and begin another from the last checkpoint; that may fail as well, and is tried again."""
        self.execution.end(ExecutionState.FAILED, self._now_ms(), error)
        self._enter(JobStatus.RESTARTING, cause=error)
        self._checkpointing.job_failed(error)
        self._close_run()
        while True:
            message = (
                error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
            )
            _log.warning("job '%s' starts again in %d ms: %s", self.job.name, delay_ms, message)
            if self._cancelled.wait(delay_ms / 1000):
                self._check_not_cancelled()
            try:
                stored = self._checkpointing.find_restart(self._start, error)
                self._sinks, self._run = self._begin_run(stored)
                break
            except Exception as again:
                self.failures.add(again, self._now_ms(), self.job)
                delay = None if is_fatal(again) else self._delay_before_restart(again)
                if delay is None:
                    raise
                delay_ms, error = delay, again
        self._is_drained = False
        self._is_closed = False
        self.progress.restarts += 1
        for vertex_id, vertex in self.execution.subtasks():
            self.execution.new_attempt(vertex_id, vertex.subtask_index, self._now_ms())

    def _rescale(self, parallelism: Mapping[str, int]) -> None:
        """Go on with another parallelism, from where the last run stands."""
        self.progress.rescales += 1
        self._reshape(parallelism)
        self._deploy()
        self._checkpointing.delete_orphans(self._run)

    def _reshape(self, parallelism: Mapping[str, int]) -> None:
        """Begin a run with another parallelism, where the last one stands."""
        job = with_parallelism(self.job, parallelism)
        here = self._run.snapshot(
            self._sinks, kind="checkpoint", checkpoint_id=0, timestamp_ms=self._now_ms()
        )
        lineage = uuid4().hex[:12]
        start, _ = starting_point(job, here, lineage)
        execution = build_execution_graph(job, self._now_ms())
        execution.set_job_status(JobStatus.RUNNING, self._now_ms())
        # For the job this is no new start.
        execution.status_timestamps = dict(self.execution.status_timestamps)
        self._run.close()
        # If the run cannot be made, the job starts again from a checkpoint, in its new shape.
        with self._status_lock:
            self._check_not_cancelled()
            self.job = job
            self.execution = execution
        self._run = self._make_run(lineage, start)

    # -- watching ----------------------------------------------------------------------------------------------

    def _observe(self, summary: EpochSummary) -> None:
        self.progress.epochs += 1
        self.progress.records += summary.records
        self.progress.watermark = summary.watermark
        for warning in (text for report in summary.reports for text in report.warnings):
            if warning not in self._shown_warnings:
                self._shown_warnings.add(warning)
                _log.warning("%s", warning)
        if self._on_epoch is not None:
            self._on_epoch(summary)

    @contextmanager
    def _blaming(self, node: OperatorNode) -> Iterator[None]:
        """Say whose connector it was that failed in the driver."""
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, job=self.job.name, operator=node.name) from error

    def _idle_delay(self, polls: int) -> float:
        """Return how long to wait for input: a source may know, otherwise ever longer while nothing comes."""
        usual = self._settings.idle_poll_s * min(polls, _MOST_PATIENCE)
        waiting = [source.retry_delay() for source in self._run.sources if not source.has_ended]
        delays = [usual if delay is None else delay for delay in waiting]
        times = self._run.wake_times()
        times += [t for t in (self._sinks.next_commit_ms(), self._next_checkpoint_ms()) if t is not None]
        delays += [(time - self._now_ms()) / 1000 for time in times]
        if self._checkpointing.is_waiting():
            delays.append(_WRITING_POLL_S)
        return max(_LEAST_DELAY_S, min(delays, default=usual))

    def _next_checkpoint_ms(self) -> int | None:
        return self._checkpointing.coordinator.next_due_ms()

    def _deploy(self) -> None:
        self._shares_since = self._timer()
        self.execution.deploy(self._now_ms())
        for vertex_id, subtask in self._run.ended:
            self.execution.finish(vertex_id, subtask, self._now_ms())

    # -- the end -----------------------------------------------------------------------------------------------

    def _close_run(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._run.close()
            _close_all(self._sinks.closers())

    def _close(self, status: JobStatus, cause: BaseException | None) -> None:
        self._close_run()
        with self._status_lock:
            request, self._rescaling = self._rescaling, None
        if request is not None:
            request.refuse(JobExecutionError(f"job '{self.job.name}' has ended"))
        self._scheduler.free()
        self._checkpointing.close(status, cause, taken_over=not self._is_ours())
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


def _close_all(closers: list[Committer]) -> None:
    """Close every one, whatever the others do."""
    for closer in closers:
        try:
            closer.close()
        except Exception:  # noqa: BLE001 - the others must still be closed
            _log.exception("closing %s failed", type(closer).__name__)
