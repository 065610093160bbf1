"""One query of Nexmark on headrace, round after round; `bench.nexmark_run` starts it.

Reads statements as JSON from its standard input: the last one is run, the others once before. Prints the seconds of
each round as JSON. Before them a job of a few rows runs, so that Spark is up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from bench.cpu_time import cpu_seconds
from headrace.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    statements = json.load(sys.stdin)
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {"headrace.spark.master": "local[2]", "parallelism.default": "2"}
    settings |= dict(each.split("=", 1) for each in arguments.set)
    for key, value in settings.items():
        env.get_config().set(key, value)
    env.execute_sql("CREATE TEMPORARY TABLE nothing (n INT) WITH ('connector' = 'blackhole')")
    env.execute_sql("INSERT INTO nothing VALUES (1), (2)").wait()
    *definitions, insert = statements
    for each in definitions:
        env.execute_sql(each)
    for _ in range(arguments.rounds):
        used, started = cpu_seconds(), time.perf_counter()
        env.execute_sql(insert).wait()
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "cpu": cpu_seconds() - used}), flush=True)


if __name__ == "__main__":
    main()
