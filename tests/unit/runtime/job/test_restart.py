"""Restart strategies: when a job that failed starts again. Failures are times; nothing waits."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.restart_strategy import RestartStrategies
from headrace.config.configuration import Configuration
from headrace.errors import ConfigurationError
from headrace.runtime.job.restart import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
    from_configuration,
)


def delays(strategy: RestartStrategy, *failures_ms: int) -> list[int | None]:
    logic, rng = strategy.build(), Random(1)
    return [logic.on_failure(now_ms, rng) for now_ms in failures_ms]


def exponential(**options: float) -> ExponentialDelay:
    values = {
        "initial_ms": 100,
        "max_ms": 1_000,
        "multiplier": 2.0,
        "reset_threshold_ms": 5_000,
        "jitter": 0.0,
        "attempts": 2**31 - 1,
    }
    return ExponentialDelay(**(values | options))  # type: ignore[arg-type]


# --- none, fixed delay ----------------------------------------------------------------------------


def test_none_gives_up_at_once() -> None:
    assert delays(NoRestart(), 0) == [None]


def test_fixed_delay_restarts_as_often_as_it_may() -> None:
    assert delays(FixedDelay(3, 50), 0, 10, 10_000, 10_001) == [50, 50, 50, None]
    assert delays(FixedDelay(0, 50), 0) == [None]


def test_two_jobs_with_one_strategy_count_for_themselves() -> None:
    strategy = FixedDelay(1, 50)
    assert delays(strategy, 0) == delays(strategy, 0) == [50]


# --- failure rate ---------------------------------------------------------------------------------


def test_failure_rate_gives_up_when_an_interval_sees_one_too_many() -> None:
    #  0    10    20    30         interval 100, two may fail
    assert delays(FailureRate(2, 100, 5), 0, 10, 20) == [5, 5, None]


def test_failure_rate_forgets_what_is_older_than_the_interval() -> None:
    assert delays(FailureRate(2, 100, 5), 0, 60, 101, 162, 203) == [5, 5, 5, 5, 5]
    assert delays(FailureRate(2, 100, 5), 0, 60, 100) == [5, 5, None]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 200))
def test_failure_rate_is_what_it_says(gaps: list[int], most: int, interval: int) -> None:
    times = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    for index, delay in enumerate(delays(FailureRate(most, interval, 5), *times)):
        recent = [each for each in times[: index + 1] if times[index] - each <= interval]
        assert (delay is None) == (len(recent) > most)


# --- exponential delay ----------------------------------------------------------------------------


def test_exponential_delay_grows_up_to_its_limit() -> None:
    # Each failure comes 1 ms after the restart that the one before led to.
    times = [0, 101, 302, 703, 1_504, 2_505]
    assert delays(exponential(), *times) == [100, 200, 400, 800, 1_000, 1_000]


def test_exponential_delay_starts_small_after_a_quiet_time() -> None:
    #   0 +100 restart   101 +200 restart 301   quiet 5000   5301
    assert delays(exponential(), 0, 101, 5_300, 11_000) == [100, 200, 400, 100]


def test_the_quiet_time_counts_from_the_restart_not_from_the_failure() -> None:
    assert delays(exponential(), 0, 5_099) == [100, 200]
    assert delays(exponential(), 0, 5_100) == [100, 100]


def test_failures_while_waiting_for_a_restart_are_one_failure() -> None:
    assert delays(exponential(), 0, 40, 100, 101) == [100, 60, 0, 200]
    assert delays(exponential(attempts=1), 0, 40, 90) == [100, 60, 10]


def test_exponential_delay_gives_up_after_its_attempts_unless_a_quiet_time_came() -> None:
    assert delays(exponential(attempts=2), 0, 101, 302) == [100, 200, None]
    assert delays(exponential(attempts=2), 0, 101, 9_000, 9_101, 9_302) == [100, 200, 100, 200, None]


@given(st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_jitter_stays_within_its_part_and_within_the_limits(seed: int, jitter: float) -> None:
    strategy = exponential(jitter=jitter)
    logic, rng, now = strategy.build(), Random(seed), 0
    for expected in (100, 200, 400, 800, 1_000, 1_000):
        delay = logic.on_failure(now, rng)
        assert delay is not None
        assert max(100, expected * (1 - jitter) - 1) <= delay <= min(1_000, expected * (1 + jitter) + 1)
        now += delay + 1


def test_jitter_spreads() -> None:
    found = {exponential(jitter=0.5, max_ms=10_000, initial_ms=100).build() for _ in range(3)}
    rng = Random(7)
    for logic in found:
        logic.on_failure(0, rng)
    assert len({logic.on_failure(1_000, rng) for logic in found}) > 1


def test_the_first_delay_is_not_longer_than_the_longest() -> None:
    with pytest.raises(ConfigurationError, match=r"initial-backoff must not exceed .*1000 ms; got 2000 ms"):
        exponential(initial_ms=2_000)


# --- configuration --------------------------------------------------------------------------------


def test_without_checkpointing_there_is_no_restart() -> None:
    assert from_configuration(Configuration()) == NoRestart()


def test_with_checkpointing_the_delay_is_exponential() -> None:
    found = from_configuration(Configuration({"execution.checkpointing.interval": "1 s"}))
    assert found == ExponentialDelay(1_000, 60_000, 1.5, 3_600_000, 0.1, 2**31 - 1)


@pytest.mark.parametrize("spelling", ["none", "off", "disable"])
def test_restarts_can_be_switched_off_with_checkpointing(spelling: str) -> None:
    values = {"execution.checkpointing.interval": "1 s", "restart-strategy.type": spelling}
    assert from_configuration(Configuration(values)) == NoRestart()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (RestartStrategies.no_restart(), NoRestart()),
        (RestartStrategies.fall_back_restart(), NoRestart()),
        (RestartStrategies.fixed_delay_restart(3, 10_000), FixedDelay(3, 10_000)),
        (RestartStrategies.failure_rate_restart(3, 60_000, 5_000), FailureRate(3, 60_000, 5_000)),
    ],
    ids=["none", "fallback", "fixed-delay", "failure-rate"],
)
def test_what_a_program_declares_is_what_runs(declared: object, expected: RestartStrategy) -> None:
    assert from_configuration(Configuration(declared.to_dict())) == expected  # type: ignore[attr-defined]


def test_every_option_of_the_exponential_delay_is_read() -> None:
    prefix = "restart-strategy.exponential-delay."
    values = {
        "restart-strategy.type": "exponentialdelay",
        prefix + "initial-backoff": "2 s",
        prefix + "max-backoff": "30 s",
        prefix + "backoff-multiplier": 3,
        prefix + "reset-backoff-threshold": "10 min",
        prefix + "jitter-factor": 0.2,
        prefix + "attempts-before-reset-backoff": 8,
    }
    assert from_configuration(Configuration(values)) == ExponentialDelay(2_000, 30_000, 3.0, 600_000, 0.2, 8)


@pytest.mark.parametrize(
    "strategy",
    [NoRestart(), FixedDelay(1, 2), FailureRate(1, 2, 3), exponential()],
    ids=lambda s: type(s).__name__,
)
def test_every_strategy_describes_itself(strategy: RestartStrategy) -> None:
    assert strategy.describe().endswith(".")
