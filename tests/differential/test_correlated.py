"""Queries that name columns of the row beside them: LATERAL, and queries in place of values. Rows change as they go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from headrace.datastream import StreamExecutionEnvironment
from headrace.table import StreamTableEnvironment
from tests.differential.runs import Case, job_of, run_locally
from tests.differential.tables import Rows
from tests.operators.table_harness import materialized

Row = tuple[int, str | None, int | None]

_T: tuple[Row, ...] = ((0, "a", 1), (1, "a", 4), (2, "b", 3), (3, None, 2), (4, "c", None), (5, "d", 7))
_U: tuple[Row, ...] = ((0, "a", 3), (1, "b", 9), (2, "a", 5), (3, "b", None), (4, "a", 8), (5, None, 6))
#: Rows of u that come and go, before and after others.
_GONE: tuple[Row, ...] = ((6, "c", 4), (7, "a", 1))


def partners(row: Row) -> list[Row]:
    return [other for other in _U if row[1] is not None and other[1] == row[1]]


def values(rows: Iterable[Row]) -> list[int]:
    return [v for _, _, v in rows if v is not None]


def highest(row: Row) -> list[tuple[Any, ...]]:
    found = sorted(
        (other for other in partners(row) if other[2] is not None), key=lambda other: -(other[2] or 0)
    )
    return [(row[0], other[0]) for other in found[:2]]


_QUERIES: dict[str, Callable[[Row], list[tuple[Any, ...]]]] = {
    "SELECT id, (SELECT MAX(v) FROM u WHERE u.k = t.k) AS m FROM t": lambda row: [
        (row[0], max(values(partners(row)), default=None))
    ],
    "SELECT id, (SELECT COUNT(*) * 10 + COUNT(v) FROM u WHERE u.k = t.k) AS m FROM t": lambda row: [
        (row[0], len(partners(row)) * 10 + len(values(partners(row))))
    ],
    "SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k AND t.v > 2) AS m, (SELECT MAX(id) FROM u) AS n FROM t": (
        lambda row: [(row[0], len(partners(row)) if (row[2] or 0) > 2 else 0, 5)]
    ),
    "SELECT id, (SELECT v FROM u WHERE u.id = t.id) AS m FROM t": lambda row: [(row[0], _U[row[0]][2])],
    "SELECT id, (SELECT v FROM u WHERE id = 2) AS m, (SELECT v FROM u WHERE id = 99) AS n FROM t": lambda row: [
        (row[0], 5, None)
    ],
    "SELECT id, (SELECT id FROM u WHERE u.k = t.k AND v IS NOT NULL ORDER BY v DESC LIMIT 1) AS m FROM t": (
        lambda row: highest(row)[:1] or [(row[0], None)]
    ),
    "SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k GROUP BY k) AS m FROM t": lambda row: [
        (row[0], len(partners(row)) or None)
    ],
    "SELECT id FROM t WHERE v = (SELECT v FROM u WHERE u.id = 0)": lambda row: [
        (row[0],) for _ in [0] if row[2] == 3
    ],
    "SELECT id FROM t WHERE v < (SELECT MAX(v) FROM u WHERE u.k = t.k)": lambda row: [
        (row[0],) for best in [max(values(partners(row)), default=0)] if row[2] is not None and row[2] < best
    ],
    "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > 4) AS x FROM t": lambda row: [
        (row[0], int(any(v > 4 for v in values(partners(row)))))
    ],
    "SELECT id FROM t WHERE v = 3 OR NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": lambda row: [
        (row[0],) for _ in [0] if row[2] == 3 or not partners(row)
    ],
    "SELECT t.id, x.id FROM t, LATERAL (SELECT id FROM u WHERE u.k = t.k AND u.v > t.v) AS x": lambda row: [
        (row[0], other[0]) for other in partners(row) if None not in (row[2], other[2]) and other[2] > row[2]
    ],
    "SELECT t.id, x.s FROM t, LATERAL (SELECT t.v + u.v AS s FROM u WHERE u.k = t.k) AS x": lambda row: [
        (row[0], None if None in (row[2], other[2]) else row[2] + other[2]) for other in partners(row)
    ],
    "SELECT t.id, x.n FROM t, LATERAL (SELECT t.id + 1 AS n) AS x": lambda row: [(row[0], row[0] + 1)],
    "SELECT t.id, x.n FROM t LEFT JOIN LATERAL (SELECT id AS n FROM u WHERE u.k = t.k AND u.v > 4) x ON TRUE": (
        lambda row: [(row[0], other[0]) for other in partners(row) if (other[2] or 0) > 4] or [(row[0], None)]
    ),
    "SELECT t.id, x.n FROM t, LATERAL (SELECT id FROM u WHERE u.k = t.k AND v IS NOT NULL ORDER BY v DESC LIMIT 2) "
    "AS x (n)": highest,
    "SELECT t.id, x.n FROM t LEFT JOIN LATERAL "
    "(SELECT id FROM u WHERE u.k = t.k AND v IS NOT NULL ORDER BY v DESC LIMIT 2) AS x (n) ON TRUE": (
        lambda row: highest(row) or [(row[0], None)]
    ),
    "SELECT t.id, x.big, x.n FROM t, LATERAL "
    "(SELECT v > 4 AS big, COUNT(*) AS n FROM u WHERE u.k = t.k GROUP BY v > 4) AS x": lambda row: [
        (row[0], None if big is None else int(big), n)
        for big, n in Counter(None if v is None else v > 4 for _, _, v in partners(row)).items()
    ],
    "SELECT t.id, x.d FROM t CROSS JOIN LATERAL (SELECT DISTINCT u.v > 4 AS d FROM u WHERE u.k = t.k) AS x": (
        lambda row: [
            (row[0], None if d is None else int(d))
            for d in {None if v is None else v > 4 for _, _, v in partners(row)}
        ]
    ),
    "SELECT t.id, x.m FROM t, LATERAL (SELECT MAX(v) AS m FROM u WHERE u.k = t.k HAVING COUNT(*) < 3) AS x": (
        lambda row: [(row[0], max(values(partners(row)), default=None))] if len(partners(row)) < 3 else []
    ),
}
_GROUPS = {
    "SELECT k FROM t GROUP BY k HAVING SUM(v) > (SELECT MIN(v) FROM u)": [("a",), ("d",)],
    "SELECT k, SUM(v) - (SELECT MIN(v) FROM u) AS s FROM t WHERE k IN ('a', 'b') GROUP BY k": [
        ("a", 2),
        ("b", 0),
    ],
    "SELECT COUNT(*) AS n FROM t HAVING EXISTS (SELECT 1 FROM u WHERE v > 100)": [],
}


def check(query: str, expected: Iterable[tuple[Any, ...]]) -> None:
    inserted = [("+I", *row) for row in _T]
    changing: list[Any] = [("+I", *row) for row in (*_GONE, *_U)]
    changing += [("-D", *row) for row in _GONE]
    case = Case(
        (query,),
        {
            "t": Rows(tuple(inserted), _T, cuts=(3,), tells_end=True),
            "u": Rows(tuple(changing), _U, cuts=(2, 5, 8), tells_end=True),
        },
        parallelism=2,
        rescales=True,
    )
    t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    (changes,) = run_locally(job_of(t_env, case), case).results
    assert materialized(changes) == Counter(expected)


@pytest.mark.parametrize("query", _QUERIES)
def test_a_lateral_query_sees_the_outer_row(query):
    check(query, (found for row in _T for found in _QUERIES[query](row)))


@pytest.mark.parametrize("query", _GROUPS)
def test_a_value_of_a_query_may_stand_over_groups(query):
    check(query, _GROUPS[query])
