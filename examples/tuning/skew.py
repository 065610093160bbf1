"""Skew: one page has nine tenths of the clicks. Counts them by page, then in two phases.

Prints which part of the records the busiest subtask gets, before and after.

    python examples/tuning/skew.py [clicks]
"""

# A row says which subtask has counted.
# headrace: verify --ignore 0

from __future__ import annotations

import sys
import zlib
from collections import Counter
from typing import Any

from headrace.datastream import DataStream, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction
from headrace.datastream.state import ValueStateDescriptor

#: A hot page is shared by so many parts.
SPREAD = 8


def part_of(user: str) -> int:
    """Return the part that a user's clicks belong to; hash() of a text differs between processes."""
    return zlib.crc32(user.encode()) % SPREAD


class Count(KeyedProcessFunction):
    """Counts the records of a key, and says which subtask did it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield self._subtask, ctx.get_current_key(), count


def clicks(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """Return clicks of 500 users, nine of ten on the front page."""
    rows = [("front" if n % 10 else f"page {n % 70}", f"user {n % 500}") for n in range(count)]
    return env.from_collection(rows)


def skewed(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """Count by page: all clicks on the front page go to one subtask."""
    return clicks(env, count).key_by(lambda click: click[0]).process(Count())


def spread(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """Count by page and part of the users first; adding the parts up is little work."""
    return clicks(env, count).key_by(lambda click: (click[0], part_of(click[1]))).process(Count())


def busiest_share(env: StreamExecutionEnvironment, stream: DataStream) -> float:
    """Run a job; return the part of the records that its busiest subtask got."""
    with stream.execute_and_collect() as rows:
        by_subtask = Counter(subtask for subtask, _, _ in rows)
    return max(by_subtask.values()) / by_subtask.total()


def main(count: int) -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)
    print(f"by page: the busiest of 4 subtasks gets {busiest_share(env, skewed(env, count)):.0%}")
    print(f"in two phases: it gets {busiest_share(env, spread(env, count)):.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
