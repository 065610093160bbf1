"""Conditions of joins, as far as they are looked at before pairs are made."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace.operators.table.pair_conditions import PairCondition

NUMBERS = [pa.int64(), pa.int64(), pa.timestamp("us")]


@pytest.mark.parametrize(
    "condition",
    [
        None,
        "",
        "l0 = r0 OR l1 = r1",
        "(l0 = r0",
        "l0 + 1 = r0",
        "l0 =",
        "l0 BETWEEN r0",
        "(l3 BETWEEN (r1 - INTERVAL '0 00:00:10.000000' DAY TO SECOND) AND r1)",
        "NOT (l0 = r0)",
    ],
)
def test_unsupported_spark_sql_is_left_to_spark(condition: str | None):
    assert PairCondition.of(condition, NUMBERS, NUMBERS).comparisons == ()


def test_columns_of_other_types_are_left_to_spark():
    found = PairCondition.of("(l0 < r0) AND (l1 = r1)", [pa.string(), pa.int64()], [pa.string(), pa.int64()])
    assert found.comparisons == (((0, 1), "=", (1, 1)),)
    assert PairCondition.of("l0 = r0", [pa.int32()], [pa.int64()]).comparisons == ()


def test_pairs_that_cannot_pass_are_found():
    left = [pa.array([1, 5]), pa.array([0, 0]), pa.array([1, 3], pa.timestamp("us"))]
    right = [
        pa.array([3, None, 9]),
        pa.array([0, 0, 1]),
        pa.array([2, 9, None], pa.timestamp("us")),
    ]
    at_left, at_right = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
    condition = PairCondition.of("((l0 < r0) AND (l2 <= r2))", NUMBERS, NUMBERS)
    passes = condition.holds(left, right, at_left, at_right)
    assert passes is not None
    assert passes.tolist() == [True, False, False, False, False, False]
    both = PairCondition.of("r0 BETWEEN l0 AND l0", NUMBERS, NUMBERS)
    sliced = [pa.array([0, 3]).slice(1), *right[1:]]
    assert both.holds(sliced, right, np.array([0]), np.array([0])).tolist() == [True]  # type: ignore[union-attr]
