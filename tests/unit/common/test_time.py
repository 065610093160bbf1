"""Durations, instants and times."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Duration, Instant, Time
from headrace.common.time import as_millis


def test_durations_of_every_unit():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440)
    assert Duration.of_seconds(1) == Duration.of_millis(1000) == Duration.of_nanos(1_000_000_000)
    assert Duration.of(timedelta(seconds=1)).to_timedelta() == timedelta(seconds=1)
    assert Duration.of_nanos(1_999_999).to_millis() == 1
    assert Duration.of_seconds(1) < Duration.of_minutes(1)
    assert len({Duration.of_seconds(60), Duration.of_minutes(1)}) == 1
    assert repr(Duration.of_seconds(1)) == "Duration.of_millis(1000)"
    assert repr(Duration.of_nanos(1)) == "Duration.of_nanos(1)"


def test_times_of_every_unit():
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86_400)
    assert Time.milliseconds(5).to_milliseconds() == 5
    assert Time.seconds(1) < Time.seconds(2)
    assert repr(Time.seconds(1)) == "Time.milliseconds(1000)"
    assert str(Time.seconds(1)) == "1000 ms"


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_an_instant_keeps_its_milliseconds(millis):
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis


def test_instants_carry_nanoseconds_over_and_compare():
    assert Instant(1, 1_500_000_000) == Instant(2, 500_000_000)
    assert Instant(0, -1) == Instant(-1, 999_999_999)
    assert Instant(1, 0) < Instant(1, 1)
    assert repr(Instant(1, 2)) == "Instant<1, 2>"


@pytest.mark.parametrize("amount", [Duration.of_seconds(1), Time.seconds(1), timedelta(seconds=1), 1000])
def test_any_form_of_time_is_milliseconds(amount):
    assert as_millis(amount) == 1000


@pytest.mark.parametrize("amount", [0.5, "1 s", True, None])
def test_a_value_that_is_not_a_whole_number_is_refused(amount):
    with pytest.raises(TypeError, match="expected a whole number"):
        as_millis(amount)
    with pytest.raises(TypeError, match="expected a whole number"):
        Duration.of_seconds(amount)


@pytest.mark.parametrize("value", [Duration.of_seconds(1), Time.seconds(1), Instant(1, 2)])
def test_times_pickle(value):
    assert pickle.loads(pickle.dumps(value)) == value
