"""Streams and tables in one program in BATCH mode, and tables that BATCH mode reads in several epochs."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from headrace.common.types import RowKind
from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.support import run, run_and_gather
from tests.spark.test_bridge import (
    EVENT,
    EVENTS,
    WithTime,
    numbered,
    timed,
    windowed,
    windows_of,
    without_window_time,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

#: Its window is long over, for a stream.
LATE = ("k0", 7, 9000)


def batch(env: EnvironmentFactory, max_records: int) -> StreamTableEnvironment:
    return StreamTableEnvironment.create(env(2, max_records=max_records), EnvironmentSettings.in_batch_mode())


def test_windows_of_a_stream_are_emitted_once_all_rows_have_arrived(env: EnvironmentFactory):
    t_env = batch(env, max_records=len(EVENTS) // 3)
    events = [*EVENTS, LATE]
    source = timed(t_env._env.from_collection(events, EVENT))
    outcome = run(windowed(t_env, source).process(WithTime()))
    in_order = sorted(events, key=lambda event: event[2])  # as keyed functions see them in BATCH mode
    assert Counter(map(without_window_time, outcome.rows)) == windows_of(numbered(in_order))
    assert len(outcome.epochs) >= 3


def test_a_stream_is_joined_with_files_and_goes_back_as_final_rows(env: EnvironmentFactory, tmp_path: Path):
    (tmp_path / "names.csv").write_text("k0,ann\nk1,bob\nk9,eve\n")
    t_env = batch(env, max_records=20)
    t_env.create_temporary_view("events", t_env._env.from_collection(EVENTS, EVENT))
    t_env.execute_sql(
        "CREATE TABLE names (k STRING, name STRING) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )
    totals = t_env.sql_query(
        "SELECT n.name, COUNT(e.k) AS n, SUM(e.v) AS total FROM names n LEFT JOIN events e ON n.k = e.k GROUP BY n.name"
    )
    changes = t_env.to_changelog_stream(totals)
    nobody = t_env.to_data_stream(t_env.sql_query("SELECT COUNT(*) AS n FROM events WHERE k = 'nobody'"))
    rows, counts = run_and_gather(t_env._env, changes, nobody)

    sums: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for k, v, _ in EVENTS:
        sums[k] += v
        seen[k] += 1
    assert sorted(tuple(row) for row in rows) == [
        ("ann", seen["k0"], sums["k0"]),
        ("bob", seen["k1"], sums["k1"]),
        ("eve", 0, None),
    ]
    assert {row.get_row_kind() for row in rows} == {RowKind.INSERT}
    assert [tuple(row) for row in counts] == [(0,)], "said once, and not in every epoch"


def test_a_query_over_a_table_of_a_stream_may_ask_for_what_streams_have_not(env: EnvironmentFactory):
    t_env = batch(env, max_records=20)
    t_env.create_temporary_view("events", timed(t_env._env.from_collection(EVENTS, EVENT)))
    query = (
        "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s, ts FROM events ORDER BY ts DESC LIMIT 3"
    )
    with t_env.execute_sql(query).collect() as found:
        rows = [tuple(row) for row in found]

    expected = []
    for k, v, ts in sorted(EVENTS, key=lambda event: -event[2])[:3]:
        expected.append((k, v, sum(other[1] for other in EVENTS if other[0] == k and other[2] <= ts), ts))
    assert rows == expected


def test_a_table_that_takes_several_epochs_is_read_whole(env: EnvironmentFactory, tmp_path: Path):
    database = tmp_path / "orders.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, at TIMESTAMP, note TEXT)")
        rows = [(number, f"2024-01-01 00:00:{number:02}", None) for number in range(11)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    t_env = batch(env, max_records=4)
    t_env.execute_sql(
        "CREATE TABLE orders (id BIGINT, `at` TIMESTAMP(3), note STRING, PRIMARY KEY (id) NOT ENFORCED) WITH "
        f"('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = 'orders')"
    )
    query = (
        "SELECT COUNT(*) AS n, SUM(id) AS s, MAX(`at`) AS m, COUNT(note) AS c FROM "
        "(SELECT * FROM orders UNION ALL SELECT 100, TIMESTAMP '2023-01-01 00:00:00', 'x')"
    )
    with t_env.execute_sql(query).collect() as found:
        assert [tuple(row) for row in found] == [(12, 155, datetime.fromisoformat("2024-01-01 00:00:10"), 1)]
