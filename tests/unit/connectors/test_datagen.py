"""DataGeneratorSource: indexes, rate, errors of the user's function."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.connectors.base import Boundedness, Slice, SplitEnumerator
from headrace.connectors.datagen import DataGeneratorSource
from headrace.errors import JobDefinitionError, UserFunctionError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def planned(enumerator: SplitEnumerator, split: Any, position: int) -> int:
    piece = enumerator.plan(split, position, 1000)
    return 0 if piece is None else piece.end - piece.start


def test_subtasks_take_turns_in_the_indexes():
    source = DataGeneratorSource(lambda index: index, count=7)
    reader = source.create_reader()
    splits = source.create_enumerator(3).discover()

    read = [[v for b in reader.read(Slice(s, 0, s.length)) for v in b.values] for s in splits]

    assert read == [[0, 3, 6], [1, 4], [2, 5]]


def test_fewer_records_than_subtasks_make_fewer_splits():
    assert len(DataGeneratorSource(str, count=2).create_enumerator(5).discover()) == 2
    assert list(DataGeneratorSource(str, count=0).create_enumerator(5).discover()) == []


def test_without_a_count_it_never_ends():
    source = DataGeneratorSource(str, count=None)
    [split] = source.create_enumerator(1).discover()
    reader = source.create_reader()
    position = 10**12

    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert [b.values for b in reader.read(Slice(split, position, position + 2))] == [
        ["1000000000000", "1000000000001"]
    ]
    assert not reader.progress().is_finished


def test_the_rate_is_shared_by_the_splits_and_kept_by_the_clock():
    clock = Clock()
    enumerator = DataGeneratorSource(str, count=None, rate_per_second=10).create_enumerator(2, clock=clock)
    first, second = enumerator.discover()

    # 5 records a second and split:   |100.0     |100.2     |100.4          |101.0
    assert planned(enumerator, first, 0) == 0
    assert enumerator.next_discovery_delay() == pytest.approx(0.2)
    clock.now = 100.41
    assert planned(enumerator, first, 0) == 2
    assert planned(enumerator, second, 0) == 2
    assert enumerator.next_discovery_delay() is None
    assert planned(enumerator, first, 2) == 0
    assert enumerator.next_discovery_delay() == pytest.approx(0.19)
    clock.now = 101.01
    assert planned(enumerator, first, 2) == 3


def test_a_job_that_fell_behind_catches_up():
    clock = Clock()
    enumerator = DataGeneratorSource(str, count=None, rate_per_second=10).create_enumerator(1, clock=clock)
    [split] = enumerator.discover()
    enumerator.plan(split, 0, 1000)
    clock.now += 60

    assert planned(enumerator, split, 0) == 600


def test_the_rate_counts_from_when_records_are_first_asked_for():
    clock = Clock()
    enumerator = DataGeneratorSource(str, count=None, rate_per_second=10).create_enumerator(1, clock=clock)
    [split] = enumerator.discover()
    clock.now += 60  # Spark starts

    assert planned(enumerator, split, 0) == 0
    clock.now += 1
    assert planned(enumerator, split, 0) == 10


def test_after_a_restart_the_rate_counts_from_the_position_reached():
    clock = Clock()
    source = DataGeneratorSource(str, count=None, rate_per_second=10)
    [split] = source.create_enumerator(1).discover()
    enumerator = source.create_enumerator(1, clock=clock)
    enumerator.restore([split])

    assert planned(enumerator, split, 5000) == 0
    clock.now += 1
    assert planned(enumerator, split, 5000) == 10


def test_the_rate_does_not_keep_a_bounded_source_from_ending():
    enumerator = DataGeneratorSource(str, count=3, rate_per_second=1).create_enumerator(1, clock=Clock())
    [split] = enumerator.discover()

    assert enumerator.plan(split, 3, 1000) == Slice(split, 3, 3)


def test_an_error_of_the_function_names_the_index():
    def generate(index: int) -> float:
        return 1 / (index - 6)

    source = DataGeneratorSource(generate, count=100)
    split = source.create_enumerator(3).discover()[0]

    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        list(source.create_reader().read(Slice(split, 0, 10)))
    assert caught.value.record == "6"


@pytest.mark.parametrize(
    "arguments",
    [
        {"generator_function": 3, "count": 1},
        {"generator_function": str, "count": -1},
        {"generator_function": str, "count": 1, "rate_per_second": 0},
        {"generator_function": str, "count": 1, "rate_per_second": float("inf")},
    ],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(JobDefinitionError, match="DataGeneratorSource"):
        DataGeneratorSource(**arguments)
