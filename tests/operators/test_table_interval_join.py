"""Interval joins: pairs of rows that are near each other, and rows without one, whatever the epochs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.declarations import JoinAssociationsDeclaration, JoinKind, OuterSide
from headrace.operators.table.steps import StepColumn
from headrace.operators.table.timed_declarations import TableIntervalJoinDeclaration
from tests.operators.table_harness import Change, Harness

LEFT = (
    StepColumn("k", "STRING", pa.string()),
    StepColumn("a", "BIGINT", pa.int64()),
    StepColumn("t", "BIGINT", pa.int64()),
)
RIGHT = (
    StepColumn("j", "STRING", pa.string()),
    StepColumn("b", "BIGINT", pa.int64()),
    StepColumn("s", "BIGINT", pa.int64()),
)
IDS = (StepColumn("i1", "BIGINT", pa.int64()), StepColumn("i2", "BIGINT", pa.int64()))


def join(lower: int, upper: int, *, is_timed: bool = True) -> TableIntervalJoinDeclaration:
    times = ("t", "s") if is_timed else (None, None)
    return TableIntervalJoinDeclaration(
        (*LEFT, *RIGHT), ("k",), ("j",), LEFT, RIGHT, *times, lower, upper, is_insert_only=True
    )


def test_rows_meet_within_the_interval_and_are_freed_after_it(tmp_path: Path) -> None:
    job = Harness(join(-5, 3), [LEFT, RIGHT], [False, False], tmp_path)
    assert job.run([("+I", "a", 1, 10)], [("+I", "a", 2, 16)], before=0, after=5) == []
    assert job.run([], [("+I", "a", 3, 15), ("+I", "b", 3, 15)], before=5, after=14) == [
        ("+I", "a", 1, 10, "a", 3, 15)
    ]
    assert job.run([("+I", "a", 4, 19)], [], before=14, after=15) == [("+I", "a", 4, 19, "a", 2, 16)]
    assert job.state_rows == 5
    job.run([], [], before=15, after=16)
    assert job.state_rows == 4  # the row at 10: what fits has come
    job.run([], [], before=16, after=100)
    assert job.state_rows == 0


def test_a_key_that_is_null_meets_nothing(tmp_path: Path) -> None:
    job = Harness(join(-5, 5), [LEFT, RIGHT], [False, False], tmp_path)
    assert job.run([("+I", None, 1, 10)], [("+I", None, 2, 10)], before=0, after=5) == []
    assert job.state_rows == 0


def test_by_the_clock_rows_meet_that_come_one_soon_after_the_other(tmp_path: Path) -> None:
    job = Harness(join(-5, 5, is_timed=False), [LEFT, RIGHT], [False, False], tmp_path)
    assert job.run([("+I", "a", 1, 0)], [], now_ms=100) == []
    assert job.run([], [("+I", "a", 2, 0)], now_ms=105) == [("+I", "a", 1, 0, "a", 2, 0)]
    assert job.run([], [("+I", "a", 3, 0)], now_ms=106) == []
    job.run([], [], now_ms=200)
    assert job.state_rows == 0


def test_updates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="insert-only"):
        Harness(join(-5, 5), [LEFT, RIGHT], [True, False], tmp_path)


def padded(lasts_ms: int, *, is_timed: bool = True) -> JoinAssociationsDeclaration:
    side = OuterSide(
        1, LEFT, ("k",), ("k",), ("i1", "i2"), window_end="t" if is_timed else None, lasts_ms=lasts_ms
    )
    names = tuple(column.name for column in (*LEFT, *RIGHT))
    return JoinAssociationsDeclaration(
        (*LEFT, *RIGHT), JoinKind.LEFT, (side,), names, interval_ms=lasts_ms, is_insert_only=True
    )


PAIRS = (*LEFT, *IDS, *RIGHT)


def test_a_row_without_a_partner_is_emitted_when_its_interval_has_passed(tmp_path: Path) -> None:
    job = Harness(padded(5), [PAIRS, (*LEFT, *IDS)], [False, False], tmp_path)
    rows = [("+I", "a", 1, 10, 7, 1), ("+I", "a", 2, 10, 7, 2), ("+I", "a", 2, 10, 7, 2)]
    assert job.run([], rows, before=0, after=9) == []
    pair = ("+I", "a", 1, 10, 7, 1, "a", 9, 12)
    assert job.run([pair], [], before=9, after=15) == [("+I", "a", 1, 10, "a", 9, 12)]
    alone = ("+I", "a", 2, 10, None, None, None)
    assert job.run([], [], before=15, after=16) == [alone, alone]
    assert job.state_rows == 0
    # One that nobody waits for is emitted at once.
    assert job.run([], [("+I", "a", 3, 11, 7, 3)], before=16, after=16) == [
        ("+I", "a", 3, 11, None, None, None)
    ]


def test_in_processing_time_a_timer_emits_rows_without_a_partner(tmp_path: Path) -> None:
    job = Harness(padded(5, is_timed=False), [PAIRS, (*LEFT, *IDS)], [False, False], tmp_path)
    assert job.run([], [("+I", "a", 1, 0, 7, 1)], now_ms=100) == []
    assert job.timers == [106]
    assert job.run([], [], now_ms=106) == [("+I", "a", 1, 0, None, None, None)]
    assert job.timers == []


ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(1, 15)), max_size=10)


@settings(deadline=None, max_examples=40)
@given(ROWS, ROWS, st.integers(-6, 3), st.integers(0, 6), st.lists(st.integers(0, 10), max_size=4))
def test_any_cut_into_epochs_gives_the_same_pairs(left, right, lower, width, cuts) -> None:
    upper = lower + width
    expected = [
        ("+I", *one, *other)
        for one in left
        for other in right
        if one[0] == other[0] and lower <= one[2] - other[2] <= upper
    ]
    with tempfile.TemporaryDirectory() as directory:
        job = Harness(join(lower, upper), [LEFT, RIGHT], [False, False], Path(directory))
        emitted: list[Change] = []
        watermark = 0
        bounds = sorted({*cuts, 10})
        for start, end in zip([0, *bounds], bounds, strict=False):
            to_come = [row[2] for row in (*left[end:], *right[end:])]
            after = max(watermark, min(to_come, default=100) - 1)
            sides = [[("+I", *row) for row in rows[start:end]] for rows in (left, right)]
            emitted += job.run(*sides, before=watermark, after=after)
            watermark = after
        assert job.state_rows == 0
    assert sorted(emitted) == sorted(expected)
