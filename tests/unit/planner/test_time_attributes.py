"""Time attributes after joins: what Flink 2.3 says of the same statements, except where a comment says otherwise."""

from __future__ import annotations

import pytest

from headrace.errors import SqlValidationError
from headrace.table import EnvironmentSettings, TableEnvironment

MINUTE = "INTERVAL '1' MINUTE"
#: A join whose rows have the time attributes of `a`.
REGULAR = "SELECT a.k, a.v, a.ts, a.pt FROM a JOIN b ON a.k = b.k"


def environment(*, is_batch: bool = False) -> TableEnvironment:
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    bounded = ", 'number-of-rows' = '5'" if is_batch else ""
    for name in "ab":
        t_env.execute_sql(
            f"CREATE TABLE {name} (k INT, v INT, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) "
            f"WITH ('connector' = 'datagen'{bounded})"
        )
    t_env.execute_sql(f"CREATE TEMPORARY VIEW j AS {REGULAR}")
    return t_env


@pytest.fixture(scope="module")
def streaming() -> TableEnvironment:
    return environment()


def tumbled(name: str) -> str:
    return f"(SELECT * FROM TABLE(TUMBLE(TABLE {name}, DESCRIPTOR(ts), {MINUTE})))"


def counted(query: str, time: str = "ts") -> str:
    return f"SELECT COUNT(*) FROM ({query}) GROUP BY TUMBLE({time}, {MINUTE})"


def counted_by_function(table: str, time: str = "ts") -> str:
    windows = f"TABLE(TUMBLE({table}, DESCRIPTOR({time}), {MINUTE}))"
    return f"SELECT window_start, COUNT(*) FROM {windows} GROUP BY window_start, window_end"


def physical(t_env: TableEnvironment, query: str) -> str:
    """Return the plan that is run."""
    return t_env.explain_sql(query).split("== Optimized Physical Plan ==")[1]


# --- windows over joins ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (counted_by_function("TABLE j"), "ts"),
        (counted_by_function("TABLE j", "pt"), "pt"),
        # Flink accepts windows of GROUP BY here, and drops what the join emits behind the watermark.
        (counted("SELECT * FROM j"), "ts"),
        (counted("SELECT * FROM j", "pt"), "pt"),
        (counted("SELECT a.k, a.ts FROM a LEFT JOIN b ON a.k = b.k"), "ts"),
        (counted("SELECT k, ts FROM a WHERE k IN (SELECT k FROM b)"), "ts"),
        (counted("SELECT k, ts FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"), "ts"),
        (counted("SELECT a.ts FROM a, (SELECT MAX(v) AS m FROM b)"), "ts"),
        (counted(f"SELECT a.ts FROM a JOIN b ON a.k = b.k AND a.ts > b.ts - {MINUTE}"), "ts"),
        (counted("SELECT ts FROM (SELECT * FROM j UNION ALL SELECT * FROM a)"), "ts"),
    ],
)
def test_a_window_over_a_regular_join_is_refused_where_its_time_is_named(
    streaming: TableEnvironment, query: str, named: str
):
    with pytest.raises(SqlValidationError, match="a window needs a time attribute") as caught:
        streaming.explain_sql(query)
    error = caught.value
    assert error.sql is not None
    assert error.line is not None
    assert error.column is not None
    assert error.sql.splitlines()[error.line - 1][error.column - 1 :].startswith(named)
    assert "before the join" in str(error.hint)


def test_the_order_of_time_ends_at_a_regular_join_too(streaming: TableEnvironment):
    with pytest.raises(SqlValidationError, match="ORDER BY without LIMIT"):
        streaming.explain_sql("SELECT k, ts FROM j ORDER BY ts")
    first = (
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM {}) WHERE n = 1"
    )
    assert "Deduplicate" in physical(streaming, first.format("a"))
    assert "Deduplicate" not in physical(streaming, first.format("j"))
    assert "Rank" in physical(streaming, first.format("j"))


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT L.window_start, L.window_end, COUNT(*) FROM {tumbled('a')} L JOIN b ON L.k = b.k "
        "GROUP BY L.window_start, L.window_end",
        f"SELECT window_start, window_end, COUNT(*) FROM {tumbled('a')} WHERE k IN (SELECT k FROM b) "
        "GROUP BY window_start, window_end",
        f"SELECT L.window_start, L.window_end, COUNT(*) FROM {tumbled('a')} L JOIN {tumbled('b')} R "
        "ON L.k = R.k AND L.window_start = R.window_start GROUP BY L.window_start, L.window_end",
    ],
)
def test_rows_of_windows_are_grouped_as_others_after_a_regular_join(streaming: TableEnvironment, query: str):
    plan = physical(streaming, query)
    assert "GroupAggregate" in plan
    assert "WindowAggregate" not in plan


WINDOW_JOIN = (
    f"SELECT L.k, L.window_start, L.window_end, L.window_time FROM {tumbled('a')} L, {tumbled('b')} R "
    "WHERE L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end"
)


def test_a_window_join_keeps_time_attributes_wherever_its_condition_is(streaming: TableEnvironment):
    grouped = (
        f"SELECT window_start, window_end, COUNT(*) FROM ({WINDOW_JOIN}) GROUP BY window_start, window_end"
    )
    assert "WindowAggregate" in physical(streaming, grouped)
    plan = physical(streaming, counted(WINDOW_JOIN, "window_time"))
    assert "WindowJoin" in plan
    assert "WindowAggregate" in plan


# --- interval joins -------------------------------------------------------------------------------

INTERVAL_JOINS = [
    f"a.k = b.k AND a.ts BETWEEN b.ts - {MINUTE} AND b.ts",
    f"a.ts BETWEEN b.ts - {MINUTE} AND b.ts",
    "a.k = b.k AND a.ts = b.ts",
    f"a.k = b.k AND a.ts >= b.ts - {MINUTE} AND a.ts < b.ts + {MINUTE}",
    f"a.k = b.k AND a.ts - {MINUTE} < b.ts AND b.ts < a.ts + {MINUTE}",
    f"a.k = b.k AND CAST(a.ts AS TIMESTAMP(3)) BETWEEN CAST(b.ts AS TIMESTAMP(3)) - {MINUTE} AND b.ts",
    f"a.k = b.k AND a.pt BETWEEN b.pt - {MINUTE} AND b.pt",
]
REGULAR_JOINS = [
    f"a.k = b.k AND a.ts > b.ts - {MINUTE}",
    "a.k = b.k AND a.ts < b.ts",
    "a.k = b.k AND a.v BETWEEN b.v - 1 AND b.v + 1",
    f"a.k = b.k AND a.ts BETWEEN b.pt - {MINUTE} AND b.pt",
    "a.k = b.k AND TIMESTAMPDIFF(MINUTE, a.ts, b.ts) BETWEEN 0 AND 5",
    f"a.k = b.k AND (a.ts BETWEEN b.ts - {MINUTE} AND b.ts OR a.v = b.v)",
    "a.k = b.k AND a.ts > TIMESTAMP '2020-01-01 00:00:00' AND b.ts < TIMESTAMP '2021-01-01 00:00:00'",
]


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
@pytest.mark.parametrize("condition", INTERVAL_JOINS)
def test_a_join_of_rows_that_are_near_each_other_is_an_interval_join(
    streaming: TableEnvironment, condition: str, kind: str
):
    assert "IntervalJoin(" in physical(streaming, f"SELECT a.k, b.v FROM a {kind} b ON {condition}")


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        (f"a.ts BETWEEN b.ts - {MINUTE} AND b.ts", "leftLowerBound=-60000, leftUpperBound=0"),
        (f"a.ts >= b.ts AND a.ts < b.ts + {MINUTE}", "leftLowerBound=0, leftUpperBound=59999"),
        (
            f"b.ts > a.ts AND b.ts + {MINUTE} <= a.ts + {MINUTE} + {MINUTE}",
            "leftLowerBound=-60000, leftUpperBound=-1",
        ),
        ("a.ts = b.ts", "leftLowerBound=0, leftUpperBound=0"),
        (f"a.ts BETWEEN b.ts AND b.ts + {MINUTE} AND a.ts > b.ts", "leftLowerBound=1, leftUpperBound=60000"),
        ("TIMESTAMPADD(HOUR, 1, a.ts) >= b.ts AND a.ts <= b.ts", "leftLowerBound=-3600000, leftUpperBound=0"),
    ],
)
def test_the_bounds_of_an_interval(streaming: TableEnvironment, condition: str, bounds: str):
    assert bounds in physical(streaming, f"SELECT a.k FROM a, b WHERE a.k = b.k AND {condition}")


def test_an_interval_join_of_the_table_api(streaming: TableEnvironment):
    from headrace.table.expressions import col, lit

    left = streaming.from_path("a").select(col("k"), col("ts"))
    right = streaming.from_path("b").select(col("k").alias("rk"), col("ts").alias("rts"))
    joined = left.join(right).where(
        (col("k") == col("rk")) & (col("ts") >= col("rts") - lit(1).minutes) & (col("ts") <= col("rts"))
    )
    assert "IntervalJoin(" in joined.explain()


@pytest.mark.parametrize(
    "query",
    [
        *(f"SELECT a.k, b.v FROM a JOIN b ON {condition}" for condition in REGULAR_JOINS),
        f"SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND a.ts BETWEEN b.ts - {MINUTE} AND b.ts)",
        f"SELECT a.k FROM a JOIN (SELECT k, MAX(ts) AS m FROM b GROUP BY k) AS b ON a.k = b.k "
        f"AND a.ts BETWEEN b.m - {MINUTE} AND b.m",
        f"SELECT a.k FROM a JOIN (SELECT k, CAST(ts AS TIMESTAMP(3)) AS ts FROM b) AS b ON a.k = b.k "
        f"AND a.ts BETWEEN b.ts - {MINUTE} AND b.ts",
        f"SELECT j.k FROM j JOIN b ON j.k = b.k AND j.ts BETWEEN b.ts - {MINUTE} AND b.ts",
        "SELECT k, ts FROM a INTERSECT SELECT k, ts FROM b",
    ],
)
def test_joins_that_are_not_interval_joins_are_regular_ones(streaming: TableEnvironment, query: str):
    assert "Join(" in physical(streaming, query)


@pytest.mark.parametrize(
    "query",
    [
        *(f"SELECT a.k, b.v FROM a JOIN b ON {condition}" for condition in INTERVAL_JOINS),
        counted_by_function("TABLE j"),
        counted(f"SELECT a.k, a.ts FROM a JOIN b ON {INTERVAL_JOINS[0]}"),
    ],
)
def test_batch_mode_has_all_of_them(query: str):
    assert "Join" in environment(is_batch=True).explain_sql(query)


def test_a_window_over_an_interval_join_has_a_time(streaming: TableEnvironment):
    plan = physical(streaming, counted(f"SELECT a.k, a.ts FROM a JOIN b ON {INTERVAL_JOINS[0]}"))
    assert "IntervalJoin(" in plan
    assert "WindowAggregate(" in plan
