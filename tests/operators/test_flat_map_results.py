"""What a flat map function may return."""

from __future__ import annotations

import pytest

from headrace.errors import UserFunctionError
from headrace.operators.simple import FlatMapDeclaration
from headrace.testing.harness import OperatorHarness


def test_a_result_that_is_not_an_iterable_is_named_without_frames_of_headrace() -> None:
    with (
        OperatorHarness(FlatMapDeclaration(lambda value: value)) as harness,
        pytest.raises(UserFunctionError) as raised,
    ):
        harness.process(7)
    assert "the function returned int: 7; expected an iterable of results" in str(raised.value)
    assert "record: 7" in str(raised.value)
    assert "function: <lambda at test_flat_map_results.py:" in str(raised.value)
    assert "Traceback" not in str(raised.value)
