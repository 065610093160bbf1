"""Runs the barriers of a live job: when one is due, what follows it, and how long to wait for the next."""

from __future__ import annotations

from collections.abc import Callable

from headrace.graph.execution_graph import ExecutionGraph
from headrace.runtime.checkpoint.coordinator import DueSnapshot
from headrace.runtime.epoch.back_pressure import busiest_vertex_s
from headrace.runtime.job.epochs import EpochLoop
from headrace.runtime.run.job_run import EpochSummary, JobRun
from headrace.runtime.run.live_run import LiveRun
from headrace.runtime.run.sink_coordinator import SinkCoordinator

#: The loop looks around at least this often, s: whether the run has failed, whether slots have changed.
_LONGEST_WAIT_S = 0.5
#: How long to wait between looks at a checkpoint that is being written, s: what it covers is published next.
_WRITING_POLL_S = 0.003


class BarrierLoop(EpochLoop):
    """Follows a live run: its subtasks work by themselves, and the loop sends barriers through them."""

    #: When the last barrier was complete.
    _last_ms = 0
    #: Whether the checkpoint of the present barrier has expired.
    _has_expired = False

    def deployed(self) -> None:
        super().deployed()
        self._last_ms = self._now_ms()

    def step(
        self,
        run: JobRun,
        sinks: SinkCoordinator,
        execution: ExecutionGraph,
        check: Callable[[], None],
        *,
        is_drained: bool,
    ) -> bool:
        """Send a barrier if one is due, or wait; return whether a savepoint has stopped the job."""
        assert isinstance(run, LiveRun)
        check()
        if not run.is_deployed:
            run.deploy(sinks.show)
        run.check()
        self._flame_graphs.on_begin = run.wake
        run.watch(lambda: self._flame_graphs.wanted(self._now_ms()), self._flame_graphs.take)
        if run.is_interrupted:
            # No checkpoint: those that are due get a barrier of their own, as after one that was aborted.
            self._barrier(run, sinks, execution, check, holds_sources=False)
            if self._due(run):
                run.checkpoint_given_up()
            run.go_on()
            return False
        stops = self._stops(run)
        if not stops and not self._is_due(run):
            run.go_on()
            self._checkpointing.settle(run, sinks)
            self._note_publications(sinks)
            sinks.commit_in_time(self._now_ms())
            self._wake.wait(self._delay_s(run, sinks))
            return False
        self._barrier(run, sinks, execution, check, holds_sources=stops)
        if self._has_expired:
            run.checkpoint_given_up()
            self._checkpointing.settle(run, sinks)
            is_stopped = False
        else:
            is_stopped = self._checkpointing.after_epoch(run, sinks, is_drained=is_drained and run.has_ended)
        self._note_publications(sinks)
        if not is_stopped:
            run.go_on()
        return is_stopped

    def work_s(self, run: JobRun, summary: EpochSummary) -> float:
        """Return for how long the subtasks of the busiest vertex were, on average, at work between two barriers."""
        return busiest_vertex_s(run.job, summary.reports)

    def quiesce(
        self, run: JobRun, sinks: SinkCoordinator, execution: ExecutionGraph, check: Callable[[], None]
    ) -> None:
        """Send a barrier, and have sources wait after it."""
        assert isinstance(run, LiveRun)
        if run.is_deployed:
            if run.is_interrupted:
                self._barrier(run, sinks, execution, check, holds_sources=False)
            self._barrier(run, sinks, execution, check, holds_sources=True)

    def _barrier(
        self,
        run: LiveRun,
        sinks: SinkCoordinator,
        execution: ExecutionGraph,
        check: Callable[[], None],
        *,
        holds_sources: bool,
    ) -> None:
        self._phases.begin()
        run.holds_sources = holds_sources
        run.may_overtake = not (holds_sources or run.sources_ended) and self._is_checkpoint(run)
        self._has_expired = False
        is_interrupted = run.is_interrupted
        is_due, due_since_ms = bool(self._due(run)), 0
        plan = run.plan()
        self._phases.planned()

        def settle() -> None:
            nonlocal is_due, due_since_ms
            # Those that are written meanwhile must not wait for the barrier: they would count as late after it.
            self._checkpointing.settle(run, sinks)
            self._note_publications(sinks)
            due = self._due(run)
            if not due or is_interrupted or self._has_expired:
                return
            if not is_due:
                # It came due after the barrier, and waits for it: nothing is triggered before it has arrived.
                is_due, due_since_ms = True, self._now_ms()
            self._has_expired = self._checkpointing.expire_barrier(due, run, due_since_ms)

        run.on_wait = settle
        try:
            summary = run.run(plan, check)
        finally:
            run.on_wait = None
        self._finish_epoch(summary, run, sinks, execution)
        self._last_ms = self._now_ms()

    def _stops(self, run: LiveRun) -> bool:
        """Whether the job is to stop with a savepoint after the next barrier."""
        return any(each.stops_job for each in self._due(run))

    def _due(self, run: LiveRun) -> tuple[DueSnapshot, ...]:
        return self._checkpointing.coordinator.due(self._now_ms(), some_ended=bool(run.ended))

    def _is_checkpoint(self, run: LiveRun) -> bool:
        """Whether the next barrier is for a checkpoint, and for no savepoint, which is always aligned."""
        due = self._due(run)
        return bool(due) and not any(each.type.is_savepoint for each in due)

    def _is_due(self, run: LiveRun) -> bool:
        if run.sources_ended or self._due(run):
            return True
        is_time = self._now_ms() >= self._last_ms + run.barrier_interval_ms
        return is_time and not self._checkpointing.is_periodic

    def _delay_s(self, run: LiveRun, sinks: SinkCoordinator) -> float:
        times = [self._checkpointing.coordinator.next_due_ms(), sinks.next_commit_ms()]
        if not self._checkpointing.is_periodic:
            times.append(self._last_ms + run.barrier_interval_ms)
        delays = [(time - self._now_ms()) / 1000 for time in times if time is not None]
        if self._checkpointing.is_waiting():
            delays.append(_WRITING_POLL_S)
        return max(0.001, min([_LONGEST_WAIT_S, *delays]))
