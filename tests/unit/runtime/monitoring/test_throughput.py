"""Throughput in steps of equal length: spread over the epoch, bounded, empty where nothing was read."""

from __future__ import annotations

from headrace.runtime.monitoring.throughput import ThroughputHistory


def test_the_records_of_an_epoch_are_spread_over_its_time() -> None:
    history = ThroughputHistory(step_ms=1000, steps=10)
    history.add(10_500, 13_500, 3000)
    assert history.rates(14_000) == [500.0, 1000.0, 1000.0, 500.0]


def test_many_short_epochs_add_up_in_a_step() -> None:
    history = ThroughputHistory(step_ms=1000, steps=10)
    for start in range(5000, 6000, 10):
        history.add(start, start + 10, 7)
    assert history.rates(6000) == [700.0]


def test_the_step_that_is_under_way_is_not_shown() -> None:
    history = ThroughputHistory(step_ms=1000, steps=10)
    history.add(1000, 2500, 1500)
    assert history.rates(2600) == [1000.0]


def test_a_job_that_waits_reads_nothing() -> None:
    history = ThroughputHistory(step_ms=1000, steps=5)
    history.add(0, 1000, 10)
    assert history.rates(3000) == [10.0, 0.0, 0.0]
    assert history.rates(3_000_000) == [0.0] * 5


def test_only_the_last_steps_are_kept() -> None:
    history = ThroughputHistory(step_ms=1000, steps=3)
    for second in range(100):
        history.add(second * 1000, (second + 1) * 1000, second)
    assert history.rates(100_000) == [97.0, 98.0, 99.0]
    history.add(10_000_000, 10_001_000, 5)
    assert history.rates(10_001_000) == [0.0, 0.0, 5.0]


def test_an_epoch_longer_than_all_that_is_kept() -> None:
    history = ThroughputHistory(step_ms=1000, steps=3)
    history.add(0, 10_000, 10_000)
    assert history.rates(10_000) == [1000.0, 1000.0, 1000.0]


def test_an_epoch_of_no_time_counts() -> None:
    history = ThroughputHistory(step_ms=1000, steps=3)
    history.add(5000, 5000, 10)
    assert history.rates(6000) == [10.0]
