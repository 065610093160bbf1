"""The model itself, on examples small enough to be worked out by hand."""

from __future__ import annotations

import pytest

from tests.windows.model import (
    FOREVER,
    Continuous,
    Count,
    CountSliding,
    CountTumbling,
    Delta,
    EventTime,
    Global,
    KeepLatest,
    KeepNear,
    KeepYoung,
    Model,
    ProcessingTime,
    Purging,
    Sessions,
    Sliding,
    Timeout,
    Tumbling,
    time_window,
)


def feed(model: Model, *elements: tuple[str, int]) -> None:
    """Elements of one key, each with its time."""
    for value, time in elements:
        model.record("k", value, time)


def fired(model: Model) -> list[tuple[str, int]]:
    """What has come out so far: the elements as one word, and the timestamp."""
    return [("".join(values), time) for values, time in model.output.get("k", [])]


def test_tumbling_windows_fire_at_their_end() -> None:
    model = Model(Tumbling(10), EventTime())
    feed(model, ("a", 0), ("b", 9), ("c", 10))
    model.watermark(8)
    assert fired(model) == []
    model.watermark(9)
    assert fired(model) == [("ab", 9)]
    model.finish()
    assert fired(model) == [("ab", 9), ("c", 19)]


@pytest.mark.parametrize(
    ("assigner", "time", "windows"),
    [
        (Tumbling(10), 12, [(10, 20)]),
        (Tumbling(10, 3), 12, [(3, 13)]),
        (Tumbling(10, -2), 8, [(8, 18)]),
        (Tumbling(10), -1, [(-10, 0)]),
        (Sliding(10, 5), 12, [(10, 20), (5, 15)]),
        (Sliding(10, 4), 12, [(12, 22), (8, 18), (4, 14)]),
        (Sliding(10, 5, 1), 10, [(6, 16), (1, 11)]),
        (Sliding(2, 5), 3, []),
        (Sliding(2, 5), 6, [(5, 7)]),
    ],
)
def test_windows_around_a_time(assigner: Sliding, time: int, windows: list[tuple[int, int]]) -> None:
    assert assigner.windows("x", time, 0) == [time_window(*bounds) for bounds in windows]


@pytest.mark.parametrize(("number", "windows"), [(0, [0]), (1, [0]), (2, [1, 0]), (3, [1]), (4, [2, 1])])
def test_count_windows_around_a_number(number: int, windows: list[int]) -> None:
    assert CountSliding(3, 2).windows("x", 0, number) == [("count", index) for index in windows]


def test_a_late_element_fires_again_as_long_as_that_is_allowed() -> None:
    #   window [0, 10), lateness 5: kept until the watermark is 14
    model = Model(Tumbling(10), EventTime(), lateness=5)
    feed(model, ("a", 1))
    model.watermark(9)
    feed(model, ("b", 2))
    model.watermark(13)
    feed(model, ("c", 3))
    model.watermark(14)
    feed(model, ("d", 4))
    assert fired(model) == [("a", 9), ("ab", 9), ("abc", 9)]
    assert model.late == [("d", 4)]
    assert model.removed == [("k", time_window(0, 10))]


def test_sessions_grow_together() -> None:
    model = Model(Sessions(lambda value: 5), EventTime())
    feed(model, ("a", 0), ("c", 11), ("b", 6))
    assert sorted(model.windows["k"]) == [time_window(0, 5), time_window(6, 16)]
    feed(model, ("d", 3))
    assert sorted(model.windows["k"]) == [time_window(0, 16)]
    model.watermark(15)
    assert fired(model) == [("acbd", 15)]


def test_a_session_continues_where_another_ends() -> None:
    model = Model(Sessions(lambda value: 5), EventTime())
    feed(model, ("a", 0), ("b", 5), ("c", 11))
    model.finish()
    assert fired(model) == [("ab", 9), ("c", 15)]


def test_counts_of_sessions_add_up() -> None:
    model = Model(Sessions(lambda value: 5), Count(3))
    feed(model, ("a", 0), ("b", 8), ("c", 4))
    assert fired(model) == [("abc", 12)]


def test_windows_of_processing_time() -> None:
    model = Model(Tumbling(10), ProcessingTime(), is_event_time=False)
    model.set_clock(3)
    feed(model, ("a", 1000))
    model.set_clock(8)
    feed(model, ("b", 0))
    model.set_clock(9)
    assert fired(model) == [("ab", 9)]


def test_continuous_triggers_fire_at_multiples_and_at_the_end() -> None:
    model = Model(Tumbling(10), Continuous("event", 4))
    feed(model, ("a", 1))
    model.watermark(4)
    feed(model, ("b", 2))
    model.watermark(20)
    assert fired(model) == [("a", 9), ("ab", 9), ("ab", 9)]


def test_purging_forgets_what_was_fired() -> None:
    model = Model(Global(), Purging(Count(2)), is_event_time=False)
    feed(model, ("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5))
    assert fired(model) == [("ab", FOREVER), ("cd", FOREVER)]


def test_without_purging_everything_stays() -> None:
    model = Model(Global(), Count(2), is_event_time=False)
    feed(model, ("a", 1), ("b", 2), ("c", 3), ("d", 4))
    assert fired(model) == [("ab", FOREVER), ("abcd", FOREVER)]


def test_full_count_windows_fire() -> None:
    model = Model(CountTumbling(2), Purging(Count(2)), is_event_time=False)
    feed(model, ("a", 1), ("b", 2), ("c", 3))
    assert fired(model) == [("ab", FOREVER)]


def test_a_delta_is_counted_from_the_last_firing() -> None:
    model = Model(Global(), Delta(2, lambda old, new: ord(new) - ord(old)), is_event_time=False)
    feed(model, ("a", 1), ("c", 2), ("d", 3), ("e", 4), ("g", 5))
    assert fired(model) == [("acd", FOREVER), ("acdeg", FOREVER)]


def test_a_timeout_fires_what_waits() -> None:
    model = Model(Global(), Timeout(Purging(Count(3)), 10), is_event_time=False)
    feed(model, ("a", 1))
    model.set_clock(5)
    feed(model, ("b", 2))
    model.set_clock(10)
    assert fired(model) == [("ab", FOREVER)]


@pytest.mark.parametrize(
    ("evictor", "results"),
    [
        (KeepLatest(2), [("ab", FOREVER), ("cd", FOREVER)]),
        (KeepLatest(1, is_after=True), [("ab", FOREVER), ("bcd", FOREVER)]),
        (KeepYoung(2), [("ab", FOREVER), ("cd", FOREVER)]),
        (KeepNear(3, lambda old, last: ord(last) - ord(old)), [("ab", FOREVER), ("bcd", FOREVER)]),
    ],
)
def test_evictors_leave_elements_out(
    evictor: KeepLatest | KeepYoung | KeepNear, results: list[tuple[str, int]]
) -> None:
    model = Model(Global(), Count(2), is_event_time=False, evictor=evictor)
    feed(model, ("a", 1), ("b", 2), ("c", 3), ("d", 4))
    assert fired(model) == results
