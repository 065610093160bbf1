"""Restart strategies as declarations."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.common import Duration, RestartStrategies
from headrace.config import Configuration
from headrace.config.options import restart
from headrace.errors import JobDefinitionError

STRATEGIES = [
    RestartStrategies.no_restart(),
    RestartStrategies.fall_back_restart(),
    RestartStrategies.fixed_delay_restart(3, 10_000),
    RestartStrategies.failure_rate_restart(2, timedelta(minutes=5), Duration.of_seconds(1)),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_every_strategy_can_be_read_as_configuration(strategy):
    Configuration(strategy.to_dict())
    assert strategy.get_description().endswith(".")


def test_strategies_are_equal_by_what_they_do():
    assert len(set(STRATEGIES)) == 4
    assert RestartStrategies.fixed_delay_restart(3, timedelta(seconds=10)) == STRATEGIES[2]
    assert RestartStrategies.fixed_delay_restart(4, 10_000) != STRATEGIES[2]


def test_fixed_delay():
    strategy = STRATEGIES[2]
    assert strategy.get_restart_attempts() == 3
    assert strategy.get_delay_between_attempts_interval() == timedelta(seconds=10)
    config = Configuration(strategy.to_dict())
    assert config.get(restart.STRATEGY) == "fixed-delay"
    assert config.get(restart.FIXED_DELAY_ATTEMPTS) == 3
    assert config.get(restart.FIXED_DELAY_DELAY) == timedelta(seconds=10)


def test_failure_rate():
    strategy = STRATEGIES[3]
    assert strategy.get_max_failure_rate() == 2
    assert strategy.get_failure_interval() == timedelta(minutes=5)
    assert strategy.get_delay_between_attempts_interval() == timedelta(seconds=1)
    assert strategy.get_description() == "Restart after 1 s, unless there are more than 2 failures in 5 min."


def test_senseless_numbers_are_refused():
    with pytest.raises(JobDefinitionError, match="restart attempts: expected at least 0; got -1"):
        RestartStrategies.fixed_delay_restart(-1, 0)
    with pytest.raises(JobDefinitionError, match="failures per interval: expected at least 1"):
        RestartStrategies.failure_rate_restart(0, 1, 1)
