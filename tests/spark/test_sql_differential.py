"""Random queries over random changelogs: the streaming result is what Spark SQL says of the final input.

Each example is one job with several queries over two tables whose rows are inserted, updated and deleted in any
order, and cut into epochs anywhere. The queries are texts that mean the same in Flink's SQL and in Spark's.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.common.types import Row, RowKind
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import register_changelog, result_of, run_together, spark_result

pytestmark = pytest.mark.spark

# --- changelogs -----------------------------------------------------------------------------------

VALUES = st.tuples(
    st.one_of(st.none(), st.sampled_from(["a", "b", "c"])), st.one_of(st.none(), st.integers(-3, 9))
)


@st.composite
def changelogs(draw: st.DrawFn) -> tuple[list[Row], list[tuple[object, ...]]]:
    """A changelog, and the rows that are left at its end."""
    live: dict[int, tuple[object, ...]] = {}
    changes: list[Row] = []
    for _ in range(draw(st.integers(1, 8))):
        what = draw(st.sampled_from(["insert", "insert", "update", "delete"]))
        if what == "insert" or not live:
            number = len(changes)
            live[number] = (number, *draw(VALUES))
            changes.append(Row(*live[number]))
            continue
        number = draw(st.sampled_from(sorted(live)))
        old = live.pop(number)
        if what == "delete":
            changes.append(Row.of_kind(RowKind.DELETE, *old))
        else:
            live[number] = (number, *draw(VALUES))
            changes.append(Row.of_kind(RowKind.UPDATE_BEFORE, *old))
            changes.append(Row.of_kind(RowKind.UPDATE_AFTER, *live[number]))
    return changes, list(live.values())


# --- queries --------------------------------------------------------------------------------------

CONDITIONS = st.sampled_from(["v > 2", "k <> 'b'", "v IS NOT NULL", "k = 'a' OR v < 0", "v BETWEEN 0 AND 5"])
AGGREGATES = st.sampled_from(
    [
        "COUNT(*)",
        "COUNT(v)",
        "COUNT(DISTINCT v)",
        "SUM(v)",
        "MIN(v)",
        "MAX(v)",
        "SUM(v) FILTER (WHERE v > 1)",
        "MAX(k)",
    ]
)
TABLES = st.sampled_from(["t", "u"])


@st.composite
def sources(draw: st.DrawFn) -> str:
    """A table, or some of its rows, with the columns id, k and v."""
    name = draw(TABLES)
    if draw(st.booleans()):
        return f"(SELECT id, k, v FROM {name} WHERE {draw(CONDITIONS)}) s"
    return f"{name} s"


@st.composite
def projections(draw: st.DrawFn) -> str:
    return f"SELECT k, COALESCE(v, 0) + 1 AS w FROM {draw(sources())} WHERE {draw(CONDITIONS)}"


@st.composite
def groupings(draw: st.DrawFn) -> str:
    calls = draw(st.lists(AGGREGATES, min_size=1, max_size=3))
    results = ", ".join(f"{call} AS r{at}" for at, call in enumerate(calls))
    query = f"SELECT k, {results} FROM {draw(sources())} GROUP BY k"
    match draw(st.sampled_from(["plain", "having", "nested"])):
        case "having":
            return f"{query} HAVING COUNT(*) > 1"
        case "nested":
            return f"SELECT r0, COUNT(*) AS n, COUNT(DISTINCT k) AS m FROM ({query}) GROUP BY r0"
        case _:
            return query


@st.composite
def distincts(draw: st.DrawFn) -> str:
    return f"SELECT DISTINCT {draw(st.sampled_from(['k', 'v', 'k, v']))} FROM {draw(sources())}"


@st.composite
def unions(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["UNION ALL", "UNION"]))
    return f"SELECT k, v FROM {draw(sources())} {kind} SELECT k, v FROM {draw(sources())}"


@st.composite
def set_operations(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["INTERSECT", "EXCEPT"]))
    return f"SELECT k, v FROM {draw(sources())} {kind} SELECT k, v FROM {draw(sources())}"


@st.composite
def half_joins(draw: st.DrawFn) -> str:
    negation = draw(st.sampled_from(["", "NOT "]))
    inner = f"SELECT 1 FROM {draw(TABLES)} r WHERE r.k = s.k"
    return f"SELECT id, k FROM {draw(sources())} WHERE {negation}EXISTS ({inner})"


@st.composite
def top_ns(draw: st.DrawFn) -> str:
    order = draw(st.sampled_from(["v, id", "v DESC, id", "id DESC"]))
    number = draw(st.sampled_from(["", ", n"]))
    limit = draw(st.sampled_from(["n <= 2", "n = 1", "n > 1 AND n <= 3"]))
    numbered = (
        f"SELECT id, k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS n FROM {draw(sources())}"
    )
    return f"SELECT id, k{number} FROM ({numbered}) x WHERE {limit}"


@st.composite
def cubes(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["ROLLUP", "CUBE"]))
    return f"SELECT k, v, COUNT(*) AS n, SUM(id) AS m FROM {draw(sources())} GROUP BY {kind}(k, v)"


@st.composite
def joins(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]))
    left, right = draw(sources()).replace(") s", ") l").replace(" s", " l"), draw(sources())
    right = right.replace(") s", ") r").replace(" s", " r")
    return f"SELECT l.id AS a, l.k AS b, r.id AS c, r.v AS d FROM {left} {kind} {right} ON l.k = r.k"


KINDS = [projections, groupings, distincts, unions, joins, set_operations, half_joins, top_ns, cubes]
QUERIES = st.lists(st.one_of(*(kind() for kind in KINDS)), min_size=3, max_size=3)


def check(
    env: EnvironmentFactory,
    changes: dict[str, tuple[list[Row], list[tuple[object, ...]]]],
    queries: list[str],
    max_records: int,
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=2, max_records=max_records))
    for name, (rows, _) in changes.items():
        register_changelog(t_env, name, rows)

    results = run_together(t_env, queries)

    expected = spark_result({name: left for name, (_, left) in changes.items()}, queries)
    for query, changelog, rows in zip(queries, results, expected, strict=True):
        assert result_of(changelog) == rows, query


@pytest.mark.timeout(300)
@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    # Shrinking runs many jobs: that is for the slow test.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(t=changelogs(), u=changelogs(), queries=QUERIES, max_records=st.integers(2, 8))
def test_the_streaming_result_is_what_spark_sql_says_of_the_final_input(env, t, u, queries, max_records):
    check(env, {"t": t, "u": u}, queries, max_records)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(t=changelogs(), u=changelogs(), queries=QUERIES, max_records=st.integers(2, 8))
def test_many_random_queries_over_many_random_changelogs(env, t, u, queries, max_records):
    check(env, {"t": t, "u": u}, queries, max_records)
