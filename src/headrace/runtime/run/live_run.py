"""LiveRun: one run of a job whose subtasks last as long as it does.

    deploy()                       a Spark job for each region, for the whole run; a thread feeds the sources
    plan() -> run(plan)            a barrier: triggered at the sources, acknowledged by every subtask
    ...                            state, positions and output of the epoch are taken over as after any other
    restart(part)                  a failed region restarts from the last barrier; the others continue
    close()                        subtasks are told to stop; or, after a failure, the Spark jobs are cancelled

A barrier that a failure interrupts stays in flight: when the region runs again, it is triggered there, too.

The time between two barriers is an epoch to the rest of the driver, so checkpoints, sinks, restarts and
rescaling work the same as for epochs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from headrace.errors import HeadraceError, InvariantViolation
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.regions import failover_regions, part_of_job
from headrace.operators.io import SinkDeclaration
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.checkpoint.subject import BarrierTimes
from headrace.runtime.control.messages import Beat, CheckpointEnded, SampleStacks, SubtaskProgress
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, Sampling, StackSample, SubtaskId, SubtaskReport
from headrace.runtime.epoch.report_checks import one_per_subtask
from headrace.runtime.run.barrier import Barrier, Deployment, Region
from headrace.runtime.run.job_run import EpochRunner, EpochSummary, JobRun
from headrace.runtime.run.live_control import Acknowledged, LiveControl, RegionAttempt
from headrace.runtime.run.source_coordinator import SourceCoordinator, SourceTaskPlan
from headrace.runtime.run.source_feeder import SourceFeeder
from headrace.runtime.task.live_settings import LiveSettings

_log = logging.getLogger(__name__)

#: From one barrier to the next if no output waits for it: metrics and the place to restart a region from do.
_QUIET_BARRIER_MS = 1_000
#: How often to look whether subtasks that were told to stop have failed instead, s.
_CLOSING_POLL_S = 0.2


class LiveRunner(EpochRunner, Protocol):
    """Runs all subtasks of a live job at the same time: on Spark, or in threads of this process for tests."""

    @property
    def control_host(self) -> str:
        """The driver's address as workers reach it."""

    def deploy(
        self, vertices: frozenset[str], plan: EpochPlan, settings: LiveSettings, attempt: RegionAttempt
    ) -> Deployment:
        """Start the subtasks of a region and return; what they fail with is told to ``attempt``."""


@dataclass(frozen=True)
class LiveOptions:
    """What the options say about live jobs."""

    #: The driver's port for control connections; 0 for any.
    port: int = 0
    buffer_timeout_ms: int = 100
    heartbeat_ms: int = 1_000
    heartbeat_timeout_s: float = 50.0
    idle_poll_s: float = 0.005
    #: From one barrier to the next in jobs without checkpoints, whose sinks publish with each.
    barrier_interval_ms: int = 200
    latency_interval_ms: int = 0
    watermark_interval_ms: int = 200
    max_records: int | None = None
    is_exactly_once: bool = True
    #: Whether barriers of checkpoints may overtake records, and how long they do not; None if never.
    overtakes_after_ms: int | None = None
    #: Whether a region that fails starts again alone.
    fails_by_region: bool = True
    #: How long the end of a job waits for functions to be closed.
    close_timeout_s: float = 30.0


def barrier_interval_ms(job: JobGraph, wanted_ms: int) -> int:
    """Return how long to wait from one barrier to the next in a job without checkpoints.

    Args:
        job: The job.
        wanted_ms: How long, if some sink waits for barriers.
    """
    sinks = (
        node.declaration.sink
        for vertex in job.vertices
        for node in vertex.operators
        if isinstance(node.declaration, SinkDeclaration)
    )
    return wanted_ms if any(sink.waits_for_barriers for sink in sinks) else max(wanted_ms, _QUIET_BARRIER_MS)


class LiveRun(JobRun):
    """One run of a live job."""

    def __init__(self, *args: Any, options: LiveOptions, on_news: Callable[[], None], **named: Any) -> None:
        super().__init__(*args, **named)
        self._options = options
        self._on_news = on_news
        self._regions = self._make_regions()
        #: From one barrier to the next where no checkpoints are taken.
        self.barrier_interval_ms = barrier_interval_ms(self.job, options.barrier_interval_ms)
        self._control: LiveControl | None = None
        self._live_settings: LiveSettings
        self._feeder: SourceFeeder | None = None
        self._sampling: Sampling | None = None
        #: The state of sources where the last barrier stands, by vertex id.
        self._source_snapshots: dict[str, bytes] = {}
        self._barrier: Barrier | None = None
        #: Sources that were started over, and are not fed before all subtasks run.
        self._begun: set[str] = set()
        self._is_drained = False
        #: The epoch that is under way, as it is recorded.
        self._recorded: EpochPlan | None = None

    def _make_regions(self) -> tuple[Region, ...]:
        everything = frozenset(vertex.vertex_id for vertex in self.job.vertices)
        found = failover_regions(self.job) if self._options.fails_by_region else (everything,)
        return tuple(
            Region(
                number,
                vertices,
                frozenset(subtask for subtask in self.subtasks() if subtask.vertex_id in vertices),
                frozenset(Layout(part_of_job(self.job, vertices)).levels[0]),
            )
            for number, vertices in enumerate(found)
        )

    @property
    def is_deployed(self) -> bool:
        """Whether subtasks were started."""
        return self._control is not None

    @property
    def sources_ended(self) -> bool:
        """Whether all sources have read everything: one more barrier, and the job has ended."""
        return self._feeder is not None and self._feeder.has_ended

    # -- life ----------------------------------------------------------------------------------------------------

    def deploy(self, show: Callable[[str, Sequence[object]], None]) -> None:
        """Start the subtasks, and feed them.

        Args:
            show: Takes output that waits for no barrier, with the id of its operator; called by several threads.

        Raises:
            HeadraceError: If they cannot be started.
        """
        runner = self._live_runner
        self._numbers.use(self.epoch + 1)
        options = self._options
        control = self._control = LiveControl(
            [region.subtasks for region in self._regions],
            host=runner.control_host,
            port=options.port,
            heartbeat_timeout_s=options.heartbeat_timeout_s,
            on_progress=self._progressed,
            on_news=self._on_news,
        )
        control.show = show
        control.on_acknowledged = self._acknowledged
        feeder = self._feeder = SourceFeeder(
            self._coordinators,
            send=control.send,
            plan=self._plan_source,
            paused=self._alignment.paused,
            observe=self._observe_source,
            aligned=self._alignment.vertices,
            fail=control.fail,
            on_ended=self._on_news,
            idle_poll_s=options.idle_poll_s,
            max_records=options.max_records,
            now_ms=self._now_ms,
        )
        self._live_settings = LiveSettings(
            control.address,
            control.secret,
            buffer_timeout_ms=options.buffer_timeout_ms,
            heartbeat_ms=options.heartbeat_ms,
            latency_interval_ms=options.latency_interval_ms,
            watermark_interval_ms=options.watermark_interval_ms,
            is_exactly_once=options.is_exactly_once,
            idle_poll_s=options.idle_poll_s,
            max_records=options.max_records,
        )
        self._source_snapshots = {
            vertex_id: coordinator.snapshot() for vertex_id, coordinator in self._coordinators.items()
        }
        self._record_start()
        for region in self._regions:
            self._deploy_region(region, control.begin(region.number))
        control.wait_running()
        feeder.start()

    def _deploy_region(self, region: Region, attempt: RegionAttempt) -> None:
        epoch = self.epoch + 1 if self._barrier is None else self._barrier.plan.epoch
        plan = self._make_plan(epoch, region, attempt.number)
        region.deployment = self._live_runner.deploy(region.vertices, plan, self._live_settings, attempt)

    def failed_part(self, error: BaseException) -> frozenset[str] | None:
        """Return the vertices of the regions that have failed; None if the whole run has."""
        failed = frozenset[int]() if self._control is None else self._control.failed_with(error)
        self._record_failure(error, failed)
        if not failed or len(failed) == len(self._regions):
            return None
        return frozenset(each for number in failed for each in self._regions[number].vertices)

    def restart(self, part: frozenset[str]) -> None:
        """Start regions again, after the last barrier that is complete.

        Args:
            part: Their vertices.

        Raises:
            HeadraceError: If they cannot be started, or others have failed in the meantime.
        """
        control, feeder = self._control, self._feeder
        if control is None or feeder is None:
            raise InvariantViolation("a region was restarted in a run that was not deployed")
        for region in self._regions:
            if region.vertices <= part:
                attempt = control.begin(region.number)
                self._end_deployment(region)
                self._begin_sources(region, feeder, attempt.number)
                if self._barrier is not None:
                    self._barrier.forget(region.number, self._sources_of([region]))
                self._deploy_region(region, attempt)
        control.wait_running()
        feeder.release(self._begun)
        self._begun.clear()

    def _end_deployment(self, region: Region) -> None:
        if region.deployment is not None:
            region.deployment.cancel()
            if not region.deployment.finish(self._options.close_timeout_s):
                _log.warning("subtasks of a failed region of job '%s' did not end in time", self.job.name)

    def _begin_sources(self, region: Region, feeder: SourceFeeder, attempt: int) -> None:
        """Put the sources of a region back to where the last barrier stands."""
        with feeder.changed:
            sources = region.vertices & self._coordinators.keys()
            for vertex_id in sources:
                vertex = self.job.vertex(vertex_id)
                with self._blaming(vertex.head):
                    self._coordinators[vertex_id].close()
                    declaration: Any = vertex.head.declaration
                    self._coordinators[vertex_id] = self._make_coordinator(
                        vertex, declaration, self._source_snapshots[vertex_id]
                    )
                if self._is_drained:
                    self._coordinators[vertex_id].drain()
            feeder.begin(dict.fromkeys(sources, attempt))
            self._begun |= sources

    def check(self) -> None:
        """Raise what the run failed with, if it has.

        Raises:
            HeadraceError: The reason.
        """
        if self._control is not None:
            self._control.check()

    def beats(self) -> Mapping[SubtaskId, Beat]:
        """Return what subtasks said last about their time."""
        return {} if self._control is None else self._control.beats()

    def watch(
        self,
        wanted: Callable[[], Sampling | None],
        sampled: Callable[[SubtaskId, Mapping[StackSample, int]], None],
    ) -> None:
        """Have subtasks say where they are when a user looks at their flame graph.

        Args:
            wanted: Says whose stacks are to be sampled now, and how.
            sampled: Takes where a subtask was found, and how often; called by several threads.
        """
        if self._control is not None:
            self._control.sampled = sampled
            self._control.on_tick = lambda: self._look_around(wanted())
            self._control.on_tick()

    def _look_around(self, sampling: Sampling | None) -> None:
        self._sample(sampling)
        if self.on_wait is not None:
            self.on_wait()

    def wake(self) -> None:
        """Have the thread of the job look around, whatever it waits for; may be called by any."""
        if self._control is not None:
            self._control.wake()

    def _sample(self, sampling: Sampling | None) -> None:
        control, before = self._control, self._sampling
        if sampling == before or control is None:
            return
        self._sampling = sampling
        now = frozenset[str]() if sampling is None else sampling.vertices
        then = frozenset[str]() if before is None else before.vertices
        for subtask in self.subtasks():
            if sampling is not None and subtask.vertex_id in now - then:
                control.send(subtask, SampleStacks(sampling.delay_s, sampling.depth))
            elif subtask.vertex_id in then - now:
                control.send(subtask, SampleStacks(0.0))

    def drain(self) -> None:
        """Have sources end where they are."""
        self._is_drained = True
        if self._feeder is None:
            super().drain()
            return
        with self._feeder.changed:
            super().drain()
            self._feeder.wake()

    def close(self) -> None:
        """Let the subtasks end, or end them if the run has failed."""
        control, feeder = self._control, self._feeder
        if feeder is not None:
            feeder.close()
        if control is not None:
            if control.error is None:
                control.stop()
                if not self._wait_for_end(control) and control.error is None:
                    _log.warning(
                        "subtasks of job '%s' did not end in time; they are cancelled", self.job.name
                    )
            control.close()
            self._live_runner.cancel()
            for region in self._regions:
                if region.deployment is not None:
                    region.deployment.finish(self._options.close_timeout_s)
        if self._recorder is not None and self._recorded is not None:
            self._recorder.abandoned(self._recorded.epoch)
        super().close()

    def _wait_for_end(self, control: LiveControl) -> bool:
        """Wait until subtasks have ended that were told to stop; return whether they have."""
        deadline = self._timer() + self._options.close_timeout_s
        for region in self._regions:
            while region.deployment is not None and not region.deployment.finish(_CLOSING_POLL_S):
                if control.error is not None or self._timer() > deadline:
                    return False
        return True

    @property
    def _live_runner(self) -> LiveRunner:
        return self.runner  # type: ignore[return-value]  # what the job was given for live runs

    # -- barriers ------------------------------------------------------------------------------------------------

    @property
    def is_interrupted(self) -> bool:
        """Whether a barrier is under way that some region has failed in."""
        return self._barrier is not None

    def plan(self) -> EpochPlan:
        """Say that an epoch ends; there is always something to do."""
        if self._barrier is not None:
            return self._barrier.plan
        self.epoch += 1
        return self._make_plan(self.epoch)

    def _make_plan(self, epoch: int, region: Region | None = None, attempt: int = 0) -> EpochPlan:
        wanted = self.subtasks() if region is None else sorted(region.subtasks)
        subtasks = {subtask: self._subtask_plan(subtask) for subtask in wanted}
        return EpochPlan(self.job.job_id, epoch, attempt, self._settings.state_dir, subtasks)

    def run(self, plan: EpochPlan, check: Callable[[], None]) -> EpochSummary:
        """Send a barrier, and take over what the epoch before it left."""
        summary = super().run(plan, check)
        self._record_start()
        return summary

    def _record_start(self) -> None:
        """Keep what the next epoch starts from; its subtasks may be in it already."""
        if self._recorder is not None and not self.has_ended:
            self._recorded = self._make_plan(self.epoch + 1)
            self._recorder.planned(self._recorded)

    def _record_failure(self, error: BaseException, regions: Iterable[int]) -> None:
        """Keep what regions have failed with."""
        recorder, plan, control = self._recorder, self._recorded, self._control
        if recorder is None or plan is None or control is None or not isinstance(error, HeadraceError):
            return
        for attempt in {control.attempt_at(number) for number in regions}:
            tried = replace(plan, attempt=attempt)
            if attempt != plan.attempt:
                recorder.planned(tried)
            recorder.failed(tried, error)

    #: Called now and then while a barrier is under way.
    on_wait: Callable[[], None] | None = None

    #: Whether sources are to wait after the next barrier.
    holds_sources = False

    #: Whether the next barrier is of a checkpoint, and may overtake records.
    may_overtake = False

    def _attempt(self, plan: EpochPlan, check: Callable[[], None]) -> Sequence[SubtaskReport]:
        """Send a barrier through the job and return what every subtask reports at it."""
        control, feeder = self._control, self._feeder
        if control is None or feeder is None:
            raise InvariantViolation("a barrier was requested of a run that was not deployed")
        self.tries = 1
        if self._barrier is None:
            self._numbers.use(plan.epoch + 1)  # subtasks continue with it at once
            self._log.plan(plan)
            after_ms = self._options.overtakes_after_ms if self.may_overtake else None
            self._barrier = Barrier(plan, self._now_ms(), after_ms, self.holds_sources)
        barrier = self._barrier
        self.barrier_started_ms = barrier.started_ms
        with feeder.changed:
            barrier.is_interrupted = False
        try:
            said = self._send_barrier(barrier, control, feeder)
        except BaseException:
            check()  # whoever cancels the job makes it fail, too
            with feeder.changed:
                barrier.is_interrupted = True
            self._acknowledged()
            raise
        self._barrier = None
        self._source_snapshots = barrier.source_snapshots
        control.forget(plan.epoch)
        self.barrier_times = {
            subtask: BarrierTimes(
                max(0, each.first_ms - barrier.started_ms),
                each.alignment_ms,
                each.sync_ms,
                each.processed_bytes,
                each.persisted_bytes,
                each.is_unaligned,
            )
            for subtask, each in said.items()
        }
        # Nobody asks whether consumers have read the attempt that reports: each region has only one.
        return one_per_subtask(self.job, plan.subtasks, (each.report for each in said.values()))

    def _send_barrier(
        self, barrier: Barrier, control: LiveControl, feeder: SourceFeeder
    ) -> Mapping[SubtaskId, Acknowledged]:
        """Trigger a barrier where it was not yet triggered, and return what subtasks say about it."""
        epoch, after_ms = barrier.plan.epoch, barrier.overtakes_after_ms
        until = None if after_ms is None else control.now_s() + after_ms / 1000
        waiting = [region for region in self._regions if region.number not in barrier.triggered]
        feeder.hold(self._sources_of(waiting))
        barrier.triggered.update(region.number for region in waiting)
        begun_at = frozenset[SubtaskId]().union(*(region.level_0 for region in waiting))
        control.trigger(epoch, begun_at, overtakes=after_ms == 0)
        at_sources = frozenset[SubtaskId]().union(*(region.level_0 for region in self._regions))
        sources = control.wait_for(epoch, at_sources, until)
        if sources is not None:
            self._sources_passed(barrier, feeder, self._regions, goes_on=until is None)
            said = control.wait_for(epoch, self.subtasks(), until)
            if said is not None:
                return said
        # It takes too long: from here on the barrier overtakes what is in front of it.
        control.overtake(epoch)
        if sources is None:
            control.wait_for(epoch, at_sources)
            self._sources_passed(barrier, feeder, self._regions, goes_on=False)
        said = control.wait_for(epoch, self.subtasks())
        assert said is not None, "it was waited for without a limit"
        return said

    def _sources_of(self, regions: Iterable[Region]) -> frozenset[str]:
        vertices = frozenset(each for region in regions for each in region.vertices)
        return vertices & self._coordinators.keys()

    def _sources_passed(
        self, barrier: Barrier, feeder: SourceFeeder, regions: Iterable[Region], *, goes_on: bool
    ) -> None:
        """Source subtasks have sent the barrier: what is known of them now is what the checkpoint gets.

        After a barrier that may overtake they wait for all others: what they read would only be read ahead.
        """
        with feeder.changed:
            # Those that a failure has let go on were asked then.
            passed = self._sources_of(regions) - barrier.source_snapshots.keys()
            for vertex_id in passed:
                barrier.source_snapshots[vertex_id] = self._coordinators[vertex_id].snapshot()
        if goes_on and not barrier.holds_sources:
            feeder.release(passed)

    def _acknowledged(self) -> None:
        """Let sources continue if a region has failed: those after the barrier need not wait until it runs again.

        A slow region may reach the barrier long after another one has failed.
        """
        control, feeder, barrier = self._control, self._feeder, self._barrier
        if control is None or feeder is None or barrier is None or not barrier.is_interrupted:
            return
        with feeder.changed:
            if barrier.is_interrupted:  # it may have been over before the lock was ours
                self._let_go_on(barrier, control, feeder)

    def _let_go_on(self, barrier: Barrier, control: LiveControl, feeder: SourceFeeder) -> None:
        """Release the sources of regions that have passed a barrier which others will reach later."""
        there = control.acknowledged(barrier.plan.epoch)
        passed = [
            each
            for each in self._regions
            if barrier.has_passed(each, there) and not control.has_failed(each.number)
        ]
        self._sources_passed(barrier, feeder, passed, goes_on=False)
        if not barrier.holds_sources:
            feeder.release(self._sources_of(passed))

    def go_on(self) -> None:
        """Feed sources again that were held at the last barrier, unless subtasks still process what it overtook."""
        self.holds_sources = False
        feeder, control = self._feeder, self._control
        if feeder is not None and feeder.is_held and control is not None and not control.is_backlogged:
            feeder.release()

    # -- sources -------------------------------------------------------------------------------------------------

    def _progressed(self, subtask: SubtaskId, said: SubtaskProgress, attempt: int) -> None:
        assert self._feeder is not None, "only those that were fed make progress"
        self._feeder.progressed(subtask, said, attempt)

    def _plan_source(
        self, vertex_id: str, max_records: int, out: frozenset[int]
    ) -> Mapping[int, SourceTaskPlan] | None:
        with self._blaming(self.job.vertex(vertex_id).head):
            return self._coordinators[vertex_id].plan(max_records, self._now_ms(), out)

    def _observe_source(self, subtask: SubtaskId, said: SubtaskProgress) -> None:
        self._alignment.observe(
            SubtaskReport(subtask, has_ended=said.has_ended, watermark=said.watermark, is_idle=said.is_idle)
        )

    def _source_reported(self, coordinator: SourceCoordinator, report: SubtaskReport) -> None:
        """Every feed has told what was read."""

    def _snapshot_source(self, vertex: JobVertex) -> bytes:
        """Return what was known of a source where the last barrier stands."""
        known = self._source_snapshots.get(vertex.vertex_id)
        return super()._snapshot_source(vertex) if known is None else known

    def checkpoint_completed(self, metadata: CheckpointMetadata) -> None:
        """Tell sources and subtasks that a checkpoint is complete."""
        if self._feeder is None:
            super().checkpoint_completed(metadata)
            return
        with self._feeder.changed:
            super().checkpoint_completed(metadata)

    def checkpoint_given_up(self) -> None:
        """Tell the subtasks that no checkpoint was taken at the last barrier, although it was sent for one."""
        self._checkpoint_ended(self.epoch, is_complete=False)

    def _checkpoint_ended(self, epoch: int, *, is_complete: bool) -> None:
        if self._control is not None:
            for subtask in self.subtasks():
                self._control.send(subtask, CheckpointEnded(epoch, is_complete))
