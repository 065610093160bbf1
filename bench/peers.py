"""`make bench-peers`: the same work through PyFlink and PySpark's transformWithStateInPandas, in one run with ours.

Prints one JSON object per line, as `make bench` does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import jobs
from bench.flink import ROOT, flink_python
from bench.run import PARALLELISM, emit
from headrace.spark.session import stop_spark

#: What its users turn: keep state in the Python process, and let many records share a trip there.
TUNED = ("python.state.cache-size=100000", "python.fn-execution.bundle.size=100000")
THREADS = ("python.execution-mode=thread",)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="how long to measure latency")
    parser.add_argument("--only", choices=["throughput", "latency"])
    arguments = parser.parse_args()
    if arguments.only != "latency":
        compare_throughput()
    if arguments.only != "throughput":
        compare_latency(arguments.seconds)


def compare_throughput() -> None:
    """Measure records per second, ours and the peers'."""
    ours = measure_ours()
    stop_spark()
    for name, options, records, goal in (
        ("PyFlink at its defaults", (), 30_000, ">= 200"),
        ("PyFlink tuned", TUNED, 300_000, ">= 15"),
        ("PyFlink in thread mode", THREADS, 100_000, ""),
    ):
        rate = pyflink("keyed_count", records, options)["rate"]
        report("keyed running count, 1,000 keys", ours["keyed"], name, rate, goal)
    report(
        "stateless map+filter+map",
        ours["stateless"],
        "PyFlink",
        pyflink("stateless", 600_000, ())["rate"],
        "",
    )
    rate = pyspark("throughput", "--keys", "1000")["rate"]
    report("keyed running count, 1,000 keys", ours["keyed"], "transformWithStateInPandas", rate, "")
    rate = pyspark("throughput", "--keys", "1000000", "--rows", "20000")["rate"]
    report("keyed running count, 1,000,000 keys", ours["many"], "transformWithStateInPandas", rate, "")


def compare_latency(seconds: int) -> None:
    """Measure the time from event to output, ours and Structured Streaming's."""
    ours_latency = measure_our_latency(seconds)
    stop_spark()
    theirs = statistics.median(pyspark("latency", "--seconds", str(seconds))["latencies"])
    emit("event to output at 100 records/s, p50, transformWithStateInPandas", theirs * 1000, "ms")
    emit(
        "event to output at 100 records/s, p50",
        ours_latency * 1000,
        "ms",
        ratio=ours_latency / theirs,
        against="transformWithStateInPandas",
        goal="<= 0.5",
    )


def report(name: str, ours: float, peer: str, theirs: float, goal: str) -> None:
    """Print the peer's rate, and ours against it."""
    emit(f"{name}, {peer}", theirs, "records/s")
    emit(name, ours, "records/s", ratio=ours / theirs, against=peer, goal=goal)


def measure_ours() -> dict[str, float]:
    """Return our rates, the median of three each; workers are warm when it counts."""
    jobs.run_keyed_count(50_000, 1_000, PARALLELISM)
    works: dict[str, Callable[[], float]] = {
        "stateless": lambda: jobs.run_stateless(16_000_000, 1_000, PARALLELISM),
        "keyed": lambda: jobs.run_keyed_count(8_000_000, 1_000, PARALLELISM),
        "many": lambda: jobs.run_keyed_count(4_000_000, 1_000_000, PARALLELISM),
    }
    return {name: statistics.median(work() for _ in range(3)) for name, work in works.items()}


def measure_our_latency(seconds: int) -> float:
    """Return the median time from a record's due time to its output, in seconds."""
    jobs.LATENCIES.clear()
    rate = 100
    source = jobs.PacedSource(rate=rate, count=rate * seconds, keys=100, start=time.time() + 1)
    jobs.run_paced(source, PARALLELISM, jobs.LatencySink())
    return statistics.median(jobs.LATENCIES[rate * 4 :])


def pyflink(work: str, records: int, options: tuple[str, ...]) -> dict[str, Any]:
    """Run a program on PyFlink."""
    python = flink_python()
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [str(python), str(ROOT / "bench" / "peer_pyflink.py"), work]
    return _last_json([*command, *options, "--records", str(records)], environment)


def pyspark(work: str, *options: str) -> dict[str, Any]:
    """Run a program on Structured Streaming."""
    return _last_json([sys.executable, "-m", "bench.peer_spark", work, *options], dict(os.environ))


def _last_json(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
