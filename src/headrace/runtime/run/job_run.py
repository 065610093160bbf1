"""JobRun: the epochs of one run of a job, from a starting point on.

    plan slices -> log the plan -> run the epoch (one Spark job) -> take over state and positions -> log the result

It owns the source coordinators and the state handles. A job that is restarted or rescaled gets a new run. The
`JobMaster` decides what is published and when a run ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from headrace.errors import HeadraceError, InvariantViolation, RecoveryAction
from headrace.graph.input_order import broadcast_sources, early_sources, has_endless_source
from headrace.graph.job_graph import JobGraph, JobVertex, OperatorNode
from headrace.operators.io import SourceDeclaration
from headrace.operators.table.declarations import TableWatermarkDeclaration
from headrace.operators.timestamps import TimestampsDeclaration
from headrace.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    FileRef,
    KeyedPart,
    Kind,
    OperatorSnapshot,
    SourceSnapshot,
)
from headrace.runtime.checkpoint.restore import StartingPoint, job_shape
from headrace.runtime.checkpoint.subject import BarrierTimes, StagedOutput
from headrace.runtime.control.messages import Beat
from headrace.runtime.epoch.back_pressure import TimeShares
from headrace.runtime.epoch.in_flight import all_files
from headrace.runtime.epoch.log import EpochLog, EpochNumbers
from headrace.runtime.epoch.messages import (
    EpochPlan,
    SubtaskId,
    SubtaskPlan,
    SubtaskReport,
    lowest_watermark,
    state_files_dir,
)
from headrace.runtime.epoch.pacing import EpochPacer
from headrace.runtime.epoch.phases import EpochPhases
from headrace.runtime.epoch.recording import EpochRecorder
from headrace.runtime.epoch.report_checks import check_consistent, in_time, one_per_subtask
from headrace.runtime.run.accumulators import JobAccumulators
from headrace.runtime.run.sink_coordinator import Blaming
from headrace.runtime.run.source_coordinator import SourceCoordinator
from headrace.runtime.run.state_registry import Compaction, StateRegistry, StateSize
from headrace.runtime.run.watermark_alignment import AlignedSources
from headrace.storage.paths import join_path

_log = logging.getLogger(__name__)


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
        """Release what was set up for the run."""


@runtime_checkable
class CallsWorkers(Protocol):
    """A runner that can also run functions in workers, between its epochs."""

    def call(self, functions: Sequence[Callable[[], Any]]) -> list[Any] | None:
        """Call each in a task of its own and return the results in order; None if no worker can be had.

        Raises:
            JobExecutionError: When it cannot be done.
        """


@runtime_checkable
class ShowsJob(Protocol):
    """A runner whose epochs can be replayed from the job as it ships it."""

    def packed_job(self) -> bytes:
        """Return the job as workers get it."""


class NoEpochs:
    """The runner of a job that has ended: what is left to do needs no workers."""

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        raise InvariantViolation("an epoch was requested of a job that has ended")

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        raise InvariantViolation("a state compaction was requested of a job that has ended")

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run."""

    #: Names this run: state of different runs never mixes.
    lineage: str
    #: The job's directory.
    state_dir: str
    epoch_retries: int = 3
    max_changes: int = 16
    #: From one latency marker to the next; 0 for none.
    latency_interval_ms: int = 0


@dataclass(frozen=True)
class EpochSummary:
    """What a watcher sees of a completed epoch."""

    epoch: int
    #: Records that sources read.
    records: int
    #: From its plan to its last report.
    duration_s: float
    #: The lowest watermark of all subtasks; None when the job has no event time.
    watermark: int | None
    reports: Sequence[SubtaskReport] = field(repr=False)
    #: What the busiest source subtask read.
    most_records: int = 0
    #: The most bytes that one subtask sent to others, or received.
    most_bytes: int = 0
    #: From the end of the epoch before to its own end, and how each subtask spent that time.
    wall_s: float = 0.0
    shares: Mapping[SubtaskId, TimeShares] = field(default_factory=dict, repr=False)
    #: How long the driver spent on its parts.
    phases: EpochPhases = field(default_factory=EpochPhases, repr=False)


class JobRun:
    """One run of a job."""

    def __init__(
        self,
        job: JobGraph,
        runner: EpochRunner,
        settings: RunSettings,
        pacer: EpochPacer,
        start: StartingPoint,
        *,
        numbers: EpochNumbers,
        blaming: Blaming,
        now_ms: Callable[[], int],
        timer: Callable[[], float] = time.perf_counter,
        recorder: EpochRecorder | None = None,
    ) -> None:
        self._recorder = recorder
        self.job = job
        self.runner = runner
        self._settings = settings
        self._pacer = pacer
        self._blaming = blaming
        self._now_ms = now_ms
        self._timer = timer
        self._state = StateRegistry(settings.lineage, settings.max_changes, start.keyed, start.operator_state)
        self._alignment = AlignedSources(job)
        #: Sources that the others wait for.
        self._read_first = broadcast_sources(job) if job.is_batch else frozenset[str]()
        #: Sources whose records come before those of others in an epoch.
        self._early = early_sources(job)
        self._is_bounded = not has_endless_source(job)
        self._numbers = numbers
        self._log = EpochLog(settings.state_dir, settings.lineage)
        #: The last epoch that is complete, or is being run. Never one again that an earlier run has had.
        self.epoch = max(start.epoch, numbers.highest)
        self.ended = set(start.ended)
        #: Records that are on their way to subtasks where the run stands.
        self._in_flight = dict(start.in_flight)
        #: Files of such records that were processed since.
        self._worked_off: list[str] = []
        self._key_secret = start.key_secret
        self.accumulators = JobAccumulators(start.accumulators, job)
        self._coordinators: dict[str, SourceCoordinator] = {}
        for vertex in job.vertices:
            if isinstance(vertex.head.declaration, SourceDeclaration):
                with blaming(vertex.head):
                    self._coordinators[vertex.vertex_id] = self._make_coordinator(
                        vertex, vertex.head.declaration, start.sources.get(vertex.vertex_id)
                    )
        #: When each subtask next wants to be woken by the clock. One that comes back may have been due long ago.
        self._timers: dict[SubtaskId, int] = {}
        if start.epoch:
            self._timers = {subtask: now_ms() for subtask in self.subtasks() if subtask not in self.ended}
        self._marked_ms: int | None = None
        #: Checkpoints that subtasks hear of with the next epoch.
        self._ended_checkpoints: list[tuple[int, bool]] = []
        self._compaction: tuple[Sequence[Compaction], Future[list[int]]] | None = None
        #: How often the last epoch was run.
        self.tries = 0
        self.keeps_state = True
        self.barrier_started_ms: int | None = None
        self.barrier_times: Mapping[SubtaskId, BarrierTimes] = {}

    # -- where it stands ---------------------------------------------------------------------------------------

    def subtasks(self) -> Iterator[SubtaskId]:
        """Yield every subtask of the job."""
        for vertex in self.job.vertices:
            for subtask in range(vertex.parallelism):
                yield SubtaskId(vertex.vertex_id, subtask)

    @property
    def num_subtasks(self) -> int:
        return sum(vertex.parallelism for vertex in self.job.vertices)

    @property
    def has_ended(self) -> bool:
        """Whether every subtask has done all it ever will."""
        return all(subtask in self.ended for subtask in self.subtasks())

    @property
    def sources(self) -> Sequence[SourceCoordinator]:
        """The coordinators of the job's sources."""
        return tuple(self._coordinators.values())

    def wake_times(self) -> list[int]:
        """Return when something falls due by the clock."""
        idle = (source.next_idle_ms() for source in self.sources if not source.has_ended)
        return [*self._timers.values(), *(time for time in idle if time is not None)]

    def live_files(self) -> frozenset[str]:
        """Return the state files that the next epoch needs."""
        return self._state.live_files() | {file.path for file in all_files(self._in_flight.values())}

    @property
    def has_in_flight(self) -> bool:
        """Whether records are on their way between subtasks where the run stands."""
        return bool(self._in_flight)

    @property
    def is_recorded(self) -> bool:
        """Whether its epochs are kept, to be replayed."""
        return self._recorder is not None

    @property
    def lineage(self) -> str:
        """The name of this run."""
        return self._settings.lineage

    def failed_part(self, error: BaseException) -> frozenset[str] | None:
        """Return the vertices of the regions that have failed, if others run on; None if all are to start again."""
        return None

    def restart(self, part: frozenset[str]) -> None:
        """Start some regions again, by their vertices."""
        raise InvariantViolation("a run of epochs has no regions that could be restarted")

    def beats(self) -> Mapping[SubtaskId, Beat]:
        """Return what subtasks of a live run said last about their time; may be asked from any thread."""
        return {}

    def state_sizes(self) -> dict[str, StateSize]:
        """Return how much state each operator has, by its id; may be asked from any thread."""
        return self._state.sizes()

    def rename_files(self, names: Mapping[str, str]) -> None:
        """Continue with copies of some state files."""
        if names:
            self._state.rename(names)
            self._in_flight = {
                subtask: each.renamed(lambda path: names.get(path, path))
                for subtask, each in self._in_flight.items()
            }

    # -- an epoch ----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Have sources end where they are."""
        for coordinator in self._coordinators.values():
            coordinator.drain()

    def plan(self) -> EpochPlan | None:
        """Return what to do next; None when there is nothing to do now."""
        source_plans = {}
        now_ms = self._now_ms()  # once: what falls idle at one moment does so in one epoch
        for vertex_id, coordinator in self._coordinators.items():
            with self._blaming(self.job.vertex(vertex_id).head):
                source_plans[vertex_id] = coordinator.plan(
                    self._max_records(vertex_id), now_ms, self._paused(vertex_id)
                )
        if all(plans is None for plans in source_plans.values()) and not self._is_timer_due():
            return None
        self.epoch += 1
        subtasks = {subtask: self._subtask_plan(subtask) for subtask in self.subtasks()}
        return EpochPlan(
            self.job.job_id,
            self.epoch,
            0,
            self._settings.state_dir,
            subtasks,
            latency_marker_ms=self._next_marker(now_ms),
            ended_checkpoints=self._take_ended_checkpoints(),
            is_probe=self._pacer.is_probing,
            holds_watermarks=self._pacer.cuts_input and self._is_bounded,
        )

    def _max_records(self, vertex_id: str) -> int:
        """Return how much a subtask of a source reads: what others wait for even before the speed is known."""
        return self._pacer.max_early_records if vertex_id in self._early else self._pacer.max_records

    def _most_records(self, reports: Sequence[SubtaskReport]) -> int:
        """Return what the busiest source subtask has read, of sources that the speed of functions holds back."""
        read = {
            each.subtask: each.records_in for each in reports if each.subtask.vertex_id in self._coordinators
        }
        paced = (records for subtask, records in read.items() if subtask.vertex_id not in self._early)
        return max(paced, default=0) or max(read.values(), default=0)

    def _take_ended_checkpoints(self) -> tuple[tuple[int, bool], ...]:
        ended, self._ended_checkpoints = self._ended_checkpoints, []
        return tuple(ended)

    def _paused(self, vertex_id: str) -> frozenset[int]:
        """Return the subtasks of a source that wait for others."""
        if vertex_id not in self._read_first and any(
            not self._coordinators[first].has_ended for first in self._read_first
        ):
            return frozenset(range(self.job.vertex(vertex_id).parallelism))
        return self._alignment.paused(vertex_id)

    def _subtask_plan(self, subtask: SubtaskId) -> SubtaskPlan:
        coordinator = self._coordinators.get(subtask.vertex_id)
        source = None if coordinator is None else coordinator.standing.get(subtask.subtask)
        return SubtaskPlan(
            slices=source.slices if source else (),
            max_records=self._max_records(subtask.vertex_id),
            max_bytes=self._pacer.max_bytes,
            open_splits=source.open_splits if source else frozenset(),
            may_get_more_splits=source.may_get_more_splits if source else True,
            idle_splits=source.idle_splits if source else frozenset(),
            has_ended=subtask in self.ended,
            keyed=self._state.keyed(subtask),
            operator_state=self._state.operator(subtask),
            in_flight=self._in_flight.get(subtask),
        )

    def _next_marker(self, now_ms: int) -> int | None:
        """Return the time that latency markers of the next epoch have, if there are any."""
        interval_ms = self._settings.latency_interval_ms
        if not interval_ms or (self._marked_ms is not None and now_ms - self._marked_ms < interval_ms):
            return None
        self._marked_ms = now_ms
        return now_ms

    def _is_timer_due(self) -> bool:
        return bool(self._timers) and min(self._timers.values()) <= self._now_ms()

    def run(self, plan: EpochPlan, check: Callable[[], None]) -> EpochSummary:
        """Run an epoch and take over what it left; ``check`` raises if the job is to stop instead of trying again."""
        started = self._timer()
        reports = self._attempt(plan, check)
        # From here the epoch has happened.
        self._log.complete(plan.epoch, reports)
        if self._recorder is not None:
            self._recorder.completed(plan.epoch, reports)
        self._take_over(reports)
        read = [report.records_in for report in reports if report.subtask.vertex_id in self._coordinators]
        return EpochSummary(
            plan.epoch,
            sum(read),
            self._timer() - started,
            lowest_watermark(reports),
            reports,
            most_records=self._most_records(reports) if plan.is_probe else max(read, default=0),
            # A consumer holds all it receives until it has worked it off, so that counts as much as what is sent.
            most_bytes=max((max(each.bytes_in, each.bytes_out) for each in reports), default=0),
        )

    def _attempt(self, plan: EpochPlan, check: Callable[[], None]) -> Sequence[SubtaskReport]:
        """Run the epoch; when a worker or host is lost, run it again as a whole, with the same slices."""
        for attempt in range(self._settings.epoch_retries + 1):
            current = replace(plan, attempt=attempt)
            self.tries = attempt + 1
            self._numbers.use(plan.epoch)
            self._log.plan(current)
            if self._recorder is not None:
                self._recorder.planned(current)
            try:
                arrived = in_time(current, self.runner.run(current))
                reports = one_per_subtask(self.job, current.subtasks, arrived)
                check_consistent(reports)
                return reports
            except HeadraceError as error:
                if self._recorder is not None:
                    self._recorder.failed(current, error)
                check()
                if (
                    error.recovery is not RecoveryAction.RUN_EPOCH_AGAIN
                    or attempt == self._settings.epoch_retries
                ):
                    raise
                _log.warning("retrying epoch %d (attempt %d): %s", plan.epoch, attempt + 2, error.message)
        raise AssertionError("the last try returns or raises")

    def _take_over(self, reports: Sequence[SubtaskReport]) -> None:
        self._worked_off += [file.path for file in all_files(self._in_flight.values())]
        self._in_flight = {each.subtask: each.in_flight for each in reports if each.in_flight is not None}
        self.keeps_state = all(report.keeps_state for report in reports)
        for report in reports:
            self._state.advance(report)
            self.accumulators.add(report)
            if report.next_timer_ms is not None:
                self._timers[report.subtask] = report.next_timer_ms
            else:
                self._timers.pop(report.subtask, None)
            coordinator = self._coordinators.get(report.subtask.vertex_id)
            if coordinator is not None:
                self._source_reported(coordinator, report)
            if report.has_ended:
                self.ended.add(report.subtask)
        if not self.keeps_state and not self.has_ended:
            raise InvariantViolation(
                f"epoch {self.epoch} wrote no state, as if the job had ended with it, but it goes on"
            )

    def _source_reported(self, coordinator: SourceCoordinator, report: SubtaskReport) -> None:
        """Take over how far a source subtask has read."""
        coordinator.advance(
            report.subtask.subtask, report.progress, has_ended=report.has_ended, now_ms=self._now_ms()
        )
        self._alignment.observe(report)

    # -- snapshots ---------------------------------------------------------------------------------------------

    def snapshot(
        self, sinks: StagedOutput, *, kind: Kind, checkpoint_id: int, timestamp_ms: int
    ) -> CheckpointMetadata:
        """Return all there is to know after the last epoch."""
        return CheckpointMetadata(
            kind=kind,
            checkpoint_id=checkpoint_id,
            job_id=self.job.job_id,
            job_name=self.job.name,
            epoch=self.epoch,
            timestamp_ms=timestamp_ms,
            operators=tuple(
                self._snapshot_operator(vertex, node, sinks)
                for vertex in self.job.vertices
                for node in vertex.operators
            ),
            shape=job_shape(self.job),
            accumulators=self.accumulators.snapshot(),
            key_secret=self._key_secret,
        )

    def _snapshot_operator(
        self, vertex: JobVertex, node: OperatorNode, sinks: StagedOutput
    ) -> OperatorSnapshot:
        subtasks = [SubtaskId(vertex.vertex_id, index) for index in range(vertex.parallelism)]
        chains = [(each.subtask, self._state.keyed(each).get(node.operator_id)) for each in subtasks]
        parts = {each.subtask: self._state.operator(each).get(node.operator_id) for each in subtasks}
        is_source = node is vertex.head and vertex.vertex_id in self._coordinators
        committer, committables = sinks.snapshot(node.operator_id)
        return OperatorSnapshot(
            operator_id=node.operator_id,
            uid=node.uid,
            name=node.name,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            keyed=tuple(
                KeyedPart(subtask, tuple(map(FileRef.of, chain.files)))
                for subtask, chain in chains
                if chain is not None and chain.files
            ),
            operator_state={subtask: part for subtask, part in parts.items() if part is not None},
            source=SourceSnapshot(self._snapshot_source(vertex)) if is_source else None,
            committer=committer,
            committables=committables,
            ended=tuple(each.subtask for each in subtasks if each in self.ended),
            in_flight={each.subtask: self._in_flight[each] for each in subtasks if each in self._in_flight}
            if node is vertex.head
            else {},
        )

    def _snapshot_source(self, vertex: JobVertex) -> bytes:
        return self._coordinators[vertex.vertex_id].snapshot()

    def checkpoint_completed(self, metadata: CheckpointMetadata) -> None:
        """Tell the sources that a checkpoint is complete; what they do with it must not disturb the job."""
        sources = {each.operator_id: each.source for each in metadata.operators if each.source is not None}
        for vertex in self.job.vertices:
            coordinator = self._coordinators.get(vertex.vertex_id)
            source = sources.get(vertex.head.operator_id)
            if coordinator is None or source is None:
                continue
            try:
                coordinator.checkpoint_completed(source.data)
            except Exception as error:  # noqa: BLE001 - the checkpoint stands, whoever was told of it or not
                _log.warning("source '%s' could not be notified of a checkpoint: %s", vertex.head.name, error)
        self._checkpoint_ended(metadata.epoch, is_complete=True)

    def checkpoint_aborted(self, metadata: CheckpointMetadata) -> None:
        """Tell the subtasks that a checkpoint was aborted."""
        self._checkpoint_ended(metadata.epoch, is_complete=False)

    def _checkpoint_ended(self, epoch: int, *, is_complete: bool) -> None:
        self._ended_checkpoints.append((epoch, is_complete))

    # -- state files -------------------------------------------------------------------------------------------

    def tidy_state(self) -> list[str]:
        """Start compactions that are due, take over one that is done; return the files that no epoch needs now."""
        if self._compaction is not None and self._compaction[1].done():
            work, future = self._compaction
            self._compaction = None
            error = future.exception()
            if error is not None:
                _log.warning("state compaction failed; it will be retried: %s", error)
            for index, item in enumerate(work):
                if error is None:
                    self._state.compacted(item, future.result()[index], self.epoch + 1)
                else:
                    self._state.abandoned(item)
        if self._compaction is None:
            due = self._state.due_compactions(self._new_state_files())
            if due:
                self._compaction = (due, self.runner.compact(due))
        worked_off, self._worked_off = self._worked_off, []
        return [*self._state.take_garbage(self.epoch), *worked_off]

    def _new_state_files(self) -> Iterator[str]:
        while True:
            yield join_path(state_files_dir(self._settings.state_dir), f"{uuid4().hex}.merged")

    # -- the rest ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the sources and the runner; if one fails to close, the others are closed all the same."""
        closers: list[SourceCoordinator | EpochRunner] = [*self._coordinators.values(), self.runner]
        for closer in closers:
            try:
                closer.close()
            except Exception:  # noqa: BLE001 - the others must still be closed
                _log.exception("closing %s failed", type(closer).__name__)

    def _make_coordinator(
        self, vertex: JobVertex, declaration: SourceDeclaration, snapshot: bytes | None
    ) -> SourceCoordinator:
        coordinator = SourceCoordinator(
            declaration.source,
            vertex.parallelism,
            declaration.idleness_ms,
            has_event_time=declaration.has_event_time or _assigns_time(self.job),
        )
        if snapshot is not None:
            ended = [each.subtask for each in self.ended if each.vertex_id == vertex.vertex_id]
            coordinator.restore(snapshot, ended, self._now_ms())
        return coordinator


def _assigns_time(job: JobGraph) -> bool:
    """Whether an operator after a source gives records their time."""
    assigners = (TimestampsDeclaration, TableWatermarkDeclaration)
    return any(
        isinstance(node.declaration, assigners) for vertex in job.vertices for node in vertex.operators
    )
