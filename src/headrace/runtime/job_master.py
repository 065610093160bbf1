"""JobMaster: runs one job, epoch after epoch.

    plan slices -> write them down -> run the epoch (one Spark job) -> take over state and positions
         ^                                                              -> write it down -> commit sinks --+
         +-------------------------------------------------------------------------------------------------+

It owns the job's execution graph, source coordinators and state handles. What runs an epoch is behind `EpochRunner`,
so the same master drives Spark and the test kit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from headrace.common.job_status import JobStatus
from headrace.connectors.base import Committable, Committer
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import (
    HeadraceError,
    JobCancelledError,
    JobExecutionError,
    TaskLostError,
    UserFunctionError,
)
from headrace.graph.execution_graph import ExecutionState, build_execution_graph
from headrace.graph.job_graph import JobGraph, OperatorNode
from headrace.operators.io import SinkOperator, SourceOperator
from headrace.runtime.epoch_log import EpochLog
from headrace.runtime.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.pacing import EpochPacer, PacingSettings
from headrace.runtime.source_coordinator import SourceCoordinator
from headrace.runtime.state_registry import Compaction, StateRegistry
from headrace.runtime.watermark_alignment import WatermarkAlignment
from headrace.state.files import delete_files, join_path

_log = logging.getLogger(__name__)

#: An idle job asks its sources after one, two, ... at most this many poll intervals.
_MOST_PATIENCE = 5
_LEAST_DELAY_S = 0.001


class EpochRunner(Protocol):
    """Runs epochs somewhere: on Spark, or in this process for tests."""

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        """Run every subtask once and return their reports.

        Raises:
            TaskLostError: When a worker or host went away; the epoch may be run again.
            JobExecutionError: When the job cannot go on.
        """

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        """Merge state files in the background and return their sizes."""

    def cancel(self) -> None:
        """Interrupt the running epoch; safe to call from another thread, and when none runs."""

    def close(self) -> None:
        """Let go of what was set up for the job."""


@dataclass(frozen=True)
class JobMasterSettings:
    """The options the master itself reads."""

    #: Names this run: state of different runs never mixes.
    lineage: str
    state_dir: str
    pacing: PacingSettings
    idle_poll_s: float = 0.01
    epoch_retries: int = 3
    max_changes: int = 16


@dataclass(frozen=True)
class EpochSummary:
    """What a watcher sees of a completed epoch."""

    epoch: int
    #: Records that sources read.
    records: int
    duration_s: float
    #: The lowest watermark of all subtasks; None when the job has no event time.
    watermark: int | None
    reports: Sequence[SubtaskReport] = field(repr=False)


@dataclass
class JobProgress:
    """Running totals of a job."""

    epochs: int = 0
    records: int = 0
    watermark: int | None = None


class JobMaster:
    """Drives one job from its first epoch to its end."""

    def __init__(
        self,
        job: JobGraph,
        runner: EpochRunner,
        settings: JobMasterSettings,
        *,
        on_epoch: Callable[[EpochSummary], None] | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.job = job
        self.progress = JobProgress()
        self._runner = runner
        self._settings = settings
        self._on_epoch = on_epoch
        self._now_ms = now_ms
        self.execution = build_execution_graph(job, now_ms())
        self._coordinators = dict(self._make_coordinators())
        self._sinks = {
            node.operator_id: node
            for vertex in job.vertices
            for node in vertex.operators
            if isinstance(node.declaration, SinkOperator)
        }
        self._alignment = WatermarkAlignment(job)
        self._committers = dict(self._make_committers())
        self._state = StateRegistry(settings.lineage, settings.max_changes)
        self._log = EpochLog(join_path(settings.state_dir, "epochs"))
        self._pacer = EpochPacer(settings.pacing)
        self._ended: set[SubtaskId] = set()
        #: When each subtask next wants to be woken by the clock.
        self._timers: dict[SubtaskId, int] = {}
        self._epoch = 0
        self._compaction: tuple[Sequence[Compaction], Future[list[int]]] | None = None
        self._cancelled = threading.Event()
        #: Guards the job's status: `cancel` comes from another thread.
        self._status_lock = threading.Lock()
        self._shown_warnings: set[str] = set()

    # -- life --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the job to its end.

        Raises:
            JobCancelledError: After `cancel`.
            HeadraceError: The reason the job failed.
        """
        self._enter(JobStatus.RUNNING)
        try:
            self._deploy()
            idle_polls = 0
            while len(self._ended) < self._subtask_count():
                self._check_not_cancelled()
                plan = self._plan_epoch()
                if plan is None:
                    idle_polls += 1
                    self._cancelled.wait(self._idle_delay(idle_polls))
                else:
                    idle_polls = 0
                    self._run_epoch(plan)
            with self._status_lock:
                self._check_not_cancelled()
                self.execution.set_job_status(JobStatus.FINISHED, self._now_ms())
        except JobCancelledError:
            self._end_all(ExecutionState.CANCELED)
            self._enter(JobStatus.CANCELLING, JobStatus.CANCELED)
            raise
        except BaseException as error:
            self._end_all(ExecutionState.FAILED, error)
            self._enter(JobStatus.FAILING, JobStatus.FAILED, cause=error)
            raise
        finally:
            self._close()

    def cancel(self) -> None:
        """Ask the job to stop; returns at once."""
        with self._status_lock:
            if self._cancelled.is_set():
                return
            self._cancelled.set()
            if self.execution.status == JobStatus.RUNNING:
                self.execution.set_job_status(JobStatus.CANCELLING, self._now_ms())
        self._runner.cancel()

    def _enter(self, *statuses: JobStatus, cause: BaseException | None = None) -> None:
        """Go through statuses, past one that `cancel` has entered already."""
        with self._status_lock:
            for status in statuses:
                if status != self.execution.status:
                    self.execution.set_job_status(status, self._now_ms(), cause)

    def _check_not_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise JobCancelledError(f"job '{self.job.name}' was cancelled", job=self.job.name)

    # -- an epoch ----------------------------------------------------------------------------------------------

    def _plan_epoch(self) -> EpochPlan | None:
        source_plans = {}
        for vertex_id, coordinator in self._coordinators.items():
            with self._blaming(self.job.vertex(vertex_id).head):
                source_plans[vertex_id] = coordinator.plan(
                    self._pacer.max_records, self._now_ms(), self._alignment.paused(vertex_id)
                )
        if all(plans is None for plans in source_plans.values()) and not self._is_timer_due():
            return None
        self._epoch += 1
        subtasks = {}
        for vertex in self.job.vertices:
            source_of = self._coordinators.get(vertex.vertex_id)
            plans = {} if source_of is None else source_of.standing
            for index in range(vertex.parallelism):
                subtask = SubtaskId(vertex.vertex_id, index)
                source = plans.get(index)
                subtasks[subtask] = SubtaskPlan(
                    slices=source.slices if source else (),
                    max_records=self._pacer.max_records,
                    open_splits=source.open_splits if source else frozenset(),
                    may_get_more_splits=source.may_get_more_splits if source else True,
                    idle_splits=source.idle_splits if source else frozenset(),
                    has_ended=subtask in self._ended,
                    keyed=self._state.keyed(subtask),
                    operator_state=self._state.operator(subtask),
                )
        return EpochPlan(self.job.job_id, self._epoch, 0, self._settings.state_dir, subtasks)

    def _is_timer_due(self) -> bool:
        return bool(self._timers) and min(self._timers.values()) <= self._now_ms()

    def _run_epoch(self, plan: EpochPlan) -> None:
        started = time.perf_counter()
        reports = self._attempt_epoch(plan)
        # From here the epoch has happened: first it is written down, then sinks publish.
        self._log.complete(plan.epoch, reports)
        self._take_over(reports)
        self._commit(plan.epoch, reports)
        self._tidy_state()
        self._observe(plan, reports, time.perf_counter() - started)

    def _attempt_epoch(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        """Run the epoch; when a worker or host is lost, run it again as a whole, with the same slices."""
        for attempt in range(self._settings.epoch_retries + 1):
            current = EpochPlan(plan.job_id, plan.epoch, attempt, plan.state_dir, plan.subtasks)
            self._log.plan(current)
            try:
                reports = self._runner.run(current)
                check_consistent(reports)
                return reports
            except HeadraceError as error:
                self._check_not_cancelled()
                if not isinstance(error, TaskLostError) or attempt == self._settings.epoch_retries:
                    raise
                _log.warning("epoch %d is run again (try %d): %s", plan.epoch, attempt + 2, error.message)
        raise AssertionError("the last try returns or raises")

    def _take_over(self, reports: Sequence[SubtaskReport]) -> None:
        for report in reports:
            self._state.advance(report)
            if report.next_timer_ms is not None:
                self._timers[report.subtask] = report.next_timer_ms
            else:
                self._timers.pop(report.subtask, None)
            coordinator = self._coordinators.get(report.subtask.vertex_id)
            if coordinator is not None:
                coordinator.advance(
                    report.subtask.subtask,
                    report.progress,
                    has_ended=report.has_ended,
                    now_ms=self._now_ms(),
                )
                self._alignment.observe(report)
            if report.has_ended and report.subtask not in self._ended:
                self._ended.add(report.subtask)
                self.execution.transition(*report.subtask, ExecutionState.FINISHED, self._now_ms())

    def _commit(self, epoch: int, reports: Sequence[SubtaskReport]) -> None:
        for operator_id, committer in self._committers.items():
            committables = [
                Committable(report.subtask.subtask, epoch, payload)
                for report in sorted(reports, key=lambda report: report.subtask)
                for payload in report.committables.get(operator_id, ())
            ]
            if committables:
                with self._blaming(self._sinks[operator_id]):
                    committer.commit(committables)

    def _observe(self, plan: EpochPlan, reports: Sequence[SubtaskReport], duration_s: float) -> None:
        sources = [report for report in reports if report.subtask.vertex_id in self._coordinators]
        records = sum(report.records_in for report in sources)
        self._pacer.observe(
            duration_s=duration_s,
            most_records=max((report.records_in for report in sources), default=0),
            most_bytes=max((report.bytes_out for report in sources), default=0),
        )
        self.progress.epochs = plan.epoch
        self.progress.records += records
        self.progress.watermark = lowest_watermark(reports)
        for warning in (text for report in reports for text in report.warnings):
            if warning not in self._shown_warnings:
                self._shown_warnings.add(warning)
                _log.warning("%s", warning)
        if self._on_epoch is not None:
            self._on_epoch(EpochSummary(plan.epoch, records, duration_s, self.progress.watermark, reports))

    # -- state files -------------------------------------------------------------------------------------------

    def _tidy_state(self) -> None:
        """Start compactions that are due, take over one that is done, delete what nothing names any more."""
        if self._compaction is not None and self._compaction[1].done():
            work, future = self._compaction
            self._compaction = None
            error = future.exception()
            if error is not None:
                _log.warning("state compaction failed and will be tried again: %s", error)
            for index, item in enumerate(work):
                if error is None:
                    self._state.compacted(item, future.result()[index], self._epoch + 1)
                else:
                    self._state.abandoned(item)
        if self._compaction is None:
            due = self._state.due_compactions(self._new_state_files())
            if due:
                self._compaction = (due, self._runner.compact(due))
        delete_files(self._state.take_garbage(self._epoch))

    def _new_state_files(self) -> Iterator[str]:
        while True:
            yield join_path(self._settings.state_dir, f"{uuid4().hex}.merged")

    # -- bookkeeping -------------------------------------------------------------------------------------------

    def _make_coordinators(self) -> Iterator[tuple[str, SourceCoordinator]]:
        for vertex in self.job.vertices:
            declaration = vertex.head.declaration
            if isinstance(declaration, SourceOperator):
                with self._blaming(vertex.head):
                    coordinator = SourceCoordinator(
                        declaration.source, vertex.parallelism, declaration.idleness_ms
                    )
                yield vertex.vertex_id, coordinator

    def _make_committers(self) -> Iterator[tuple[str, Committer]]:
        for operator_id, node in self._sinks.items():
            assert isinstance(node.declaration, SinkOperator)
            with self._blaming(node):
                committer = node.declaration.sink.create_committer()
            if committer is not None:
                yield operator_id, committer

    @contextmanager
    def _blaming(self, node: OperatorNode) -> Iterator[None]:
        """Say whose connector it was that failed in the driver."""
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, job=self.job.name, operator=node.name) from error

    def _subtask_count(self) -> int:
        return sum(vertex.parallelism for vertex in self.job.vertices)

    def _idle_delay(self, polls: int) -> float:
        """Return how long to wait for input: a source may know, otherwise ever longer while nothing comes."""
        usual = self._settings.idle_poll_s * min(polls, _MOST_PATIENCE)
        waiting = [source.retry_delay() for source in self._coordinators.values() if not source.has_ended]
        delays = [usual if delay is None else delay for delay in waiting]
        times = [*self._timers.values(), *self._idle_times()]
        delays += [(time - self._now_ms()) / 1000 for time in times]
        return max(_LEAST_DELAY_S, min(delays, default=usual))

    def _idle_times(self) -> list[int]:
        times = (source.next_idle_ms() for source in self._coordinators.values() if not source.has_ended)
        return [time for time in times if time is not None]

    def _deploy(self) -> None:
        for state in (
            ExecutionState.SCHEDULED,
            ExecutionState.DEPLOYING,
            ExecutionState.INITIALIZING,
            ExecutionState.RUNNING,
        ):
            for vertex_id, vertex in self.execution.subtasks():
                self.execution.transition(vertex_id, vertex.subtask_index, state, self._now_ms())

    def _end_all(self, state: ExecutionState, cause: BaseException | None = None) -> None:
        for vertex_id, vertex in self.execution.subtasks():
            if vertex.current.state.is_terminal:
                continue
            if state is ExecutionState.CANCELED and vertex.current.state is ExecutionState.RUNNING:
                self.execution.transition(
                    vertex_id, vertex.subtask_index, ExecutionState.CANCELING, self._now_ms()
                )
            self.execution.transition(vertex_id, vertex.subtask_index, state, self._now_ms(), cause)

    def _close(self) -> None:
        closers: list[Any] = [*self._coordinators.values(), *self._committers.values(), self._runner]
        for closer in closers:
            try:
                closer.close()
            except Exception:  # noqa: BLE001 - the others must still be closed
                _log.exception("closing %s failed", type(closer).__name__)


def check_consistent(reports: Sequence[SubtaskReport]) -> None:
    """Make sure that every consumer read what the reporting attempt of its producer wrote.

    After losing an executor Spark may compute part of a stage again while others have consumed its first output; with
    functions that are not deterministic the two would not fit. Then the epoch is run again.
    """
    reported = {report.subtask: report.attempt_id for report in reports}
    for report in reports:
        for producer, attempt_id in report.consumed.items():
            if reported.get(producer) != attempt_id:
                raise TaskLostError(
                    f"a part of the epoch was computed twice: subtask {report.subtask.subtask} read another "
                    f"attempt of its input than the one that was kept"
                )


def lowest_watermark(reports: Sequence[SubtaskReport]) -> int | None:
    """Return how far event time has come in the job; None without event time."""
    watermarks = [report.watermark for report in reports if not report.has_ended]
    known = [watermark for watermark in watermarks if watermark is not None and watermark > MIN_WATERMARK]
    if not known or len(known) < len(watermarks):
        return None
    lowest = min(known)
    return None if lowest == MAX_WATERMARK else lowest


def describe_failure(error: BaseException) -> JobExecutionError | HeadraceError:
    """Return an error of ours for whatever ended a job."""
    return (
        error if isinstance(error, HeadraceError) else JobExecutionError(f"{type(error).__name__}: {error}")
    )
