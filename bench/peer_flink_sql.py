"""A query of `bench.sql_queries` on Flink SQL. Runs in PyFlink's own environment; `bench.sql_run` starts it.

Prints one JSON object: rows per second.
"""

import argparse
import json
import statistics
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

COLUMNS = (
    "id BIGINT, user_id BIGINT, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--path")
    parser.add_argument("--jars")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--sql")
    parser.add_argument("--sink")
    parser.add_argument("--mini-batch", action="store_true")
    parser.add_argument("--join", action="store_true")
    parser.add_argument("--rounds", type=int)
    arguments = parser.parse_args()
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = env.get_config()
    settings.set("parallelism.default", "2")
    settings.set("table.local-time-zone", "UTC")
    settings.set("pipeline.jars", arguments.jars)
    if arguments.mini_batch:
        settings.set("table.exec.mini-batch.enabled", "true")
        settings.set("table.exec.mini-batch.allow-latency", "2 s")
        settings.set("table.exec.mini-batch.size", "50000")
    for name in ("bids", "others") if arguments.join else ("bids",):
        env.execute_sql(
            f"CREATE TABLE {name} ({COLUMNS}) WITH "
            f"('connector' = 'filesystem', 'path' = 'file://{arguments.path}', 'format' = 'parquet')"
        )
    env.execute_sql(f"CREATE TABLE sink ({arguments.sink}) WITH ('connector' = 'blackhole')")
    seconds = statistics.median(run(env, arguments.sql) for _ in range(arguments.rounds))
    print(json.dumps({"rate": arguments.rows * (2 if arguments.join else 1) / seconds}))


def run(env, sql):
    started = time.perf_counter()
    env.execute_sql(f"INSERT INTO sink {sql}").wait()
    return time.perf_counter() - started


main()
