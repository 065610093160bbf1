"""Joins of all kinds with a condition besides the keys: both halves together, the condition checked between them."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.steps import StepColumn
from headrace.planner.join_halves import declarations, input_of, outer_sides, window_declarations
from headrace.planner.logical import JoinKind
from tests.operators.table_harness import Change, Harness, materialized

LEFT = (StepColumn("__left0", "BIGINT", pa.int64()), StepColumn("__left1", "BIGINT", pa.int64()))
RIGHT = (StepColumn("__right0", "BIGINT", pa.int64()), StepColumn("__right1", "BIGINT", pa.int64()))
ONE_SIDED = (JoinKind.SEMI, JoinKind.ANTI)
KINDS = [kind for kind in JoinKind if kind is not JoinKind.INNER]


class Node:
    """What the halves read of a join of the plan: ``ON l0 = r0 AND l1 < r1``."""

    left_keys, right_keys, null_safe = (0,), (0,), ()

    def __init__(self, kind: JoinKind) -> None:
        self.kind = kind


class ConditionalJoin:
    """Both halves, with python in place of what Spark does between them."""

    def __init__(
        self, kind: JoinKind, directory: Path, *, ttl_ms: int = 0, right_ttl_ms: int | None = None, **how: Any
    ) -> None:
        self._outer = outer_sides(kind)
        self._kind = kind
        output = LEFT if kind in ONE_SIDED else (*LEFT, *RIGHT)
        ttls = (ttl_ms, ttl_ms if right_ttl_ms is None else right_ttl_ms)
        first, second = declarations(Node(kind), (LEFT, RIGHT), output, None, {"ttl_ms": ttl_ms}, ttls)
        for name in ("first", "second"):
            (directory / name).mkdir()
        self._first = Harness(first, [first.left, first.right], [True, True], directory / "first", **how)
        rows = [(first.left, first.right)[side] for side in self._outer]
        self._second = Harness(
            second, [first.output, *rows], [True] * (1 + len(rows)), directory / "second", **how
        )
        self._width = len(first.left)

    def run(self, left: list[Change], right: list[Change], now_ms: int = 0) -> list[Change]:
        sides = [
            [(*row, *_ids(row[1:])) if side in self._outer else row for row in rows]
            for side, rows in enumerate((left, right))
        ]
        pairs = self._first.run(*sides, now_ms=now_ms)
        fitting = [pair for pair in pairs if pair[2] < pair[1 + self._width + 1]]
        ordered = sorted(self._outer, key=lambda side: input_of(self._kind, side))
        return self._second.run(fitting, *(sides[side] for side in ordered), now_ms=now_ms)

    def rescale(self, parallelism: int) -> None:
        self._first.rescale(parallelism)
        self._second.rescale(parallelism)

    @property
    def counters(self) -> int:
        return self._second.state_rows


def _ids(row: tuple[Any, ...]) -> tuple[int, int]:
    digest = hashlib.blake2b(repr(row).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], signed=True), int.from_bytes(digest[8:], signed=True)


class ConditionalWindowJoin:
    """The same of rows with windows: ``key, value, start, end``."""

    def __init__(self, kind: JoinKind, directory: Path, **how: Any) -> None:
        self._outer = outer_sides(kind)
        output = LEFT if kind in ONE_SIDED else (*LEFT, *RIGHT)
        first, second = window_declarations(Node(kind), (LEFT, RIGHT), output, None, {"is_insert_only": True})
        for name in ("first", "second"):
            (directory / name).mkdir()
        schemas = [first.left, first.right]
        self._first = Harness(first, schemas, [False, False], directory / "first", **how)
        rows = [schemas[side] for side in self._outer]
        self._second = Harness(
            replace(second, is_insert_only=True),
            [first.output, *rows],
            [False] * (1 + len(rows)),
            directory / "second",
            **how,
        )
        self._width = len(first.left)

    def run(self, left: list[Change], right: list[Change], before: int, after: int) -> list[Change]:
        sides = [
            [(*row, *_ids(row[1:])) if side in self._outer else row for row in rows]
            for side, rows in enumerate((left, right))
        ]
        pairs = self._first.run(*sides, before=before, after=after)
        fitting = [pair for pair in pairs if pair[2] < pair[1 + self._width + 1]]
        return self._second.run(fitting, *(sides[side] for side in self._outer), before=before, after=after)

    @property
    def held(self) -> int:
        return self._second.state_rows


# -- Flink's changes -------------------------------------------------------------------------------------------


def test_a_left_join_pads_a_row_whose_partners_do_not_fit(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.LEFT, tmp_path)
    assert joined.run([("+I", 1, 5)], [("+I", 1, 3)]) == [("+I", 1, 5, None, None)]
    assert joined.run([], [("+I", 1, 4)]) == []
    assert joined.run([], [("+I", 1, 7)]) == [("-D", 1, 5, None, None), ("+I", 1, 5, 1, 7)]
    assert joined.run([], [("+I", 1, 8)]) == [("+I", 1, 5, 1, 8)]
    assert joined.run([], [("-U", 1, 8), ("+U", 1, 2)]) == [("-U", 1, 5, 1, 8)]
    assert joined.run([], [("-D", 1, 7)]) == [("-D", 1, 5, 1, 7), ("+I", 1, 5, None, None)]
    assert joined.run([("-D", 1, 5)], []) == [("-D", 1, 5, None, None)]
    assert joined.counters == 0


def test_a_right_join_pads_the_right_side(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.RIGHT, tmp_path)
    assert joined.run([], [("+I", 1, 5)]) == [("+I", None, None, 1, 5)]
    assert joined.run([("+I", 1, 9)], []) == []
    assert joined.run([("+I", 1, 4)], []) == [("-D", None, None, 1, 5), ("+I", 1, 4, 1, 5)]


def test_a_full_join_pads_both_sides(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.FULL, tmp_path)
    assert joined.run([("+I", 1, 5)], [("+I", 1, 3)]) == [("+I", 1, 5, None, None), ("+I", None, None, 1, 3)]
    assert joined.run([("+I", 1, 2)], []) == [("-D", None, None, 1, 3), ("+I", 1, 2, 1, 3)]
    assert joined.run([("-D", 1, 2)], []) == [("-D", 1, 2, 1, 3), ("+I", None, None, 1, 3)]


def test_a_semi_join_keeps_the_kinds_of_its_rows(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.SEMI, tmp_path)
    assert joined.run([("+I", 1, 5)], [("+I", 1, 3)]) == []
    assert joined.run([], [("+I", 1, 9)]) == [("+I", 1, 5)]
    assert joined.run([("-U", 1, 5), ("+U", 1, 6)], []) == [("-U", 1, 5), ("+U", 1, 6)]
    assert joined.run([("-U", 1, 6), ("+U", 1, 9)], []) == [("-U", 1, 6)]


def test_a_semi_join_passes_on_the_kind_of_what_fits(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.SEMI, tmp_path)
    assert joined.run([("+I", 1, 5)], [("+I", 1, 3)]) == []
    assert joined.run([], [("-U", 1, 3), ("+U", 1, 9)]) == [("+U", 1, 5)]
    assert joined.run([], [("-U", 1, 9), ("+U", 1, 4)]) == [("-U", 1, 5)]
    assert joined.run([], [("+I", 1, 7)]) == [("+I", 1, 5)]
    assert joined.run([], [("-D", 1, 7)]) == [("-D", 1, 5)]


def test_an_anti_join_keeps_the_kinds_of_its_rows_only(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.ANTI, tmp_path)
    assert joined.run([("+U", 1, 5)], [("+I", 1, 3)]) == [("+U", 1, 5)]
    assert joined.run([("-U", 1, 5), ("+U", 1, 6)], []) == [("-U", 1, 5), ("+U", 1, 6)]
    assert joined.run([], [("-U", 1, 3), ("+U", 1, 9)]) == [("-D", 1, 6)]
    assert joined.run([], [("-U", 1, 9), ("+U", 1, 4)]) == [("+I", 1, 6)]


def test_an_anti_join_lets_rows_through_until_one_fits(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.ANTI, tmp_path)
    assert joined.run([("+I", 1, 5), ("+I", None, 1)], [("+I", 1, 3)]) == [("+I", 1, 5), ("+I", None, 1)]
    assert joined.run([], [("+I", 1, 6), ("+I", None, 6)]) == [("-D", 1, 5)]


def test_a_fitting_partner_makes_a_row_live_longer(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.LEFT, tmp_path, ttl_ms=100, right_ttl_ms=10_000)
    joined.run([("+I", 1, 5)], [], now_ms=0)
    joined.run([], [("+I", 1, 7)], now_ms=90)
    assert joined.run([], [("+I", 1, 8)], now_ms=150) == [("+I", 1, 5, 1, 8)]


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI], ids=lambda kind: kind.value)
def test_it_makes_the_left_side_of_a_semi_or_anti_join_live_longer(kind: JoinKind, tmp_path: Path):
    joined = ConditionalJoin(kind, tmp_path, ttl_ms=100, right_ttl_ms=10_000)
    joined.run([("+I", 1, 5)], [], now_ms=0)
    joined.run([], [("+I", 1, 7)], now_ms=90)
    mark = "-D" if kind is JoinKind.SEMI else "+I"
    assert joined.run([], [("-D", 1, 7)], now_ms=150) == [(mark, 1, 5)]


def test_a_row_whose_partner_has_ended_is_not_padded(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.LEFT, tmp_path, ttl_ms=10_000, right_ttl_ms=100)
    assert joined.run([("+I", 1, 5)], [("+I", 1, 7)], now_ms=0) == [("+I", 1, 5, 1, 7)]
    assert joined.run([], [("+I", 1, 8)], now_ms=200) == [("+I", 1, 5, 1, 8)]
    assert joined.run([], [("-U", 1, 8)], now_ms=250) == [("-U", 1, 5, 1, 8)]
    # As in Flink, a row that has ended takes its pairs with it when it goes.
    assert joined.run([], [("-D", 1, 7)], now_ms=300) == [("-D", 1, 5, 1, 7), ("+I", 1, 5, None, None)]


def test_one_that_does_not_fit_does_not(tmp_path: Path):
    joined = ConditionalJoin(JoinKind.LEFT, tmp_path, ttl_ms=100, right_ttl_ms=10_000)
    joined.run([("+I", 1, 5)], [], now_ms=0)
    joined.run([], [("+I", 1, 3)], now_ms=90)
    assert joined.run([], [("+I", 1, 8)], now_ms=150) == []


def test_rows_of_a_window_are_padded_when_it_is_over(tmp_path: Path):
    joined = ConditionalWindowJoin(JoinKind.FULL, tmp_path)
    assert joined.run([("+I", 1, 5, 0, 10), ("+I", 1, 5, 0, 10)], [("+I", 1, 3, 0, 10)], -1, 5) == []
    assert joined.run([("+I", 1, 2, 0, 10), ("+I", 1, 2, 10, 20)], [], 5, 9) == [
        ("+I", 1, 2, 1, 3),
        ("+I", 1, 5, None, None),
        ("+I", 1, 5, None, None),
    ]
    # Late rows are dropped by both halves.
    assert joined.run([("+I", 1, 1, 0, 10)], [], 9, 30) == [("+I", 1, 2, None, None)]
    assert joined.held == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_every_window_is_joined_once(kind: JoinKind, data: st.DataObject):
    rows = st.lists(
        st.tuples(st.sampled_from([1, 2, None]), st.integers(0, 3), st.sampled_from([0, 10])), max_size=6
    )
    with tempfile.TemporaryDirectory() as directory:
        joined = ConditionalWindowJoin(kind, Path(directory), parallelism=data.draw(st.integers(1, 2)))
        emitted: list[Change] = []
        seen: tuple[list[Any], list[Any]] = ([], [])
        before = -1
        for after in (3, 12, 30):
            epoch: list[list[Change]] = []
            for side in range(2):
                drawn = [(k, v, w, w + 10) for k, v, w in data.draw(rows)]
                seen[side].extend(row for row in drawn if row[3] - 1 > before)
                epoch.append([("+I", *row) for row in drawn])
            emitted += joined.run(epoch[0], epoch[1], before, after)
            before = after
        wanted: Counter[Any] = Counter()
        for start in (0, 10):
            left, right = (Counter(row[:2] for row in rows if row[2] == start) for rows in seen)
            wanted += expected(kind, left, right)
        assert materialized(emitted) == wanted
        assert joined.held == 0


# -- against a model -------------------------------------------------------------------------------------------


def expected(kind: JoinKind, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
    def fits(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
        return a[0] is not None and a[0] == b[0] and a[1] < b[1]

    rows: Counter[Any] = Counter()
    for a, n in left.items():
        matches = [(b, m) for b, m in right.items() if fits(a, b)]
        if kind not in ONE_SIDED:
            for b, m in matches:
                rows[(*a, *b)] += n * m
        if kind in (JoinKind.LEFT, JoinKind.FULL) and not matches:
            rows[(*a, None, None)] += n
        if kind in ONE_SIDED and bool(matches) is (kind is JoinKind.SEMI):
            rows[a] += n
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        for b, m in right.items():
            if not any(fits(a, b) for a in left):
                rows[(None, None, *b)] += m
    return rows


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[Change], list[Change]]]:
    there: tuple[list[Any], list[Any]] = ([], [])
    epochs = []
    for _ in range(draw(st.integers(1, 5))):
        epoch: tuple[list[Change], list[Change]] = ([], [])
        for _ in range(draw(st.integers(0, 6))):
            side = draw(st.integers(0, 1))
            if there[side] and draw(st.booleans()):
                row = there[side].pop(draw(st.integers(0, len(there[side]) - 1)))
                epoch[side].append((draw(st.sampled_from(["-D", "-U"])), *row))
            else:
                row = (draw(st.sampled_from([1, 2, None])), draw(st.integers(0, 3)))
                there[side].append(row)
                epoch[side].append((draw(st.sampled_from(["+I", "+U"])), *row))
        epochs.append(epoch)
    return epochs


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@settings(max_examples=20, deadline=None)
@given(histories(), st.integers(1, 2), st.booleans())
def test_the_result_is_the_join_of_the_rows_that_are_there(
    kind: JoinKind, epochs: list[tuple[list[Change], list[Change]]], parallelism: int, forgets: bool
):
    with tempfile.TemporaryDirectory() as directory:
        joined = ConditionalJoin(kind, Path(directory), parallelism=parallelism, forgets=forgets)
        sides: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
        changes: list[Change] = []
        for number, epoch in enumerate(epochs):
            changes += joined.run(*epoch)
            for side, rows in zip(sides, epoch, strict=True):
                for mark, *row in rows:
                    side[tuple(row)] += 1 if mark in ("+I", "+U") else -1
            assert materialized(changes) == expected(kind, +sides[0], +sides[1])
            if number == 2:
                joined.rescale(parallelism + 1)
