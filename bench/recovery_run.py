"""`make bench-recovery`: what checkpoints cost, how large they are, and how long a job takes to come back.

Prints JSON lines as `make bench` does. Spark runs already when a job is started; what is measured of a job that comes
back is from `execute` to the end of its first epoch, in which the copy of its state is built.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench import jobs, memory_jobs
from bench.recovery_jobs import GATE, Watch, files_below, start_count
from bench.run import PARALLELISM, compare, emit
from bench.workloads import record_maker
from headrace.common.job_client import JobClient
from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.spark.session import spark_context, stop_spark

RECORDS = 8_000_000
KEYS = 2_000_000
_MIB = 1 << 20


def overhead(rounds: int, scale: float, directory: str) -> None:
    """Throughput with a checkpoint after every epoch, against none."""
    options = {"execution.checkpointing.interval": "1 ms", "execution.checkpointing.dir": directory}
    records = int(RECORDS * scale)
    for keys in (1_000, 1_000_000):
        compare(
            f"keyed running count, {keys:,} keys, checkpoint every epoch",
            lambda keys=keys: jobs.run_keyed_count(records, keys, PARALLELISM, options),  # type: ignore[misc]
            {
                "no checkpoints": (
                    lambda keys=keys: jobs.run_keyed_count(records, keys, PARALLELISM),  # type: ignore[misc]
                    ">= 0.9",
                )
            },
            rounds,
            records,
        )


class Recovery:
    """A job with many keys that is stopped and comes back."""

    def __init__(self, watch: Watch, keys: int, directory: str, options: dict[str, str]) -> None:
        self._watch = watch
        self._keys = keys
        self._name = f"{keys:,} keys"
        self._directory = directory
        self._options = {"execution.checkpointing.dir": f"{directory}/checkpoints", **options}
        self._make: Callable[[int], Any] = record_maker(keys)

    def run(self) -> None:
        """Build the state, stop, come back, touch one percent."""
        savepoint, size = self._build()
        self._come_back(savepoint, size)

    def _build(self) -> tuple[str, int]:
        GATE.records = self._keys
        self._watch.start_over()
        started = time.perf_counter()
        client = start_count(self._make, PARALLELISM, self._options)
        self._watch.wait_for(self._keys)
        built = time.perf_counter()
        emit(f"{self._name}: state built", built - started, "s")
        emit(f"{self._name}: state built at", self._keys / (built - started), "keys/s")
        savepoint = client.stop_with_savepoint(False, f"{self._directory}/savepoints").result()
        emit(f"{self._name}: savepoint", time.perf_counter() - built, "s")
        client.get_job_execution_result().result()
        files = files_below(savepoint)
        size = sum(files.values())
        emit(f"{self._name}: savepoint size, in {len(files)} files", size / _MIB, "MiB")
        return savepoint, size

    def _come_back(self, savepoint: str, size: int) -> None:
        GATE.records += 1
        self._watch.start_over()
        options = {**self._options, "execution.state-recovery.path": savepoint}
        started = time.perf_counter()
        client = start_count(self._make, PARALLELISM, options)
        self._watch.wait_for(1)
        emit(f"{self._name}: from start to the first epoch", time.perf_counter() - started, "s")
        emit(f"{self._name}: read from files for that", size / _MIB, "MiB")
        self._watch.start_over()
        GATE.records += 1
        started = time.perf_counter()
        self._watch.wait_for(1)
        emit(f"{self._name}: the second epoch", (time.perf_counter() - started) * 1000, "ms")
        self._touch(client, size)
        client.cancel().result()

    def _touch(self, client: JobClient, size: int) -> None:
        """Touch one percent of the keys, and see what a checkpoint adds on disk."""
        master = client._handle._master  # type: ignore[attr-defined]  # nothing public asks for a checkpoint
        self._settle()
        master.trigger_checkpoint().result()
        before = files_below(f"{self._directory}/checkpoints")
        self._watch.start_over()
        touched = max(1, self._keys // 100)
        GATE.records += touched
        self._watch.wait_for(touched)
        started = time.perf_counter()
        master.trigger_checkpoint().result()
        emit(f"{self._name}: checkpoint after touching 1 %", (time.perf_counter() - started) * 1000, "ms")
        after = files_below(f"{self._directory}/checkpoints")
        new = {path: file_size for path, file_size in after.items() if path not in before}
        merged = sum(file_size for path, file_size in new.items() if path.endswith(".merged"))
        written = sum(new.values()) - merged
        emit(
            f"{self._name}: new on disk after touching 1 %, in {len(self._watch.epochs)} epochs",
            written / _MIB,
            "MiB",
            ratio=written / size,
            against="all of it",
            goal="about 0.01",
        )
        emit(f"{self._name}: written by compactions that fell due meanwhile", merged / _MIB, "MiB")

    def _settle(self) -> None:
        """Give compactions that the restored chains are due for time to end; each epoch takes one over."""
        quiet = 0
        files: set[str] = set()
        while quiet < 3:
            self._watch.start_over()
            GATE.records += 1
            self._watch.wait_for(1)
            time.sleep(1.0)
            now = {path for path in files_below(f"{self._directory}/checkpoints") if path.endswith(".merged")}
            quiet = quiet + 1 if now == files else 0
            files = now


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the usual number of records")
    parser.add_argument("--keys", type=int, default=KEYS, help="keys of the job that comes back")
    parser.add_argument("--only", choices=["overhead", "recovery", "memory"])
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    chosen = parser.parse_args()
    spark_context(Configuration())
    watch = Watch()
    directory = tempfile.mkdtemp(prefix="headrace-bench-recovery-")
    try:
        with ExecutionContext(executors={"spark": watch.executor}).entered():
            # Workers are started and warmed before anything is measured.
            jobs.run_keyed_count(50_000, 1_000, PARALLELISM)
            if chosen.only in (None, "overhead"):
                overhead(chosen.rounds, chosen.scale, directory)
            if chosen.only in (None, "recovery"):
                Recovery(watch, chosen.keys, directory, {"state.backend.type": chosen.backend}).run()
            if chosen.only in (None, "memory"):
                memory_jobs.measure(watch, chosen.scale, directory)
    finally:
        stop_spark()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
