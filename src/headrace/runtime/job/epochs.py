"""Runs the epochs of a job one by one: what follows an epoch, what it is measured by, how long to wait for input."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.graph.execution_graph import ExecutionGraph
from headrace.runtime.checkpoint.checkpointing import Checkpointing
from headrace.runtime.epoch.back_pressure import TimeShares, time_shares, work_time
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.epoch.pacing import EpochPacer
from headrace.runtime.epoch.phases import PhaseClock
from headrace.runtime.epoch.spent import spent_ms, spent_text
from headrace.runtime.monitoring.flame_graphs import FlameGraphs
from headrace.runtime.run.job_run import EpochSummary, JobRun
from headrace.runtime.run.sink_coordinator import SinkCoordinator

_log = logging.getLogger(__name__)

#: An idle job asks its sources after one, two, ... at most this many poll intervals.
_MOST_PATIENCE = 5
_LEAST_DELAY_S = 0.001
#: How long to wait between looks at a snapshot that is being written, s.
_WRITING_POLL_S = 0.01


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


class EpochLoop:
    """Runs the epochs of one job.

    Args:
        pacer: Decides how large epochs are, and learns from each.
        checkpointing: Takes the checkpoints that are due between two epochs.
        flame_graphs: Samples tasks for whoever asks.
        progress: Adds up what epochs have done.
        idle_poll_s: How long to wait before sources that had nothing are asked again.
        on_epoch: Called after every epoch.
        wake: Set when a user asks for something while the job waits for input.
        now_ms: The clock.
        timer: Measures how long things take, in seconds.
    """

    def __init__(
        self,
        pacer: EpochPacer,
        checkpointing: Checkpointing,
        flame_graphs: FlameGraphs,
        progress: JobProgress,
        *,
        idle_poll_s: float,
        on_epoch: Callable[[EpochSummary], None] | None,
        wake: threading.Event,
        now_ms: Callable[[], int],
        timer: Callable[[], float],
    ) -> None:
        self._pacer = pacer
        self._checkpointing = checkpointing
        self._flame_graphs = flame_graphs
        self._progress = progress
        self._idle_poll_s = idle_poll_s
        self._on_epoch = on_epoch
        self._wake = wake
        self._now_ms = now_ms
        self._timer = timer
        #: Where the time starts that the next epoch's subtasks are asked about.
        self._shares_since = timer()
        #: How long output was published since then, by the operator id of the sink.
        self._publishing_s: dict[str, float] = {}
        self._phases = PhaseClock(timer)
        self._idle_polls = 0
        self._shown_warnings: set[str] = set()

    def deployed(self) -> None:
        """Tasks run: from now on their time counts."""
        self._shares_since = self._timer()
        self._idle_polls = 0

    def step(
        self,
        run: JobRun,
        sinks: SinkCoordinator,
        execution: ExecutionGraph,
        check: Callable[[], None],
        *,
        is_drained: bool,
    ) -> bool:
        """Run an epoch, or wait if there is nothing to do; return whether a savepoint has stopped the job.

        Args:
            run: What runs it.
            sinks: What publishes its output.
            execution: Told of subtasks that have ended.
            check: Raises if the job is to stop instead of trying an epoch again.
            is_drained: Whether sources were told to end.
        """
        started = self._timer()
        published_s = 0.0
        summary = None
        self._phases.begin()
        plan = run.plan()
        self._phases.planned()
        if plan is None:
            self._idle_polls += 1
            sinks.commit_in_time(self._now_ms())
        else:
            self._idle_polls = 0
            keeps_last = run.is_recorded or self._checkpointing.reads_last_state(is_drained=is_drained)
            plan = replace(plan, keeps_last_state=keeps_last)
            summary = run.run(self._flame_graphs.sampled(plan, self._now_ms()), check)
            published_s += self._finish_epoch(summary, run, sinks, execution)
        is_stopped = self._checkpointing.after_epoch(run, sinks, is_drained=is_drained and run.has_ended)
        settled_s = self._note_publications(sinks)
        self._phases.settled(settled_s)
        published_s += settled_s
        if summary is not None:
            self._pacer.observe(
                duration_s=self._timer() - started - published_s,
                work_s=work_time(run.job, summary.reports),
                most_records=summary.most_records,
                most_bytes=summary.most_bytes,
            )
        elif not is_stopped:
            self._wake.wait(self._idle_delay(run, sinks))
            self._phases.waited()
        return is_stopped

    def work_s(self, run: JobRun, summary: EpochSummary) -> float:
        """Return for how long the job was at work in an epoch, which the autoscaler learns from."""
        return work_time(run.job, summary.reports)

    def quiesce(
        self, run: JobRun, sinks: SinkCoordinator, execution: ExecutionGraph, check: Callable[[], None]
    ) -> None:
        """Bring the run to a point from which another one can continue. Between two epochs it is at one."""

    def _finish_epoch(
        self, summary: EpochSummary, run: JobRun, sinks: SinkCoordinator, execution: ExecutionGraph
    ) -> float:
        """Do what follows an epoch, and return for how many seconds its output was published."""
        self._pacer.read(summary.epoch, summary.most_records)
        sinks.add(summary.epoch, summary.reports)
        self._flame_graphs.add(summary.reports, self._now_ms())
        published_s = self._note_publications(sinks)
        for report in summary.reports:
            if report.has_ended:
                execution.finish(*report.subtask, self._now_ms())
        self._checkpointing.retire(run.tidy_state())
        phases = self._phases.epoch(published_s, run.tries)
        wall_s, shares = self._take_shares(summary, run, phases.before.waiting_s)
        self._observe(replace(summary, wall_s=wall_s, shares=shares, phases=phases))
        if _log.isEnabledFor(logging.DEBUG):
            for vertex_id, parts in spent_ms(summary.reports, summary.duration_s).items():
                _log.debug("epoch %d, %s", summary.epoch, spent_text(run.job.vertex(vertex_id).name, parts))
        return published_s

    def _note_publications(self, sinks: SinkCoordinator) -> float:
        """Learn from what was published, and return how long that took."""
        total_s = 0.0
        for publication in sinks.take_publications():
            duration_s = sum(publication.duration_s.values())
            self._pacer.published(publication.epochs, duration_s)
            for operator_id, seconds in publication.duration_s.items():
                self._publishing_s[operator_id] = self._publishing_s.get(operator_id, 0.0) + seconds
            total_s += duration_s
        return total_s

    def _take_shares(
        self, summary: EpochSummary, run: JobRun, waiting_s: float
    ) -> tuple[float, dict[SubtaskId, TimeShares]]:
        """Return the time since this was last asked, and how subtasks spent it."""
        now = self._timer()
        wall_s = now - self._shares_since
        shares = time_shares(run.job, summary.reports, wall_s, self._publishing_s, waiting_s)
        self._shares_since, self._publishing_s = now, {}
        return wall_s, shares

    def _observe(self, summary: EpochSummary) -> None:
        self._progress.epochs += 1
        self._progress.records += summary.records
        self._progress.watermark = summary.watermark
        for warning in (text for report in summary.reports for text in report.warnings):
            if warning not in self._shown_warnings:
                self._shown_warnings.add(warning)
                _log.warning("%s", warning)
        if self._on_epoch is not None:
            self._on_epoch(summary)

    def _idle_delay(self, run: JobRun, sinks: SinkCoordinator) -> float:
        """Return how long to wait for input: a source may know, otherwise ever longer while nothing comes."""
        usual = self._idle_poll_s * min(self._idle_polls, _MOST_PATIENCE)
        waiting = [source.retry_delay() for source in run.sources if not source.has_ended]
        delays = [usual if delay is None else delay for delay in waiting]
        due_ms = (sinks.next_commit_ms(), self._checkpointing.coordinator.next_due_ms())
        times = [*run.wake_times(), *(time for time in due_ms if time is not None)]
        delays += [(time - self._now_ms()) / 1000 for time in times]
        if self._checkpointing.is_waiting():
            delays.append(_WRITING_POLL_S)
        return max(_LEAST_DELAY_S, min(delays, default=usual))
