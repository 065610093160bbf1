from __future__ import annotations

from typing import Any

import pytest

from headrace.datastream.functions import MapFunction
from headrace.operators.simple import MapDeclaration
from headrace.testing.harness import OperatorHarness


class Twice(MapFunction):
    def map(self, value: Any) -> Any:
        return 2 * value


@pytest.mark.parametrize("function", [Twice(), lambda value: 2 * value], ids=["class", "callable"])
def test_every_record_becomes_one_other(function: Any) -> None:
    with OperatorHarness(MapDeclaration(function)) as harness:
        harness.process_batch([1, 2, 3])
        harness.process("ab")
        assert harness.output == [2, 4, 6, "abab"]


def test_results_keep_the_timestamps_of_their_records() -> None:
    with OperatorHarness(MapDeclaration(Twice())) as harness:
        harness.process_batch([1, 2, 3], [10, None, 30])
        harness.process(4)
        assert harness.output_with_timestamps == [(2, 10), (4, None), (6, 30), (8, None)]


def test_none_is_a_result_like_any_other() -> None:
    with OperatorHarness(MapDeclaration(lambda value: None)) as harness:
        harness.process_batch([1, 2])
        assert harness.output == [None, None]


def test_watermarks_pass_after_the_records_they_follow() -> None:
    with OperatorHarness(MapDeclaration(Twice())) as harness:
        harness.process(1, timestamp=5)
        harness.process_watermark(5)
        harness.process_watermark(3)  # one that goes back does not count
        harness.process_watermark(9)
        assert harness.watermarks == [5, 9]
