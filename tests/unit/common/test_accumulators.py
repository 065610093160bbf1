"""Each kind of accumulator: what it comes to does not depend on how values were spread and merged."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from headrace.common import accumulators
from headrace.common.accumulators import Accumulator, Histogram, IntCounter, LongCounter, TaskAccumulators
from headrace.errors import JobDefinitionError

VALUES = [5, -3, 5, 12, 0]


@pytest.mark.parametrize(
    ("kind", "expected", "empty"),
    [
        ("IntCounter", 19, 0),
        ("LongCounter", 19, 0),
        ("DoubleCounter", 19.0, 0.0),
        ("IntMinimum", -3, 2**31 - 1),
        ("IntMaximum", 12, -(2**31)),
        ("LongMinimum", -3, 2**63 - 1),
        ("LongMaximum", 12, -(2**63)),
        ("DoubleMinimum", -3, float("inf")),
        ("DoubleMaximum", 12, float("-inf")),
        ("AverageAccumulator", 3.8, 0.0),
        ("ListAccumulator", VALUES, []),
        ("Histogram", {-3: 1, 0: 1, 5: 2, 12: 1}, {}),
    ],
)
@pytest.mark.parametrize("cut", range(len(VALUES) + 1))
def test_parts_that_are_merged_come_to_the_same_as_the_whole(
    kind: str, expected: Any, empty: Any, cut: int
) -> None:
    first, second = (getattr(accumulators, kind)() for _ in range(2))
    for value in VALUES[:cut]:
        first.add(value)
    for value in VALUES[cut:]:
        second.add(value)
    merged = pickle.loads(pickle.dumps(first))
    merged.merge(second)
    assert merged.get_local_value() == expected
    merged.reset_local()
    assert merged.get_local_value() == empty


def test_a_clone_goes_its_own_way() -> None:
    histogram = Histogram()
    histogram.add(1)
    clone = histogram.clone()
    histogram.add(1)
    assert (histogram.get_local_value(), clone.get_local_value()) == ({1: 2}, {1: 1})


def test_the_functions_of_a_task_share_names() -> None:
    task = TaskAccumulators()
    counter = IntCounter()
    task.add("lines", counter)
    assert task.get("lines") is counter
    assert task.get_or_add("lines", IntCounter) is counter
    with pytest.raises(JobDefinitionError, match="accumulator 'lines' is already registered"):
        task.add("lines", IntCounter())
    with pytest.raises(JobDefinitionError, match="is a IntCounter in one place and a LongCounter in another"):
        task.get_or_add("lines", LongCounter)


def test_a_value_that_is_not_an_accumulator_is_refused() -> None:
    with pytest.raises(JobDefinitionError, match="expected an Accumulator; got 3"):
        TaskAccumulators().add("lines", 3)  # type: ignore[arg-type]


def test_every_kind_is_listed() -> None:
    kinds = {
        name
        for name, value in vars(accumulators).items()
        if isinstance(value, type) and issubclass(value, Accumulator) and not name.startswith("_")
    }
    assert kinds | {"TaskAccumulators"} == set(accumulators.__all__)
