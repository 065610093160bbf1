from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.datastream import OutputTag
from headrace.datastream.functions import ProcessFunction
from headrace.elements import MIN_WATERMARK
from headrace.errors import JobDefinitionError, StateDescriptorError
from headrace.operators.simple import ProcessDeclaration
from headrace.state.descriptors import ValueStateDescriptor
from headrace.testing.harness import OperatorHarness

LATE = OutputTag("late")
ODD = OutputTag("odd")


class Sort(ProcessFunction):
    """Odd numbers aside, and those below the watermark, too."""

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        timestamp = ctx.timestamp()
        if MIN_WATERMARK < timestamp <= ctx.timer_service().current_watermark():
            yield LATE, value
        elif value % 2:
            yield ODD, value
            yield ODD, -value
        else:
            yield value


def test_results_go_to_the_output_they_are_tagged_with() -> None:
    with OperatorHarness(ProcessDeclaration(Sort())) as harness:
        harness.process_batch([1, 2, 3, 4])
        assert harness.output == [2, 4]
        assert harness.side_output(ODD) == [1, -1, 3, -3]
        assert harness.side_output("late") == []


def test_timestamps_stay_with_results_of_every_output() -> None:
    with OperatorHarness(ProcessDeclaration(Sort())) as harness:
        harness.process_batch([1, 2, 4], [10, 20, 30])
        harness.process_watermark(50)
        harness.process(6, timestamp=40)
        assert harness.output_with_timestamps == [(2, 20), (4, 30)]
        assert harness.side_output_with_timestamps(ODD) == [(1, 10), (-1, 10)]
        assert harness.side_output_with_timestamps(LATE) == [(6, 40)]


def test_the_context_knows_the_clocks_and_the_records_time() -> None:
    seen = []

    def look(value: Any, ctx: Any) -> None:
        service = ctx.timer_service()
        seen.append((ctx.timestamp(), service.current_processing_time(), service.current_watermark()))

    with OperatorHarness(ProcessDeclaration(look)) as harness:
        harness.process("a")
        harness.set_processing_time(1000)
        harness.process_watermark(7)
        harness.process("b", timestamp=9)
    assert seen == [(MIN_WATERMARK, 0, MIN_WATERMARK), (9, 1000, 7)]


def test_a_plain_tuple_is_a_record_and_no_side_output() -> None:
    def pair(value: Any, ctx: Any) -> list[Any]:
        return [("odd", value), (value, value, value), (None, value)]

    with OperatorHarness(ProcessDeclaration(pair)) as harness:
        harness.process(1)
        assert harness.output == [("odd", 1), (1, 1, 1), (None, 1)]
        assert harness.side_output("odd") == []


def test_a_function_may_return_nothing() -> None:
    with OperatorHarness(ProcessDeclaration(lambda value, ctx: None)) as harness:
        harness.process_batch([1, 2])
        assert harness.output == []


def test_keyed_state_needs_a_key() -> None:
    class Counts(ProcessFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("count", None))

        def process_element(self, value: Any, ctx: Any) -> None:
            pass

    with (
        OperatorHarness(ProcessDeclaration(Counts()), name="Counting") as harness,
        pytest.raises(StateDescriptorError, match="'Counting': keyed state needs a keyed stream") as caught,
    ):
        harness.process(1)
    assert "key_by" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "call",
    [
        "register_event_time_timer",
        "register_processing_time_timer",
        "delete_event_time_timer",
        "delete_processing_time_timer",
    ],
)
def test_timers_need_a_key_and_the_error_says_how_to_get_one(call: str) -> None:
    def ask(value: Any, ctx: Any) -> None:
        getattr(ctx.timer_service(), call)(5)

    with (
        OperatorHarness(ProcessDeclaration(ask), name="Alerts") as harness,
        pytest.raises(JobDefinitionError, match="'Alerts': timers need a keyed stream") as caught,
    ):
        harness.process(1)
    assert "key_by" in (caught.value.hint or "")
