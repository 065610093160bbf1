"""Watermark strategies and their generators."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Duration, WatermarkStrategy
from headrace.common.constants import MIN_LONG_VALUE
from headrace.common.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    WatermarkAlignment,
    WatermarkGenerator,
)
from headrace.errors import JobDefinitionError, UnsupportedFeatureError


class Recorder:
    """Keeps what a generator says."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def emit_watermark(self, timestamp):
        self.said.append(timestamp)

    def mark_idle(self):
        self.said.append("idle")

    def mark_active(self):
        self.said.append("active")


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class OnMarker(WatermarkGenerator):
    """Emits when a record says so; holds the number of markers."""

    def __init__(self) -> None:
        self.markers = 0

    def on_event(self, value, timestamp, output):
        if value == "marker":
            self.markers += 1
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        pass


def _emitted(generator, timestamps):
    output = Recorder()
    for timestamp in timestamps:
        generator.on_event("x", timestamp, output)
        generator.on_periodic_emit(output)
    return output.said


def test_bounded_watermarks_follow_the_highest_timestamp():
    # timestamps     3   7   5   9  12
    # watermarks    -2   2   2   4   7
    generator = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(4)).build()
    assert _emitted(generator, [3, 7, 5, 9, 12]) == [-2, 2, 2, 4, 7]


def test_monotonous_watermarks_stay_one_behind():
    assert _emitted(WatermarkStrategy.for_monotonous_timestamps().build(), [1, 5, 5]) == [0, 4, 4]


def test_before_any_record_the_watermark_is_the_smallest():
    output = Recorder()
    WatermarkStrategy.for_bounded_out_of_orderness(5).build().on_periodic_emit(output)
    assert output.said == [MIN_LONG_VALUE]


def test_without_watermarks_there_is_no_warning():
    generator = WatermarkStrategy.no_watermarks().build()
    generator.on_batch(["a"], [1], Recorder())
    assert _emitted(generator, [1, 2]) == []


@given(st.lists(st.integers(min_value=-1000, max_value=1000)))
def test_a_batch_counts_as_its_records(timestamps):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(3)
    one, other = strategy.build(), strategy.build()
    for timestamp in timestamps:
        one.on_event("x", timestamp, Recorder())
    other.on_batch(["x"] * len(timestamps), timestamps, Recorder())
    assert one.snapshot() == other.snapshot()


@given(st.lists(st.integers(0, 100)), st.integers(0, 100))
def test_a_generator_continues_where_another_stopped(timestamps, cut):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(3)
    straight = _emitted(strategy.build(), timestamps)
    first = strategy.build()
    start = _emitted(first, timestamps[:cut])
    resumed = strategy.build(pickle.loads(pickle.dumps(first.snapshot())))
    assert start + _emitted(resumed, timestamps[cut:]) == straight


def test_generators_of_ones_own_are_made_per_split_and_resume():
    strategy = WatermarkStrategy.for_generator(OnMarker)
    generator, output = strategy.build(), Recorder()
    generator.on_batch(["a", "marker"], [1, 2], output)
    assert output.said == [2]
    assert strategy.build().markers == 0
    assert strategy.build(generator.snapshot()).markers == 1


def test_a_supplier_must_make_generators():
    with pytest.raises(JobDefinitionError, match="pass the class instead of an object"):
        WatermarkStrategy.for_generator(OnMarker())
    with pytest.raises(JobDefinitionError, match="expected to make a WatermarkGenerator; got 5"):
        WatermarkStrategy.for_generator(lambda: 5).build()


def test_with_methods_return_changed_copies():
    plain = WatermarkStrategy.for_monotonous_timestamps()
    full = (
        plain.with_timestamp_assigner(Second())
        .with_idleness(timedelta(minutes=1))
        .with_watermark_alignment("g", Duration.of_seconds(20))
    )
    assert plain == WatermarkStrategy("monotonous")
    assert full.idleness_ms == 60_000
    assert full.alignment == WatermarkAlignment("g", 20_000, 1000)
    assert full.with_watermark_alignment("g", 1, 2).alignment == WatermarkAlignment("g", 1, 2)
    assert full.timestamp_assigner.extract_timestamp(("a", 7), 0) == 7


def test_a_function_will_do_as_timestamp_assigner():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value * 2)
    assert strategy.timestamp_assigner.extract_timestamp(4, MIN_LONG_VALUE) == 8


def test_mistakes_are_found_at_declaration():
    strategy = WatermarkStrategy.no_watermarks()
    with pytest.raises(JobDefinitionError, match="pass an object of the class"):
        strategy.with_timestamp_assigner(Second)
    with pytest.raises(JobDefinitionError, match="expected a TimestampAssigner"):
        strategy.with_timestamp_assigner("ts")
    with pytest.raises(JobDefinitionError, match="out-of-orderness: expected at least 0 ms; got -1 ms"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))
    with pytest.raises(JobDefinitionError, match="idle timeout: expected at least 1 ms"):
        strategy.with_idleness(0)


def test_strategies_pickle():
    strategy = WatermarkStrategy.for_generator(OnMarker).with_timestamp_assigner(Second())
    copy = pickle.loads(pickle.dumps(strategy))
    assert isinstance(copy.build(), OnMarker)


def test_java_assigners_are_not_there():
    with pytest.raises(UnsupportedFeatureError, match="for_generator"):
        AssignerWithPeriodicWatermarksWrapper(object())
