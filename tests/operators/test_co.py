from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.datastream import OutputTag
from headrace.datastream.functions import CoFlatMapFunction, CoMapFunction, CoProcessFunction
from headrace.elements import MIN_WATERMARK
from headrace.errors import UserFunctionError
from headrace.operators.co import CoFlatMapDeclaration, CoMapDeclaration, CoProcessDeclaration
from headrace.testing.harness import OperatorHarness

RIGHT = OutputTag("right")


class Mark(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "1", value

    def map2(self, value: Any) -> Any:
        return "2", value


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> list[Any]:
        return [value, value]

    def flat_map2(self, value: Any) -> Iterator[Any] | None:
        return iter([value] * 3) if value else None


class Tell(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield RIGHT, value


def test_each_input_has_its_own_map() -> None:
    with OperatorHarness(CoMapDeclaration(Mark())) as harness:
        harness.process_batch(["a", "b"], [1, 2])
        harness.process_second("c", timestamp=3)
        harness.process("d")
        assert harness.output_with_timestamps == [
            (("1", "a"), 1),
            (("1", "b"), 2),
            (("2", "c"), 3),
            (("1", "d"), None),
        ]


def test_each_input_has_its_own_flat_map() -> None:
    with OperatorHarness(CoFlatMapDeclaration(Repeat())) as harness:
        harness.process("a", timestamp=1)
        harness.process_batch(["", "b"], [2, 3], is_second=True)
        assert harness.output_with_timestamps == [("a", 1), ("a", 1), ("b", 3), ("b", 3), ("b", 3)]


def test_each_input_has_its_own_process_element() -> None:
    with OperatorHarness(CoProcessDeclaration(Tell())) as harness:
        harness.process_watermark(4)
        harness.process("a", timestamp=5)
        harness.process_second("b", timestamp=6)
        assert harness.output == [("a", 5, 4)]
        assert harness.side_output_with_timestamps(RIGHT) == [("b", 6)]


def test_the_watermark_is_the_lower_one_of_both_inputs() -> None:
    #   first     W5 .... W9
    #   second    .. W3 W7 .. W20      out   W3 W5 W7 W9
    with OperatorHarness(CoProcessDeclaration(Tell())) as harness:
        harness.process_first_watermark(5)
        assert harness.watermarks == []
        harness.process_second_watermark(3)
        harness.process_second_watermark(7)
        harness.process_first_watermark(9)
        assert harness.watermarks == [3, 5, 7]
        harness.process("a")
        assert harness.output == [("a", MIN_WATERMARK, 7)]
        harness.process_second_watermark(20)
        assert harness.watermarks == [3, 5, 7, 9]


@pytest.mark.parametrize("is_second", [False, True])
def test_an_error_of_either_side_names_its_record(is_second: bool) -> None:
    class Fails(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return 1 / value

        def map2(self, value: Any) -> Any:
            return 1 // value

    with OperatorHarness(CoMapDeclaration(Fails()), name="Join") as harness:
        with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
            harness.process_batch([1, 0, 2], is_second=is_second)
        assert (caught.value.operator, caught.value.record) == ("Join", "0")
