"""Memory: a function that keeps everything it has looked up, and one that keeps what was used last.

Prints how much each keeps at most. With a limit per worker, the one without bounds fails and says why:

    headrace run -D headrace.python.memory-per-worker=100m examples/tuning/memory.py [users]
"""

# A row says how many bytes the subtask has kept so far.
# headrace: verify --ignore 1

from __future__ import annotations

import sys
from functools import lru_cache

from headrace.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment

#: Bytes of a profile, and how many of them a bounded cache keeps.
PROFILE, KEPT = 20_000, 500


def profile_of(user: int) -> bytes:
    """Load the profile of a user."""
    return user.to_bytes(8, "big") * (PROFILE // 8)


class LookUp(MapFunction):
    """Looks up the profile of every user, and keeps profiles in the worker.

    Args:
        most: How many; None for all, so memory grows as long as new users come.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most

    def open(self, runtime_context: RuntimeContext) -> None:
        self._profile = lru_cache(self._most)(profile_of)

    def map(self, value: int) -> tuple[int, int]:
        size = len(self._profile(value))
        return value, self._profile.cache_info().currsize * size


def build(env: StreamExecutionEnvironment, count: int, most: int | None) -> DataStream:
    """Look up so many users; each visits four times in a row."""
    visits = [visit // 4 for visit in range(count * 4)]
    return env.from_collection(visits).map(LookUp(most))


def kept_bytes(stream: DataStream) -> int:
    """Run a job; return the most bytes it has kept."""
    with stream.execute_and_collect() as rows:
        return max(kept for _, kept in rows)


def main(count: int) -> None:
    """Run the bounded one first: the other one may fail."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    for name, most in ((f"the last {KEPT} profiles", KEPT), ("all profiles", None)):
        print(f"{name}: {kept_bytes(build(env, count, most)) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
