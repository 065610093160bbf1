from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    Batch,
    Element,
    EndOfInput,
    StreamStatus,
    Watermark,
)
from headrace.runtime.exchange.buffers import Header, pack
from headrace.runtime.exchange.channel import Channel
from headrace.runtime.exchange.input_gate import InputBatch, InputGate, InputIdle

IDLE, ACTIVE, END = StreamStatus(active=False), StreamStatus(active=True), EndOfInput()


def buffer(elements: Sequence[Element | str], *, edge: int = 0, producer: int = 0, sequence: int = 0) -> Any:
    """Pack elements; a string is a record."""
    channel = Channel()
    for element in elements:
        if isinstance(element, str):
            channel.append(element)
        elif isinstance(element, Batch):
            channel.extend(element.values, element.timestamps)
        else:
            channel.add_event(element)
    header = Header(1, 0, edge, producer, 0, sequence)
    return header, pack(header, channel.take_payload())


def gate(channels: int = 2) -> InputGate:
    """A gate with one edge and so many producers."""
    return InputGate([(0, producer) for producer in range(channels)], {0: 0})


def shown(elements: Any) -> list[Any]:
    """Records as their values, watermarks as W<time>, the rest as it is."""
    found: list[Any] = []
    for element in elements:
        if isinstance(element, InputBatch):
            found += element.batch.values
        elif isinstance(element, Watermark):
            found.append(f"W{element.timestamp}")
        else:
            found.append(element)
    return found


def test_the_watermark_is_the_lowest_of_all_channels() -> None:
    #   channel 0   a b W5 c d W9        gate   a b c d x W3 y z W7 v
    #   channel 1   x W3 y z W7 v
    merged = gate()
    buffers = [
        buffer(["a", "b", Watermark(5), "c", "d", Watermark(9)], producer=0),
        buffer(["x", Watermark(3), "y", "z", Watermark(7), "v"], producer=1),
    ]
    assert shown(merged.elements(buffers)) == ["a", "b", "c", "d", "x", "W3", "y", "z", "W7", "v"]
    assert merged.watermark == 7


def test_buffers_are_taken_in_the_order_of_their_numbers_whatever_order_they_arrive_in() -> None:
    buffers = [
        buffer([f"{producer}/{sequence}"], producer=producer, sequence=sequence)
        for sequence in (2, 0, 1)
        for producer in (1, 0)
    ]
    assert shown(gate().elements(buffers)) == ["0/0", "1/0", "0/1", "1/1", "0/2", "1/2"]


def test_inputs_are_taken_in_turn_and_not_one_after_the_other() -> None:
    two = InputGate([(0, 0), (1, 0)], {0: 0, 1: 1})
    buffers = [buffer([f"{edge}/{n}"], edge=edge, sequence=n) for edge in (1, 0) for n in range(3)]
    assert shown(two.elements(buffers)) == ["0/0", "1/0", "0/1", "1/1", "0/2", "1/2"]


def test_an_edge_that_is_read_first_comes_before_all_others() -> None:
    two = InputGate([(0, 0), (1, 0)], {0: 0, 1: 1}, early_edges=frozenset({1}))
    buffers = [buffer([f"{edge}/{n}"], edge=edge, sequence=n) for edge in (0, 1) for n in range(2)]
    assert shown(two.elements(buffers)) == ["1/0", "1/1", "0/0", "0/1"]


def test_two_inputs_are_distinguished() -> None:
    two = InputGate([(3, 0), (8, 0)], {3: 0, 8: 1})
    elements = two.elements([buffer(["b"], edge=8), buffer([Batch(["a"], [5])], edge=3)])
    assert list(elements) == [InputBatch(0, Batch(["a"], [5])), InputBatch(1, Batch(["b"]))]


def test_a_watermark_that_goes_back_does_not_count() -> None:
    merged = gate(1)
    assert shown(merged.elements([buffer([Watermark(9), Watermark(4), Watermark(10)])])) == ["W9", "W10"]


def test_an_idle_channel_does_not_hold_the_watermark() -> None:
    merged = gate()
    assert shown(merged.elements([buffer([Watermark(5)], producer=0)])) == []
    assert shown(merged.elements([buffer([IDLE], producer=1)])) == ["W5"]


def test_a_channel_that_wakes_up_does_not_turn_time_back() -> None:
    merged = gate()
    list(merged.elements([buffer([IDLE], producer=1), buffer([Watermark(5)], producer=0)]))
    later = [
        buffer([ACTIVE, Watermark(2), Watermark(6)], producer=1, sequence=0),
        buffer([Watermark(9)], producer=0, sequence=1),
    ]
    assert shown(merged.elements(later)) == ["W6"]


def test_the_gate_is_idle_when_all_its_channels_are() -> None:
    merged = gate()
    buffers = [buffer([IDLE], producer=0), buffer([IDLE], producer=1)]
    assert list(merged.elements(buffers)) == [InputIdle(True)]
    assert list(merged.elements([buffer([ACTIVE], producer=1)])) == [InputIdle(False)]


def test_a_channel_that_ended_does_not_hold_the_watermark() -> None:
    merged = gate()
    assert shown(merged.elements([buffer([Watermark(2), END], producer=1)])) == []
    assert shown(merged.elements([buffer([Watermark(8)], producer=0)])) == ["W8"]
    assert not merged.has_ended


def test_the_input_ends_when_every_channel_has() -> None:
    merged = gate()
    buffers = [
        buffer(["a", Watermark(MAX_WATERMARK), END], producer=0),
        buffer(["b", Watermark(MAX_WATERMARK), END], producer=1),
    ]
    assert shown(merged.elements(buffers)) == ["a", "b", f"W{MAX_WATERMARK}", END]
    assert merged.has_ended


def test_the_end_of_one_channel_in_an_earlier_epoch_is_remembered() -> None:
    merged = gate()
    list(merged.elements([buffer([END], producer=0)]))
    later = gate()
    later.restore(pickle.loads(pickle.dumps(merged.snapshot())))
    assert shown(later.elements([buffer(["b", END], producer=1)])) == ["b", END]


def test_a_gate_that_was_restored_continues_where_it_stood() -> None:
    merged = gate()
    list(merged.elements([buffer([Watermark(5)], producer=0), buffer([Watermark(7)], producer=1)]))
    later = gate()
    later.restore(merged.snapshot())
    assert later.watermark == 5
    assert shown(later.elements([buffer([Watermark(6)], producer=0)])) == ["W6"]


def test_restoring_nothing_starts_over() -> None:
    merged = gate()
    list(merged.elements([buffer([Watermark(5), END], producer=p) for p in (0, 1)]))
    merged.restore(None)
    assert (merged.watermark, merged.has_ended) == (MIN_WATERMARK, False)


def test_a_buffer_of_an_unknown_channel_is_an_invariant_violation() -> None:
    with pytest.raises(KeyError):
        list(gate(1).elements([buffer(["a"], producer=5)]))


def test_a_channel_behind_the_others_does_not_hold_them_until_it_has_caught_up() -> None:
    #   channel 0   W9 .  .  .  .  W12        a channel that comes back after the gate is waited for
    #   channel 1   .  I  A  W4 W9 .   W10    only when it has caught up
    merged = gate()
    assert shown(merged.elements([buffer([IDLE], producer=1), buffer([Watermark(9)], producer=0)])) == ["W9"]
    assert shown(merged.elements([buffer([ACTIVE, Watermark(4)], producer=1)])) == []
    assert shown(merged.elements([buffer([Watermark(11)], producer=0)])) == ["W11"]
    assert shown(merged.elements([buffer([Watermark(11)], producer=1)])) == []
    assert shown(merged.elements([buffer([Watermark(20)], producer=0)])) == []
    assert shown(merged.elements([buffer([Watermark(12)], producer=1)])) == ["W12"]


def test_when_the_channel_that_held_the_others_falls_idle_last_nothing_is_held_any_more() -> None:
    merged = gate(3)
    stream = [(0, Watermark(9)), (1, Watermark(7)), (2, Watermark(3)), (0, IDLE), (1, IDLE)]
    assert [out for step in stream for out in shown(feed(merged, *step))] == ["W3"]
    assert shown(feed(merged, 2, IDLE)) == ["W9", InputIdle(True)]


def test_a_channel_that_falls_idle_last_and_was_not_waited_for_releases_nothing() -> None:
    merged = gate()
    stream = [(0, Watermark(9)), (1, IDLE), (1, ACTIVE), (1, Watermark(4)), (0, Watermark(10)), (0, IDLE)]
    assert [out for step in stream for out in shown(feed(merged, *step))] == ["W9", "W10"]
    assert shown(feed(merged, 1, IDLE)) == [InputIdle(True)]
    assert shown(feed(merged, 1, ACTIVE)) == [InputIdle(False)]


def test_the_end_of_time_comes_through_although_the_channel_was_idle() -> None:
    merged = gate(1)
    stream = [Watermark(3), IDLE, Watermark(MAX_WATERMARK), END]
    found = [out for element in stream for out in shown(feed(merged, 0, element))]
    assert found == ["W3", InputIdle(True), f"W{MAX_WATERMARK}", InputIdle(False), END]


def feed(merged: InputGate, producer: int, element: Any) -> list[Any]:
    """Give one channel one element and return what comes out."""
    return list(merged.elements([buffer([element], producer=producer)]))


class Valve:
    """Flink's StatusWatermarkValve, rule by rule.

    A channel is *aligned* when it takes part in the minimum: all are at first; one that falls idle is not, until it
    is active again and its watermark has reached the valve's.
    """

    def __init__(self, channels: int) -> None:
        self.marks = [MIN_WATERMARK] * channels
        self.is_active = [True] * channels
        self.is_aligned = [True] * channels
        self.watermark = MIN_WATERMARK

    def take(self, channel: int, element: Any) -> list[Any]:
        if isinstance(element, Watermark):
            return self._take_watermark(channel, element.timestamp)
        if element.active == self.is_active[channel]:
            return []
        self.is_active[channel] = element.active
        return self._resume(channel) if element.active else self._fall_idle(channel)

    def _take_watermark(self, channel: int, mark: int) -> list[Any]:
        if mark <= self.marks[channel]:
            return []
        self.marks[channel] = mark
        if mark >= self.watermark:
            self.is_aligned[channel] = True
        return self._lowest_of_aligned()

    def _fall_idle(self, channel: int) -> list[Any]:
        self.is_aligned[channel] = False
        was_lowest = self.marks[channel] == self.watermark
        if any(self.is_active):
            return self._lowest_of_aligned() if was_lowest else []
        return [*(self._raise_to(max(self.marks)) if was_lowest else []), InputIdle(True)]

    def _resume(self, channel: int) -> list[Any]:
        if self.marks[channel] >= self.watermark:
            self.is_aligned[channel] = True
        return [InputIdle(False)] if sum(self.is_active) == 1 else []

    def _lowest_of_aligned(self) -> list[Any]:
        aligned = [mark for mark, is_in in zip(self.marks, self.is_aligned, strict=True) if is_in]
        return self._raise_to(min(aligned)) if aligned else []

    def _raise_to(self, mark: int) -> list[Any]:
        if mark <= self.watermark:
            return []
        self.watermark = mark
        return [Watermark(mark)]


events = st.one_of(st.builds(Watermark, st.integers(0, 12)), st.sampled_from([IDLE, ACTIVE]))


@given(st.lists(st.tuples(st.integers(0, 2), events), max_size=40), st.sets(st.integers(0, 40)))
@settings(max_examples=300, derandomize=True)
def test_watermarks_and_idleness_follow_the_rules_of_flinks_valve_whatever_the_epochs(
    stream: list[tuple[int, Any]], cuts: set[int]
) -> None:
    merged, valve = gate(3), Valve(3)
    for index, (producer, element) in enumerate(stream):
        if isinstance(element, Watermark) and not valve.is_active[producer]:
            # A producer says that it is active before it says anything else.
            assert feed(merged, producer, ACTIVE) == valve.take(producer, ACTIVE)
        assert feed(merged, producer, element) == valve.take(producer, element)
        if index in cuts:
            snapshot = merged.snapshot()
            merged = gate(3)
            merged.restore(snapshot)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), max_size=40))
@settings(max_examples=100, derandomize=True)
def test_without_idleness_the_watermark_is_the_lowest_of_all_channels(stream: list[tuple[int, int]]) -> None:
    merged = gate(3)
    highest = [MIN_WATERMARK] * 3
    for producer, mark in stream:
        feed(merged, producer, Watermark(mark))
        highest[producer] = max(highest[producer], mark)
        assert merged.watermark == min(highest)
