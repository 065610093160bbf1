"""A join in front of a top-N leaves out pairs that cannot be among the first, and no others."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.table.declarations import (
    FirstPairs,
    JoinDeclaration,
    JoinKind,
    Order,
    RankDeclaration,
    StatefulNode,
)
from headrace.operators.table.steps import StepColumn
from headrace.table import EnvironmentSettings, TableEnvironment
from tests.operators.table_harness import Change, Harness

LEFT = (StepColumn("k", "BIGINT", pa.int64()), StepColumn("s", "STRING", pa.string()))
RIGHT = tuple(StepColumn(name, "BIGINT", pa.int64()) for name in ("rk", "price", "at"))
OUTPUT = (*LEFT, *RIGHT)
FIRST = FirstPairs((0,), ((3, False), (4, True)), 2)


def join(first: FirstPairs | None) -> JoinDeclaration:
    return JoinDeclaration(
        OUTPUT, JoinKind.INNER, ("k",), ("rk",), LEFT, RIGHT, is_insert_only=True, first_pairs=first
    )


def run(
    first: FirstPairs | None, epochs: list[tuple[list[Any], list[Any]]]
) -> tuple[list[int], list[Change]]:
    """Return how many pairs each epoch makes, and what a top-2 makes of them."""
    order = (Order("price", ascending=False), Order("at"))
    rank = RankDeclaration(OUTPUT, ("k",), order, 2)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        pairs = Harness(join(first), [LEFT, RIGHT], [False, False], Path(one))
        best = Harness(rank, [OUTPUT], [False], Path(other))
        counts, changes = [], []
        for left, right in epochs:
            made = pairs.run([("+I", *row) for row in left], [("+I", *row) for row in right])
            counts.append(len(made))
            changes += best.run(made)
    return counts, changes


NUMBER = st.integers(0, 3)
LEFT_ROWS = st.lists(st.tuples(st.one_of(NUMBER, st.none()), st.sampled_from("ab")), max_size=4)
RIGHT_ROWS = st.lists(st.tuples(NUMBER, st.one_of(NUMBER, st.none()), NUMBER), max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(LEFT_ROWS, RIGHT_ROWS), max_size=4))
def test_a_top_n_gives_the_same_result(epochs: list[tuple[list[Any], list[Any]]]) -> None:
    _, all_pairs = run(None, epochs)
    _, first_pairs = run(FIRST, epochs)
    assert Counter(first_pairs) == Counter(all_pairs)


def test_pairs_that_others_outrank_are_not_made() -> None:
    right = [(1, price, 0) for price in range(10)]
    counts, changes = run(FIRST, [([(1, "a")], right)])
    assert counts == [2]
    assert sorted(change[4] for change in changes) == [8, 9]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("SELECT *, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY b.v DESC, b.t) AS n {join}", True),
        ("SELECT *, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY b.v + 1) AS n {join}", False),
        ("SELECT *, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY b.v) AS n {join} AND a.v + b.v > 3", False),
        ("SELECT *, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY b.v) AS n {join} AND b.v <= a.v", True),
    ],
)
def test_joins_that_learn_which_pairs_are_wanted(query: str, first: bool) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name in ("a", "b"):
        t_env.execute_sql(
            f"CREATE TABLE {name} (k BIGINT, v BIGINT, t TIMESTAMP(3)) WITH ('connector' = 'datagen')"
        )
    joined = "FROM a, b WHERE a.k = b.k"
    plan = t_env.sql_query(f"SELECT * FROM ({query.format(join=joined)}) WHERE n <= 2")._plan
    job = t_env._jobs.job_graph(t_env._jobs.plan_query(plan), "job")
    declarations = [vertex.head.declaration for vertex in job.vertices]
    (found,) = [each for each in declarations if isinstance(each, JoinDeclaration)]
    assert isinstance(found, StatefulNode)
    assert (found.first_pairs is not None) == first
