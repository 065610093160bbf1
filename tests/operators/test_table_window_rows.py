"""Window joins, window top-N and deduplication: all of a window at once, when it is over."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.elements import MAX_WATERMARK
from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.declarations import (
    DeduplicateDeclaration,
    JoinKind,
    Order,
    RankDeclaration,
    WindowJoinDeclaration,
)
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness


def column(name: str, kind: pa.DataType | None = None) -> StepColumn:
    return StepColumn(name, "BIGINT", kind or pa.int64())


ROW = (column("k", pa.string()), column("v"), column("ws"), column("we"))
OTHER = (column("k2", pa.string()), column("v2"), column("ws2"), column("we2"))


def top(last: int) -> RankDeclaration:
    return RankDeclaration(
        (*ROW, column("rn")),
        partition=("ws", "we"),
        order=(Order("v", ascending=False),),
        last=last,
        rank_column=column("rn"),
        window_end="we",
        is_insert_only=True,
    )


def test_the_first_rows_of_a_window_come_when_it_is_over(tmp_path: Path):
    rows = Harness(top(2), [ROW], [False], tmp_path)
    assert rows.run([("+I", "a", 1, 0, 10), ("+I", "b", 5, 0, 10), ("+I", "c", 9, 10, 20)]) == []
    assert rows.run([("+I", "d", 3, 0, 10)], before=0, after=9) == [
        ("+I", "b", 5, 0, 10, 1),
        ("+I", "d", 3, 0, 10, 2),
    ]
    assert rows.run([("+I", "e", 7, 0, 10)], before=9, after=12) == []
    assert rows.late == 1
    assert rows.run([], before=12, after=MAX_WATERMARK) == [("+I", "c", 9, 10, 20, 1)]
    assert rows.state_rows == 0


def test_windows_that_are_over_at_once_come_in_the_order_of_their_ends(tmp_path: Path):
    rows = Harness(top(1), [ROW], [False], tmp_path)
    windows = [70, 30, 50, 10, 60, 20, 40]

    emitted = rows.run([("+I", "a", 1, end - 10, end) for end in windows], after=MAX_WATERMARK)

    assert [row[4] for row in emitted] == sorted(windows)


TIMED = (column("k", pa.string()), column("ts"), column("over"))


def sort() -> RankDeclaration:
    """ORDER BY ts, k: what ends with the row's own time is sorted by time."""
    order = (Order("ts"), Order("k", ascending=False))
    return RankDeclaration(
        TIMED, partition=(), order=order, last=None, window_end="over", is_insert_only=True
    )


def test_rows_that_are_sorted_by_time_wait_until_it_has_passed_them(tmp_path: Path):
    rows = Harness(sort(), [TIMED], [False], tmp_path)
    assert (
        rows.run([("+I", "c", 7, 8), ("+I", "a", 5, 6), ("+I", "b", 5, 6), ("+I", "b", 5, 6)], after=4) == []
    )
    assert rows.run([("+I", "d", 6, 7)], before=4, after=6) == [
        ("+I", "b", 5, 6),
        ("+I", "b", 5, 6),
        ("+I", "a", 5, 6),
        ("+I", "d", 6, 7),
    ]
    assert rows.run([("+I", "late", 6, 7)], before=6, after=MAX_WATERMARK) == [("+I", "c", 7, 8)]
    assert rows.late == 1
    assert rows.state_rows == 0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=5), max_size=5),
    st.lists(st.integers(0, 22), min_size=5, max_size=5).map(sorted),
)
def test_rows_come_in_order_whatever_the_epochs(epochs: list[list[tuple[str, int]]], watermarks: list[int]):
    with tempfile.TemporaryDirectory() as directory:
        rows = Harness(sort(), [TIMED], [False], Path(directory))
        emitted: list[Change] = []
        on_time = []
        before = -1
        for epoch, watermark in zip(epochs, watermarks, strict=False):
            given_rows = [("+I", name, at, at + 1) for name, at in epoch]
            on_time += [row for row in given_rows if row[2] > before]
            emitted += rows.run(given_rows, before=before, after=watermark)
            before = watermark
        emitted += rows.run([], before=before, after=MAX_WATERMARK)
        by_name = sorted(on_time, key=lambda row: row[1], reverse=True)
        assert emitted == sorted(by_name, key=lambda row: row[2])


@pytest.mark.parametrize(("keep_last", "expected"), [(True, "d"), (False, "c")])
@pytest.mark.parametrize("cut", [0, 2, 4])
def test_of_rows_with_the_same_time_the_first_or_last_to_arrive_is_kept(
    tmp_path: Path, keep_last: bool, expected: str, cut: int
):
    declaration = DeduplicateDeclaration(
        ROW, keys=("ws", "we"), time="v", keep_last=keep_last, window_end="we", is_insert_only=True
    )
    changes: list[Change] = [("+I", name, 1, 0, 10) for name in "cabd"]
    rows = Harness(declaration, [ROW], [False], tmp_path)
    rows.run(changes[:cut])
    assert rows.run(changes[cut:], after=MAX_WATERMARK) == [("+I", expected, 1, 0, 10)]


@pytest.mark.parametrize(("keep_last", "expected"), [(True, 3), (False, 1)])
def test_one_row_of_each_key_and_window_stays(tmp_path: Path, keep_last: bool, expected: int):
    declaration = DeduplicateDeclaration(
        ROW, keys=("k", "ws", "we"), time="v", keep_last=keep_last, window_end="we", is_insert_only=True
    )
    rows = Harness(declaration, [ROW], [False], tmp_path)
    rows.run([("+I", "a", 2, 0, 10), ("+I", "a", 3, 0, 10)])
    assert rows.run([("+I", "a", 1, 0, 10)], before=0, after=9) == [("+I", "a", expected, 0, 10)]


def test_a_changelog_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="changelog with updates"):
        Harness(top(1), [ROW], [True], Path("unused"))


def window_join(kind: JoinKind) -> WindowJoinDeclaration:
    return WindowJoinDeclaration(
        ROW if kind in (JoinKind.SEMI, JoinKind.ANTI) else (*ROW, *OTHER),
        kind=kind,
        left_keys=("k",),
        right_keys=("k2",),
        left=ROW,
        right=OTHER,
        left_start="ws",
        left_end="we",
        right_start="ws2",
        right_end="we2",
        is_insert_only=True,
    )


def expected(kind: JoinKind, left: list[Any], right: list[Any]) -> Counter[Any]:
    def match(a: Any, b: Any) -> bool:
        return a[0] is not None and a[0] == b[0] and a[2:] == b[2:]

    rows: list[Any] = []
    if kind not in (JoinKind.SEMI, JoinKind.ANTI):
        rows += [(*a, *b) for a in left for b in right if match(a, b)]
    for a in left:
        is_matched = any(match(a, b) for b in right)
        if kind in (JoinKind.LEFT, JoinKind.FULL) and not is_matched:
            rows.append((*a, None, None, None, None))
        if (kind is JoinKind.SEMI and is_matched) or (kind is JoinKind.ANTI and not is_matched):
            rows.append(a)
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        rows += [(None, None, None, None, *b) for b in right if not any(match(a, b) for a in left)]
    return Counter(rows)


windowed = st.builds(
    lambda key, value, window: ("+I", key, value, window * 10, window * 10 + 10),
    st.sampled_from(["a", "b", None]),
    st.integers(0, 2),
    st.integers(0, 3),
)


@pytest.mark.parametrize("kind", list(JoinKind), ids=lambda kind: kind.value)
@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(windowed, max_size=4), st.lists(windowed, max_size=4), st.integers(0, 12)),
        max_size=4,
    ),
    st.integers(1, 2),
)
def test_rows_of_the_same_window_are_joined(
    kind: JoinKind, epochs: list[tuple[list[Change], list[Change], int]], parallelism: int
):
    with tempfile.TemporaryDirectory() as directory:
        join = Harness(
            window_join(kind), [ROW, OTHER], [False, False], Path(directory), parallelism=parallelism
        )
        held: dict[int, list[Any]] = defaultdict(list)
        before, late, results = -1, 0, []
        for number, (left, right, step) in enumerate(epochs):
            for side, rows in ((0, left), (1, right)):
                for _, *row in rows:
                    if row[3] - 1 > before:
                        held[side].append(tuple(row))
                    else:
                        late += 1
            results += join.run(left, right, before=before, after=before + step)
            before += step
            if number == 1:
                join.rescale(parallelism + 1)
        results += join.run([], [], before=before, after=MAX_WATERMARK)
        assert Counter(tuple(row) for _, *row in results) == expected(kind, held[0], held[1])
        assert join.late == late
        assert join.state_rows == 0
