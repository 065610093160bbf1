"""`make bench-live`: what live mode costs and what it gives, against the same jobs in epochs.

A keyed running count with checkpoints every ten seconds and every second, and how long a job is silent when one of
its workers is killed: from the kill to the first record that the next run processes. Then checkpoints, aligned and not,
under back pressure: a source at full speed, and a function that takes 5 ms for each record of 1 KB. Prints JSON lines
as `make bench` does.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import jobs
from bench.run import PARALLELISM, emit
from bench.workloads import key_of
from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.datastream import MapFunction
from headrace.runtime.checkpoint.statistics import CheckpointRecord
from headrace.spark.session import stop_spark

LIVE = {"headrace.exchange.kind": "pipelined"}
EPOCHS = {"headrace.exchange.kind": "blocking"}
RATE = 200
#: Records between two kills.
KILLED_EVERY = 2_000


class Mortal(jobs.PassOn):
    """Counts per key; its worker is killed now and then, and what comes first after that is written down."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        #: Fields last over a restart, so it is the process that says whether a record is the first one.
        self.process = 0

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Count, or die."""
        key, due, number = value
        if self.process != os.getpid():
            self.process = os.getpid()
            self.note("first")
        if number and number % KILLED_EVERY == 0 and not Path(self.directory, str(number)).exists():
            Path(self.directory, str(number)).touch()
            self.note("killed")
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().process_element((key, due), ctx)

    def note(self, what: str) -> None:
        """Write down what happens, and when."""
        with Path(self.directory, "log").open("a") as file:
            file.write(f"{time.time()} {what}\n")


def silences(options: dict[str, str], kills: int) -> list[float]:
    """Return for each kill how long it took until a record was processed again."""
    restarts = {
        "execution.checkpointing.interval": "1 s",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    with tempfile.TemporaryDirectory() as directory:
        count = KILLED_EVERY * (kills + 1)
        source = jobs.PacedSource(rate=RATE, count=count, keys=100, start=time.time() + 3)
        env = jobs.environment(PARALLELISM, {**options, **restarts})
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "paced")
        numbered = stream.map(lambda pair: (*pair, round((pair[1] - source.start) * RATE)))
        numbered.key_by(key_of).process(Mortal(directory)).sink_to(BlackholeSink())
        env.execute("mortal")
        lines = Path(directory, "log").read_text().splitlines()
    events = sorted((float(at), what) for at, _, what in (line.partition(" ") for line in lines))
    starts = [at for at, what in events if what == "first"]
    deaths = [at for at, what in events if what == "killed"]
    return [min(start for start in starts if start > death) - death for death in deaths]


class Slow(MapFunction):
    """Takes its time."""

    def map(self, value: Any) -> Any:
        """Wait, as for an answer of another system."""
        time.sleep(0.005)
        return value


def under_pressure(options: dict[str, str], count: int, patience_s: float) -> list[CheckpointRecord]:
    """Return checkpoints of a job whose records pile up: so many, or those that were complete in time."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"execution.checkpointing.interval": "2 s", "execution.checkpointing.dir": directory}
        env = jobs.environment(PARALLELISM, {**LIVE, **settings, **options})
        source = DataGeneratorSource(lambda index: f"{index:01024d}", None)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.rebalance().map(Slow()).sink_to(BlackholeSink())
        job: Any = env.execute_async("slow")._handle
        statistics = job.master.checkpoints.coordinator.statistics
        deadline = time.monotonic() + patience_s
        while statistics().counts.completed < count and time.monotonic() < deadline:
            time.sleep(0.1)
        job.cancel().result(60)
        return [record for record in statistics().history if record.external_path is not None]


def pressure(count: int, patience_s: float) -> None:
    """Compare aligned and unaligned checkpoints."""
    aligned = under_pressure({}, count, patience_s)
    unaligned = under_pressure({"execution.checkpointing.unaligned.enabled": "true"}, count, patience_s)
    for name, records, goal in (("aligned", aligned, ""), ("unaligned", unaligned, "< 2")):
        what = f"checkpoint under back pressure, {name}"
        durations = [record.end_to_end_duration / 1000 for record in records]
        if not durations:
            emit(f"{what}, none complete within", patience_s, "s", goal=goal)
            continue
        emit(f"{what}, median of {len(durations)}", statistics.median(durations), "s", goal=goal)
        emit(f"{what}, longest", max(durations), "s", goal=goal)
        emit(f"{what}, records in flight", max(record.persisted_data for record in records) / 1024, "KB")


def throughput(records: int, rounds: int) -> None:
    """Compare a keyed count in both modes."""
    for interval, goal in (("10 s", ">= 0.9"), ("1 s", ">= 0.8")):
        checkpoints = {"execution.checkpointing.interval": interval}
        rates: dict[str, list[float]] = {"live": [], "epochs": []}
        for _ in range(rounds):
            for mode, options in (("live", LIVE), ("epochs", EPOCHS)):
                settings = {**options, **checkpoints}
                rates[mode].append(jobs.run_keyed_count(records, 1_000, PARALLELISM, settings))
        name = f"keyed running count, 1,000 keys, checkpoints every {interval}"
        live, epochs = (statistics.median(rates[mode]) for mode in ("live", "epochs"))
        emit(f"{name}, epochs", epochs, "records/s")
        emit(f"{name}, live", live, "records/s", ratio=live / epochs, against="epochs", goal=goal)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--checkpoints", type=int, default=6)
    parser.add_argument("--patience", type=float, default=120, help="seconds for these checkpoints")
    parser.add_argument("--only", choices=["throughput", "restarts", "pressure"])
    arguments = parser.parse_args()
    # Warms up workers; a live job comes first, so that Spark is started with the threads it needs.
    jobs.run_keyed_count(50_000, 1_000, PARALLELISM, LIVE)
    if arguments.only in (None, "throughput"):
        throughput(arguments.records, arguments.rounds)
    if arguments.only in (None, "pressure"):
        pressure(arguments.checkpoints, arguments.patience)
    if arguments.only in (None, "restarts"):
        # Only of live jobs: in epochs another worker may have a record first that was not waiting for this one.
        gaps = silences(LIVE, arguments.kills)
        name = "from a killed worker to the next record, live"
        emit(f"{name}, median of {len(gaps)}", statistics.median(gaps), "s", goal="< 3")
        emit(f"{name}, longest", max(gaps), "s")
    stop_spark()


if __name__ == "__main__":
    main()
