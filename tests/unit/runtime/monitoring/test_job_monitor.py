"""What a monitor makes of reports: totals, and what subtasks did with their time."""

from __future__ import annotations

import pytest

from headrace.metrics.reports import RECORDS_IN, RECORDS_OUT, CounterReport, GaugeReport, MetricName
from headrace.runtime.control.messages import Beat
from headrace.runtime.epoch.back_pressure import time_shares
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.runtime.monitoring.job_monitor import (
    EPOCHS_KEPT,
    RATE_WINDOW_MS,
    JobMonitor,
    OperatorRates,
    Rates,
    with_beats,
)
from headrace.runtime.run.job_run import EpochSummary
from tests.unit.runtime.jobs import job_graph, make_env


class Watched:
    """A job of two levels, a subtask each, whose epochs are told by hand."""

    def __init__(self) -> None:
        env = make_env()
        env.from_collection([1]).key_by(lambda n: n).map(lambda n: n).print()
        self.job = job_graph(env)
        self.first, self.second = (SubtaskId(vertex.vertex_id, 0) for vertex in self.job.vertices)
        self.now_ms = 0
        self.monitor = JobMonitor(0, lambda: self.now_ms)
        self.epoch = 0
        self.last_ms = 0

    def run(self, first: tuple[int, int], second: tuple[int, int], until: int, **more: object) -> None:
        """Complete an epoch that began with the first subtask and ends at a time."""
        reports = [
            SubtaskReport(
                subtask,
                started_ms=start,
                ended_ms=end,
                busy_ns=(end - start) * 1_000_000,
                records_in=10,
                **more,  # type: ignore[arg-type]
            )
            for subtask, (start, end) in ((self.first, first), (self.second, second))
        ]
        self.epoch += 1
        self.now_ms = until
        duration_s = (until - first[0]) / 1000
        wall_s, waiting_s = (until - self.last_ms) / 1000, (first[0] - self.last_ms) / 1000
        self.last_ms = until
        shares = time_shares(self.job, reports, wall_s, waiting_s=waiting_s)
        summary = EpochSummary(self.epoch, 10, duration_s, None, reports, wall_s=wall_s, shares=shares)
        self.monitor.observe(self.job, summary)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_times_of_epochs_add_up(watched: Watched) -> None:
    #   first   |==|........|==|........|
    #   second  |--|========|--|========|
    watched.run((0, 100), (100, 500), until=500)
    watched.run((500, 600), (600, 1000), until=1000)
    first, second = watched.monitor.subtasks()[watched.first], watched.monitor.subtasks()[watched.second]
    # The second takes 300 longer, twice: a faster one would save that.
    assert (first.busy_ms, first.backpressured_ms, first.idle_ms) == pytest.approx((200, 600, 200))
    assert (second.busy_ms, second.backpressured_ms, second.idle_ms) == pytest.approx((800, 0, 200))
    rates = watched.monitor.rates()
    assert rates[watched.first].backpressured == pytest.approx(0.6)
    assert rates[watched.second].busy == pytest.approx(0.8)


def test_no_subtask_is_back_pressured_while_the_job_waits_for_input(watched: Watched) -> None:
    watched.run((1000, 1100), (1100, 1500), until=1500)
    watched.run((3000, 3100), (3100, 3500), until=3500)
    first = watched.monitor.subtasks()[watched.first]
    assert (first.busy_ms, first.backpressured_ms, first.idle_ms) == pytest.approx((200, 0, 3300))
    assert watched.monitor.rates()[watched.first].backpressured == 0


def test_a_clock_that_is_wrong_does_no_harm(watched: Watched) -> None:
    watched.run((0, 100), (90_000, 90_400), until=500)
    watched.run((500, 600), (-5, -1), until=1000)
    for view in watched.monitor.subtasks().values():
        assert view.busy_ms >= 0
        assert view.idle_ms >= 0
        assert view.backpressured_ms >= 0


def test_rates_of_long_epochs_are_those_of_the_whole_epoch(watched: Watched) -> None:
    watched.run((0, 60_000), (0, 60_000), until=60_000)
    for later_ms in (0, 1_000, 30_000, 59_000):
        watched.now_ms = 60_000 + later_ms
        assert watched.monitor.rates()[watched.first].records_in == pytest.approx(10 / 60), later_ms
    watched.now_ms = 121_000
    assert watched.monitor.rates()[watched.first].records_in == 0


def test_operators_have_rates_of_their_own(watched: Watched) -> None:
    for end in (500, 1000):
        counted = {RECORDS_IN: CounterReport(10), RECORDS_OUT: CounterReport(30)}
        watched.run((end - 500, end - 400), (end - 400, end), until=end, user_metrics={"op": counted})
    rates = watched.monitor.operator_rates([watched.first])
    assert rates == {(watched.first, "op"): OperatorRates(20.0, 60.0)}
    watched.now_ms += RATE_WINDOW_MS
    assert watched.monitor.operator_rates([watched.first, watched.second]) == {}


def test_metrics_of_functions_add_up(watched: Watched) -> None:
    for count in (3, 4):
        metrics = {
            "operator": {MetricName("seen"): CounterReport(count), MetricName("level"): GaugeReport(count)}
        }
        watched.run((0, 1), (1, 2), until=2, user_metrics=metrics)
    found = watched.monitor.subtasks()[watched.first].user_metrics
    assert found["operator", MetricName("seen")] == CounterReport(7)
    assert found["operator", MetricName("level")] == GaugeReport(4)


def test_only_the_last_epochs_are_kept(watched: Watched) -> None:
    for _ in range(EPOCHS_KEPT + 5):
        watched.run((0, 1), (1, 2), until=2)
    epochs = watched.monitor.epochs()
    assert len(epochs) == EPOCHS_KEPT
    assert epochs[-1].epoch == EPOCHS_KEPT + 5
    assert epochs[0].levels == ((0, 1), (1, 2))
    assert watched.monitor.subtasks()[watched.first].records_in == 10 * (EPOCHS_KEPT + 5)


def test_rates_fade_when_nothing_happens(watched: Watched) -> None:
    watched.run((0, 100), (100, 500), until=500)
    assert watched.monitor.rates()[watched.first].records_in == pytest.approx(20)
    watched.now_ms = 60_000
    rates = watched.monitor.rates()[watched.first]
    assert (rates.records_in, rates.idle) == (0, 1)


def test_live_subtasks_say_themselves_how_they_spend_their_time() -> None:
    subtask, other = SubtaskId("v", 0), SubtaskId("v", 1)
    beat = Beat(
        busy_ms=100, idle_ms=300, back_pressured_ms=600, waiting_buffers=2, waiting_bytes=40, pool_usage=0.5
    )
    rates = with_beats({subtask: Rates(records_in=7.0), other: Rates(busy=0.25)}, {subtask: beat})
    assert rates[subtask] == Rates(
        records_in=7.0,
        busy=0.1,
        idle=0.3,
        backpressured=0.6,
        queued_buffers=2,
        queued_bytes=40,
        pool_usage=0.5,
    )
    assert rates[other] == Rates(busy=0.25)
    assert with_beats({}, {subtask: Beat()})[subtask].idle == 1.0
