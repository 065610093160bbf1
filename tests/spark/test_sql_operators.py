"""Queries of several operators, over changelogs cut anywhere: the result is what Spark SQL says of what is left."""

from __future__ import annotations

import random

import pytest

from headrace.common.types import Row, RowKind
from headrace.table import EnvironmentSettings, StreamTableEnvironment
from headrace.table.expressions import col, row_interval
from headrace.table.window import Slide, Tumble
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import register_changelog, result_of, run_together, spark_result

pytestmark = pytest.mark.spark

#: Texts that mean the same in Flink's SQL and in Spark's.
JOINS = [
    f"SELECT l.id AS a, l.v AS b, r.id AS c, r.v AS d FROM t l {kind} JOIN u r ON l.k = r.k AND l.v < r.v"
    for kind in ("LEFT", "RIGHT", "FULL")
]
HALF_JOINS = [
    f"SELECT id, v FROM t WHERE {negation} EXISTS (SELECT 1 FROM u r WHERE r.k = t.k AND r.v < t.v)"
    for negation in ("", "NOT")
]
#: Values that come out as they are: no fractions that two engines round in their own ways.
VALUES = [
    "SELECT k, CAST(VAR_POP(DISTINCT v * 4.0) * 10000 AS BIGINT) AS s FROM t GROUP BY k",
    "SELECT id, EXISTS (SELECT 1 FROM u WHERE v = 2) AS some, EXISTS (SELECT 1 FROM u WHERE v > 9) AS none FROM t",
    "SELECT id, n FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM t) WHERE n BETWEEN 2 AND 3",
]
COUNTED = [f"SELECT k, v FROM t {kind} ALL SELECT k, v FROM u" for kind in ("INTERSECT", "EXCEPT")]


def changelog(seed: int) -> tuple[list[Row], list[tuple[object, ...]]]:
    """Some changes, and the rows that are left at their end."""
    rng = random.Random(seed)
    live: dict[int, tuple[object, ...]] = {}
    changes: list[Row] = []

    def row(number: int) -> tuple[object, ...]:
        return number, rng.choice(["a", "b", None]), rng.choice([0, 1, 2, None])

    for number in range(16):
        what = rng.choice(["insert", "insert", "update", "delete"])
        if what == "insert" or not live:
            live[number] = row(number)
            changes.append(Row(*live[number]))
            continue
        chosen = rng.choice(sorted(live))
        old = live.pop(chosen)
        if what == "delete":
            changes.append(Row.of_kind(RowKind.DELETE, *old))
        else:
            live[chosen] = row(chosen)
            changes.append(Row.of_kind(RowKind.UPDATE_BEFORE, *old))
            changes.append(Row.of_kind(RowKind.UPDATE_AFTER, *live[chosen]))
    return changes, list(live.values())


def check(env: EnvironmentFactory, queries: list[str], max_records: int) -> None:
    tables = {"t": changelog(1), "u": changelog(8)}
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=max_records))
    for name, (rows, _) in tables.items():
        register_changelog(t_env, name, rows)

    results = run_together(t_env, queries)

    expected = spark_result({name: left for name, (_, left) in tables.items()}, queries)
    for query, changes, rows in zip(queries, results, expected, strict=True):
        assert rows, f"an empty result shows nothing: {query}"
        assert result_of(changes) == rows, query


@pytest.mark.timeout(300)
def test_a_join_a_set_operation_exists_and_ranks_over_changelogs(env: EnvironmentFactory):
    check(env, [JOINS[2], COUNTED[1], *VALUES[1:]], max_records=16)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_joins_and_set_operations_over_changelogs(env: EnvironmentFactory):
    check(env, [*JOINS, *HALF_JOINS, *COUNTED, *VALUES], max_records=5)


def test_values_are_listed_over_a_changelog(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=2, max_records=2))
    rows = [Row(1, "a", 5), Row(2, "a", 7), Row(3, "b", None), Row(4, "a", 5)]
    register_changelog(t_env, "t", [*rows, Row.of_kind(RowKind.DELETE, 1, "a", 5), Row(5, "b", 1)])

    (changes,) = run_together(
        t_env,
        [
            "SELECT k, LISTAGG(CAST(v AS STRING), '-') AS l, LISTAGG(DISTINCT k) AS d, ARRAY_AGG(v) AS a, "
            "COLLECT(v) AS c, FIRST_VALUE(id) AS f, LAST_VALUE(id) AS g FROM t GROUP BY k"
        ],
    )

    last = {row[0]: list(row)[1:] for row in changes if row.get_row_kind() is not RowKind.UPDATE_BEFORE}
    assert last == {
        "a": ["7-5", "a", [7, 5], {7: 1, 5: 1}, 2, 4],
        "b": ["1", "b", [None, 1], {1: 1}, 3, 5],
    }


def test_values_are_listed_in_batch_mode(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(), EnvironmentSettings.in_batch_mode())
    rows = "(VALUES ('a', 5), ('a', CAST(NULL AS INT)), ('a', 5), ('b', CAST(NULL AS INT))) AS t(k, v)"
    query = (
        "SELECT k, LISTAGG(CAST(v AS STRING), '-') AS l, ARRAY_AGG(v) AS a, COLLECT(v) AS c, "
        f"ARRAY_AGG(v) FILTER (WHERE v > 9) AS n FROM {rows} GROUP BY k"
    )

    found = {row[0]: list(row)[1:] for row in t_env.execute_sql(query).collect()}

    assert found["a"][2] == {5: 2}
    assert sorted(found["a"][1], key=str) == [5, 5, None]
    assert found["a"][0] == "5-5"
    assert found["b"] == [None, [None], {}, None]
    assert found["a"][3] is None


def test_windows_count_rows(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=2))
    rows = "(VALUES ('a', 1), ('a', 2), ('b', 10), ('a', 3), ('a', 4), ('a', 5), ('b', 20)) AS t(k, v)"
    table = t_env.sql_query(f"SELECT k, v, PROCTIME() AS p FROM {rows}")
    found = []
    for window in (
        Tumble.over(row_interval(2)).on(col("p")).alias("w"),
        Slide.over(row_interval(3)).every(row_interval(1)).on(col("p")).alias("w"),
    ):
        grouped = table.window(window).group_by(col("w"), col("k"))
        with grouped.select(col("k"), col("v").sum, col("v").count).execute().collect() as changes:
            found.append(sorted(tuple(row) for row in changes))
    assert found == [
        [("a", 3, 2), ("a", 7, 2), ("b", 30, 2)],
        [("a", 6, 3), ("a", 9, 3), ("a", 12, 3)],
    ]
