"""`make bench-soak`: thousands of epochs in a row; driver memory, disk, descriptors and time per epoch must stay flat.

Prints one JSON object per measure: the last tenth of the run against the second tenth (the first one warms up), and
draws all of them over the epochs into bench/results/soak.png.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import jobs
from bench.run import PARALLELISM, emit
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream.execution_context import ExecutionContext
from headrace.graph.job_graph import JobGraph
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners, SparkExecutor
from headrace.spark.session import spark_context, stop_spark

RESULTS = Path(__file__).parent / "results"
_RECORDS_PER_EPOCH = 20
_KEYS = 1_000


@dataclass
class Samples:
    """What was seen, by measure; one entry per sampled epoch."""

    every: int
    java_pid: int
    directories: list[str]
    epochs: list[int] = field(default_factory=list)
    measures: dict[str, list[float]] = field(default_factory=dict)
    durations: list[float] = field(default_factory=list)

    def note(self, job: JobGraph, summary: EpochSummary) -> None:
        """Take a sample every so many epochs."""
        self.durations.append(summary.duration_s * 1000)
        if summary.epoch % self.every:
            return
        self.epochs.append(summary.epoch)
        recent = self.durations[-self.every :]
        for name, value in {
            "time per epoch, ms": statistics.median(recent),
            "driver python memory, MiB": resident_mib(os.getpid()),
            "driver java memory, MiB": resident_mib(self.java_pid),
            "driver python descriptors": descriptors(os.getpid()),
            "driver java descriptors": descriptors(self.java_pid),
            "files on disk": sum(_files(directory)[0] for directory in self.directories),
            "bytes on disk, MiB": sum(_files(directory)[1] for directory in self.directories) / 2**20,
        }.items():
            self.measures.setdefault(name, []).append(value)


def resident_mib(pid: int) -> float:
    """Return the memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def descriptors(pid: int) -> int:
    """Return how many files and sockets a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def _files(directory: str) -> tuple[int, int]:
    count = size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += os.stat(os.path.join(folder, name)).st_blocks * 512
                count += 1
            except FileNotFoundError:
                continue  # gone between listing and looking
    return count, size


def plot(at: list[float], measures: dict[str, list[float]], label: str, path: Path) -> None:
    """Plot every measure over the epochs, or over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(measures), 1, figsize=(9, 2 * len(measures)), sharex=True)
    for axis, (name, values) in zip(axes, measures.items(), strict=True):
        axis.plot(at, values)
        axis.set_ylim(0, max(values) * 1.2 or 1)
        axis.set_title(name, fontsize=9, loc="left")
    axes[-1].set_xlabel(label)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5_000)
    arguments = parser.parse_args()
    # Every file of the run goes below one directory, so that all of them are counted.
    scratch = RESULTS / "soak-scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    options = {
        "spark.local.dir": str(scratch / "spark"),
        "execution.checkpointing.dir": str(scratch / "state"),
        "headrace.state.local-dir": str(scratch / "local"),
    }
    context = spark_context(Configuration(options))
    java_pid = context._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    samples = Samples(max(1, arguments.epochs // 100), java_pid, [str(scratch)])
    executor = SparkExecutor(listeners=[Listeners(epoch_completed=samples.note)])
    started = time.perf_counter()
    source = jobs.PacedSource(
        rate=1,
        count=arguments.epochs * _RECORDS_PER_EPOCH,
        keys=_KEYS,
        start=time.time(),
        per_plan=_RECORDS_PER_EPOCH,
    )
    with ExecutionContext(executors={"spark": executor}).entered():
        jobs.run_paced(source, PARALLELISM, BlackholeSink(), options)
    elapsed = time.perf_counter() - started
    stop_spark()
    for name, values in samples.measures.items():
        tenth = max(1, len(values) // 10)
        early, late = statistics.median(values[tenth : 2 * tenth]), statistics.median(values[-tenth:])
        emit(
            name,
            late,
            name.rsplit(", ", maxsplit=1)[-1],
            ratio=late / early,
            against="epochs 10-20 %",
            goal="<= 1.1",
        )
    emit("epochs", len(samples.durations) / elapsed, "epochs/s")
    RESULTS.joinpath("soak.json").write_text(
        json.dumps({"epochs": samples.epochs, "measures": samples.measures}, indent=1) + "\n"
    )
    plot([float(epoch) for epoch in samples.epochs], samples.measures, "epoch", RESULTS / "soak.png")


if __name__ == "__main__":
    main()
