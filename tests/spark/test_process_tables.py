"""Process table functions, changelogs as rows, and ON CONFLICT on Spark."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.common.types import Row, RowKind
from headrace.errors import HeadraceError
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.parity import process_functions as functions
from tests.spark.sql_support import register_changelog, run_together

pytestmark = pytest.mark.spark

_EVENTS = """
CREATE TABLE e (
  id BIGINT,
  k AS CASE MOD(id, 3) WHEN 0 THEN 'a' WHEN 1 THEN 'b' END,
  v AS id,
  ts AS TIMESTAMPADD(SECOND, CAST(id AS INT), TIMESTAMP '2025-01-01 00:00:00'),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '9'
)
"""


def make(env: EnvironmentFactory, **options: Any) -> StreamTableEnvironment:
    t_env = StreamTableEnvironment.create(env(**options))
    t_env.execute_sql(_EVENTS)
    for name in ("Greeting", "Counting", "Viewing", "Timers", "Pairing", "Totals", "Ordered", "Kinds"):
        t_env.create_temporary_function(name, getattr(functions, name))
    changes = [
        Row.of_kind(RowKind.INSERT, 1, "x", 5),
        Row.of_kind(RowKind.INSERT, 2, "x", 6),
        Row.of_kind(RowKind.DELETE, 1, "x", 5),
    ]
    register_changelog(t_env, "t", changes)
    return t_env


def second(number: int) -> datetime:
    return datetime.fromisoformat(f"2025-01-01T00:00:{number:02}")


@pytest.mark.timeout(300)
def test_functions_keep_state_set_timers_and_read_changelogs(env: EnvironmentFactory) -> None:
    t_env = make(env, parallelism=1, max_records=2)
    timers, back, views = run_together(
        t_env,
        [
            "SELECT k, what, n, rowtime FROM Timers(input => TABLE e PARTITION BY k, on_time => DESCRIPTOR(ts))",
            "SELECT op, v FROM TO_CHANGELOG(input => TABLE (SELECT id, k, v FROM FROM_CHANGELOG(TABLE (SELECT * FROM "
            "TO_CHANGELOG(TABLE t)))))",
            "SELECT k, elements FROM Viewing(TABLE e PARTITION BY k)",
        ],
    )
    of_b = [tuple(row)[1:] for row in timers if row[0] == "b"]
    # id 1, 4 and 7: their timers are at +1 s and, replaced each time, at +3 s.
    assert [row for row in of_b if row[0] == "row"] == [
        ("row", n, second(at)) for n, at in ((1, 1), (2, 4), (3, 7))
    ]
    assert [(what, time) for what, _, time in of_b if what == "timer null"] == [
        ("timer null", second(at)) for at in (2, 5, 8)
    ]
    assert ("timer ping", 3, second(10)) in of_b
    assert [tuple(row) for row in back] == [("INSERT", 5), ("INSERT", 6), ("DELETE", 5)]
    assert [tuple(row) for row in views][-3:] == [("b", "1;4;7"), (None, "2;5;8"), ("a", "3;6;9")]


@pytest.mark.timeout(300)
def test_conflicts_of_a_sink_are_resolved(env: EnvironmentFactory, tmp_path: Path) -> None:
    database = tmp_path / "found.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE firsts (k TEXT PRIMARY KEY, id BIGINT)")
    t_env = make(env, parallelism=1, max_records=4)
    t_env.execute_sql(
        "CREATE TABLE firsts (k STRING, id BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH "
        f"('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = 'firsts')"
    )
    query = "INSERT INTO firsts SELECT COALESCE(k, 'c'), id FROM e"
    t_env.execute_sql(f"{query} ON CONFLICT DO NOTHING").wait()
    with sqlite3.connect(database) as connection:
        assert sorted(connection.execute("SELECT * FROM firsts")) == [("a", 3), ("b", 1), ("c", 2)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_conflict_or_an_unknown_code_fails_the_job(env: EnvironmentFactory, tmp_path: Path) -> None:
    t_env = make(env, parallelism=1)
    database = tmp_path / "found.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE firsts (k TEXT PRIMARY KEY, id BIGINT)")
    t_env.execute_sql(
        "CREATE TABLE firsts (k STRING, id BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH "
        f"('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = 'firsts')"
    )
    with pytest.raises(HeadraceError, match="different rows have the primary key k = "):
        t_env.execute_sql("INSERT INTO firsts SELECT k, id FROM e WHERE k = 'b' ON CONFLICT DO ERROR").wait()
    with pytest.raises(
        HeadraceError, match=r"has the operation code ('[ab]'|NULL), which is not in op_mapping"
    ):
        run_together(t_env, ["SELECT id FROM FROM_CHANGELOG(TABLE e, DESCRIPTOR(k))"])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_all_kinds_of_calls_run_at_any_parallelism(env: EnvironmentFactory, parallelism: int) -> None:
    t_env = make(env, parallelism=parallelism, max_records=3)
    greetings, counts, pairs, totals, ordered, kinds = run_together(
        t_env,
        [
            "SELECT * FROM Greeting(TABLE e, 8)",
            "SELECT k, n FROM Counting(TABLE e PARTITION BY k)",
            "SELECT k, text FROM Pairing(TABLE e PARTITION BY k, TABLE e PARTITION BY k)",
            "SELECT * FROM Totals(TABLE e PARTITION BY k)",
            "SELECT k, ids FROM Ordered(TABLE e PARTITION BY k ORDER BY (ts, v DESC))",
            "SELECT * FROM Kinds(TABLE (SELECT k, COUNT(*) AS v FROM t GROUP BY k) PARTITION BY k)",
        ],
    )
    assert sorted(row[0] for row in greetings) == ["Hello a", "Hello null"]
    assert sorted(row[1] for row in counts) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert len(pairs) == 9
    left = [row for row in totals if row.get_row_kind() is RowKind.UPDATE_AFTER]
    assert max(row[1] for row in left) == 18
    assert ("b", "1;4;7;") in [tuple(row) for row in ordered]
    assert kinds[-1][1] in ("UPDATE_AFTER", "INSERT")
