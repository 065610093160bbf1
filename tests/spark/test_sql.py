"""Statements end to end on Spark: from text to rows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path

import pytest

from headrace.common.types import Row, RowKind
from headrace.errors import JobExecutionError
from headrace.table import DataTypes, EnvironmentSettings, StreamTableEnvironment
from headrace.table.expressions import col
from headrace.table.udf import udf
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import result_of, run_together

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

BIDS = """
    CREATE TABLE bids (
      id BIGINT,
      bidder AS MOD(id, 3),
      ts AS TIMESTAMPADD(SECOND, CAST(id AS INT), TIMESTAMP '2024-01-01 00:00:00.000'),
      WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
    ) WITH (
      'connector' = 'datagen',
      'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '23'
    )
"""


@udf(result_type=DataTypes.STRING())
def shout(word):
    return word.upper() + "!"


@udf(result_type=DataTypes.BIGINT(), func_type="pandas")
def double(numbers):
    return numbers * 2


def test_queries_of_one_job_give_what_their_text_says(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(max_records=14))
    t_env.execute_sql(BIDS)
    t_env.create_temporary_view(
        "names", t_env.from_elements([(0, "ann"), (1, "bob"), (7, "eve")], ["id", "name"])
    )
    t_env.create_temporary_function("shout", shout)
    t_env.create_temporary_function("double", double)

    window, counts, late, outer, called = (
        result_of(changelog)
        for changelog in run_together(
            t_env,
            [
                "SELECT CAST(window_start AS STRING), COUNT(*) FROM "
                "TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end",
                "SELECT bidder, COUNT(*), AVG(id), SUM(id) FILTER (WHERE id > 20) FROM bids GROUP BY bidder",
                "SELECT COUNT(*), MAX(id) FROM bids WHERE id > 20",  # of which the first epoch has none
                "SELECT n.name, b.total FROM names n LEFT JOIN "
                "(SELECT bidder, SUM(id) AS total FROM bids GROUP BY bidder) b ON n.id = b.bidder",
                "SELECT shout(name), double(id) FROM names WHERE shout(name) <> 'BOB!'",
            ],
        )
    )

    assert window == {
        ("2024-01-01 00:00:00.000", 10): 1,
        ("2024-01-01 00:00:10.000", 10): 1,
        ("2024-01-01 00:00:20.000", 4): 1,
    }
    # AVG of whole numbers has no fraction: 10.5, 11.5 and 12.5 are cut.
    assert counts == {(0, 8, 10, 21): 1, (1, 8, 11, 22): 1, (2, 8, 12, 23): 1}
    assert late == {(3, 23): 1}
    assert outer == {("ann", 84): 1, ("bob", 92): 1, ("eve", None): 1}
    assert called == {("ANN!", 0): 1, ("EVE!", 14): 1}


def test_a_changelog_has_the_row_before_and_after_an_update(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=2))
    words = t_env.from_elements([("a",), ("b",), ("a",)], ["word"])

    rows = list(t_env.sql_query(f"SELECT word, COUNT(*) AS n FROM {words} GROUP BY word").execute().collect())

    assert rows[:2] == [Row("a", 1), Row("b", 1)]
    assert rows[2:] == [
        Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1),
        Row.of_kind(RowKind.UPDATE_AFTER, "a", 2),
    ]
    assert rows[0].n == 1


def test_windows_of_processing_time_grow_step_by_step(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.execute_sql(
        "CREATE TABLE ticks (id BIGINT, pt AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
    )
    query = (
        "SELECT window_start, window_end, COUNT(*) AS n FROM "
        "CUMULATE(TABLE ticks, DESCRIPTOR(pt), INTERVAL '0.5' SECONDS, INTERVAL '1.5' SECONDS) "
        "GROUP BY window_start, window_end"
    )
    with t_env.execute_sql(query).collect() as found:
        rows = list(islice(found, 4))

    step, size = timedelta(milliseconds=500), timedelta(milliseconds=1500)
    for row in rows:
        assert row.window_end - row.window_start in (step, 2 * step, size)
        assert (row.window_start - datetime.fromisoformat("1970-01-01")) % size == timedelta(0)
        assert row.n > 0
    for one, other in pairwise(rows):
        assert one.window_end < other.window_end
        assert one.window_start != other.window_start or one.n <= other.n


def test_rows_of_an_epoch_are_sorted_behind_their_processing_time(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=2))
    words = t_env.from_elements([(word,) for word in "fcadbe"], ["word"])
    query = f"SELECT word FROM (SELECT word, PROCTIME() AS pt FROM {words}) ORDER BY pt, word DESC"
    with t_env.execute_sql(query).collect() as found:
        assert [row[0] for row in found] == list("fedcba")


def test_a_key_that_is_filtered_out_goes_from_a_table_with_keys(env: EnvironmentFactory, tmp_path: Path):
    database = tmp_path / "counts.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, n INTEGER)")
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=2))
    words = t_env.from_elements([("a",), ("b",), ("a",), ("c",), ("a",)], ["word"])
    t_env.execute_sql(
        "CREATE TABLE counts (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH "
        f"('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = 'counts')"
    )

    t_env.execute_sql(
        f"INSERT INTO counts SELECT word, COUNT(*) FROM {words} GROUP BY word HAVING COUNT(*) < 3"
    ).wait()

    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT * FROM counts ORDER BY word").fetchall() == [("b", 1), ("c", 1)]


@pytest.mark.parametrize(
    "settings", [EnvironmentSettings.in_streaming_mode(), EnvironmentSettings.in_batch_mode()]
)
def test_conditions_of_a_lookup_join_pad_rows_only_if_it_is_a_left_join(
    env: EnvironmentFactory, tmp_path: Path, settings: EnvironmentSettings
):
    database = tmp_path / "users.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE users (id INTEGER, name TEXT, rank INTEGER)")
        rows = [(0, "a", 1), (0, "b", 5), (1, "c", 0), (2, "d", 9)]
        connection.executemany("INSERT INTO users VALUES (?, ?, ?)", rows)
    t_env = StreamTableEnvironment.create(env(parallelism=1), settings)
    t_env.execute_sql(
        "CREATE TABLE clicks (n BIGINT, proc AS PROCTIME()) WITH ('connector' = 'datagen', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '3')"
    )
    t_env.execute_sql(
        "CREATE TABLE users (id BIGINT, name STRING, `rank` INT, twice AS `rank` * 2) WITH "
        f"('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = 'users')"
    )
    joined = (
        "SELECT c.n, u.name, u.twice FROM clicks c {} JOIN users FOR SYSTEM_TIME AS OF c.proc AS u "
        "ON c.n = u.id AND u.twice > c.n AND c.n < 2"
    )

    with t_env.execute_sql(joined.format("LEFT")).collect() as found:
        left = {tuple(row) for row in found}
    with t_env.execute_sql(joined.format("INNER")).collect() as found:
        inner = {tuple(row) for row in found}

    assert inner == {(0, "a", 2), (0, "b", 10)}
    assert left == {*inner, (1, None, None), (2, None, None), (3, None, None)}


@pytest.mark.parametrize(
    "settings", [EnvironmentSettings.in_streaming_mode(), EnvironmentSettings.in_batch_mode()]
)
def test_collections_of_all_kinds_are_unnested(env: EnvironmentFactory, settings: EnvironmentSettings):
    t_env = StreamTableEnvironment.create(env(parallelism=1), settings)
    query = """
        SELECT CAST(b AS STRING), n FROM (SELECT COLLECT(w) AS bag FROM (VALUES ('a'), ('b'), ('a')) v(w)) c
        CROSS JOIN UNNEST(c.bag) WITH ORDINALITY AS u(b, n)
        UNION ALL
        SELECT r.w, p FROM (VALUES (1)) v(x)
        CROSS JOIN UNNEST(ARRAY[ROW('x', 5), ROW('y', 6)]) WITH ORDINALITY AS r(w, n, p)
        UNION ALL
        SELECT k, v + p FROM (VALUES (1)) v(x) CROSS JOIN UNNEST(MAP['m', 10]) WITH ORDINALITY AS m(k, v, p)
    """
    with t_env.execute_sql(query).collect() as found:
        rows = sorted((word, number) for word, number in result_of(found))
    words = [word for word, _ in rows]
    assert words == ["a", "a", "b", "m", "x", "y"]
    assert [number for word, number in rows if word in "mxy"] == [11, 1, 2]
    assert sorted(number for word, number in rows if word in "ab") == [1, 2, 3]


def test_values_of_all_types_are_made_up(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    t_env.execute_sql("""
        CREATE TABLE made (
          a ARRAY<INT>, m MAP<STRING, INT>, s MULTISET<BOOLEAN>, r ROW<x INT, y STRING>,
          b BINARY(4), v VARBINARY(3), t TIME
        ) WITH ('connector' = 'datagen', 'number-of-rows' = '2', 'fields.m.key.length' = '2', 'fields.v.length' = '3')
    """)
    with t_env.execute_sql("SELECT * FROM made").collect() as found:
        rows = list(found)
    assert len(rows) == 2
    for row in rows:
        assert len(row.a) == 3
        assert 0 < len(row.m) <= 3
        assert all(len(key) == 2 for key in row.m)
        assert sum(row.s.values()) == 3
        assert (len(row.b), len(row.v)) == (4, 3)
        assert row.t is not None


def test_files_are_read_as_they_were_written(env: EnvironmentFactory, tmp_path: Path):
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    words = ['say "hi"', "back\\", "a,b", " first", "#no comment", '"', 'a\\"b', None]
    halves = [at % 2 if at else None for at in range(len(words))]
    rows = t_env.from_elements(list(zip(words, halves, strict=True)), ["word", "half"])
    t_env.create_temporary_view("given", rows)
    for name in ("csv", "parquet", "orc"):
        t_env.execute_sql(
            f"CREATE TABLE {name}s (word STRING, half BIGINT) PARTITIONED BY (half) WITH "
            f"('connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = '{name}')"
        )
    t_env.execute_sql(
        "CREATE TABLE avros (word STRING) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}/avro', 'format' = 'avro')"
    )
    inserts = t_env.create_statement_set()
    inserts.add_insert_sql("INSERT INTO avros SELECT word FROM given")
    for name in ("csvs", "parquets", "orcs"):
        inserts.add_insert_sql(f"INSERT INTO {name} SELECT word, half FROM given")
    inserts.execute().wait()
    assert (tmp_path / "orc" / "half=__DEFAULT_PARTITION__").is_dir()

    both = "SELECT * FROM csvs UNION ALL SELECT * FROM parquets UNION ALL SELECT * FROM orcs"
    with t_env.execute_sql(
        f"SELECT word, half, COUNT(*) FROM ({both}) GROUP BY word, half"
    ).collect() as found:
        assert {tuple(row) for row in found} == {(*each, 3) for each in zip(words, halves, strict=True)}
    with t_env.execute_sql("SELECT word FROM avros").collect() as read:
        assert {row[0] for row in read} == set(words)


def test_batch_queries_wait_for_all_rows_of_a_table_that_come_over_time(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1), EnvironmentSettings.in_batch_mode())
    t_env.execute_sql("""
        CREATE TABLE numbers (id BIGINT) WITH (
            'connector' = 'datagen', 'number-of-rows' = '40', 'rows-per-second' = '20',
            'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '40')
    """)
    with t_env.execute_sql("SELECT COUNT(*), SUM(id) FROM numbers").collect() as rows:
        assert [tuple(row) for row in rows] == [(40, 820)]


def test_partitions_are_overwritten_in_batch_mode(env: EnvironmentFactory, tmp_path: Path):
    t_env = StreamTableEnvironment.create(env(), EnvironmentSettings.in_batch_mode())
    t_env.execute_sql(
        "CREATE TABLE days (id BIGINT, `day` STRING) PARTITIONED BY (`day`) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/days', 'format' = 'csv')"
    )

    def rows() -> list[tuple[object, ...]]:
        with t_env.execute_sql("SELECT id, `day` FROM days").collect() as found:
            return sorted(tuple(row) for row in found)

    t_env.execute_sql("INSERT INTO days VALUES (1, 'mon'), (2, 'tue'), (3, 'wed')").wait()
    # What is read is what is replaced: files go when all have been read.
    t_env.execute_sql("INSERT OVERWRITE days SELECT id + 10, `day` FROM days WHERE `day` < 'wed'").wait()
    assert rows() == [(3, "wed"), (11, "mon"), (12, "tue")]
    t_env.execute_sql(
        "INSERT OVERWRITE days PARTITION (`day` = 'tue') SELECT id FROM days WHERE id > 99"
    ).wait()
    assert rows() == [(3, "wed"), (11, "mon")]
    with pytest.raises(JobExecutionError):
        t_env.execute_sql("INSERT OVERWRITE days SELECT CAST(`day` AS BIGINT), `day` FROM days").wait()
    assert rows() == [(3, "wed"), (11, "mon")]


def test_inserts_write_files_that_queries_read_in_both_modes(env: EnvironmentFactory, tmp_path: Path):
    t_env = StreamTableEnvironment.create(env())
    path = tmp_path / "out"
    schema = "(id BIGINT, name STRING)"
    t_env.execute_sql(
        f"CREATE TABLE files {schema} WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"
    )
    t_env.execute_sql("INSERT INTO files VALUES (1, 'ann'), (2, 'bob'), (3, NULL)").wait()

    lines = [json.loads(line) for file in path.rglob("*.json") for line in file.read_text().splitlines()]
    assert sorted(lines, key=lambda line: line["id"]) == [
        {"id": 1, "name": "ann"},
        {"id": 2, "name": "bob"},
        {"id": 3, "name": None},
    ]

    batch = StreamTableEnvironment.create(env(), EnvironmentSettings.in_batch_mode())
    batch.execute_sql(
        f"CREATE TABLE files {schema} WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"
    )
    query = "SELECT COUNT(*) AS n, MAX(name) AS m FROM files WHERE id > 1"
    assert [tuple(row) for row in batch.execute_sql(query).collect()] == [(2, "bob")]
    batch.create_temporary_function("shout", shout)
    batch.create_temporary_function("double", double)
    called = batch.execute_sql(
        "SELECT shout(name), double(double(id)) FROM files WHERE double(id) < 4"
    ).collect()
    assert [tuple(row) for row in called] == [("ANN!", 4)]
    assert batch.from_path("files").filter(col("id") > 1).to_pandas()["id"].sort_values().tolist() == [2, 3]
    assert result_of(t_env.execute_sql(query).collect()) == {(2, "bob"): 1}
