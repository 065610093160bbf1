"""`make bench-sql`: the same queries through headrace, Flink SQL and Spark Structured Streaming, in one run.

Prints one JSON object per line, as `make bench` does. A ratio is against the better of the two others. With `--keys` it
measures what a changed key of a GROUP BY costs, from a hundred thousand keys to ten million.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.flink import ROOT, as_urls, flink_python, parquet_jars
from bench.run import emit
from bench.sql_queries import QUERIES, Query, write_rows
from headrace.spark.session import stop_spark
from headrace.table import EnvironmentSettings, TableEnvironment

FILES = 16
#: Files that the others read in one batch.
BATCH_FILES = 4
#: Keys in state.
SIZES = (100_000, 1_000_000, 10_000_000)
COLUMNS = (
    "id BIGINT, user_id BIGINT, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a word of the query's name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="how many of the rows")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--keys", action="store_true", help="measure the cost of a changed key instead")
    arguments = parser.parse_args()
    if arguments.keys:
        measure_keys()
        return
    with tempfile.TemporaryDirectory() as directory:
        for query in QUERIES:
            if arguments.only in query.name:
                compare(query, Path(directory), arguments)


def compare(query: Query, directory: Path, arguments: argparse.Namespace) -> None:
    """Measure one query."""
    rows = int(query.rows * arguments.scale)
    path, warm = directory / f"rows-{rows}", directory / "warm"
    if not path.exists():
        write_rows(path, rows, FILES)
    if not warm.exists():
        write_rows(warm, 20_000, 2)
    ours_run(query, warm, 20_000)
    ours = [ours_run(query, path, rows) for _ in range(arguments.rounds)]
    stop_spark()
    rate = statistics.median(ours)
    if arguments.ours_only:
        emit(query.name, rate, "rows/s", goal=query.goal)
        return
    others = {
        "Flink SQL": flink(query, path, rows, ("--rounds", str(arguments.rounds))),
        "Flink SQL, mini-batch": flink(
            query, path, rows, ("--rounds", str(arguments.rounds), "--mini-batch")
        ),
        "Structured Streaming": structured_streaming(query, path, warm, rows, arguments.rounds),
    }
    for name, other in others.items():
        emit(f"{query.name}.{name}", other, "rows/s")
    best = max(others, key=others.__getitem__)
    emit(query.name, rate, "rows/s", ratio=rate / others[best], against=best, goal=query.goal)


def ours_run(query: Query, path: Path, rows: int) -> float:
    """Return how many rows a second headrace does."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in (("headrace.spark.master", "local[2]"), ("parallelism.default", "2")):
        env.get_config().set(key, value)
    for name in ("bids", "others") if query.is_join else ("bids",):
        env.execute_sql(
            f"CREATE TABLE {name} ({COLUMNS}) WITH "
            f"('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
        )
    env.execute_sql(f"CREATE TABLE sink ({query.sink}) WITH ('connector' = 'blackhole')")
    started = time.perf_counter()
    env.execute_sql(f"INSERT INTO sink {query.sql}").wait()
    return rows * (2 if query.is_join else 1) / (time.perf_counter() - started)


def flink(query: Query, path: Path, rows: int, options: tuple[str, ...]) -> float:
    """Return how many rows a second Flink does, the median of its rounds."""
    command = [str(flink_python()), str(ROOT / "bench" / "peer_flink_sql.py"), *options]
    command += ["--path", str(path), "--jars", as_urls(parquet_jars())]
    command += ["--rows", str(rows), "--sql", query.sql, "--sink", query.sink]
    return float(_result([*command, *(["--join"] if query.is_join else [])])["rate"])


def structured_streaming(query: Query, path: Path, warm: Path, rows: int, rounds: int) -> float:
    """Return how many rows a second Spark Structured Streaming does, the median of its rounds."""
    if query.spark is None:
        return 0.0
    command = [sys.executable, "-m", "bench.peer_spark_sql", "--path", str(path), "--warm-path", str(warm)]
    command += ["--rows", str(rows), "--sql", query.spark, "--mode", query.mode, "--files", str(BATCH_FILES)]
    command += ["--rounds", str(rounds)]
    return float(_result([*command, *(["--join"] if query.is_join else [])])["rate"])


def measure_keys() -> None:
    """Measure what a changed key costs in state of several sizes, in the state alone and in a whole job."""
    from bench.table_keys import measure
    from bench.table_state import NUMBER, TEXT, cost_of_memory, cost_per_key

    cost_per_key(SIZES[0])  # so that the first one finds the process as the others do
    emit_costs("bare memory, a record read and one written", map(cost_of_memory, SIZES))
    for key in (NUMBER, TEXT):
        costs = (cost_per_key(keys, key) for keys in SIZES)
        emit_costs(f"GROUP BY {key.spark_type}, a changed key", costs, goal="<= 1.5")
    job = measure(SIZES, {})
    emit_costs("a whole job, its aggregation", (each.aggregation for each in job), goal="<= 1.5")
    emit_costs("a whole job, its epoch", (each.epoch for each in job), goal="<= 1.5")


def emit_costs(name: str, costs: Iterable[float], goal: str = "") -> None:
    """Print the seconds that a key costs at each size, against the first."""
    base = None
    for keys, cost in zip(SIZES, costs, strict=True):
        base = base or cost
        emit(f"{name}, of {keys:,}", cost * 1e9, "ns", ratio=cost / base, against=f"{SIZES[0]:,}", goal=goal)


def _result(command: list[str]) -> dict[str, Any]:
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
