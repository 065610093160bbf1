"""JobMonitor: adds up what the epochs of one job report, for its observers.

What subtasks did with their time (busy, back-pressured, idle) is said by `back_pressure`, epoch by epoch; here it is
added up, as all else.

Reports come from the job's thread; views are values, and may be taken from any thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, cast

from headrace.graph.job_graph import JobGraph
from headrace.metrics.reports import RECORDS_IN, RECORDS_OUT, CounterReport, MetricName, MetricReport
from headrace.runtime.control.messages import Beat
from headrace.runtime.epoch.back_pressure import TimeShares
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.runtime.epoch.phases import BehindEpoch
from headrace.runtime.epoch.spent import spent_ms
from headrace.runtime.monitoring.throughput import ThroughputHistory
from headrace.runtime.run.job_run import EpochSummary

#: Epochs that are remembered.
EPOCHS_KEPT = 120
#: Rates and ratios are those of the last so many milliseconds, or of the last epoch if it was longer.
RATE_WINDOW_MS = 10_000
#: How long rates are good for while no epoch is completed.
_RATES_GOOD_MS = 500


@dataclass(frozen=True)
class SubtaskView:
    """What a subtask has done in its present parallelism; times are milliseconds."""

    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_ms: float = 0.0
    idle_ms: float = 0.0
    backpressured_ms: float = 0.0
    watermark: int | None = None
    host: str = ""
    pid: int = 0
    #: Of user functions and operators, by operator id and name; those of the job have no operator id.
    user_metrics: Mapping[tuple[str, MetricName], MetricReport] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """One subtask's part of one epoch."""

    records_in: int
    records_out: int
    bytes_in: int
    bytes_out: int
    #: Of the time from the end of the epoch before to its own.
    busy_ms: float
    backpressured_ms: float
    idle_ms: float
    #: The records that went into each operator and came out of it, by operator id; of operators that count them.
    operators: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class EpochView:
    """One epoch on the time line; times are milliseconds since the Unix epoch."""

    epoch: int
    started_ms: int
    ended_ms: int
    records: int
    watermark: int | None
    #: From when to when the subtasks of each level worked, in the order of levels.
    levels: tuple[tuple[int, int], ...]
    shares: Mapping[SubtaskId, Share] = field(repr=False)
    #: The driver's parts: before the epoch starts, and at its end.
    planning_ms: float = 0.0
    publishing_ms: float = 0.0
    #: What came after it, known when there is a next one; see `BehindEpoch`.
    checkpoint_ms: float = 0.0
    late_publishing_ms: float = 0.0
    waiting_ms: float = 0.0
    #: How often the epoch was run as a whole, and how many of its tasks Spark tried more than once.
    tries: int = 1
    retried_tasks: int = 0
    #: What the subtasks of vertices did, in ms, by vertex and part of their work; of those that tell.
    spent_ms: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Rates:
    """What a subtask did lately, per second; parts of its time are from 0 to 1."""

    records_in: float = 0.0
    records_out: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    busy: float = 0.0
    idle: float = 1.0
    backpressured: float = 0.0
    #: Buffers and bytes that wait in front of a live subtask, and which part of the room for them they take.
    queued_buffers: int | None = None
    queued_bytes: int | None = None
    pool_usage: float | None = None
    #: The same of what it has sent, and the next ones have not taken.
    leaving_buffers: int = 0
    leaving_bytes: int = 0
    output_usage: float = 0.0


@dataclass(frozen=True)
class OperatorRates:
    """The records per second of an operator lately."""

    records_in: float = 0.0
    records_out: float = 0.0


def with_beats(rates: Mapping[SubtaskId, Rates], beats: Mapping[SubtaskId, Beat]) -> dict[SubtaskId, Rates]:
    """Return rates with what live subtasks have measured themselves in the last second."""
    return {
        **rates,
        **{subtask: _measured(rates.get(subtask, Rates()), beat) for subtask, beat in beats.items()},
    }


def _measured(rates: Rates, beat: Beat) -> Rates:
    whole_ms = beat.busy_ms + beat.idle_ms + beat.back_pressured_ms
    found = replace(
        rates,
        queued_buffers=beat.waiting_buffers,
        queued_bytes=beat.waiting_bytes,
        pool_usage=beat.pool_usage,
        leaving_buffers=beat.leaving_buffers,
        leaving_bytes=beat.leaving_bytes,
        output_usage=beat.output_usage,
    )
    if not whole_ms:
        return found
    return replace(
        found,
        busy=beat.busy_ms / whole_ms,
        idle=beat.idle_ms / whole_ms,
        backpressured=beat.back_pressured_ms / whole_ms,
    )


class JobMonitor:
    """Watches one job.

    Args:
        started_ms: When the job was taken in.
        now_ms: The clock.
    """

    def __init__(self, started_ms: int, now_ms: Callable[[], int]) -> None:
        self.started_ms = started_ms
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._subtasks: dict[SubtaskId, SubtaskView] = {}
        self._epochs: deque[EpochView] = deque(maxlen=EPOCHS_KEPT)
        self._throughput = ThroughputHistory()
        #: What `rates` answered last, and when; None once there was another epoch.
        self._rates: tuple[dict[SubtaskId, Rates] | None, int] = (None, 0)

    # -- from the job's thread ---------------------------------------------------------------------------------

    def observe(self, job: JobGraph, summary: EpochSummary) -> None:
        """Take in an epoch that has just been completed."""
        ended_ms = self._now_ms()
        phases = summary.phases
        started_ms = ended_ms - round((summary.duration_s + phases.publishing_s) * 1000)
        shares = {report.subtask: _share(report, summary) for report in summary.reports}
        epoch = EpochView(
            summary.epoch,
            started_ms,
            ended_ms,
            summary.records,
            summary.watermark,
            _levels(job, summary.reports),
            shares,
            planning_ms=phases.planning_s * 1000,
            publishing_ms=phases.publishing_s * 1000,
            tries=phases.tries,
            retried_tasks=sum(report.spark_attempt > 0 for report in summary.reports),
            spent_ms=spent_ms(summary.reports, summary.duration_s),
        )
        with self._lock:
            self._complete_last(phases.before)
            self._epochs.append(epoch)
            self._rates = None, 0
            self._throughput.add(started_ms, ended_ms, summary.records)
            known = {report.subtask for report in summary.reports}
            self._subtasks = {subtask: view for subtask, view in self._subtasks.items() if subtask in known}
            for report in summary.reports:
                before = self._subtasks.get(report.subtask, SubtaskView())
                self._subtasks[report.subtask] = _added(before, report, shares[report.subtask])

    def _complete_last(self, behind: BehindEpoch) -> None:
        """Say of the last epoch what came after it, now that the next one is known."""
        if not self._epochs:
            return
        self._epochs[-1] = replace(
            self._epochs[-1],
            checkpoint_ms=behind.checkpoint_s * 1000,
            late_publishing_ms=behind.publishing_s * 1000,
            waiting_ms=behind.waiting_s * 1000,
        )

    # -- from any thread ---------------------------------------------------------------------------------------

    def subtasks(self) -> dict[SubtaskId, SubtaskView]:
        """Return the totals of each subtask that has reported."""
        with self._lock:
            return dict(self._subtasks)

    def epochs(self) -> tuple[EpochView, ...]:
        """Return the last epochs, oldest first."""
        with self._lock:
            return tuple(self._epochs)

    def throughput(self) -> list[float]:
        """Return the records per second that sources read, in steps of `throughput.STEP_MS`, oldest first."""
        with self._lock:
            return self._throughput.rates(self._now_ms())

    def rates(self) -> dict[SubtaskId, Rates]:
        """Return what each subtask does lately; whoever asks again within a moment gets the same."""
        now_ms = self._now_ms()
        with self._lock:
            known, made_ms = self._rates
            if known is not None and 0 <= now_ms - made_ms < _RATES_GOOD_MS:
                return known
            epochs, subtasks = tuple(self._epochs), tuple(self._subtasks)
        recent, span_ms = _recent(epochs, now_ms)
        if not recent:
            return {subtask: Rates() for subtask in subtasks}
        rates = _rates(subtasks, recent, span_ms)
        with self._lock:
            if not self._epochs or self._epochs[-1] is epochs[-1]:
                self._rates = rates, now_ms
        return rates

    def operator_rates(self, subtasks: Iterable[SubtaskId]) -> dict[tuple[SubtaskId, str], OperatorRates]:
        """Return how many records per second went through the operators of subtasks lately, by operator id."""
        recent, span_ms = _recent(self.epochs(), self._now_ms())
        sums: dict[tuple[SubtaskId, str], list[int]] = {}
        for subtask, epoch in product(subtasks, recent):
            if (share := epoch.shares.get(subtask)) is None:
                continue
            for operator_id, (records_in, records_out) in share.operators.items():
                own = sums.setdefault((subtask, operator_id), [0, 0])
                own[0] += records_in
                own[1] += records_out
        seconds = span_ms / 1000
        return {key: OperatorRates(own[0] / seconds, own[1] / seconds) for key, own in sums.items()}


def _recent(epochs: tuple[EpochView, ...], now_ms: int) -> tuple[list[EpochView], int]:
    """Return the epochs of the window of rates, and the milliseconds since they began.

    The window is as long as the last epoch if that was longer: a live job may have a barrier a minute.
    """
    longest_ms = max([RATE_WINDOW_MS, *(epoch.ended_ms - epoch.started_ms for epoch in epochs[-1:])])
    since_ms = now_ms - longest_ms
    recent = [epoch for epoch in epochs if epoch.ended_ms > since_ms]
    return recent, max(1, now_ms - max(since_ms, recent[0].started_ms)) if recent else 1


def _share(report: SubtaskReport, summary: EpochSummary) -> Share:
    wall_ms = summary.wall_s * 1000
    parts = summary.shares.get(report.subtask, TimeShares())
    return Share(
        report.records_in,
        report.records_out,
        report.bytes_in,
        report.bytes_out,
        parts.busy * wall_ms,
        parts.back_pressured * wall_ms,
        parts.idle * wall_ms,
        {
            operator_id: (_count(reports, RECORDS_IN), _count(reports, RECORDS_OUT))
            for operator_id, reports in report.user_metrics.items()
            if RECORDS_IN in reports
        },
    )


def _count(reports: Mapping[MetricName, MetricReport], name: MetricName) -> int:
    report = reports.get(name)
    return report.increment if isinstance(report, CounterReport) else 0


def _added(before: SubtaskView, report: SubtaskReport, share: Share) -> SubtaskView:
    metrics: dict[tuple[str, MetricName], Any] = dict(before.user_metrics)
    for operator_id, reports in report.user_metrics.items():
        for name, later in reports.items():
            earlier = metrics.get((operator_id, name))
            # A metric of another kind under the same name starts afresh.
            same = earlier is not None and type(earlier) is type(later)
            metrics[operator_id, name] = cast("Any", earlier).then(later) if same else later
    return replace(
        before,
        records_in=before.records_in + report.records_in,
        records_out=before.records_out + report.records_out,
        bytes_in=before.bytes_in + report.bytes_in,
        bytes_out=before.bytes_out + report.bytes_out,
        busy_ms=before.busy_ms + share.busy_ms,
        idle_ms=before.idle_ms + share.idle_ms,
        backpressured_ms=before.backpressured_ms + share.backpressured_ms,
        watermark=before.watermark if report.watermark is None else report.watermark,
        host=report.host,
        pid=report.pid,
        user_metrics=metrics,
    )


def _levels(job: JobGraph, reports: Any) -> tuple[tuple[int, int], ...]:
    times: dict[str, list[SubtaskReport]] = {}
    for report in reports:
        times.setdefault(report.subtask.vertex_id, []).append(report)
    levels = []
    for level in job.levels():
        of_level = [report for vertex in level for report in times.get(vertex.vertex_id, ())]
        if of_level:
            levels.append((min(r.started_ms for r in of_level), max(r.ended_ms for r in of_level)))
    return tuple(levels)


def _rates(
    subtasks: Iterable[SubtaskId], epochs: Iterable[EpochView], span_ms: int
) -> dict[SubtaskId, Rates]:
    """Add up the epochs in one pass: jobs with many subtasks are asked about often."""
    sums: dict[SubtaskId, list[float]] = {subtask: [0, 0, 0, 0, 0.0, 0.0] for subtask in subtasks}
    for epoch in epochs:
        for subtask, share in epoch.shares.items():
            own = sums.get(subtask)
            if own is None:
                continue
            own[0] += share.records_in
            own[1] += share.records_out
            own[2] += share.bytes_in
            own[3] += share.bytes_out
            own[4] += share.busy_ms
            own[5] += share.backpressured_ms
    return {subtask: _rates_of(own, span_ms) for subtask, own in sums.items()}


def _rates_of(sums: list[float], span_ms: int) -> Rates:
    records_in, records_out, bytes_in, bytes_out, busy_ms, held_up_ms = sums
    seconds = span_ms / 1000
    busy = min(1.0, busy_ms / span_ms)
    backpressured = min(1.0 - busy, held_up_ms / span_ms)
    return Rates(
        records_in / seconds,
        records_out / seconds,
        bytes_in / seconds,
        bytes_out / seconds,
        busy,
        max(0.0, 1.0 - busy - backpressured),
        backpressured,
    )
