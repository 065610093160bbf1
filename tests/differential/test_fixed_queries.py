"""Queries that random ones have found to fail, each as small as it can be."""

from __future__ import annotations

import pytest

from headrace.table import StreamTableEnvironment
from tests.differential.grammar import either
from tests.differential.oracle import oracle_session
from tests.differential.runs import Case, check_locally
from tests.differential.tables import Rows
from tests.engines import MINI

pytestmark = pytest.mark.spark

_LEFT = ((0, "a", 1), (1, "a", 4), (2, "b", 3), (3, None, 2), (4, "c", None))
_RIGHT = ((0, "a", 3), (1, "b", 9), (2, "c", 1))


def inserted(rows: tuple[tuple[object, ...], ...]) -> Rows:
    return Rows(tuple(("+I", *row) for row in rows), rows, cuts=(len(rows) // 2,), tells_end=True)


@pytest.fixture(scope="module")
def session(spark_session):
    return oracle_session()


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize(
    "query",
    [
        either("SELECT k, SUM(twice(v)) AS s FROM t GROUP BY k", "SELECT k, SUM(v * 2) FROM t GROUP BY k"),
        "SELECT k, SUM(v) FILTER (WHERE "
        + either("loud(k) <> 'B!' AND twice(v) > 2", "k <> 'b' AND v > 1")
        + ") AS s FROM t GROUP BY k",
        "SELECT l.id AS a, r.id AS b FROM t l JOIN u r ON l.k = r.k AND "
        + either("twice(l.v) < twice(r.v)", "l.v < r.v"),
        "SELECT l.id AS a, r.id AS b FROM t l FULL JOIN u r ON l.k = r.k AND "
        + either("twice(l.v) < twice(r.v)", "l.v < r.v"),
        "SELECT l.id AS a, r.id AS b FROM t l JOIN u r ON l.k = r.k AND "
        + either("twice(l.v + r.v) > 8", "l.v + r.v > 4"),
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND "
        + either("twice(u.v) > t.v)", "u.v * 2 > t.v)"),
    ],
)
def test_python_functions_may_stand_in_aggregates_and_conditions_of_joins(env, session, query):
    case = Case((query,), {"t": inserted(_LEFT), "u": inserted(_RIGHT)}, parallelism=2)
    check_locally(StreamTableEnvironment.create(env(parallelism=2)), session, case)


@pytest.mark.parametrize("engine", [MINI])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, (SELECT MAX(v) FROM u) AS m FROM t",
        "SELECT id FROM t WHERE v > 2 OR (SELECT MAX(v) FROM u) IS NULL",
    ],
)
def test_a_query_in_place_of_a_value_is_null_while_it_has_no_rows(env, session, query):
    case = Case((query,), {"t": inserted(_LEFT), "u": inserted(())}, parallelism=1)
    check_locally(StreamTableEnvironment.create(env(parallelism=1)), session, case)
