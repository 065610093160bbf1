"""Metrics that a task keeps and reports."""

from __future__ import annotations

import logging
import pickle

import pytest

from headrace.errors import JobDefinitionError
from headrace.metrics import Counter, Distribution, Meter, MetricGroup
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.metrics.reports import (
    CounterReport,
    DistributionReport,
    GaugeReport,
    HistogramReport,
    MeterReport,
    MetricName,
)


class ManualClock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def group(clock):
    return InMemoryMetricGroup(clock=clock)


def test_metrics_are_of_the_kinds_users_know(group):
    assert isinstance(group, MetricGroup)
    assert isinstance(group.counter("a"), Counter)
    assert isinstance(group.meter("b"), Meter)
    assert isinstance(group.distribution("c"), Distribution)


def test_counters_go_up_and_down(group):
    counter = group.counter("open")
    counter.inc()
    counter.inc(5)
    counter.dec(2)
    counter.dec()
    assert counter.get_count() == 3
    assert group.values() == {"open": 3}


def test_gauges_are_read_when_values_are_asked_for(group):
    sizes = [1]
    group.gauge("size", lambda: sizes[0])
    sizes[0] = 7
    assert group.values() == {"size": 7}


def test_a_gauge_that_fails_does_not_stop_the_job(group, caplog):
    group.gauge("broken", lambda: 1 // 0)
    with caplog.at_level(logging.WARNING):
        assert group.values() == {"broken": None}
    assert "a gauge failed" in caplog.text


def test_a_gauge_registered_again_takes_the_place_of_the_first(group):
    group.gauge("size", lambda: 1)
    group.gauge("size", lambda: 2)
    assert group.values() == {"size": 2}
    with pytest.raises(JobDefinitionError, match="gauge 'size': expected a function"):
        group.gauge("size", 5)


def test_a_meter_looks_back_over_its_span(group, clock):
    # second    0    5    10          span of 10 s
    # events   10   20                seconds 1 to 10 count at second 10
    meter = group.meter("events", time_span_in_seconds=10)
    meter.mark_event(4)
    meter.mark_event(6)
    clock.now += 5
    meter.mark_event(20)
    assert group.values() == {"events": {"count": 30, "rate": 3.0}}
    clock.now += 5
    assert meter.get_rate() == 2.0
    clock.now += 60
    assert meter.get_rate() == 0.0
    assert meter.get_count() == 30


def test_a_distribution_keeps_number_sum_least_and_greatest(group):
    distribution = group.distribution("size")
    assert group.values() == {"size": {"count": 0, "sum": 0, "min": None, "max": None}}
    for value in (5, -1, 3):
        distribution.update(value)
    assert group.values() == {"size": {"count": 3, "sum": 7, "min": -1, "max": 5}}


def test_groups_nest_and_their_names_join_with_dots(group):
    group.add_group("sink").counter("rows").inc()
    group.add_group("table", "orders").counter("rows").inc(2)
    group.add_group("table", "orders").counter("rows").inc(3)
    assert group.values() == {"sink.rows": 1, "table.orders.rows": 5}
    assert group.add_group("table", "orders").scope == ("table", "orders")


def test_a_name_means_one_metric_of_one_kind(group):
    inner = group.add_group("g")
    inner.counter("x").inc()
    inner.counter("x").inc()
    assert inner.values() == {"x": 2}
    with pytest.raises(JobDefinitionError, match=r"metric 'g\.x' is a Counter already and cannot be a Meter"):
        inner.meter("x")


def test_reported_values_are_plain(group):
    group.counter("a").inc()
    group.meter("b").mark_event()
    group.distribution("c").update(1)
    assert pickle.loads(pickle.dumps(group.values())) == group.values()


# -- reports ---------------------------------------------------------------------------------------


def dotted(reports):
    return {name.dotted: report for name, report in reports.items()}


def test_a_report_has_what_its_epoch_did_and_nothing_of_earlier_ones(group, clock):
    counter, meter, sizes = group.counter("seen"), group.meter("events", 10), group.distribution("size")
    open_now = [0]
    group.add_group("sink").gauge("open", lambda: open_now[0])
    group.begin_epoch()
    counter.inc(3)
    meter.mark_event(20)
    sizes.update(5)
    sizes.update(9)
    open_now[0] = 7
    assert dotted(group.reports()) == {
        "seen": CounterReport(3),
        "events": MeterReport(20, rate=2.0),
        "size": DistributionReport(2, 14, 5, 9),
        "sink.open": GaugeReport(7),
    }
    group.begin_epoch()
    counter.dec()
    sizes.update(6)
    assert dotted(group.reports()) == {
        "seen": CounterReport(-1),
        "events": MeterReport(0, rate=2.0),
        "size": DistributionReport(1, 6, 6, 6),
        "sink.open": GaugeReport(7),
    }
    assert counter.get_count() == 2, "a function still sees all it has counted here"
    assert group.values()["size"] == {"count": 3, "sum": 20, "min": 5, "max": 9}


def test_a_metric_that_is_registered_in_the_middle_of_an_epoch_counts_from_there(group):
    group.begin_epoch()
    group.add_group("g").counter("new").inc(4)
    assert dotted(group.reports()) == {"g.new": CounterReport(4)}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (CounterReport(3), CounterReport(-1), CounterReport(2)),
        (GaugeReport(3), GaugeReport(None), GaugeReport(None)),
        (MeterReport(3, 0.5), MeterReport(4, 0.25), MeterReport(7, 0.25)),
        (DistributionReport(2, 7, 3, 4), DistributionReport(1, 9, 9, 9), DistributionReport(3, 16, 3, 9)),
        (DistributionReport(), DistributionReport(1, 9, 9, 9), DistributionReport(1, 9, 9, 9)),
        (DistributionReport(1, 9, 9, 9), DistributionReport(), DistributionReport(1, 9, 9, 9)),
        (HistogramReport(5, (1, 2), 3), HistogramReport(2, (3, 4), 3), HistogramReport(7, (2, 3, 4), 3)),
    ],
)
def test_reports_of_consecutive_epochs_add_up(first, second, both):
    assert first.then(second) == both
    assert pickle.loads(pickle.dumps(both)) == both


def test_a_histogram_reports_the_last_values_of_its_epoch(group):
    histogram = group.histogram("size", history_size=3)
    group.begin_epoch()
    for value in range(5):
        histogram.update(value)
    assert dotted(group.reports()) == {"size": HistogramReport(5, (2, 3, 4), 3)}
    group.begin_epoch()
    assert dotted(group.reports()) == {"size": HistogramReport(0, (), 3)}
    assert histogram.get_count() == 5
    assert group.values() == {"size": {"count": 5, "values": []}}


def test_a_group_with_a_value_is_a_variable(group):
    group.add_group("tables").add_group("table", "orders").counter("size")
    [name] = group.reports()
    assert name == MetricName("size", (("tables",), ("table", "orders")))
    assert (name.dotted, name.logical) == ("tables.table.orders.size", "tables.table.size")
    assert name.variables == {"table": "orders"}
