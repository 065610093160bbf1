"""Random queries with their rows in packets and without: both come to the same, whatever Spark would say of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.table import StreamTableEnvironment
from tests.differential.grammar import PLAIN, WINDOWED
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import Case, cases, job_of, run_locally
from tests.differential.time_grammar import IN_TIME
from tests.engines import MINI
from tests.operators.table_harness import materialized
from tests.surveys import examples

pytestmark = pytest.mark.timeout(900)

_QUERIES = st.one_of(*(kind() for kind in (*PLAIN, *WINDOWED, *IN_TIME)))
_ANY_PACE = settings(deadline=None, suppress_health_check=list(HealthCheck))
#: The same cases every time.
_FIXED = settings(
    _ANY_PACE, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate, Phase.shrink]
)


def results(env: Any, case: Case) -> tuple[LocalEngine, list[Counter[Any]]]:
    t_env = StreamTableEnvironment.create(env(parallelism=case.parallelism))
    engine = run_locally(job_of(t_env, case), case)
    return engine, [materialized(changes) for changes in engine.results]


def check(env: Any, case: Case) -> int:
    """Compare both ways; returns how many nodes got packets."""
    packing, packed = results(env, replace(case, packs=True))
    _, plain = results(env, replace(case, packs=False))
    assert packed == plain
    return len(packing.packed)


@pytest.mark.parametrize("engine", [MINI])
@settings(_FIXED, max_examples=25)
@given(case=cases(_QUERIES))
def test_packets_change_nothing(env, case):
    check(env, case)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [MINI])
@settings(_ANY_PACE, max_examples=examples(500))
@given(case=cases(_QUERIES))
def test_packets_change_nothing_in_many_queries(env, case):
    check(env, case)


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n, MAX(v) AS m, COUNT(DISTINCT v) AS d, SUM(v) FILTER (WHERE v > 1) AS s FROM t "
        "GROUP BY k",
        "SELECT v, COUNT(DISTINCT k) AS d, COUNT(DISTINCT id) FILTER (WHERE v < 3) AS i FROM t GROUP BY v",
        "SELECT l.id AS a, r.id AS b FROM t l JOIN u r ON l.k = r.k WHERE r.v > 0",
        "SELECT l.id AS a, r.id AS b FROM t l LEFT JOIN u r ON l.v = r.v",
    ],
)
@settings(_FIXED, max_examples=10)
@given(data=st.data())
def test_nodes_get_packets(env, query, data):
    with_whole_numbers = cases(st.just(query), max_queries=1).filter(
        lambda case: all(rows.number.name == "BIGINT" for rows in case.tables.values())
    )
    case = replace(data.draw(with_whole_numbers), ttl_ms=0)
    assert check(env, case) == 1
