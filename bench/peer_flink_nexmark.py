"""One query of Nexmark on Flink SQL, round after round; `bench.nexmark_run` starts it.

Runs in PyFlink's own environment. Reads statements and prints seconds as `bench.nexmark_ours` does.
"""

import argparse
import json
import sys
import time

from cpu_time import cpu_seconds
from pyflink.table import EnvironmentSettings, TableEnvironment


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mini-batch", action="store_true")
    parser.add_argument("--jars", default="")
    arguments = parser.parse_args()
    statements = json.load(sys.stdin)
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = env.get_config()
    settings.set("parallelism.default", "2")
    settings.set("table.local-time-zone", "UTC")
    if arguments.jars:
        settings.set("pipeline.jars", arguments.jars)
    if arguments.mini_batch:
        settings.set("table.exec.mini-batch.enabled", "true")
        settings.set("table.exec.mini-batch.allow-latency", "2 s")
        settings.set("table.exec.mini-batch.size", "50000")
        settings.set("table.optimizer.distinct-agg.split.enabled", "true")
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


main()
