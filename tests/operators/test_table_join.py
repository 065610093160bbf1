"""Regular joins: Flink's changes, and the join of the rows that are there whatever the epochs."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.declarations import JoinDeclaration, JoinKind
from headrace.operators.table.steps import StepColumn
from tests.operators.table_harness import Change, Harness, materialized

LK, LV = StepColumn("lk", "BIGINT", pa.int64()), StepColumn("lv", "STRING", pa.string())
RK, RV = StepColumn("rk", "BIGINT", pa.int64()), StepColumn("rv", "STRING", pa.string())
ONE_SIDED = (JoinKind.SEMI, JoinKind.ANTI)


def join(kind: JoinKind, **node: Any) -> JoinDeclaration:
    output = (LK, LV) if kind in ONE_SIDED else (LK, LV, RK, RV)
    return JoinDeclaration(
        output, kind=kind, left_keys=("lk",), right_keys=("rk",), left=(LK, LV), right=(RK, RV), **node
    )


def job(
    kind: JoinKind,
    directory: Path,
    how: dict[str, Any] | None = None,
    retracts: Sequence[bool] = (True, True),
    **node: Any,
) -> Harness:
    return Harness(join(kind, **node), [(LK, LV), (RK, RV)], retracts, directory, **(how or {}))


def test_an_inner_join_passes_the_kinds_of_its_input_on(tmp_path: Path):
    joined = job(JoinKind.INNER, tmp_path)
    assert joined.run([("+I", 1, "a")], []) == []
    assert joined.run([], [("+I", 1, "x")]) == [("+I", 1, "a", 1, "x")]
    assert joined.run([("-U", 1, "a"), ("+U", 1, "b")], []) == [
        ("-U", 1, "a", 1, "x"),
        ("+U", 1, "b", 1, "x"),
    ]
    assert joined.run([], [("-D", 1, "x")]) == [("-D", 1, "b", 1, "x")]
    assert joined.run([("-D", 1, "b")], []) == []
    assert joined.state_rows == 0


def test_both_sides_of_an_epoch_meet(tmp_path: Path):
    joined = job(JoinKind.INNER, tmp_path)
    assert joined.run([("+I", 1, "a"), ("+I", 1, "a")], [("+I", 1, "x")]) == [("+I", 1, "a", 1, "x")] * 2


def test_equal_rows_of_insert_only_input_are_each_joined(tmp_path: Path):
    joined = job(JoinKind.INNER, tmp_path, retracts=(False, False), is_insert_only=True)
    assert joined.run([("+I", 1, "a")], []) == []
    assert joined.run([("+I", 1, "a"), ("+I", None, "a")], [("+I", None, "x")]) == []
    assert joined.state_rows == 2
    assert joined.run([], [("+I", 1, "x")]) == [("+I", 1, "a", 1, "x")] * 2


def test_a_left_join_pads_until_a_match_comes_and_when_the_last_goes(tmp_path: Path):
    joined = job(JoinKind.LEFT, tmp_path)
    assert joined.run([("+I", 1, "a")], []) == [("+I", 1, "a", None, None)]
    assert joined.run([], [("+I", 1, "x")]) == [("-D", 1, "a", None, None), ("+I", 1, "a", 1, "x")]
    assert joined.run([], [("+I", 1, "y")]) == [("+I", 1, "a", 1, "y")]
    assert joined.run([], [("-D", 1, "x")]) == [("-D", 1, "a", 1, "x")]
    assert joined.run([], [("-D", 1, "y")]) == [("-D", 1, "a", 1, "y"), ("+I", 1, "a", None, None)]
    assert joined.run([("-D", 1, "a")], []) == [("-D", 1, "a", None, None)]


def test_a_semi_join_lets_a_row_through_while_it_has_a_match(tmp_path: Path):
    joined = job(JoinKind.SEMI, tmp_path)
    assert joined.run([("+I", 1, "a")], []) == []
    assert joined.run([], [("+I", 1, "x"), ("+I", 1, "y")]) == [("+I", 1, "a")]
    assert joined.run([], [("-D", 1, "x")]) == []
    assert joined.run([], [("-D", 1, "y")]) == [("-D", 1, "a")]


def test_a_row_that_goes_as_its_first_match_comes_is_only_taken_back(tmp_path: Path):
    joined = job(JoinKind.LEFT, tmp_path)
    joined.run([("+I", 1, "a")], [])
    assert joined.run([("-D", 1, "a")], [("+I", 1, "x")]) == [("-D", 1, "a", None, None)]


def test_null_equals_nothing(tmp_path: Path):
    joined = job(JoinKind.FULL, tmp_path)
    assert joined.run([("+I", None, "a")], [("+I", None, "x")]) == [
        ("+I", None, "a", None, None),
        ("+I", None, None, None, "x"),
    ]
    assert joined.run([("-D", None, "a")], []) == [("-D", None, "a", None, None)]


def test_null_equals_null_where_it_is_asked_for(tmp_path: Path):
    joined = job(JoinKind.INNER, tmp_path, null_safe=(True,))
    assert joined.run([("+I", None, "a")], [("+I", None, "x")]) == [("+I", None, "a", None, "x")]


def test_rows_end_with_their_time_to_live_side_by_side(tmp_path: Path):
    joined = job(JoinKind.INNER, tmp_path, ttl_ms=100, right_ttl_ms=1_000)
    joined.run([("+I", 1, "a")], [("+I", 1, "x")], now_ms=0)
    assert joined.run([], [("+I", 1, "y")], now_ms=99) == [("+I", 1, "a", 1, "y")]
    assert joined.run([], [("+I", 1, "z")], now_ms=100) == []
    assert joined.run([("+I", 1, "b")], [], now_ms=500) == [
        ("+I", 1, "b", 1, right) for right in ("z", "y", "x")
    ]


# -- against a model -------------------------------------------------------------------------------------------


def expected(kind: JoinKind, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    for a, n in left.items():
        matches = [(b, m) for b, m in right.items() if a[0] is not None and a[0] == b[0]]
        if kind not in ONE_SIDED:
            for b, m in matches:
                rows[(*a, *b)] += n * m
        if (kind in (JoinKind.LEFT, JoinKind.FULL)) and not matches:
            rows[(*a, None, None)] += n
        if (kind is JoinKind.SEMI and matches) or (kind is JoinKind.ANTI and not matches):
            rows[a] += n
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        for b, m in right.items():
            if not any(b[0] is not None and a[0] == b[0] for a in left):
                rows[(None, None, *b)] += m
    return rows


@st.composite
def histories(draw: st.DrawFn, retracts: Sequence[bool]) -> list[tuple[list[Change], list[Change]]]:
    there: tuple[list[Any], list[Any]] = ([], [])
    epochs = []
    for _ in range(draw(st.integers(1, 5))):
        epoch: tuple[list[Change], list[Change]] = ([], [])
        for _ in range(draw(st.integers(0, 6))):
            side = draw(st.integers(0, 1))
            if retracts[side] and there[side] and draw(st.booleans()):
                row = there[side].pop(draw(st.integers(0, len(there[side]) - 1)))
                epoch[side].append((draw(st.sampled_from(["-D", "-U"])), *row))
            else:
                row = (draw(st.sampled_from([1, 2, None])), draw(st.sampled_from("ab")))
                there[side].append(row)
                epoch[side].append((draw(st.sampled_from(["+I", "+U"])) if retracts[side] else "+I", *row))
        epochs.append(epoch)
    return epochs


@pytest.mark.parametrize("kind", list(JoinKind), ids=lambda kind: kind.value)
@pytest.mark.parametrize("retracts", [(True, True), (False, False), (False, True)], ids=str)
@settings(max_examples=12, deadline=None)
@given(st.data(), st.integers(1, 2), st.booleans())
def test_the_result_is_the_join_of_the_rows_that_are_there(
    kind: JoinKind, retracts: tuple[bool, bool], data: st.DataObject, parallelism: int, forgets: bool
):
    epochs = data.draw(histories(retracts))
    with tempfile.TemporaryDirectory() as directory:
        how = {"parallelism": parallelism, "forgets": forgets}
        joined = job(kind, Path(directory), how, retracts)
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
