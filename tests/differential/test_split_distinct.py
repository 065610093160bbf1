"""Aggregations with DISTINCT that are split by a hash come to what they come to in one step, epoch after epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.table import StreamTableEnvironment
from tests.differential.runs import Case, job_of, run_locally
from tests.differential.tables import STRATEGIES, Rows
from tests.engines import MINI
from tests.operators.table_harness import materialized

pytestmark = pytest.mark.parametrize("engine", [MINI])
_FIXED = settings(
    deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None, max_examples=12
)
_QUERIES = (
    "SELECT k, COUNT(DISTINCT v) AS d, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT COUNT(DISTINCT k) AS d, MAX(id) AS m, MIN(v) AS l FROM t",
    "SELECT k, SUM(DISTINCT v) AS d, COUNT(DISTINCT v) FILTER (WHERE id > 3) AS f, SUM(v) AS s FROM t GROUP BY k",
    "SELECT d, COUNT(*) AS n FROM (SELECT k, COUNT(DISTINCT v) AS d FROM t GROUP BY k) GROUP BY d",
)


def final_tables(env: Any, rows: Rows, how: dict[str, Any]) -> list[Any]:
    case = Case(_QUERIES, {"t": rows}, **how)
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    return [materialized(changes) for changes in run_locally(job_of(t_env, case), case).results]


@_FIXED
@given(
    rows=STRATEGIES["t"](),
    how=st.fixed_dictionaries(
        {"parallelism": st.integers(1, 2), "forgets": st.booleans(), "rescales": st.booleans()}
    ),
)
def test_split_aggregations_give_what_plain_ones_give(env, rows, how):
    assert final_tables(env, rows, {**how, "splits": True}) == final_tables(env, rows, how)


def test_the_distinct_values_of_one_group_are_in_several_subtasks(env):
    changes = tuple(("+I", number, "a", number) for number in range(200))
    plain = Case((_QUERIES[0],), {"t": Rows(changes, (), (), True)}, parallelism=3)
    split = replace(plain, splits=True)
    subtasks = [_subtasks_with_values(env, each) for each in (plain, split)]
    assert subtasks == [1, 3]


def _subtasks_with_values(env: Any, case: Case) -> int:
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    engine = run_locally(job_of(t_env, case), case)
    first = next(iter(engine._nodes.values()))
    return sum(any(file.size > 0 for file in chain.files) for chain in first._chains)
