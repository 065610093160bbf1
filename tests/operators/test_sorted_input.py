"""Keyed operators in BATCH mode, whatever the order of their input and wherever epochs end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.common import Types
from headrace.common.time import Time
from headrace.datastream.functions import KeyedCoProcessFunction, KeyedProcessFunction, ReduceFunction
from headrace.datastream.window import EventTimeTrigger, TumblingEventTimeWindows
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.operators.base import Operator, OperatorDeclaration
from headrace.operators.co import KeyedBroadcastProcessDeclaration, KeyedCoProcessDeclaration
from headrace.operators.keyed import KeyedProcessDeclaration, ReduceDeclaration
from headrace.operators.sorted_input import build_for_batch
from headrace.operators.window.declaration import WindowComputation, WindowDeclaration
from headrace.state.descriptors import ListStateDescriptor
from headrace.testing.harness import OperatorHarness


@dataclass(frozen=True)
class InBatch:
    """A declaration that is built as a BATCH job does."""

    declaration: Any

    @property
    def inputs(self) -> int:
        return self.declaration.inputs

    @property
    def is_keyed(self) -> bool:
        return self.declaration.is_keyed

    def build(self) -> Operator:
        return build_for_batch(self.declaration)


def harness_of(declaration: Any) -> OperatorHarness:
    in_batch: OperatorDeclaration = InBatch(declaration)  # type: ignore[assignment]
    return OperatorHarness(in_batch)


def first(record: Any) -> Any:
    return record[0]


class InOrder(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def process_element(self, value: Any, ctx: Any) -> None:
        assert ctx.timer_service().current_watermark() == MIN_WATERMARK
        self._seen.add(f"r{ctx.timestamp()}")
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(10**15)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        assert ctx.timer_service().current_watermark() == MAX_WATERMARK
        self._seen.add(f"t{timestamp}")
        yield f"{ctx.get_current_key()}: {' '.join(self._seen.get())}"


RECORDS = [("a", 30), ("b", 5), ("a", 10), ("b", 25), ("a", 21), ("a", 2)]


@pytest.mark.parametrize("per_epoch", [1, 2, 6])
def test_records_of_a_key_come_in_the_order_of_time_then_its_timers(per_epoch: int) -> None:
    with harness_of(KeyedProcessDeclaration(InOrder(), first)) as harness:
        for start in range(0, len(RECORDS), per_epoch):
            part = RECORDS[start : start + per_epoch]
            harness.process_batch(part, [time for _, time in part])
            harness.process_watermark(29)  # nothing comes of it
            harness.end_epoch()
        assert harness.output == []
        harness.finish()

        assert sorted(harness.output) == [
            "a: r2 r10 r21 r30 t100",
            f"a: r2 r10 r21 r30 t100 t{10**15}",
            "b: r5 r25 t100",
            f"b: r5 r25 t100 t{10**15}",
        ]


def test_the_watermark_is_handed_on_once() -> None:
    with harness_of(KeyedProcessDeclaration(InOrder(), first)) as harness:
        harness.process_batch(RECORDS, [time for _, time in RECORDS])
        harness.process_watermark(29)
        harness.finish()

        assert harness.watermarks == [MAX_WATERMARK]


def test_processed_records_are_not_processed_again() -> None:
    with harness_of(KeyedProcessDeclaration(InOrder(), first)) as harness:
        harness.process(("a", 1), 1)
        harness.end_epoch()
        harness.process_watermark(MAX_WATERMARK)
        harness.end_epoch()
        count = len(harness.output)
        harness.operator.finish()

        assert len(harness.output) == count == 2


class Joined(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], f"{value1[1]} {value2[1]}"


def test_reductions_follow_event_time_if_there_is_any_and_arrival_otherwise() -> None:
    for timestamps, expected in ([3, 1, 2], "y z x"), (None, "x y z"):
        with harness_of(ReduceDeclaration(Joined(), first, emits_final_only=True)) as harness:
            harness.process_batch([("a", "x"), ("a", "y"), ("a", "z")], timestamps)
            harness.finish()

            assert harness.output == [("a", expected)]


class Sides(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[str]:
        yield f"one {value}"

    def process_element2(self, value: Any, ctx: Any) -> Iterator[str]:
        yield f"two {value}"


def test_two_inputs_of_a_key_are_merged_by_time() -> None:
    with harness_of(KeyedCoProcessDeclaration(Sides(), (first, first))) as harness:
        harness.process_batch(["a5", "a1"], [5, 1])
        harness.process_batch(["a3", "a1", "a9"], [3, 1, 9], is_second=True)
        harness.finish()

        assert harness.output == ["one a1", "two a1", "two a3", "one a5", "two a9"]


class Rules:
    rules: tuple[str, ...] = ()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, self.rules

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self.rules += (value,)


def test_broadcast_input_comes_first() -> None:
    with harness_of(KeyedBroadcastProcessDeclaration(Rules(), first, ())) as harness:
        harness.process("a", 1)
        harness.process_second("rule")
        harness.finish()

        assert harness.output == [("a", ("rule",))]


def test_no_record_is_late_for_its_window() -> None:
    declaration = WindowDeclaration(
        key_selector=first,
        evictor=None,
        allowed_lateness_ms=0,
        assigner=TumblingEventTimeWindows.of(Time.milliseconds(10)),
        trigger=EventTimeTrigger.create(),
        computation=WindowComputation("reduce", Joined(), None),
        late_tag_id="late",
    )
    with harness_of(declaration) as harness:
        for time in (15, 3, 12, 1):
            harness.process(("a", str(time)), time)
            harness.process_watermark(time)
            harness.end_epoch()
        harness.finish()

        assert harness.output == [("a", "1 3"), ("a", "12 15")]
        assert harness.side_output("late") == []
