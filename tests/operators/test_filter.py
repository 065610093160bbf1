from __future__ import annotations

from typing import Any

import pytest

from headrace.datastream.functions import FilterFunction
from headrace.errors import UserFunctionError
from headrace.operators.simple import FilterDeclaration
from headrace.testing.harness import OperatorHarness


class Even(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value % 2 == 0)


@pytest.mark.parametrize("function", [Even(), lambda value: value % 2 == 0], ids=["class", "callable"])
@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4]], ids=["without-time", "with-time"])
def test_records_are_kept_if_the_function_returns_true(function: Any, timestamps: list[int] | None) -> None:
    with OperatorHarness(FilterDeclaration(function)) as harness:
        harness.process_batch([1, 2, 3, 4], timestamps)
        assert harness.output == [2, 4]


def test_timestamps_stay_with_their_records() -> None:
    with OperatorHarness(FilterDeclaration(Even())) as harness:
        harness.process_batch([1, 2, 3, 4], [10, 20, 30, None])
        assert harness.output_with_timestamps == [(2, 20), (4, None)]


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]], ids=["without-time", "with-time"])
def test_whatever_is_true_counts_as_true(timestamps: list[int] | None) -> None:
    with OperatorHarness(FilterDeclaration(lambda value: value)) as harness:
        harness.process_batch([0, "x", []], timestamps)
        assert harness.output == ["x"]


def test_nothing_is_emitted_when_nothing_stays() -> None:
    with OperatorHarness(FilterDeclaration(lambda value: False)) as harness:
        harness.process_batch([1, 2])
        harness.process_watermark(5)
        assert harness.output == []
        assert harness.watermarks == [5]


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]], ids=["without-time", "with-time"])
def test_an_error_names_the_record(timestamps: list[int] | None) -> None:
    with OperatorHarness(FilterDeclaration(Even())) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process_batch([2, "odd", 4], timestamps)
    assert caught.value.record == "'odd'"
