"""Timestamps that do not fit 64 bits are an error that names operator and record; nothing vanishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.common import Time, WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.connectors.base import Slice, SourceReader, SplitProgress
from headrace.connectors.collection import CollectionSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from headrace.elements import Batch
from headrace.errors import JobDefinitionError, UserFunctionError
from tests.unit.runtime.jobs import run

MOST, LEAST = 2**63 - 1, -(2**63)


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())


def timed(env: StreamExecutionEnvironment, timestamps: list[Any]) -> DataStream:
    records = [("a", timestamp) for timestamp in timestamps]
    return env.from_collection(records).assign_timestamps_and_watermarks(STRATEGY)


class _TimedReader(SourceReader):
    """Gives records times of its own, as Kafka does."""

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader

    def read(self, piece: Slice) -> Iterator[Batch]:
        for batch in self._reader.read(piece):
            yield Batch(batch.values, [MOST + 1 if value == "late" else 1 for value in batch.values])

    def progress(self) -> SplitProgress:
        return self._reader.progress()


class _TimedSource(CollectionSource):
    def create_reader(self) -> SourceReader:
        return _TimedReader(super().create_reader())


def summed(window: Any) -> Callable[[DataStream], DataStream]:
    """Windows that keep sums of slices, or of sessions."""
    return lambda stream: (
        stream.key_by(lambda record: record[0]).window(window).reduce(lambda a, b: ("a", a[1] + b[1]))
    )


def listed(window: Any) -> Callable[[DataStream], DataStream]:
    """Windows that keep their records."""
    return lambda stream: (
        stream.key_by(lambda record: record[0]).window(window).allowed_lateness(1).reduce(lambda a, b: b)
    )


@pytest.mark.parametrize("bad", [MOST + 1, 2**64, LEAST - 1, 10**30, 1.5, "1"])
def test_a_timestamp_that_is_no_64_bit_number_is_refused_where_it_is_assigned(bad: Any):
    with pytest.raises(UserFunctionError, match="a record has the timestamp") as caught:
        run(lambda env: timed(env, [1, bad]))
    assert "Timestamps/Watermarks" in str(caught.value.operator)
    assert caught.value.record == repr(("a", bad))


def test_a_timestamp_of_a_source_is_refused_too():
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_source(
            _TimedSource(["early", "late"]), WatermarkStrategy.no_watermarks(), "timed source"
        )

    with pytest.raises(UserFunctionError, match=f"timestamp {MOST + 1}") as caught:
        run(program)
    assert "timed source" in str(caught.value.operator)
    assert caught.value.record == "'late'"


@pytest.mark.parametrize("make", [summed, listed])
@pytest.mark.parametrize(
    "window",
    [
        TumblingEventTimeWindows.of(Time.seconds(1)),
        SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)),
        EventTimeSessionWindows.with_gap(Time.seconds(1)),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
@pytest.mark.parametrize("bad", [MOST, LEAST + 1], ids=["last", "first"])
def test_a_window_that_would_go_beyond_time_is_refused(
    make: Callable[[Any], Callable[[DataStream], DataStream]], window: Any, bad: int
):
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return make(window)(timed(env, [bad]))

    if bad < 0 and isinstance(window, EventTimeSessionWindows):
        assert run(program).output == [("a", bad)]  # it begins there, and ends in time
        return
    with pytest.raises(UserFunctionError, match="beyond the 64 bits") as caught:
        run(program)
    assert caught.value.operator
    assert caught.value.record == repr(("a", bad))


@pytest.mark.parametrize("at", [0, 2**62, -(2**62), MOST - 2_000, LEAST + 4_000])
def test_timestamps_that_fit_lose_no_record(at: int):
    window = TumblingEventTimeWindows.of(Time.seconds(1))
    assert run(lambda env: summed(window)(timed(env, [at]))).output == [("a", at)]


def test_the_smallest_number_means_that_there_is_no_timestamp():
    window = TumblingEventTimeWindows.of(Time.seconds(1))
    with pytest.raises(JobDefinitionError, match="record has no timestamp"):
        run(lambda env: summed(window)(timed(env, [LEAST])))
