"""Parallelism: a function that computes for a millisecond per record, in one subtask and in several.

Prints how long both take, and which part of the records the busiest subtask got.

    python examples/tuning/parallelism.py [records] [subtasks]
"""

# A row names the subtask that has computed it.
# headrace: verify --ignore 0

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter

from headrace.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment

ROUNDS = 1_500


class Fingerprint(MapFunction):
    """Computes the fingerprint of a number, and says which subtask did it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> tuple[int, int, str]:
        digest = hashlib.pbkdf2_hmac("sha256", str(value).encode(), b"headrace", ROUNDS)
        return self._subtask, value, digest.hex()


def build(env: StreamExecutionEnvironment, count: int, parallelism: int) -> DataStream:
    """Compute in so many subtasks. The source has one: behind it records are distributed evenly."""
    numbers = env.from_collection(range(count)).rebalance()
    return numbers.map(Fingerprint()).set_parallelism(parallelism)


def timed(stream: DataStream) -> tuple[float, list[tuple[int, int, str]]]:
    """Run a job; return how long it took and what came out."""
    began = time.perf_counter()
    with stream.execute_and_collect() as rows:
        found = list(rows)
    return time.perf_counter() - began, found


def busiest_share(rows: list[tuple[int, int, str]]) -> float:
    """Return the part of the records that the busiest subtask got."""
    by_subtask = Counter(subtask for subtask, _, _ in rows)
    return max(by_subtask.values()) / by_subtask.total()


def main(count: int, parallelism: int) -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    timed(build(env, 1, parallelism))  # Spark and its workers have started after that
    for width in (1, parallelism):
        took_s, rows = timed(build(env, count, width))
        print(
            f"{width} subtasks: {took_s:.1f} s, the busiest gets {busiest_share(rows):.0%} of {count} records"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]) if len(sys.argv) > 1 else (5_000, 2))
