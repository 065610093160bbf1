"""`make bench-state`: a keyed running count on each state backend, in one process and without Spark.

Prints JSON lines as `make bench` does. Nothing decoded is kept from one epoch to the next, as if another worker had the
subtask each time: every touched key is read from the store, written to a change file and applied to the store.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bench.workloads import key_of, record_maker
from headrace.common import Types
from headrace.state.changes import write_change
from headrace.state.descriptors import ValueStateDescriptor
from headrace.state.handles import StateChain, StateFile
from headrace.state.keyed import KeyedStateBackend
from headrace.state.stores.factory import make_store
from headrace.state.stores.settings import RocksDBSettings, StoreSettings

MAX_PARALLELISM = 128
#: Where copies are by default: hashmap's in memory, RocksDB's on disk.
BACKENDS = {
    "hashmap": (StoreSettings(), "/dev/shm" if Path("/dev/shm").is_dir() else None),
    "rocksdb": (StoreSettings(rocksdb=RocksDBSettings()), None),
}


class Count:
    """A running count per key, epoch after epoch."""

    def __init__(self, backend: str) -> None:
        settings, parent = BACKENDS[backend]
        self._copy = tempfile.mkdtemp(prefix="headrace-bench-copy-", dir=parent)
        self._files = tempfile.mkdtemp(prefix="headrace-bench-state-")
        store = make_store(settings, self._copy)
        self._keyed = KeyedStateBackend(store, range(MAX_PARALLELISM), MAX_PARALLELISM, cache_entries=0)
        self._chain = StateChain("bench")

    def epoch(self, first: int, records: int, keys: int) -> float:
        """Count records and return how long it took, in seconds."""
        make = record_maker(keys)
        batch = [make(number) for number in range(first, first + records)]
        started = time.perf_counter()
        keyed, current = self._keyed, self._keyed.current
        keyed.begin_epoch(self._chain)
        count = keyed.get_state(ValueStateDescriptor("count", Types.LONG()))
        for record in batch:
            current.key = key_of(record)
            count.update((count.value() or 0) + 1)
        version = self._chain.version + 1
        path = f"{self._files}/{version}.change"
        size = write_change(path, keyed.take_changes(version))
        keyed.settle(path)
        self._chain = self._chain.append(StateFile(path, version - 1, version, size))
        return time.perf_counter() - started

    def close(self) -> None:
        """Remove what was written."""
        self._keyed.close()
        for directory in (self._copy, self._files):
            shutil.rmtree(directory, ignore_errors=True)


def measure(backend: str, keys: int, epochs: int, records: int) -> float:
    """Return records per second over the later half of the epochs, when all keys are there."""
    with closing(Count(backend)) as job:
        times = [job.epoch(number * records, records, keys) for number in range(epochs)]
    return records / statistics.median(times[epochs // 2 :])


def emit(name: str, value: float, unit: str, ratio: float | None = None) -> None:
    """Print one measurement."""
    against = "" if ratio is None else "hashmap"
    line = {"name": name, "value": round(value, 2), "unit": unit, "ratio": ratio and round(ratio, 3)}
    print(json.dumps({**line, "against": against, "goal": ""}), flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer records and keys")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    for keys, records in ((1_000, 200_000), (int(1_000_000 * chosen.scale), int(250_000 * chosen.scale))):
        rates: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
        for _ in range(chosen.rounds):
            for backend, found in rates.items():
                found.append(measure(backend, keys, 8, records))
        ratio = statistics.median(map(lambda a, b: a / b, rates["rocksdb"], rates["hashmap"]))
        for backend, found in rates.items():
            emit(
                f"keyed running count, {keys:,} keys, {backend}",
                statistics.median(found),
                "records/s",
                ratio if backend == "rocksdb" else None,
            )
    for backend in BACKENDS:
        with closing(Count(backend)) as job:
            times = [job.epoch(number, 1, 1) for number in range(60)]
        emit(f"epoch with one record, {backend}", statistics.median(times[10:]) * 1000, "ms")


if __name__ == "__main__":
    main()
