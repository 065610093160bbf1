"""Windows that count rows: those that are full, whatever the epochs."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.declarations import AggSpec, GroupAggregateDeclaration, RowWindowsDeclaration
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness

K, V = StepColumn("k", "STRING", pa.string()), StepColumn("v", "BIGINT", pa.int64())
W = StepColumn("w", "BIGINT", pa.int64())


def windows(size: int, slide: int) -> RowWindowsDeclaration:
    return RowWindowsDeclaration(
        (K, V, W), keys=("k",), size=size, slide=slide, number="w", is_insert_only=True
    )


def test_a_window_is_emitted_when_it_is_full(tmp_path: Path) -> None:
    job = Harness(windows(3, 3), [(K, V)], [False], tmp_path)
    assert job.run([("+I", "a", 1), ("+I", "b", 10), ("+I", "a", 1)]) == []
    assert job.state_rows == 5  # three rows, and how many each key has had
    assert job.run([("+I", "a", 2), ("+I", "a", 3)]) == [
        ("+I", "a", 1, 0),
        ("+I", "a", 1, 0),
        ("+I", "a", 2, 0),
    ]
    assert job.state_rows == 4


def test_windows_overlap_or_leave_rows_out(tmp_path: Path) -> None:
    job = Harness(windows(2, 1), [(K, V)], [False], tmp_path / "overlapping")
    assert job.run([("+I", "a", 1), ("+I", "a", 2), ("+I", "a", 3)]) == [
        ("+I", "a", 1, 0),
        ("+I", "a", 2, 0),
        ("+I", "a", 2, 1),
        ("+I", "a", 3, 1),
    ]
    job = Harness(windows(1, 3), [(K, V)], [False], tmp_path / "apart")
    assert job.run([("+I", "a", number) for number in range(5)]) == [("+I", "a", 0, 0), ("+I", "a", 3, 1)]


def test_rows_that_are_taken_back_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="insert-only"):
        Harness(windows(2, 2), [(K, V)], [True], tmp_path)


def test_complete_groups_leave_no_state(tmp_path: Path) -> None:
    total = AggSpec("SUM", ("v",), StepColumn("s", "BIGINT", pa.int64()))
    node = GroupAggregateDeclaration(
        (K, total.result), keys=("k",), calls=(total,), keeps_groups=False, is_insert_only=True
    )
    job = Harness(node, [(K, V)], [False], tmp_path)
    assert job.run([("+I", "a", 1), ("+I", "a", 2)]) == [("+I", "a", 3)]
    assert job.run([("+I", "a", 4)]) == [("+I", "a", 4)]
    assert job.state_rows == 0


def expected(rows: list[tuple[str, int]], size: int, slide: int) -> list[Change]:
    of_key: defaultdict[str, list[int]] = defaultdict(list)
    for key, value in rows:
        of_key[key].append(value)
    return [
        ("+I", key, value, window)
        for key, values in of_key.items()
        for window, start in enumerate(range(0, len(values) - size + 1, slide))
        for value in values[start : start + size]
    ]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=7), max_size=5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
)
def test_windows_are_those_of_the_rows_as_they_came(
    epochs: list[list[tuple[str, int]]], size: int, slide: int, forgets: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        job = Harness(
            windows(size, slide), [(K, V)], [False], Path(directory), parallelism=1, forgets=forgets
        )
        emitted: list[Change] = []
        for number, epoch in enumerate(epochs):
            emitted += job.run([("+I", *row) for row in epoch])
            if number == 2:
                job.rescale(2)
        rows = [row for epoch in epochs for row in epoch]
        # Rows of a window stand as they came; of windows that are full in one epoch the order does not matter.
        assert sorted(emitted, key=lambda change: (change[1], change[3])) == sorted(
            expected(rows, size, slide), key=lambda change: (change[1], change[3])
        )
