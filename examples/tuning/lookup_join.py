"""Lookup joins: a database that takes some milliseconds for each question, asked for every row or for every key.

Prints how long the join takes without a cache, with a cache of what was asked for, and with the whole table in memory.

    python examples/tuning/lookup_join.py [clicks]
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from headrace.datastream import StreamExecutionEnvironment
from headrace.table import StreamTableEnvironment

USERS = 50
#: For each row that is asked for, the database counts so far.
EFFORT = 20_000
#: What a table says about its cache.
CACHES = {
    "no cache": "'lookup.cache' = 'NONE'",
    "what was asked for": "'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '1000'",
    "the whole table": "'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '10 min'",
}
QUERY = """
    SELECT c.id, u.name FROM clicks AS c
    JOIN users FOR SYSTEM_TIME AS OF c.proc AS u ON c.user_id = u.id
"""


def make_database(path: Path) -> None:
    """Create users, behind a view that takes its time."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?)", [(n, f"user {n}") for n in range(USERS)])
        database.execute(
            "CREATE VIEW users AS SELECT id, substr(name || (WITH RECURSIVE up(n) AS ("
            f"SELECT people.id UNION ALL SELECT n + 1 FROM up WHERE n < {EFFORT}"
            ") SELECT max(n) FROM up), 1, length(name)) AS name FROM people"
        )
        database.commit()


def declare(t_env: StreamTableEnvironment, database: Path, cache: str, count: int) -> None:
    """Make the table of clicks, and the one that is asked."""
    t_env.execute_sql(
        f"CREATE TABLE clicks (id BIGINT, user_id AS MOD(id * 7, {USERS}), proc AS PROCTIME()) WITH ("
        "'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.id.kind' = 'sequence', "
        f"'fields.id.start' = '0', 'fields.id.end' = '{count - 1}')"
    )
    t_env.execute_sql(
        "CREATE TABLE users (id BIGINT, name STRING) WITH ("
        f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{database}', 'table-name' = 'users', {CACHES[cache]})"
    )


def run(t_env: StreamTableEnvironment, cache: str, count: int) -> tuple[float, list[Any]]:
    """Return how long a join takes, and its rows."""
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory, "shop.db")
        make_database(database)
        declare(t_env, database, cache, count)
        began = time.perf_counter()
        with t_env.execute_sql(QUERY).collect() as rows:
            found = [tuple(row) for row in rows]
        took_s = time.perf_counter() - began
    t_env.execute_sql("DROP TABLE clicks")
    t_env.execute_sql("DROP TABLE users")
    return took_s, found


def main(count: int) -> None:
    """Run all and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    run(t_env, "the whole table", 1)  # Spark has started after that
    for cache in CACHES:
        took_s, rows = run(t_env, cache, count)
        print(f"{cache}: {took_s:.1f} s for {len(rows)} rows")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
