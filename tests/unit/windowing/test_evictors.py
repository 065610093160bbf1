from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common import Time
from headrace.errors import JobDefinitionError
from headrace.windowing.evictors import CountEvictor, DeltaEvictor, Element, Evictor, TimeEvictor
from headrace.windowing.functions import DeltaFunction

ELEMENTS: list[Element] = [("a", 10), ("b", 30), ("c", 20)]


def distance(old: Any, new: Any) -> Any:
    return abs(new - old)


class Distance(DeltaFunction):
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        return abs(new_data_point - old_data_point)  # type: ignore[no-any-return]


def before(evictor: Evictor, elements: list[Element]) -> list[Element]:
    return evictor.evict_before(elements, len(elements), None, None)  # type: ignore[arg-type]


def after(evictor: Evictor, elements: list[Element]) -> list[Element]:
    return evictor.evict_after(elements, len(elements), None, None)  # type: ignore[arg-type]


@given(st.integers(1, 8), st.integers(0, 12))
def test_a_count_evictor_keeps_the_latest(kept: int, count: int) -> None:
    elements: list[Element] = [(index, None) for index in range(count)]
    assert before(CountEvictor.of(kept), elements) == elements[max(0, count - kept) :]


def test_a_time_evictor_keeps_what_is_younger_than_its_size_before_the_latest() -> None:
    # The latest is at 30; with a size of 10, what is at 20 is just too old.
    assert before(TimeEvictor.of(Time.milliseconds(10)), ELEMENTS) == [("b", 30)]
    assert before(TimeEvictor.of(Time.milliseconds(11)), ELEMENTS) == [("b", 30), ("c", 20)]


def test_a_time_evictor_leaves_elements_without_timestamps_alone() -> None:
    untimed: list[Element] = [("a", None), ("b", 5)]
    assert before(TimeEvictor(1), untimed) == untimed
    assert before(TimeEvictor(1), []) == []


def test_an_element_without_a_timestamp_among_others_is_older_than_all() -> None:
    assert before(TimeEvictor(100), [("a", 10), ("b", None)]) == [("a", 10)]


@pytest.mark.parametrize("function", [distance, Distance()])
def test_a_delta_evictor_keeps_what_is_near_the_latest(function: Any) -> None:
    elements: list[Element] = [(1, None), (7, None), (5, None), (10, None)]
    assert before(DeltaEvictor.of(5, function), elements) == [(7, None), (10, None)]
    assert before(DeltaEvictor.of(5, function), []) == []


def test_a_threshold_of_zero_evicts_everything_as_in_flink() -> None:
    assert before(DeltaEvictor.of(0, distance), [(1, None), (1, None)]) == []


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda late: CountEvictor.of(1, late), [("c", 20)]),
        (lambda late: TimeEvictor.of(Time.milliseconds(10), late), [("b", 30)]),
        (lambda late: DeltaEvictor.of(1, lambda old, new: ord(new) - ord(old), late), [("c", 20)]),
    ],
)
def test_evictors_act_before_or_after_the_window_function(
    make: Callable[[bool], Evictor], expected: list[Element]
) -> None:
    assert (before(make(False), ELEMENTS), after(make(False), ELEMENTS)) == (expected, ELEMENTS)
    assert (before(make(True), ELEMENTS), after(make(True), ELEMENTS)) == (ELEMENTS, expected)


def test_an_evictor_leaves_the_list_it_was_given_as_it_was() -> None:
    elements = list(ELEMENTS)
    for evictor in (CountEvictor(1), TimeEvictor(1), DeltaEvictor(0, lambda old, new: 1)):
        before(evictor, elements)
    assert elements == ELEMENTS


def test_an_evictor_of_ones_own_does_nothing_where_it_says_nothing() -> None:
    class Own(Evictor):
        pass

    assert before(Own(), ELEMENTS) == after(Own(), ELEMENTS) == ELEMENTS


@pytest.mark.parametrize(
    "make", [lambda: CountEvictor(3), lambda: TimeEvictor(5, True), lambda: DeltaEvictor(1.5, distance)]
)
def test_evictors_are_values(make: Callable[[], Any]) -> None:
    evictor = make()
    assert pickle.loads(pickle.dumps(evictor)) == evictor == make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountEvictor.of(0), "CountEvictor: the max_count must be 1 record or more, got 0"),
        (lambda: TimeEvictor.of(Time.seconds(0)), "the window_size must be positive, got 0 ms"),
        (lambda: TimeEvictor.of(5), "must be a Time, Duration or timedelta, got int 5"),
        (lambda: DeltaEvictor.of(None, distance), "the threshold must be a number, got NoneType None"),
        (lambda: DeltaEvictor.of(1, 2), r"a callable or an object with get_delta\(\), got int 2"),
    ],
)
def test_what_cannot_be_an_evictor_is_refused_when_it_is_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        make()
