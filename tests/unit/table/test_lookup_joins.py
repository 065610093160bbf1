"""Lookup joins: plans, hints, and what is refused at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import SqlValidationError
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table.udf import udf

AS_OF = "FOR SYSTEM_TIME AS OF l.proc"


@pytest.fixture
def t_env(tmp_path: Path) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.execute_sql(
        "CREATE TABLE l (k BIGINT, small INT, ts TIMESTAMP(3), proc AS PROCTIME(), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen')"
    )
    rest = f"WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/d.db', 'table-name' = 'd')"
    made.execute_sql(f"CREATE TABLE d (id BIGINT, name STRING, rate DOUBLE) {rest}")
    made.execute_sql(f"CREATE TABLE computed (id BIGINT, twice AS id * 2) {rest}")
    made.execute_sql(
        f"CREATE TABLE files (id BIGINT, name STRING) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv', 'lookup.cache' = 'PARTIAL', "
        f"'lookup.partial-cache.max-rows' = '5')"
    )
    return made


def test_the_key_is_what_columns_of_the_table_equal(t_env: TableEnvironment):
    plan = t_env.explain_sql(
        f"SELECT k, name FROM l LEFT JOIN d {AS_OF} AS e ON l.k = e.id AND e.name = 'x' WHERE small > 1"
    )
    assert "LookupJoin(lookup=[lookup of d(k, CAST('x' AS STRING))], joinType=[LEFT]" in plan
    inner = t_env.explain_sql(f"SELECT k, name FROM l JOIN d {AS_OF} ON l.k = d.id AND d.rate > l.small")
    assert "joinType=[INNER]" in inner
    assert "where=[(rate > CAST(small AS DOUBLE))]" in inner


def test_columns_of_the_table_are_computed_of_what_is_found(t_env: TableEnvironment):
    inner = t_env.explain_sql(
        f"SELECT k, d.twice FROM l JOIN computed {AS_OF} AS d ON l.k = d.id AND d.twice > 2"
    )
    assert "LookupJoin(lookup=[lookup of computed(k)], joinType=[INNER]" in inner
    assert "(id * CAST(2 AS BIGINT)) > CAST(2 AS BIGINT)" in inner
    left = t_env.explain_sql(f"SELECT k, d.* FROM l LEFT JOIN computed {AS_OF} AS d ON l.k = d.id")
    assert "IS NOT NULL" in left


def test_conditions_of_a_left_join_decide_what_is_looked_up_and_what_is_found(t_env: TableEnvironment):
    plan = t_env.explain_sql(
        f"SELECT k, d.id FROM l LEFT JOIN computed {AS_OF} AS d ON l.k = d.id AND d.twice > l.small AND l.small > 1"
    )
    assert "lookup=[lookup of computed(CASE((small > 1), k, null))], joinType=[LEFT]" in plan
    assert "joinCondition=[((id * CAST(2 AS BIGINT)) > CAST(small AS BIGINT))]" in plan


def test_a_python_function_of_what_is_found_is_refused_in_a_left_join(t_env: TableEnvironment):
    t_env.create_temporary_function("is_odd", udf(lambda n: n % 2 == 1, result_type="BOOLEAN"))
    with pytest.raises(SqlValidationError, match="a Python function of columns of the looked-up table"):
        t_env.explain_sql(f"SELECT k FROM l LEFT JOIN d {AS_OF} ON l.k = d.id AND is_odd(d.id)")
    assert "is_odd" in t_env.explain_sql(f"SELECT k FROM l LEFT JOIN d {AS_OF} ON l.k = d.id AND is_odd(l.k)")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (f"JOIN d {AS_OF} ON l.k > d.id", "a lookup join needs an equality with a column"),
        (f"CROSS JOIN d {AS_OF}", "a lookup join needs an equality with a column"),
        ("JOIN d FOR SYSTEM_TIME AS OF l.k ON l.k = d.id", "needs a time attribute of the left side"),
        ("JOIN d FOR SYSTEM_TIME AS OF l.ts ON l.k = d.id", "primary key|version"),
        (f"RIGHT JOIN d {AS_OF} ON l.k = d.id", "RIGHT JOIN with FOR SYSTEM_TIME AS OF is not valid"),
        (f"JOIN computed {AS_OF} AS d ON l.k = d.twice", "a lookup join needs an equality with a column"),
        (f"JOIN files {AS_OF} AS d ON l.k = d.id", "files are looked up as a whole, not by key"),
        (f"JOIN g {AS_OF} AS d ON l.k = d.id", "cannot be looked up in a table with 'connector' = 'datagen'"),
    ],
)
def test_a_wrong_lookup_is_refused_at_its_place(t_env: TableEnvironment, rest: str, message: str):
    t_env.execute_sql("CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen')")
    with pytest.raises(SqlValidationError, match=message) as refused:
        t_env.explain_sql(f"SELECT l.k FROM l {rest}")
    assert refused.value.line == 1


def test_a_column_is_not_cast_to_be_a_key(t_env: TableEnvironment):
    t_env.execute_sql("CREATE VIEW w AS SELECT CAST(k AS DECIMAL(20, 0)) AS k, PROCTIME() AS proc FROM l")
    with pytest.raises(
        SqlValidationError, match="must be of the type of its column: BIGINT, not DECIMAL"
    ) as wrong:
        t_env.explain_sql("SELECT w.k FROM w JOIN d FOR SYSTEM_TIME AS OF w.proc ON w.k = d.id")
    assert wrong.value.hint == "CAST(left_column AS BIGINT)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("'tabel' = 'd'", "the hint LOOKUP has no option 'tabel'"),
        ("'async' = 'true'", "the hint LOOKUP does not name a table"),
        ("'table' = 'x'", "the hint LOOKUP names 'x', in which this SELECT looks nothing up"),
        ("'table' = 'd', 'async' = 'maybe'", "'async' is true or false, not 'maybe'"),
        ("'table' = 'd', 'fixed-delay' = '1s'", "'fixed-delay' needs 'retry-predicate'"),
        ("'table' = 'd', 'retry-predicate' = 'lookup_miss'", "retries need 'fixed-delay' and 'max-attempts'"),
    ],
)
def test_a_wrong_hint_is_refused(t_env: TableEnvironment, options: str, message: str):
    with pytest.raises(SqlValidationError, match=message):
        t_env.explain_sql(f"SELECT /*+ LOOKUP({options}) */ l.k FROM l JOIN d {AS_OF} ON l.k = d.id")
