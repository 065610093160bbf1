from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Duration, Time
from headrace.common.constants import MIN_LONG_VALUE
from headrace.errors import JobDefinitionError
from headrace.windowing.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from headrace.windowing.functions import SessionWindowTimeGapExtractor
from headrace.windowing.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow
from tests.unit.windowing.fakes import FakeAssignerContext

timestamps = st.integers(-5_000, 5_000)


def second(element: Any) -> Any:
    return element[1]


class ByField(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return element["gap"]  # type: ignore[no-any-return]


def at(assigner: Any, timestamp: int | None, processing_time: int = 0, element: Any = "x") -> list[Any]:
    return list(assigner.assign_windows(element, timestamp, FakeAssignerContext(processing_time)))


def brute_force(timestamp: int, size: int, slide: int, offset: int) -> list[TimeWindow]:
    """Every window [offset + n * slide, ... + size) that holds the timestamp, the latest first."""
    starts = [start for start in range(timestamp, timestamp - size, -1) if (start - offset) % slide == 0]
    return [TimeWindow(start, start + size) for start in starts]


# --- tumbling and sliding -------------------------------------------------------------------------


@given(timestamps, st.integers(1, 300), st.data())
def test_tumbling_windows_are_those_of_brute_force(timestamp: int, size: int, data: Any) -> None:
    offset = data.draw(st.integers(-size + 1, size - 1))
    expected = brute_force(timestamp, size, size, offset)
    assert at(TumblingEventTimeWindows(size, offset), timestamp) == expected
    assert at(TumblingProcessingTimeWindows(size, offset), None, processing_time=timestamp) == expected


@given(timestamps, st.integers(1, 200), st.integers(1, 200), st.data())
def test_sliding_windows_are_those_of_brute_force(timestamp: int, size: int, slide: int, data: Any) -> None:
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    expected = brute_force(timestamp, size, slide, offset)
    assert at(SlidingEventTimeWindows(size, slide, offset), timestamp) == expected
    assert at(SlidingProcessingTimeWindows(size, slide, offset), None, processing_time=timestamp) == expected


@given(timestamps, st.integers(1, 20), st.integers(1, 60), st.data())
def test_a_timestamp_is_in_size_by_slide_windows(timestamp: int, times: int, slide: int, data: Any) -> None:
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    windows = at(SlidingEventTimeWindows(times * slide, slide, offset), timestamp)
    assert len(set(windows)) == len(windows) == times
    assert all(window.start <= timestamp < window.end for window in windows)


def test_a_slide_that_does_not_divide_the_size_gives_some_timestamps_one_window_more() -> None:
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(3))
    assert [len(at(assigner, timestamp)) for timestamp in range(6)] == [2, 2, 1, 2, 2, 1]


def test_a_slide_longer_than_the_size_leaves_gaps() -> None:
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(2), Time.milliseconds(5))
    assert [bool(at(assigner, timestamp)) for timestamp in range(7)] == [True] * 2 + [False] * 3 + [True] * 2


def test_a_day_in_another_time_zone_starts_at_its_midnight() -> None:
    hours = 3_600_000
    (window,) = at(TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8)), 20 * hours)
    assert window == TimeWindow(16 * hours, 40 * hours)


@pytest.mark.parametrize("amount", [Time.seconds(2), Duration.of_seconds(2), timedelta(seconds=2)])
def test_sizes_come_in_every_form(amount: Any) -> None:
    assert TumblingEventTimeWindows.of(amount) == TumblingEventTimeWindows(2000)
    assert SlidingProcessingTimeWindows.of(Time.minutes(1), amount).slide_ms == 2000
    assert EventTimeSessionWindows.with_gap(amount).session_gap_ms == 2000


# --- sessions -------------------------------------------------------------------------------------


def test_a_session_lasts_for_the_gap_after_its_record() -> None:
    assert at(EventTimeSessionWindows.with_gap(Time.milliseconds(10)), -3) == [TimeWindow(-3, 7)]
    assert at(ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10)), 99, processing_time=5) == [
        TimeWindow(5, 15)
    ]


@pytest.mark.parametrize(
    ("extractor", "element"), [(second, ("a", 4)), (ByField(), {"gap": 4}), (lambda element: 4, "x")]
)
def test_the_gap_may_depend_on_the_record(extractor: Any, element: Any) -> None:
    by_event = EventTimeSessionWindows.with_dynamic_gap(extractor)
    by_clock = ProcessingTimeSessionWindows.with_dynamic_gap(extractor)
    assert (type(by_event), type(by_clock)) == (
        DynamicEventTimeSessionWindows,
        DynamicProcessingTimeSessionWindows,
    )
    assert at(by_event, 10, element=element) == [TimeWindow(10, 14)]
    assert at(by_clock, None, processing_time=20, element=element) == [TimeWindow(20, 24)]


@pytest.mark.parametrize("gap", [0, -1, 1.5, None, True])
def test_a_gap_that_is_not_positive_is_refused_with_its_record(gap: Any) -> None:
    assigner = DynamicEventTimeSessionWindows.with_dynamic_gap(second)
    with pytest.raises(
        JobDefinitionError, match=rf"second.*positive number of milliseconds, got {gap} .*'a'"
    ):
        at(assigner, 10, element=("a", gap))


def test_sessions_merge_through_their_assigner() -> None:
    seen: list[Any] = []

    class Callback:
        def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
            seen.append((list(to_be_merged), merge_result))

    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
    assert isinstance(assigner, MergingWindowAssigner)
    windows = [window for time in (30, 0, 8, 50) for window in at(assigner, time)]
    assigner.merge_windows(windows, Callback())
    assert seen == [([TimeWindow(0, 10), TimeWindow(8, 18)], TimeWindow(0, 18))]


# --- global and count -----------------------------------------------------------------------------


def test_global_windows_are_one() -> None:
    assert at(GlobalWindows.create(), None) == [GlobalWindow.get()]


def test_tumbling_count_windows_number_the_records_of_a_key() -> None:
    assigner, context = CountTumblingWindowAssigner.of(2), FakeAssignerContext()
    seen = []
    for context.key in "aababa":
        seen += [(context.key, window.id) for window in assigner.assign_windows("x", None, context)]
    assert seen == [("a", 0), ("a", 0), ("b", 0), ("a", 1), ("b", 0), ("a", 1)]


@given(st.integers(1, 12), st.integers(1, 12))
def test_sliding_count_windows_are_those_of_brute_force(size: int, slide: int) -> None:
    assigner, context = CountSlidingWindowAssigner.of(size, slide), FakeAssignerContext()
    members: Counter[CountWindow] = Counter()
    for number in range(40):
        windows = list(assigner.assign_windows("x", None, context))
        expected = [i for i in range(40) if i * slide <= number < i * slide + size]
        assert [window.id for window in windows] == expected[::-1]
        members.update(windows)
    full = [window for window, count in members.items() if count == size]
    assert full
    assert max(members.values()) == size


# --- what they say of themselves ------------------------------------------------------------------

ALL: list[tuple[Callable[[], Any], Any, bool]] = [
    (lambda: TumblingEventTimeWindows(5, 1), EventTimeTrigger(), True),
    (lambda: SlidingEventTimeWindows(5, 2, 1), EventTimeTrigger(), True),
    (lambda: EventTimeSessionWindows(5), EventTimeTrigger(), True),
    (lambda: DynamicEventTimeSessionWindows(second), EventTimeTrigger(), True),
    (lambda: TumblingProcessingTimeWindows(5, 1), ProcessingTimeTrigger(), False),
    (lambda: SlidingProcessingTimeWindows(5, 2, 1), ProcessingTimeTrigger(), False),
    (lambda: ProcessingTimeSessionWindows(5), ProcessingTimeTrigger(), False),
    (lambda: DynamicProcessingTimeSessionWindows(second), ProcessingTimeTrigger(), False),
    (GlobalWindows, NeverTrigger(), False),
    (lambda: CountTumblingWindowAssigner(3), PurgingTrigger(CountTrigger(3)), False),
    (lambda: CountSlidingWindowAssigner(3, 2), PurgingTrigger(CountTrigger(3)), False),
]


@pytest.mark.parametrize(("make", "trigger", "is_event_time"), ALL)
def test_assigners_are_values(make: Callable[[], Any], trigger: Any, is_event_time: bool) -> None:
    assigner = make()
    again = pickle.loads(pickle.dumps(assigner))
    assert assigner == make() == again
    assert hash(assigner) == hash(again)
    assert repr(again) == repr(assigner)
    assert assigner.get_default_trigger(None) == trigger
    assert assigner.is_event_time() is is_event_time


def test_assigners_of_different_clocks_differ() -> None:
    assert TumblingEventTimeWindows(5) != TumblingProcessingTimeWindows(5)
    assert repr(TumblingEventTimeWindows(5)) == "TumblingEventTimeWindows(5, 0)"


def test_an_assigner_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TumblingEventTimeWindows(5).size_ms = 6  # type: ignore[misc]


@pytest.mark.parametrize("timestamp", [None, MIN_LONG_VALUE])
@pytest.mark.parametrize("make", [each[0] for each in ALL if each[2]])
def test_event_time_needs_a_timestamp(make: Callable[[], Any], timestamp: int | None) -> None:
    with pytest.raises(JobDefinitionError, match=r"^record has no timestamp: \('a', 7\)") as caught:
        at(make(), timestamp, element=("a", 7))
    assert "assign_timestamps_and_watermarks" in str(caught.value)
    assert "WatermarkStrategy with a timestamp assigner" in str(caught.value)


# --- errors ---------------------------------------------------------------------------------------

ms = Time.milliseconds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TumblingEventTimeWindows.of(ms(0)),
            "TumblingEventTimeWindows: the size must be positive, got 0",
        ),
        (lambda: TumblingProcessingTimeWindows.of(ms(-5)), "the size must be positive, got -5 ms"),
        (lambda: TumblingEventTimeWindows.of(Duration.of_nanos(5)), "the size must be positive, got 0 ms"),
        (lambda: TumblingEventTimeWindows.of(ms(5), ms(5)), r"between -size and size \(both 5 ms.*got 5 ms"),
        (lambda: TumblingEventTimeWindows.of(ms(5), ms(-7)), "so 3 ms puts their starts at the same places"),
        (lambda: SlidingEventTimeWindows.of(ms(0), ms(5)), "the size must be positive"),
        (lambda: SlidingEventTimeWindows.of(ms(5), ms(0)), "the slide must be positive, got 0 ms"),
        (lambda: SlidingProcessingTimeWindows.of(ms(5), ms(-1)), "the slide must be positive"),
        (lambda: SlidingEventTimeWindows.of(ms(10), ms(5), ms(5)), "between -slide and slide"),
        (lambda: EventTimeSessionWindows.with_gap(ms(0)), "the session gap must be positive, got 0 ms"),
        (lambda: ProcessingTimeSessionWindows.with_gap(ms(-1)), "the session gap must be positive"),
        (lambda: CountTumblingWindowAssigner.of(0), "the window_size must be 1 record or more, got 0"),
        (lambda: CountSlidingWindowAssigner.of(5, 0), "the window_slide must be 1 record or more"),
        (lambda: CountSlidingWindowAssigner.of(-5, 1), "the window_size must be 1 record or more"),
        (lambda: CountTumblingWindowAssigner.of(2.5), "must be a whole number, got float 2.5"),
        (lambda: TumblingEventTimeWindows.of(5000), "must be a Time, Duration or timedelta, got int 5000"),
        (lambda: TumblingEventTimeWindows.of(ms(5), 1), "the offset must be a Time, Duration or timedelta"),
        (lambda: SlidingEventTimeWindows.of(ms(5), "2 s"), "the slide must be a Time, Duration or timedelta"),
        (lambda: TumblingEventTimeWindows(5.0), "the size must be a whole number, got float"),
        (
            lambda: EventTimeSessionWindows.with_dynamic_gap(5),
            r"a callable or an object with extract\(\), got int",
        ),
        (lambda: EventTimeSessionWindows.with_dynamic_gap(ByField), r"pass an instance: ByField\(\)"),
    ],
)
def test_what_cannot_be_a_window_is_refused_when_it_is_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        make()
