"""Map, flat map and filter on a keyed stream: their functions may use state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, RuntimeContext
from headrace.errors import UserFunctionError
from headrace.operators.keyed import KeyedFilterDeclaration, KeyedFlatMapDeclaration, KeyedMapDeclaration
from headrace.state.descriptors import ValueStateDescriptor
from headrace.testing.harness import OperatorHarness


class Sum:
    """What the functions below share: the sum so far, per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", None))

    def add(self, value: int) -> int:
        total: int = (self._sum.value() or 0) + value
        self._sum.update(total)
        return total


class SumMap(Sum, MapFunction):
    def map(self, value: int) -> int:
        return self.add(value)


class SumFlatMap(Sum, FlatMapFunction):
    def flat_map(self, value: int) -> Iterator[int]:
        total = self.add(value)
        if total > 3:
            yield value
            yield total


class SumFilter(Sum, FilterFunction):
    def filter(self, value: int) -> bool:
        return self.add(value) > 3


def is_odd(value: int) -> bool:
    return value % 2 == 1


CASES = [
    pytest.param(KeyedMapDeclaration(SumMap(), is_odd), [1, 2, 4, 6, 9], id="map"),
    pytest.param(KeyedFlatMapDeclaration(SumFlatMap(), is_odd), [3, 4, 4, 6, 5, 9], id="flat-map"),
    pytest.param(KeyedFilterDeclaration(SumFilter(), is_odd), [3, 4, 5], id="filter"),
]


@pytest.mark.parametrize(("declaration", "expected"), CASES)
def test_the_function_sees_the_state_of_the_records_key(declaration: Any, expected: list[int]) -> None:
    with OperatorHarness(declaration) as harness:
        harness.process_batch([1, 2, 3, 4, 5])
        assert harness.output == expected


@pytest.mark.parametrize(("declaration", "expected"), CASES)
def test_state_lasts_over_epochs_and_workers(declaration: Any, expected: list[int]) -> None:
    with OperatorHarness(declaration) as harness:
        for value in [1, 2, 3, 4, 5]:
            harness.process(value)
            harness.move()
        assert harness.output == expected


@pytest.mark.parametrize(("declaration", "expected"), CASES)
def test_results_get_the_timestamp_of_their_record(declaration: Any, expected: list[int]) -> None:
    with OperatorHarness(declaration) as harness:
        harness.process_batch([1, 2, 3, 4, 5], [10, 20, 30, 40, 50])
        found = harness.output_with_timestamps
        assert [value for value, _ in found] == expected
        by_record = {1: 10, 2: 20, 3: 30, 4: 40, 5: 50}
        assert {timestamp for _, timestamp in found} <= set(by_record.values())
        assert found[-1][1] == 50


@pytest.mark.parametrize(
    "declaration",
    [
        KeyedMapDeclaration(lambda value: 1 / value, is_odd),
        KeyedFlatMapDeclaration(lambda value: [1 / value], is_odd),
        KeyedFilterDeclaration(lambda value: 1 / value, is_odd),
    ],
    ids=["map", "flat-map", "filter"],
)
def test_plain_callables_do_and_their_errors_name_the_record(declaration: Any) -> None:
    with OperatorHarness(declaration) as harness:
        harness.process_batch([1, 2])
        assert len(harness.output) == 2
        with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
            harness.process_batch([4, 0, 1])
        assert caught.value.record == "0"
