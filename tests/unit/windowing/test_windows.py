from __future__ import annotations

import io
import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from headrace.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    PickledWindowSerializer,
    TimeWindowSerializer,
)
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window

spans = st.builds(
    lambda start, length: TimeWindow(start, start + length), st.integers(-50, 50), st.integers(1, 20)
)


class Merges:
    def __init__(self) -> None:
        self.seen: list[tuple[list[TimeWindow], TimeWindow]] = []

    def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
        self.seen.append((list(to_be_merged), merge_result))


def test_a_time_window_ends_before_its_end() -> None:
    window = TimeWindow(5, 10)
    assert (window.start, window.end, window.max_timestamp()) == (5, 10, 9)
    assert repr(window) == "TimeWindow(start=5, end=10)"
    assert isinstance(window, Window)


@pytest.mark.parametrize("window", [TimeWindow(-5, 10), CountWindow(3), GlobalWindow.get()])
def test_windows_are_keys_that_survive_pickling(window: Window) -> None:
    again = pickle.loads(pickle.dumps(window))
    assert again == window
    assert {window: 1}[again] == 1
    assert window != "something else"


def test_windows_cannot_be_changed() -> None:
    window = TimeWindow(0, 1)
    with pytest.raises(AttributeError, match="cannot be changed"):
        window.start = 5
    with pytest.raises(AttributeError, match="cannot be changed"):
        del window.end
    with pytest.raises(AttributeError):
        CountWindow(1).id = 2  # type: ignore[misc]


def test_time_windows_sort_by_start_then_end() -> None:
    windows = [TimeWindow(5, 7), TimeWindow(0, 9), TimeWindow(0, 3)]
    assert sorted(windows) == [TimeWindow(0, 3), TimeWindow(0, 9), TimeWindow(5, 7)]
    assert TimeWindow(0, 3) <= TimeWindow(0, 3) < TimeWindow(0, 4)
    assert TimeWindow(1, 2) > TimeWindow(0, 9)


def test_windows_without_an_end_last_forever() -> None:
    assert CountWindow(0).max_timestamp() == GlobalWindow.get().max_timestamp() == MAX_LONG_VALUE
    assert GlobalWindow() == GlobalWindow.get()
    assert CountWindow(1) < CountWindow(2)
    assert (str(CountWindow(1)), str(GlobalWindow.get())) == ("CountWindow(id=1)", "GlobalWindow")


@pytest.mark.parametrize(
    ("other", "expected"),
    [((10, 12), True), ((0, 5), True), ((7, 8), True), ((11, 12), False), ((0, 4), False)],
)
def test_windows_intersect_when_they_touch(other: tuple[int, int], expected: bool) -> None:
    window, other_window = TimeWindow(5, 10), TimeWindow(*other)
    assert window.intersects(other_window) is other_window.intersects(window) is expected


def test_covering_two_windows_takes_in_the_gap() -> None:
    assert TimeWindow(5, 10).cover(TimeWindow(20, 30)) == TimeWindow(5, 30)
    assert TimeWindow(0, 50).cover(TimeWindow(20, 30)) == TimeWindow(0, 50)


@given(st.integers(-10_000, 10_000), st.integers(1, 500), st.data())
def test_the_start_is_the_last_one_at_or_before_the_timestamp(timestamp: int, size: int, data: Any) -> None:
    offset = data.draw(st.integers(-size + 1, size - 1))
    candidates = [time for time in range(timestamp - size + 1, timestamp + 1) if (time - offset) % size == 0]
    assert [TimeWindow.get_window_start_with_offset(timestamp, offset, size)] == candidates


@pytest.mark.parametrize(
    ("timestamp", "offset", "expected"),
    # Flink's own cases, and those of a negative timestamp, which older versions put into the window after.
    [
        (1, 0, 0),
        (6, 0, 0),
        (7, 0, 7),
        (8, 0, 7),
        (0, 3, -4),
        (3, 3, 3),
        (2, -2, -2),
        (-1, 0, -7),
        (-7, 0, -7),
    ],
)
def test_starts_with_a_size_of_seven(timestamp: int, offset: int, expected: int) -> None:
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, 7) == expected


@given(st.lists(spans, max_size=12))
def test_merging_leaves_windows_that_neither_overlap_nor_touch(windows: list[TimeWindow]) -> None:
    merges = Merges()
    TimeWindow.merge_windows(windows, merges)

    left = set(windows)
    for parts, result in merges.seen:
        assert len(parts) > 1
        assert result == TimeWindow(min(p.start for p in parts), max(p.end for p in parts))
        left = left - set(parts)
    left |= {result for _, result in merges.seen}
    ordered = sorted(left)
    assert all(a.end < b.start for a, b in itertools.pairwise(ordered))
    covered = {time for window in left for time in range(window.start, window.end)}
    assert covered == {time for window in windows for time in range(window.start, window.end)}


def test_merging_nothing_asks_for_nothing() -> None:
    merges = Merges()
    TimeWindow.merge_windows([], merges)
    TimeWindow.merge_windows([TimeWindow(0, 1), TimeWindow(5, 6)], merges)
    assert merges.seen == []


@pytest.mark.parametrize(
    ("serializer", "window", "length"),
    [
        (TimeWindowSerializer(), TimeWindow(-5, 10), 16),
        (TimeWindowSerializer(), TimeWindow(MIN_LONG_VALUE, MAX_LONG_VALUE), 16),
        (CountWindowSerializer(), CountWindow(7), 8),
        (GlobalWindowSerializer(), GlobalWindow.get(), 1),
        (PickledWindowSerializer(), CountWindow(7), None),
    ],
)
def test_a_serializer_reads_what_it_wrote(serializer: Any, window: Window, length: int | None) -> None:
    stream = io.BytesIO()
    serializer.serialize(window, stream)
    serializer.serialize(window, stream)
    assert length is None or len(stream.getvalue()) == 2 * length
    stream.seek(0)
    assert [serializer.deserialize(stream), serializer.deserialize(stream)] == [window, window]
