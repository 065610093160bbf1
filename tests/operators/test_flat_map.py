from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from headrace.datastream.functions import FlatMapFunction
from headrace.errors import UserFunctionError
from headrace.operators.simple import FlatMapDeclaration
from headrace.testing.harness import OperatorHarness


class Split(FlatMapFunction):
    def flat_map(self, value: str) -> Iterable[str]:
        return value.split()


class SplitAndCount(FlatMapFunction):
    def flat_map(self, value: str) -> Iterator[Any]:
        words = value.split()
        yield from words
        yield len(words)


def longer_than_one(value: str) -> list[str] | None:
    return [value] if len(value) > 1 else None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(Split(), ["to", "be"], id="list"),
        pytest.param(str.split, ["to", "be"], id="callable"),
        pytest.param(SplitAndCount(), ["to", "be", 2], id="generator"),
        pytest.param(lambda value: map(str.upper, value.split()), ["TO", "BE"], id="iterator"),
        pytest.param(lambda value: (word for word in value.split()), ["to", "be"], id="generator-expression"),
        pytest.param(lambda value: (), [], id="empty"),
        pytest.param(lambda value: None, [], id="none"),
    ],
)
def test_a_record_becomes_what_the_function_returns(function: Any, expected: list[Any]) -> None:
    with OperatorHarness(FlatMapDeclaration(function)) as harness:
        harness.process("to be")
        assert harness.output == expected


def test_none_is_nothing_and_the_next_records_follow() -> None:
    with OperatorHarness(FlatMapDeclaration(longer_than_one)) as harness:
        harness.process_batch(["a", "bc", "d", "ef"])
        assert harness.output == ["bc", "ef"]


def test_results_get_the_timestamp_of_their_record() -> None:
    with OperatorHarness(FlatMapDeclaration(Split())) as harness:
        harness.process_batch(["a b", "", "c"], [1, 2, 3])
        assert harness.output_with_timestamps == [("a", 1), ("b", 1), ("c", 3)]


def test_a_result_that_is_not_iterable_is_an_error_of_the_function() -> None:
    with OperatorHarness(FlatMapDeclaration(len)) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process("abc")
    assert caught.value.message == "the function returned int: 3; expected an iterable of results"
    assert caught.value.record == "'abc'"


def test_an_error_in_a_generator_names_the_record_it_was_at() -> None:
    def halves(value: int) -> Iterator[float]:
        yield value
        yield 1 / value

    with OperatorHarness(FlatMapDeclaration(halves)) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process_batch([1, 2, 0, 4])
    assert caught.value.record == "0"
