"""LiveRun: one run of a job whose subtasks last as long as it does.

    deploy()                       one Spark job for the whole run; a thread feeds the sources
    plan() -> run(plan)            a barrier: triggered at the sources, acknowledged by every subtask
    ...                            state, positions and output of the epoch are taken over as after any other
    close()                        subtasks are told to stop; or, after a failure, the Spark job is cancelled

What an epoch is to the rest of the driver, a span between two barriers is here; so checkpoints, sinks, restarts and
rescaling are the same for both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.errors import InvariantViolation
from headrace.graph.job_graph import JobVertex
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.checkpoint.subject import BarrierTimes
from headrace.runtime.control.messages import Beat, CheckpointEnded, SampleStacks, SubtaskProgress
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, Sampling, StackSample, SubtaskId, SubtaskReport
from headrace.runtime.epoch.report_checks import one_per_subtask
from headrace.runtime.run.job_run import EpochRunner, JobRun
from headrace.runtime.run.live_control import Acknowledged, LiveControl
from headrace.runtime.run.source_coordinator import SourceCoordinator, SourceTaskPlan
from headrace.runtime.run.source_feeder import SourceFeeder
from headrace.runtime.task.live_settings import LiveSettings

_log = logging.getLogger(__name__)

#: How often to look whether subtasks that were told to stop have failed instead, s.
_CLOSING_POLL_S = 0.2


class LiveRunner(EpochRunner, Protocol):
    """Runs all subtasks of a live job at the same time: on Spark, or in threads of this process for tests."""

    @property
    def control_host(self) -> str:
        """The driver's address as workers reach it."""

    def deploy(self, plan: EpochPlan, settings: LiveSettings, control: LiveControl) -> None:
        """Start all subtasks and return; what they fail with is told to ``control``."""

    def finish(self, timeout_s: float) -> bool:
        """Wait until all subtasks have ended; return whether they have."""


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
    #: How long the end of a job waits for functions to be closed.
    close_timeout_s: float = 30.0


class LiveRun(JobRun):
    """One run of a live job."""

    def __init__(self, *args: Any, options: LiveOptions, on_news: Callable[[], None], **named: Any) -> None:
        super().__init__(*args, **named)
        self._options = options
        self._on_news = on_news
        self._level_0 = frozenset(Layout(self.job).levels[0])
        self._control: LiveControl | None = None
        self._feeder: SourceFeeder | None = None
        self._sampling: Sampling | None = None
        #: The state of sources where the last barrier stands, by vertex id.
        self._source_snapshots: dict[str, bytes] = {}

    @property
    def barrier_interval_ms(self) -> int:
        """From one barrier to the next where no checkpoints are taken."""
        return self._options.barrier_interval_ms

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
            self.subtasks(),
            host=runner.control_host,
            port=options.port,
            heartbeat_timeout_s=options.heartbeat_timeout_s,
            on_progress=self._progressed,
            on_news=self._on_news,
        )
        control.show = show
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
        settings = LiveSettings(
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
        runner.deploy(self._make_plan(self.epoch + 1), settings, control)
        control.wait_running()
        feeder.start()

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
        """Have subtasks say where they are when somebody looks at their flame graph.

        Args:
            wanted: Says whose stacks are to be sampled now, and how.
            sampled: Takes where a subtask was found, and how often; called by several threads.
        """
        if self._control is not None:
            self._control.sampled = sampled
            self._control.on_tick = lambda: self._sample(wanted())
            self._control.on_tick()

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
                if not self._live_runner.finish(self._options.close_timeout_s):
                    _log.warning(
                        "subtasks of job '%s' did not end in time; they are cancelled", self.job.name
                    )
            control.close()
            self._live_runner.cancel()
            self._live_runner.finish(self._options.close_timeout_s)
        super().close()

    def _wait_for_end(self, control: LiveControl) -> bool:
        """Wait until subtasks have ended that were told to stop; return whether they have."""
        deadline = self._timer() + self._options.close_timeout_s
        while not self._live_runner.finish(_CLOSING_POLL_S):
            if control.error is not None or self._timer() > deadline:
                return False
        return True

    @property
    def _live_runner(self) -> LiveRunner:
        return self.runner  # type: ignore[return-value]  # what the job was given for live runs

    # -- barriers ------------------------------------------------------------------------------------------------

    def plan(self) -> EpochPlan:
        """Say that an epoch ends; there is always something to do."""
        self.epoch += 1
        return self._make_plan(self.epoch)

    def _make_plan(self, epoch: int) -> EpochPlan:
        subtasks = {subtask: self._subtask_plan(subtask) for subtask in self.subtasks()}
        return EpochPlan(self.job.job_id, epoch, 0, self._settings.state_dir, subtasks)

    #: Whether sources are to wait behind the next barrier.
    holds_sources = False

    #: Whether the next barrier is of a checkpoint, and may overtake records.
    may_overtake = False

    def _attempt(self, plan: EpochPlan, check: Callable[[], None]) -> Sequence[SubtaskReport]:
        """Send a barrier through the job and return what every subtask reports at it."""
        control, feeder = self._control, self._feeder
        if control is None or feeder is None:
            raise InvariantViolation("a barrier was requested of a run that was not deployed")
        self.tries = 1
        self._numbers.use(plan.epoch + 1)  # subtasks go on with it at once
        self._log.plan(plan)
        feeder.hold()
        self.barrier_started_ms = started_ms = self._now_ms()
        try:
            said = self._send_barrier(plan.epoch, control, feeder)
        except BaseException:
            check()  # whoever cancels the job makes it fail, too
            raise
        control.forget(plan.epoch)
        self.barrier_times = {
            subtask: BarrierTimes(
                max(0, each.first_ms - started_ms),
                each.alignment_ms,
                each.sync_ms,
                each.processed_bytes,
                each.persisted_bytes,
                each.is_unaligned,
            )
            for subtask, each in said.items()
        }
        # Nobody asks whether consumers have read the attempt that reports: a live run has only one.
        return one_per_subtask(self.job, plan.subtasks, (each.report for each in said.values()))

    def _send_barrier(
        self, epoch: int, control: LiveControl, feeder: SourceFeeder
    ) -> Mapping[SubtaskId, Acknowledged]:
        """Trigger a barrier, and return what subtasks say about it."""
        after_ms = self._options.overtakes_after_ms if self.may_overtake else None
        until = None if after_ms is None else control.now_s() + after_ms / 1000
        control.trigger(epoch, self._level_0, overtakes=after_ms == 0)
        sources = control.wait_for(epoch, self._level_0, until)
        if sources is not None:
            self._sources_passed(feeder, goes_on=until is None)
            said = control.wait_for(epoch, self.subtasks(), until)
            if said is not None:
                return said
        # It takes too long: from here on the barrier overtakes what is in front of it.
        control.overtake(epoch)
        if sources is None:
            control.wait_for(epoch, self._level_0)
            self._sources_passed(feeder, goes_on=False)
        said = control.wait_for(epoch, self.subtasks())
        assert said is not None, "it was waited for without a limit"
        return said

    def _sources_passed(self, feeder: SourceFeeder, *, goes_on: bool) -> None:
        """Source subtasks have sent the barrier: what is known of them now is what the checkpoint gets.

        Behind a barrier that may overtake they wait for all others: what they read would only be read ahead.
        """
        with feeder.changed:
            self._source_snapshots = {
                vertex_id: coordinator.snapshot() for vertex_id, coordinator in self._coordinators.items()
            }
        if goes_on and not self.holds_sources:
            feeder.release()

    def go_on(self) -> None:
        """Feed sources again that were held at the last barrier, unless subtasks still work off what it overtook."""
        self.holds_sources = False
        feeder, control = self._feeder, self._control
        if feeder is not None and feeder.is_held and control is not None and not control.is_backlogged:
            feeder.release()

    # -- sources -------------------------------------------------------------------------------------------------

    def _progressed(self, subtask: SubtaskId, said: SubtaskProgress) -> None:
        assert self._feeder is not None, "only those that were fed make progress"
        self._feeder.progressed(subtask, said)

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

    def _checkpoint_ended(self, epoch: int, *, is_complete: bool) -> None:
        if self._control is not None:
            for subtask in self.subtasks():
                self._control.send(subtask, CheckpointEnded(epoch, is_complete))
