"""`make bench-live-soak`: a live job for an hour; memory, threads and descriptors of all its processes must stay flat.

A paced source, a keyed count, checkpoints every second. Every few seconds the driver, Spark's Java process and the
Python workers are looked at. Prints one JSON object per measure, the last tenth of the run against the second (the
first one warms up), and draws all of them over time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import jobs
from bench.run import PARALLELISM, emit
from bench.soak import RESULTS, descriptors, plot, resident_mib
from bench.workloads import key_of
from headrace.common import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.spark.session import spark_context, stop_spark

_KEYS = 1_000


@dataclass
class Watch:
    """Looks at the processes of a job now and then."""

    java_pid: int
    minutes: list[float] = field(default_factory=list)
    measures: dict[str, list[float]] = field(default_factory=dict)

    def note(self, minutes: float, checkpoint_ms: float) -> None:
        """Take a sample."""
        driver, workers = os.getpid(), _below(self.java_pid)
        found = {
            "driver, memory, MiB": resident_mib(driver),
            "driver, threads": _threads(driver),
            "driver, descriptors": descriptors(driver),
            "Java, memory, MiB": resident_mib(self.java_pid),
            "Java, threads": _threads(self.java_pid),
            "Java, descriptors": descriptors(self.java_pid),
            "workers, processes": len(workers),
            "workers, memory, MiB": _sum(resident_mib, workers),
            "workers, threads": _sum(_threads, workers),
            "workers, descriptors": _sum(descriptors, workers),
            "checkpoint, ms": checkpoint_ms,
        }
        self.minutes.append(minutes)
        for name, value in found.items():
            self.measures.setdefault(name, []).append(value)


def _threads(pid: int) -> float:
    return len(os.listdir(f"/proc/{pid}/task"))


def _sum(measure: object, pids: list[int]) -> float:
    assert callable(measure)
    total = 0.0
    for pid in pids:
        try:
            total += measure(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
    return total


def _below(pid: int) -> list[int]:
    """Return all processes that a process has started, and those that they have."""
    found, todo = [], [pid]
    while todo:
        children: list[int] = []
        for path in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            try:
                children += map(int, path.read_text().split())
            except OSError:
                continue  # a thread that has ended since
        found += children
        todo += children
    return found


def main() -> None:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--every", type=float, default=5, help="seconds from one look to the next")
    parser.add_argument("--plot", type=Path, default=RESULTS / "live_soak.png")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        options = {
            "headrace.exchange.kind": "pipelined",
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": directory,
        }
        # The first job has Spark started with the threads that a live one needs.
        jobs.run_keyed_count(10_000, _KEYS, PARALLELISM, options)
        context = spark_context(Configuration())
        watch = Watch(context._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        count = int(arguments.rate * arguments.minutes * 60)
        source = jobs.PacedSource(rate=arguments.rate, count=count, keys=_KEYS, start=time.time() + 2)
        env = jobs.environment(PARALLELISM, options)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "paced")
        stream.key_by(key_of).process(jobs.PassOn()).sink_to(BlackholeSink())
        job: Any = env.execute_async("soak")._handle
        checkpoints = job.master.checkpoints.coordinator.statistics
        ended = threading.Event()
        job.result_future().add_done_callback(lambda _: ended.set())
        started = time.monotonic()
        while not ended.wait(arguments.every):
            durations = [record.end_to_end_duration for record in checkpoints().history[-5:]]
            watch.note((time.monotonic() - started) / 60, statistics.median(durations or [0]))
        completed = checkpoints().counts.completed
        job.result_future().result()
    stop_spark()
    _report(watch, completed)
    plot(watch.minutes, watch.measures, "minutes", arguments.plot)


def _report(watch: Watch, completed: int) -> None:
    for name, values in watch.measures.items():
        tenth = max(1, len(values) // 10)
        early, late = statistics.median(values[tenth : 2 * tenth]), statistics.median(values[-tenth:])
        unit = name.rsplit(", ", maxsplit=1)[-1]
        emit(name, late, unit, ratio=late / (early or 1), against="minutes 10-20 %", goal="<= 1.1")
    emit("checkpoints completed", completed, "")
    RESULTS.joinpath("live_soak.json").write_text(
        json.dumps({"minutes": watch.minutes, "measures": watch.measures}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
