"""State that ends: rows of regular joins and groups, by a clock that goes on between epochs, cut anywhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.planner.changelog import UPSERT
from headrace.table import StreamTableEnvironment
from tests.differential.runs import Case, job_of, run_locally
from tests.differential.tables import Rows
from tests.engines import MINI
from tests.operators.table_harness import materialized

pytestmark = pytest.mark.parametrize("engine", [MINI])
_ANY_PACE = settings(deadline=None, suppress_health_check=list(HealthCheck))
_FIXED = settings(_ANY_PACE, derandomize=True, database=None, max_examples=12)
_MANY = settings(_ANY_PACE, max_examples=500)

_VALUES = st.tuples(st.sampled_from("ab"), st.integers(0, 5))


@st.composite
def inserts(draw: st.DrawFn) -> Rows:
    """Rows of whole numbers, cut anywhere, in more epochs than other tests have."""
    rows = tuple((number, *draw(_VALUES)) for number in range(draw(st.integers(0, 10))))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=8)))
    return Rows(tuple(("+I", *row) for row in rows), rows, tuple(cuts), draw(st.booleans()))


_HOW = st.fixed_dictionaries(
    {
        "parallelism": st.integers(1, 2),
        "forgets": st.booleans(),
        "rescales": st.booleans(),
        "pace_ms": st.sampled_from([1000, 3000, 5000]),
        "ttl_ms": st.sampled_from([3000, 6000, 10_000]),
    }
)


def timed(case: Case, name: str) -> list[tuple[int, str, int, int]]:
    """The rows of a table, each with the time of its epoch."""
    epochs = case.tables[name].epochs
    return [(*row[1:], case.clock(number)) for number, epoch in enumerate(epochs) for row in epoch]


def check_join(env: Any, left: Rows, right: Rows, how: dict[str, Any]) -> None:
    """Rows meet if the first one of them still lives when the second one comes. Meeting makes nobody live longer."""
    query = "SELECT l.id AS a, r.id AS b FROM t l JOIN u r ON l.k = r.k"
    case = Case((query,), {"t": left, "u": right}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    (changes,) = run_locally(job_of(t_env, case), case).results
    assert materialized(changes) == Counter(
        (one[0], other[0])
        for one in timed(case, "t")
        for other in timed(case, "u")
        if one[1] == other[1] and abs(one[3] - other[3]) < case.ttl_ms
    )


def check_groups(env: Any, rows: Rows, how: dict[str, Any]) -> None:
    """A group that no row has come to for so long begins anew. A sink with its key has what it came to last."""
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS l, AVG(v) AS m FROM t GROUP BY k"
    case = Case((query,), {"t": rows}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    (changes,) = run_locally(job_of(t_env, case, UPSERT, keys=(0,)), case).results
    groups: dict[str, tuple[int, list[int]]] = {}
    for _, key, value, now in timed(case, "t"):
        last, values = groups.get(key, (0, []))
        groups[key] = (now, [*(values if now - last < case.ttl_ms else []), value])
    assert {key: rest for _, key, *rest in changes} == {
        key: [len(values), sum(values), min(values), sum(values) // len(values)]
        for key, (_, values) in groups.items()
    }


@_FIXED
@given(left=inserts(), right=inserts(), how=_HOW)
def test_rows_of_a_join_meet_while_they_live(env, left, right, how):
    check_join(env, left, right, how)


@_FIXED
@given(rows=inserts(), how=_HOW)
def test_a_group_ends_with_its_time_to_live(env, rows, how):
    check_groups(env, rows, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@_MANY
@given(left=inserts(), right=inserts(), how=_HOW)
def test_many_joins(env, left, right, how):
    check_join(env, left, right, how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@_MANY
@given(rows=inserts(), how=_HOW)
def test_many_groups(env, rows, how):
    check_groups(env, rows, how)
