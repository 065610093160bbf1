from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.datastream.functions import ReduceFunction
from headrace.errors import UserFunctionError
from headrace.operators.keyed import ReduceDeclaration
from headrace.testing.harness import OperatorHarness, rescale

Pair = tuple[str, int]


class Sum(ReduceFunction):
    def reduce(self, value1: Pair, value2: Pair) -> Pair:
        return value1[0], value1[1] + value2[1]


def key_of(pair: Pair) -> str:
    return pair[0]


PAIRS: list[Pair] = [("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20)]


@pytest.mark.parametrize("function", [Sum(), lambda a, b: (a[0], a[1] + b[1])], ids=["class", "callable"])
def test_every_record_yields_what_was_reduced_so_far(function: Any) -> None:
    with OperatorHarness(ReduceDeclaration(function, key_of)) as harness:
        harness.process_batch(PAIRS)
        assert harness.output == [("a", 1), ("b", 10), ("a", 3), ("a", 6), ("b", 30)]


def test_the_reduced_value_is_the_first_argument_even_if_it_is_falsy() -> None:
    with OperatorHarness(ReduceDeclaration(lambda so_far, value: f"{so_far}{value}", len)) as harness:
        harness.process_batch(["", "", "a"])
        assert harness.output == ["", "", "a"]
    with OperatorHarness(ReduceDeclaration(lambda so_far, value: so_far - value, lambda value: 0)) as harness:
        harness.process_batch([0, 5, 3])
        harness.end_epoch()
        harness.process_batch([-8, 1])
        assert harness.output == [0, -5, -8, 0, -1]


def test_results_keep_the_timestamp_of_the_record_that_caused_them() -> None:
    with OperatorHarness(ReduceDeclaration(Sum(), key_of)) as harness:
        harness.process_batch(PAIRS[:3], [1, 2, 3])
        assert [timestamp for _, timestamp in harness.output_with_timestamps] == [1, 2, 3]


def test_the_reduced_value_lasts_over_epochs_and_workers() -> None:
    with OperatorHarness(ReduceDeclaration(Sum(), key_of)) as harness:
        for index, pair in enumerate(PAIRS):
            harness.process(pair)
            harness.move(keeps_local_copy=index % 2 == 0)
        assert harness.output == [("a", 1), ("b", 10), ("a", 3), ("a", 6), ("b", 30)]


def test_in_batch_only_the_final_value_of_each_key_comes_out() -> None:
    with OperatorHarness(ReduceDeclaration(Sum(), key_of, emits_final_only=True)) as harness:
        harness.process_batch(PAIRS, [1, 2, 3, 4, 5])
        harness.end_epoch()
        harness.process(("c", 7))
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == [("a", 6), ("b", 30), ("c", 7)]


@given(
    st.lists(st.tuples(st.text(max_size=2), st.integers(-5, 5)), max_size=30),
    st.sets(st.integers(0, 30), max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_final_values_do_not_depend_on_where_epochs_end(pairs: list[Pair], cuts: set[int]) -> None:
    expected: dict[str, int] = {}
    with OperatorHarness(ReduceDeclaration(Sum(), key_of, emits_final_only=True)) as harness:
        for index, (key, value) in enumerate(pairs):
            expected[key] = expected.get(key, 0) + value
            harness.process((key, value))
            if index in cuts:
                harness.move(keeps_local_copy=index % 2 == 0)
        harness.finish()
        assert sorted(harness.output) == sorted(expected.items())


def test_final_values_come_out_in_the_same_order_each_time() -> None:
    orders = []
    for pairs in (PAIRS, PAIRS[::-1]):
        with OperatorHarness(ReduceDeclaration(Sum(), key_of, emits_final_only=True)) as harness:
            harness.process_batch(pairs)
            harness.finish()
            orders.append(harness.output)
    assert orders[0] == orders[1]


def test_many_final_values_leave_in_several_batches() -> None:
    with OperatorHarness(ReduceDeclaration(Sum(), key_of, emits_final_only=True)) as harness:
        harness.process_batch((str(number), number) for number in range(12_000))
        harness.finish()
        assert len(harness.output) == 12_000


@pytest.mark.parametrize("emits_final_only", [False, True])
def test_a_reduction_continues_at_another_parallelism(emits_final_only: bool) -> None:
    declaration = ReduceDeclaration(Sum(), key_of, emits_final_only=emits_final_only)
    with OperatorHarness(declaration) as harness:
        harness.process_batch((str(number), number) for number in range(20))
        snapshot = harness.snapshot()
    found: dict[str, int] = {}
    for harness in rescale([snapshot], declaration, 3):
        with harness:
            harness.process_batch((str(n), 100) for n in range(20) if harness.owns(str(n)))
            harness.finish()
            found.update(harness.output)
    assert found == {str(number): number + 100 for number in range(20)}


def test_an_error_names_the_record_that_was_to_be_added() -> None:
    with OperatorHarness(ReduceDeclaration(lambda a, b: a + b, lambda value: 0)) as harness:
        harness.process_batch([1, 2])
        with pytest.raises(UserFunctionError, match="TypeError") as caught:
            harness.process_batch([3, "four", 5])
        assert caught.value.record == "'four'"


def test_reducing_in_place_does_not_change_what_was_emitted_before() -> None:
    def merge(into: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        into.update(other)
        return into

    with OperatorHarness(ReduceDeclaration(merge, lambda value: 0)) as harness:
        harness.process_batch([{"a": 1}, {"b": 2}])
        harness.end_epoch()
        harness.process({"c": 3})
        assert harness.output == [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}]
