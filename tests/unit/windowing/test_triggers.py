from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Time, Types
from headrace.errors import JobDefinitionError
from headrace.windowing.functions import DeltaFunction
from headrace.windowing.trigger import Trigger, TriggerResult
from headrace.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from headrace.windowing.windows import GlobalWindow, TimeWindow
from tests.unit.windowing.fakes import FakeTriggerContext

CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE
FIRE_AND_PURGE, PURGE = TriggerResult.FIRE_AND_PURGE, TriggerResult.PURGE
WINDOW = TimeWindow(0, 100)


def distance(old: Any, new: Any) -> Any:
    return abs(new - old)


class Distance(DeltaFunction):
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        return abs(new_data_point - old_data_point)  # type: ignore[no-any-return]


def test_results_say_whether_they_fire_and_purge() -> None:
    table = {result: (result.is_fire(), result.is_purge()) for result in TriggerResult}
    assert table == {
        CONTINUE: (False, False),
        FIRE: (True, False),
        PURGE: (False, True),
        FIRE_AND_PURGE: (True, True),
    }


# --- event and processing time --------------------------------------------------------------------


def test_an_event_time_trigger_fires_when_the_watermark_reaches_the_last_timestamp() -> None:
    run = FakeTriggerContext(EventTimeTrigger.create())
    assert [run.add(WINDOW, 5), run.add(WINDOW, 7)] == [CONTINUE, CONTINUE]
    assert run.advance_watermark(98) == []
    assert run.advance_watermark(200) == [(99, FIRE)]
    assert run.is_clean


def test_an_event_time_trigger_fires_at_once_for_a_late_record() -> None:
    run = FakeTriggerContext(EventTimeTrigger())
    run.advance_watermark(99)
    assert run.add(WINDOW, 5) is FIRE
    assert run.is_clean


def test_an_event_time_trigger_waits_for_the_end_of_a_merged_window() -> None:
    run = FakeTriggerContext(EventTimeTrigger())
    first, second, merged = TimeWindow(0, 10), TimeWindow(8, 18), TimeWindow(0, 18)
    run.add(first, 0)
    run.add(second, 8)
    run.merge([first, second], merged)
    assert run.event_timers == {(17, merged)}
    assert run.advance_watermark(17) == [(17, FIRE)]


def test_a_merged_window_whose_end_has_passed_gets_no_timer() -> None:
    run = FakeTriggerContext(EventTimeTrigger())
    run.advance_watermark(50)
    run.merge([TimeWindow(0, 10), TimeWindow(8, 18)], TimeWindow(0, 18))
    assert run.is_clean
    clock = FakeTriggerContext(ProcessingTimeTrigger())
    clock.advance_processing_time(50)
    clock.merge([TimeWindow(0, 10), TimeWindow(8, 18)], TimeWindow(0, 18))
    assert clock.is_clean


def test_an_event_time_trigger_ignores_other_timers() -> None:
    run = FakeTriggerContext(EventTimeTrigger())
    assert run.trigger.on_event_time(150, WINDOW, run) is CONTINUE
    assert run.trigger.on_processing_time(99, WINDOW, run) is CONTINUE


def test_a_processing_time_trigger_fires_when_the_clock_reaches_the_end() -> None:
    run = FakeTriggerContext(ProcessingTimeTrigger.create())
    assert run.add(WINDOW) is CONTINUE
    assert run.advance_watermark(1_000) == []
    assert run.advance_processing_time(98) == []
    assert run.advance_processing_time(99) == [(99, FIRE)]
    assert run.trigger.on_event_time(99, WINDOW, run) is CONTINUE


def test_a_processing_time_trigger_follows_merging() -> None:
    run = FakeTriggerContext(ProcessingTimeTrigger())
    run.add(TimeWindow(0, 10))
    run.merge([TimeWindow(0, 10), TimeWindow(8, 18)], TimeWindow(0, 18))
    assert run.processing_timers == {(17, TimeWindow(0, 18))}


@pytest.mark.parametrize(
    "trigger",
    [
        EventTimeTrigger(),
        ProcessingTimeTrigger(),
        ContinuousProcessingTimeTrigger(30),
        CountTrigger(5),
        DeltaTrigger(1.0, distance),
        PurgingTrigger(ContinuousProcessingTimeTrigger(30)),
        ProcessingTimeoutTrigger(CountTrigger(5), 10),
    ],
)
def test_a_cleared_window_leaves_nothing_behind(trigger: Any) -> None:
    run = FakeTriggerContext(trigger)
    run.add(WINDOW, 5, element=1)
    assert not run.is_clean
    run.clear(WINDOW)
    assert run.is_clean
    run.clear(WINDOW)


def test_a_continuous_event_time_trigger_leaves_the_timer_at_the_end_as_flink_does() -> None:
    run = FakeTriggerContext(ContinuousEventTimeTrigger(30))
    run.add(WINDOW, 5)
    assert run.event_timers == {(30, WINDOW), (99, WINDOW)}
    run.clear(WINDOW)
    assert (run.event_timers, run.cells) == ({(99, WINDOW)}, {})


# --- continuous -----------------------------------------------------------------------------------


def test_a_continuous_event_time_trigger_fires_at_every_interval_and_at_the_end() -> None:
    #   0        30        60        90   99
    #   |--x--x---|---------|---------|----|
    run = FakeTriggerContext(ContinuousEventTimeTrigger.of(Time.milliseconds(30)))
    assert [run.add(WINDOW, 5), run.add(WINDOW, 20)] == [CONTINUE, CONTINUE]
    assert run.advance_watermark(29) == []
    assert run.advance_watermark(30) == [(30, FIRE)]
    assert run.advance_watermark(89) == [(60, FIRE)]
    assert run.advance_watermark(500) == [(90, FIRE), (99, FIRE)]


def test_a_continuous_event_time_trigger_starts_at_its_first_record() -> None:
    run = FakeTriggerContext(ContinuousEventTimeTrigger(30))
    run.add(WINDOW, 61)
    assert run.advance_watermark(99) == [(90, FIRE), (99, FIRE)]


def test_a_continuous_event_time_trigger_fires_at_once_for_a_late_record() -> None:
    run = FakeTriggerContext(ContinuousEventTimeTrigger(30))
    run.advance_watermark(99)
    assert run.add(WINDOW, 5) is FIRE
    assert run.is_clean


def test_a_continuous_event_time_trigger_ignores_timers_that_are_not_its_own() -> None:
    run = FakeTriggerContext(ContinuousEventTimeTrigger(30))
    run.add(WINDOW, 5)
    run.window = WINDOW
    assert run.trigger.on_event_time(42, WINDOW, run) is CONTINUE
    assert run.trigger.on_processing_time(30, WINDOW, run) is CONTINUE
    run.clear(WINDOW)
    assert run.trigger.on_event_time(30, WINDOW, run) is CONTINUE


def test_a_continuous_event_time_trigger_needs_timestamps() -> None:
    with pytest.raises(JobDefinitionError, match="record has no timestamp: 'x'"):
        FakeTriggerContext(ContinuousEventTimeTrigger(30)).add(GlobalWindow.get(), None)


@given(st.integers(1, 40), st.integers(-120, 120), st.integers(1, 150), st.data())
def test_continuous_triggers_fire_at_multiples_of_the_interval_within_the_window(
    interval: int, start: int, size: int, data: Any
) -> None:
    window = TimeWindow(start, start + size)
    time = data.draw(st.integers(window.start, window.max_timestamp()))
    first = time - time % interval + interval
    expected = [*range(first, window.max_timestamp(), interval), window.max_timestamp()]

    by_event = FakeTriggerContext(ContinuousEventTimeTrigger(interval))
    by_event.add(window, time)
    assert [at for at, _ in by_event.advance_watermark(10_000)] == expected

    by_clock = FakeTriggerContext(ContinuousProcessingTimeTrigger(interval))
    by_clock.processing_time = time
    by_clock.add(window)
    assert [at for at, _ in by_clock.advance_processing_time(10_000)] == expected


def test_a_continuous_processing_time_trigger_follows_the_clock_alone() -> None:
    run = FakeTriggerContext(ContinuousProcessingTimeTrigger.of(Time.milliseconds(30)))
    run.advance_processing_time(40)
    assert [run.add(WINDOW, 5), run.add(WINDOW, 90)] == [CONTINUE, CONTINUE]
    assert run.advance_watermark(1_000) == []
    assert run.advance_processing_time(60) == [(60, FIRE)]
    assert run.trigger.on_event_time(90, WINDOW, run) is CONTINUE
    assert run.trigger.on_processing_time(70, WINDOW, run) is CONTINUE
    assert run.advance_processing_time(200) == [(90, FIRE), (99, FIRE)]
    assert run.is_clean


def test_a_window_of_the_past_does_not_fire_without_end() -> None:
    # A window of event time, read again years later, with a trigger of the clock.
    run = FakeTriggerContext(ContinuousProcessingTimeTrigger(30))
    run.advance_processing_time(1_000_000)
    run.add(WINDOW, 5)
    assert run.advance_processing_time(1_000_001) == [(99, FIRE)]
    run.add(WINDOW, 6)
    assert run.advance_processing_time(1_000_002) == [(99, FIRE)]


@pytest.mark.parametrize("kind", [ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger])
def test_continuous_triggers_continue_with_the_earliest_interval_of_merged_windows(kind: Any) -> None:
    run = FakeTriggerContext(kind(30))
    first, second, merged = TimeWindow(0, 50), TimeWindow(40, 110), TimeWindow(0, 110)
    run.processing_time = 40
    run.add(second, 40)
    run.processing_time = 5
    run.add(first, 5)
    assert run.cells == {(second, "fire-time"): 60, (first, "fire-time"): 30}

    run.merge([first, second], merged)
    assert run.cells == {(merged, "fire-time"): 30}
    assert (30, merged) in run.event_timers | run.processing_timers
    assert run.trigger.can_merge()


def test_merging_windows_that_wait_for_nothing_registers_nothing() -> None:
    for trigger in (ContinuousEventTimeTrigger(30), ContinuousProcessingTimeTrigger(30)):
        run = FakeTriggerContext(trigger)
        run.merge([TimeWindow(0, 10), TimeWindow(5, 15)], TimeWindow(0, 15))
        assert run.is_clean


# --- count, delta, never --------------------------------------------------------------------------


def test_a_count_trigger_fires_after_every_so_many_records_of_a_window() -> None:
    run = FakeTriggerContext(CountTrigger.of(3))
    other = TimeWindow(100, 200)
    results = [
        run.add(WINDOW, 1),
        run.add(WINDOW, 2),
        run.add(other, 150),
        run.add(WINDOW, 3),
        run.add(WINDOW, 4),
    ]
    assert results == [CONTINUE, CONTINUE, CONTINUE, FIRE, CONTINUE]
    assert run.cells == {(WINDOW, "count"): 1, (other, "count"): 1}
    assert run.advance_watermark(1_000) == run.advance_processing_time(1_000) == []
    assert (
        run.trigger.on_event_time(5, WINDOW, run)
        is run.trigger.on_processing_time(5, WINDOW, run)
        is CONTINUE
    )


def test_counts_of_merged_windows_add_up() -> None:
    run = FakeTriggerContext(CountTrigger(3))
    first, second, merged = TimeWindow(0, 10), TimeWindow(20, 30), TimeWindow(0, 30)
    run.add(first, 0)
    run.add(second, 20)
    run.merge([first, second], merged)
    assert run.cells == {(merged, "count"): 2}
    assert run.add(merged, 10) is FIRE


@pytest.mark.parametrize("function", [distance, Distance()])
def test_a_delta_trigger_fires_when_a_record_is_farther_than_the_threshold(function: Any) -> None:
    run = FakeTriggerContext(DeltaTrigger.of(5.0, function, Types.LONG()))
    # 10 is kept; 15 is just as far as allowed; 16 fires and is kept; 12 is near 16; 10 fires.
    results = [run.add(GlobalWindow.get(), None, element) for element in (10, 15, 16, 12, 10)]
    assert results == [CONTINUE, CONTINUE, FIRE, CONTINUE, FIRE]
    assert run.trigger.can_merge() is False


def test_a_trigger_that_never_fires() -> None:
    run = FakeTriggerContext(NeverTrigger())
    assert run.add(GlobalWindow.get()) is CONTINUE
    assert (
        run.trigger.on_event_time(1, WINDOW, run)
        is run.trigger.on_processing_time(1, WINDOW, run)
        is CONTINUE
    )
    run.clear(WINDOW)
    assert run.is_clean
    assert run.trigger.can_merge() is False


def test_a_trigger_that_cannot_merge_is_refused_for_merging_windows() -> None:
    run = FakeTriggerContext(NeverTrigger())
    with pytest.raises(JobDefinitionError, match="NeverTrigger does not work with windows that merge"):
        run.trigger.on_merge(WINDOW, run)


# --- around other triggers ------------------------------------------------------------------------


class Saying(Trigger[Any, Any]):
    """Answers every call with one result."""

    def __init__(self, result: TriggerResult, *, merges: bool = False) -> None:
        self.result = result
        self.merges = merges
        self.calls: list[str] = []

    def on_element(self, element: Any, timestamp: Any, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def can_merge(self) -> bool:
        return self.merges

    def on_merge(self, window: Any, ctx: Any) -> None:
        self.calls.append("on_merge")

    def clear(self, window: Any, ctx: Any) -> None:
        self.calls.append("clear")


@pytest.mark.parametrize(
    ("result", "expected"),
    [(FIRE, FIRE_AND_PURGE), (FIRE_AND_PURGE, FIRE_AND_PURGE), (CONTINUE, CONTINUE), (PURGE, PURGE)],
)
def test_a_purging_trigger_purges_whenever_the_other_fires(
    result: TriggerResult, expected: TriggerResult
) -> None:
    run = FakeTriggerContext(PurgingTrigger.of(Saying(result)))
    assert run.add(WINDOW, 1) is expected
    assert run.trigger.on_event_time(1, WINDOW, run) is expected
    assert run.trigger.on_processing_time(1, WINDOW, run) is expected


def test_a_purging_trigger_merges_and_clears_as_the_other_does() -> None:
    other = Saying(FIRE, merges=True)
    run = FakeTriggerContext(PurgingTrigger(other))
    assert run.trigger.can_merge() is True
    assert PurgingTrigger(Saying(FIRE)).can_merge() is False
    run.trigger.on_merge(WINDOW, run)
    run.clear(WINDOW)
    assert other.calls == ["on_merge", "clear"]


def test_a_timeout_fires_when_the_other_trigger_takes_too_long() -> None:
    run = FakeTriggerContext(ProcessingTimeoutTrigger.of(CountTrigger(3), Time.milliseconds(100)))
    run.add(WINDOW)
    run.advance_processing_time(50)
    run.add(WINDOW)
    assert run.advance_processing_time(99) == []
    assert run.advance_processing_time(100) == [(100, FIRE)]
    assert run.is_clean  # the count starts again, too


def test_a_timeout_stops_when_the_other_trigger_fires() -> None:
    run = FakeTriggerContext(ProcessingTimeoutTrigger(CountTrigger(2), 100))
    assert [run.add(WINDOW), run.add(WINDOW)] == [CONTINUE, FIRE]
    assert run.is_clean


def test_a_timeout_may_count_from_the_latest_record() -> None:
    run = FakeTriggerContext(ProcessingTimeoutTrigger(CountTrigger(3), 100, reset_timer_on_new_record=True))
    run.add(WINDOW)
    run.advance_processing_time(60)
    run.add(WINDOW)
    assert run.processing_timers == {(160, WINDOW)}
    assert run.advance_processing_time(160) == [(160, FIRE)]


def test_a_timeout_may_leave_the_other_trigger_as_it_is() -> None:
    run = FakeTriggerContext(ProcessingTimeoutTrigger(CountTrigger(3), 100, should_clear_on_timeout=False))
    run.add(WINDOW)
    assert run.advance_processing_time(100) == [(100, FIRE)]
    assert run.cells[WINDOW, "count"] == 1


def test_a_timeout_purges_if_the_other_trigger_wants_it() -> None:
    run = FakeTriggerContext(ProcessingTimeoutTrigger(Saying(PURGE), 100))
    assert run.trigger.on_processing_time(5, WINDOW, run) is FIRE_AND_PURGE
    assert run.trigger.on_event_time(5, WINDOW, run) is FIRE_AND_PURGE
    assert run.trigger.can_merge() is False


# --- as values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        EventTimeTrigger,
        lambda: ContinuousEventTimeTrigger(5),
        lambda: ContinuousProcessingTimeTrigger(5),
        lambda: CountTrigger(5),
        NeverTrigger,
        lambda: DeltaTrigger(1.5, distance, Types.LONG()),
        lambda: PurgingTrigger(CountTrigger(5)),
        lambda: ProcessingTimeoutTrigger(CountTrigger(5), 10, True, False),
    ],
)
def test_triggers_are_values(make: Callable[[], Any]) -> None:
    trigger = make()
    again = pickle.loads(pickle.dumps(trigger))
    assert trigger == make() == again
    assert repr(again) == repr(trigger)


def test_triggers_of_different_kinds_differ() -> None:
    assert EventTimeTrigger() != ProcessingTimeTrigger()
    assert ContinuousEventTimeTrigger(5) != ContinuousProcessingTimeTrigger(5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountTrigger.of(0), "CountTrigger: the window_size must be 1 record or more, got 0"),
        (lambda: CountTrigger.of("3"), "must be a whole number, got str '3'"),
        (lambda: ContinuousEventTimeTrigger.of(Time.seconds(0)), "the interval must be positive, got 0 ms"),
        (lambda: ContinuousProcessingTimeTrigger.of(Time.seconds(-1)), "the interval must be positive"),
        (
            lambda: ContinuousEventTimeTrigger.of(5),
            "the interval must be a Time, Duration or timedelta, got int 5",
        ),
        (lambda: DeltaTrigger.of("5", distance), "the threshold must be a number, got str '5'"),
        (
            lambda: DeltaTrigger.of(5.0, None),
            r"a callable or an object with get_delta\(\), got NoneType None",
        ),
        (lambda: DeltaTrigger.of(5.0, Distance), r"pass an instance: Distance\(\)"),
        (
            lambda: PurgingTrigger.of("count"),
            "PurgingTrigger: nested_trigger must be a Trigger, got str 'count'",
        ),
        (lambda: PurgingTrigger.of(CountTrigger), r"pass an instance: CountTrigger\(...\)"),
        (
            lambda: ProcessingTimeoutTrigger.of(CountTrigger(1), Time.seconds(0)),
            "the timeout must be positive",
        ),
        (lambda: ProcessingTimeoutTrigger.of(None, Time.seconds(1)), "nested_trigger must be a Trigger"),
    ],
)
def test_what_cannot_be_a_trigger_is_refused_when_it_is_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        make()
