from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.common.time import Time
from headrace.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    RuntimeContext,
)
from headrace.errors import StateDescriptorError, StateError, UserFunctionError
from headrace.operators.co import BroadcastProcessDeclaration, KeyedBroadcastProcessDeclaration
from headrace.state.descriptors import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from headrace.testing.harness import OperatorHarness, rescale

RULES = MapStateDescriptor("rules", None, None)


class Apply(BroadcastProcessFunction[Any, Any, Any]):
    """Multiplies by a factor that is broadcast."""

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        yield value * (ctx.get_broadcast_state(RULES).get("factor") or 1)

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterator[Any]:
        ctx.get_broadcast_state(RULES).put("factor", value)
        yield f"factor {value}"


class Above(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Counts, per key, how often a value is above a limit that is broadcast."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[Any]:
        if value[1] > (ctx.get_broadcast_state(RULES).get("limit") or 0):
            self._count.update((self._count.value() or 0) + 1)
            yield ctx.get_current_key(), self._count.value()

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(RULES).put("limit", value)


def apply() -> BroadcastProcessDeclaration:
    return BroadcastProcessDeclaration(Apply(), (RULES,))


def above() -> KeyedBroadcastProcessDeclaration:
    return KeyedBroadcastProcessDeclaration(Above(), lambda value: value[0], (RULES,))


def test_one_side_reads_what_the_other_writes() -> None:
    with OperatorHarness(apply()) as harness:
        harness.process(5, timestamp=1)
        harness.process_second(10, timestamp=2)
        harness.process_batch([5, 6], [3, 4])
        assert harness.output_with_timestamps == [(5, 1), ("factor 10", 2), (50, 3), (60, 4)]


@pytest.mark.parametrize("between", ["end", "move"])
def test_broadcast_state_lasts_over_epochs_and_workers(between: str) -> None:
    with OperatorHarness(apply()) as harness:
        harness.process_second(3)
        harness.end_epoch() if between == "end" else harness.move()
        harness.process(5)
        harness.process_second(4)
        harness.end_epoch() if between == "end" else harness.move()
        harness.process(5)
        assert harness.output == ["factor 3", 15, "factor 4", 20]


def test_an_epoch_that_runs_again_has_the_broadcast_state_it_began_with() -> None:
    with OperatorHarness(apply()) as harness:
        harness.process_second(3)
        harness.end_epoch()
        harness.process_second(100)
        harness.retry_epoch()
        harness.clear_output()
        harness.process(5)
        assert harness.output == [15]


def test_the_other_side_cannot_write() -> None:
    class Writes(Apply):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.get_broadcast_state(RULES).clear()
            yield value

    with OperatorHarness(BroadcastProcessDeclaration(Writes(), (RULES,))) as harness:
        with pytest.raises(UserFunctionError, match="read-only"):
            harness.process(1)


@pytest.mark.parametrize("between", ["nothing", "end", "move"])
def test_values_changed_in_place_are_kept_whatever_the_cuts(between: str) -> None:
    class Collect(Apply):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            state = ctx.get_broadcast_state(RULES)
            if not state.contains("all"):
                state.put("all", [])
            state.get("all").append(value)  # and no put
            yield list(state.get("all"))

    with OperatorHarness(BroadcastProcessDeclaration(Collect(), (RULES,))) as harness:
        for value in (1, 2, 3):
            harness.process_second(value)
            if between != "nothing":
                harness.end_epoch() if between == "end" else harness.move()
        assert harness.output == [[1], [1, 2], [1, 2, 3]]


def test_the_context_knows_time_on_both_sides() -> None:
    class Tell(Apply):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

        process_broadcast_element = process_element

    with OperatorHarness(BroadcastProcessDeclaration(Tell(), (RULES,))) as harness:
        harness.set_processing_time(99)
        harness.process_first_watermark(7)
        harness.process_second_watermark(5)
        harness.process("a", timestamp=8)
        harness.process_second("b", timestamp=6)
        assert harness.output == [("a", 8, 5, 99), ("b", 6, 5, 99)]


def test_every_subtask_starts_with_all_broadcast_state() -> None:
    with OperatorHarness(apply()) as harness:
        harness.process_second(7)
        snapshot = harness.snapshot()
    for harness in rescale([snapshot], apply(), 3):
        with harness:
            harness.process(2)
            assert harness.output == [14]


def test_the_keyed_side_has_keyed_state_next_to_broadcast_state() -> None:
    with OperatorHarness(above()) as harness:
        harness.process(("a", 5))
        harness.process_second(10)
        harness.process_batch([("a", 5), ("b", 11), ("a", 12), ("a", 13)])
        harness.move()
        harness.process_batch([("a", 9), ("b", 14)])
        assert harness.output == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)]


def test_keyed_and_broadcast_state_both_come_along_to_another_parallelism() -> None:
    with OperatorHarness(above()) as harness:
        harness.process_second(10)
        harness.process_batch((key, 11) for key in "abcdefgh")
        snapshot = harness.snapshot()
    found = []
    for harness in rescale([snapshot], above(), 3):
        with harness:
            harness.process_batch(
                (key, value) for key in "abcdefgh" for value in (9, 12) if harness.owns(key)
            )
            found += harness.output
    assert sorted(found) == [(key, 2) for key in "abcdefgh"]


def test_there_is_no_keyed_state_on_the_broadcast_side() -> None:
    """Flink refuses it, too: which key would it be?"""

    class Peeks(Above):
        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            self._count.value()

    declaration = KeyedBroadcastProcessDeclaration(Peeks(), lambda value: value[0], (RULES,))
    with OperatorHarness(declaration) as harness:
        harness.process(("a", 5))
        with pytest.raises(StateError, match="without a current key"):
            harness.process_second(1)


def test_a_descriptor_with_a_time_to_live_is_refused_where_the_state_is_asked_for() -> None:
    ending = MapStateDescriptor("rules", None, None)
    ending.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())

    class Asks(Apply):
        def process_broadcast_element(
            self, value: Any, ctx: BroadcastProcessFunction.Context
        ) -> Iterator[Any]:
            ctx.get_broadcast_state(ending).put("factor", value)
            return iter(())

    with (
        OperatorHarness(BroadcastProcessDeclaration(Asks(), (RULES,))) as harness,
        pytest.raises(StateDescriptorError, match="only keyed state can") as caught,
    ):
        harness.process_second(2)
    assert "process_broadcast_element" in (caught.value.hint or "")
