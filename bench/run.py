"""`make bench`: headrace against the bare loop and the hand-written prototype, in one run.

Prints one JSON object per line: name, value, unit, ratio, against, goal. A ratio is the median over rounds in which
both contenders ran one after the other, so a slow moment of the machine hits both.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from bench import bare, jobs, prototype
from bench.cpu_time import cpu_seconds
from bench.raw_rdd import empty_two_stages
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream.execution_context import ExecutionContext
from headrace.graph.job_graph import JobGraph
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners, SparkExecutor
from headrace.spark.session import spark_context, stop_spark

PARALLELISM = 2


def emit(
    name: str, value: float, unit: str, *, ratio: float | None = None, against: str = "", goal: str = ""
) -> None:
    """Print one measurement."""
    line = {
        "name": name,
        "value": round(value, 3 if value < 1_000 else 0),
        "unit": unit,
        "ratio": None if ratio is None else round(ratio, 3),
        "against": against,
        "goal": goal,
    }
    print(json.dumps(line), flush=True)


def compare(
    name: str,
    ours: Callable[[], float],
    others: dict[str, tuple[Callable[[], float], str]],
    rounds: int,
    records: int,
) -> None:
    """Measure ours, which takes so many records, and each other contender in turn; others are (run, goal) by name."""
    ours_rates: list[float] = []
    processor_s: list[float] = []
    ratios: dict[str, list[float]] = {other: [] for other in others}
    other_rates: dict[str, list[float]] = {other: [] for other in others}
    for _ in range(rounds):
        before = cpu_seconds()
        rate = ours()
        processor_s.append(cpu_seconds() - before)
        ours_rates.append(rate)
        for other, (run, _) in others.items():
            other_rate = run()
            other_rates[other].append(other_rate)
            ratios[other].append(rate / other_rate)
    for other, (_, goal) in others.items():
        emit(f"{name}.{other}", statistics.median(other_rates[other]), "records/s")
        emit(
            name,
            statistics.median(ours_rates),
            "records/s",
            ratio=statistics.median(ratios[other]),
            against=other,
            goal=goal,
        )
    emit(
        f"{name}, all processes",
        statistics.median(processor_s) / records * 1e6,
        "processor s per million records",
    )


def stateless(spark: SparkSession, rounds: int, scale: float) -> None:
    """A stateless chain."""
    millions = int(8_000_000 * scale)
    sample = int(1_000_000 * scale)
    compare(
        "stateless map+filter+map",
        lambda: jobs.run_stateless(millions * 2, 1_000, PARALLELISM),
        {
            "bare python loop, one core": (lambda: bare.stateless(sample, 1_000), ""),
            "mapInArrow prototype": (
                lambda: prototype.stateless(spark, millions * 2, 1_000, PARALLELISM),
                ">= 0.5",
            ),
        },
        rounds,
        millions * 2,
    )


def keyed(spark: SparkSession, rounds: int, scale: float) -> None:
    """Keyed running counts."""
    millions = int(8_000_000 * scale)
    sample = int(1_000_000 * scale)
    for keys, bare_goal, goal in ((1_000, ">= 0.7", ">= 0.5"), (1_000_000, ">= 0.55", ">= 0.25")):
        compare(
            f"keyed running count, {keys:,} keys",
            lambda keys=keys: jobs.run_keyed_count(millions, keys, PARALLELISM),  # type: ignore[misc]
            {
                "bare python loop, one core": (
                    lambda keys=keys: bare.keyed_count(sample, keys),  # type: ignore[misc]
                    bare_goal,
                ),
                "mapInArrow + repartitionById prototype": (
                    lambda keys=keys: prototype.keyed_count(spark, millions, keys, PARALLELISM),  # type: ignore[misc]
                    goal,
                ),
            },
            rounds,
            millions,
        )


class EpochTimes:
    """Collects how long epochs take."""

    def __init__(self) -> None:
        self.durations: list[float] = []
        self.executor = SparkExecutor(listeners=[Listeners(epoch_completed=self._note)])

    def _note(self, job: JobGraph, summary: EpochSummary) -> None:
        self.durations.append(summary.duration_s)


def empty_epochs(times: EpochTimes, rounds: int) -> None:
    """A two-level epoch with one record in it, against a bare Spark job of two python stages."""
    bare_job = empty_two_stages(spark_context(Configuration()), PARALLELISM)
    ratios, ours_ms = [], []
    for _ in range(rounds):
        times.durations.clear()
        count = 60
        source = jobs.PacedSource(rate=1, count=count, keys=8, start=time.time(), per_plan=1)
        jobs.run_paced(source, PARALLELISM, BlackholeSink())
        ours = statistics.median(times.durations[10:])
        bare_times = []
        for _ in range(count):
            started = time.perf_counter()
            bare_job()
            bare_times.append(time.perf_counter() - started)
        ours_ms.append(ours * 1000)
        ratios.append(ours / statistics.median(bare_times[10:]))
    emit(
        "empty two-level epoch",
        statistics.median(ours_ms),
        "ms",
        ratio=statistics.median(ratios),
        against="bare two-stage Spark job (RDD, raw bytes)",
        goal="<= 1.3",
    )


def latency(seconds: int) -> None:
    """Event to output at 100 records a second through a keyed process function."""
    jobs.LATENCIES.clear()
    rate = 100
    source = jobs.PacedSource(rate=rate, count=rate * seconds, keys=100, start=time.time() + 1)
    jobs.run_paced(source, PARALLELISM, jobs.LatencySink())
    settled = sorted(jobs.LATENCIES[rate * 2 :])
    emit(
        "event to output at 100 records/s, p50",
        statistics.median(settled) * 1000,
        "ms",
        goal="see bench-peers",
    )
    emit("event to output at 100 records/s, p99", settled[int(len(settled) * 0.99)] * 1000, "ms")


def memory() -> None:
    """Peak memory of the driver, and of the largest child."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    emit("driver python, peak memory", own, "MiB")
    if children:
        emit("largest child process, peak memory", children, "MiB")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the usual number of records")
    parser.add_argument("--only", choices=["throughput", "stateless", "keyed", "epochs", "latency"])
    arguments = parser.parse_args()
    context = spark_context(Configuration())
    spark = SparkSession(context)
    times = EpochTimes()
    with ExecutionContext(executors={"spark": times.executor}).entered():
        # Workers are started and warmed before anything is measured.
        jobs.run_keyed_count(50_000, 1_000, PARALLELISM)
        prototype.keyed_count(spark, 50_000, 1_000, PARALLELISM)
        if arguments.only in (None, "throughput", "stateless"):
            stateless(spark, arguments.rounds, arguments.scale)
        if arguments.only in (None, "throughput", "keyed"):
            keyed(spark, arguments.rounds, arguments.scale)
        if arguments.only in (None, "epochs"):
            empty_epochs(times, arguments.rounds)
        if arguments.only in (None, "latency"):
            latency(20)
    stop_spark()
    memory()


if __name__ == "__main__":
    main()
