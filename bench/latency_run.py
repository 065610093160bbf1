"""`make bench-latency`: event to output, through source, key_by, a keyed process function and a sink.

At 100 and 10,000 records a second, on two subtasks: headrace in both of its modes, PyFlink in both of its modes and
with small buffers, and PySpark's `transformWithStateInPandas`, all on the same host, one after the other. A record's
clock is the wall clock, taken at the same places of both pipelines. Prints JSON lines as `make bench` does.

    headrace      a Python map behind the source      -> the sink's writer, in Python
    PyFlink       a Python map behind the source      -> a Python map before the sink
    Spark         the time at which the record is due -> foreachBatch in the driver

Of headrace there is a second figure, from the time at which the record is due: it has the source's own delay, too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench import jobs, latency_jobs, peers
from bench.flink import ROOT, flink_python
from bench.run import PARALLELISM, emit
from headrace.spark.session import stop_spark

RATES = (100, 10_000)
#: Seconds at the beginning that do not count: everything is warmed up by then.
WARM_UP_S = 4

#: From event to output, in seconds.
Latencies = list[float]
#: What is said of latencies that count from the time at which a record is due.
DUE = ", since it was due"

OURS: dict[str, dict[str, str]] = {
    "headrace, live": {"headrace.exchange.kind": "pipelined"},
    "headrace, live, checkpoints every second": {
        "headrace.exchange.kind": "pipelined",
        "execution.checkpointing.interval": "1 s",
    },
    "headrace, epochs": {"headrace.exchange.kind": "blocking"},
}
#: How many records share a trip to Python is what PyFlink's latency depends on most; one is its quickest.
SMALL_BUNDLES = ("python.fn-execution.bundle.size=1",)
SMALL_BUFFERS = ("execution.buffer-timeout.interval=1 ms",)
PYFLINK: dict[str, tuple[str, ...]] = {
    "PyFlink, processes": (),
    "PyFlink, processes, buffer timeout 1 ms": SMALL_BUFFERS,
    "PyFlink, processes, buffer timeout 1 ms, bundles of 1": (*SMALL_BUFFERS, *SMALL_BUNDLES),
    "PyFlink, threads": peers.THREADS,
    "PyFlink, threads, buffer timeout 1 ms": (*peers.THREADS, *SMALL_BUFFERS),
}


def ours(rate: int, seconds: int, options: dict[str, str]) -> dict[str, Latencies]:
    """Measure headrace, by both clocks."""
    with tempfile.TemporaryDirectory() as directory:
        ages = latency_jobs.run(directory, rate, seconds, PARALLELISM, options)
    return {
        "": warmed_up([(age.due, age.since_stamped) for age in ages]),
        DUE: warmed_up([(age.due, age.since_due) for age in ages]),
    }


def pyflink(rate: int, seconds: int, options: tuple[str, ...]) -> dict[str, Latencies]:
    """Measure PyFlink: each line that it prints has both times."""
    python = str(flink_python())
    command = [python, os.path.join(ROOT, "bench", "peer_pyflink_latency.py"), *options]
    command += ["--rate", str(rate), "--seconds", str(seconds)]
    path = f"{os.path.dirname(python)}{os.pathsep}{os.environ['PATH']}"
    noted: list[tuple[float, float]] = []
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "PATH": path}
        )
        assert process.stdout is not None
        for line in process.stdout:
            _, _, times = line.partition("out ")
            if times:
                stamped, out = map(float, times.split())
                noted.append((stamped, out - stamped))
        if process.wait() != 0 or not noted:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()[-3000:]}")
    return {"": warmed_up(noted)}


def pyspark(rate: int, seconds: int) -> dict[str, Latencies]:
    """Measure Structured Streaming, which leaves out its first seconds itself."""
    latencies: Latencies = peers.pyspark("latency", "--seconds", str(seconds), "--rate", str(rate))[
        "latencies"
    ]
    return {DUE: latencies}


def warmed_up(noted: list[tuple[float, float]]) -> Latencies:
    """Return the latencies of records from after the first seconds; of each, when it was sent is known, too."""
    start = min(sent for sent, _ in noted) + WARM_UP_S
    return [latency for sent, latency in noted if sent >= start]


def report(name: str, rate: int, latencies: Latencies, best: dict[int, float], clock: str = "") -> None:
    """Print the percentiles."""
    counted = sorted(latencies)
    what = f"event to output at {rate:,} records/s, {name}{clock}"
    for label, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        value = counted[min(int(len(counted) * part), len(counted) - 1)] * 1000
        emit(f"{what}, {label}", value, "ms")
        if label == "p50" and name.startswith("PyFlink"):
            best[rate] = min(value, best.get(rate, value))
        elif label == "p50" and name in OURS and not clock and best.get(rate):
            emit(
                f"{what}, {label}",
                value,
                "ms",
                ratio=value / best[rate],
                against="PyFlink's best",
                goal="<= 0.1",
            )


def contenders(seconds: int) -> Iterator[tuple[str, Callable[[int], dict[str, Latencies]]]]:
    """Yield who is measured, peers first: ours are compared with the best of them."""
    for name, options in PYFLINK.items():
        yield name, lambda rate, options=options: pyflink(rate, seconds, options)  # type: ignore[misc]
    yield "transformWithStateInPandas", lambda rate: pyspark(rate, seconds)
    for name, settings in OURS.items():
        yield name, lambda rate, settings=settings: ours(rate, seconds, settings)  # type: ignore[misc]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of each measurement, with the warm-up")
    parser.add_argument("--only", default="", help="those whose names contain one of these, separated by +")
    arguments = parser.parse_args()
    best: dict[int, float] = {}
    is_warm = False
    for name, measure in contenders(arguments.seconds):
        if not any(part in name for part in arguments.only.split("+")):
            continue
        if name in OURS and not is_warm:
            # Workers are there when it counts; and a live job gives Spark the threads that others need, too.
            jobs.run_keyed_count(50_000, 1_000, PARALLELISM, OURS["headrace, live"])
            # Spark's Java compiles what is called often: it is done with that, too.
            ours(10_000, WARM_UP_S + 4, OURS["headrace, live"])
            is_warm = True
        for rate in RATES:
            try:
                for clock, latencies in measure(rate).items():
                    report(name, rate, latencies, best, clock)
            except Exception as error:
                print(f"{name} was not measured at {rate} records/s: {error}", file=sys.stderr)
    stop_spark()


if __name__ == "__main__":
    main()
