"""Large state: a count by key with its copy in memory (`hashmap`) and on disk (`rocksdb`).

Prints how long both take.

    python examples/tuning/state_backends.py [keys]
"""

from __future__ import annotations

import sys
import time
from typing import Any

from headrace.common import Configuration
from headrace.datastream import DataStream, StreamExecutionEnvironment

TEXT = "x" * 200


def build(env: StreamExecutionEnvironment, keys: int) -> DataStream:
    """Keep the last of two texts of every key."""
    numbers = env.from_collection(range(2 * keys))
    return numbers.map(lambda n: (n % keys, n // keys, TEXT)).key_by(lambda row: row[0]).max_by(1)


def run(settings: dict[str, str], backend: str, keys: int) -> tuple[float, list[Any]]:
    """Return how long it took, and what came out; an epoch has a quarter of the input."""
    options = {
        "state.backend.type": backend,
        "headrace.epoch.max-records": str(max(1, keys // 2)),
        **settings,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
    began = time.perf_counter()
    with build(env.set_parallelism(1), keys).execute_and_collect() as rows:
        found = [(row[0], row[1]) for row in rows]
    return time.perf_counter() - began, found


def main(keys: int) -> None:
    """Run both and compare them."""
    run({}, "hashmap", 10)  # Spark has started after that
    for backend in ("hashmap", "rocksdb"):
        print(f"{backend}: {run({}, backend, keys)[0]:.1f} s for {keys} keys")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
