"""One query of Nexmark on headrace, round after round; `bench.nexmark_run` starts it.

Reads statements as JSON from its standard input: the last one is run, the others once before. Prints the seconds of
each round as JSON. Before them a job of a few rows runs, so that Spark is up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from typing import Any

from pyspark import SparkContext

from bench.cpu_time import cpu_seconds
from headrace.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", action="store_true", help="print what Spark knows of its stages, too")
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
    if arguments.stages:
        for line in stages():
            print(json.dumps(line), flush=True)


def stages() -> list[dict[str, object]]:
    """Return what Spark knows of the stages that have run, those of the same shape together, the longest first."""
    context = SparkContext._active_spark_context
    assert context is not None
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None
    assert gateway is not None
    nothing, quantiles = jvm.java.util.ArrayList(), gateway.new_array(jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, quantiles, nothing)
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * 6)
    for place in range(found.size()):
        stage = found.apply(place)
        figures = (
            1,
            stage.executorRunTime() / 1e3,
            stage.executorCpuTime() / 1e9,
            stage.jvmGcTime() / 1e3,
            stage.shuffleReadBytes() / 1e6,
            stage.shuffleWriteBytes() / 1e6,
        )
        name = shape_of(stage)
        sums[name] = [before + more for before, more in zip(sums[name], figures, strict=True)]
    names = ("runs", "run", "cpu", "gc", "read", "written")
    lines = [{"stage": stage, **dict(zip(names, each, strict=True))} for stage, each in sums.items()]
    return sorted(lines, key=lambda line: -float(str(line["run"])))


def shape_of(stage: Any) -> str:
    """Return what a stage does, by whether it reads and writes shuffles."""
    reads, writes = stage.shuffleReadBytes() > 0, stage.shuffleWriteBytes() > 0
    if stage.inputBytes() > 0:
        return f"scan ({stage.numTasks()} tasks)" + (" -> exchange" if writes else "")
    return ("exchange -> python" if reads else "other") + (" -> exchange" if writes else "")


if __name__ == "__main__":
    main()
