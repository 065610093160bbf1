"""Back pressure: a function that asks a service and waits. The same lookups one by one, and many at a time.

Prints how long both take. The service takes 10 ms for an answer.

    python examples/tuning/slow_lookups.py [lookups]
"""

from __future__ import annotations

import asyncio
import sys
import time

from headrace.common import Time
from headrace.datastream import AsyncDataStream, AsyncFunction, DataStream, StreamExecutionEnvironment

ANSWER_S = 0.01


def look_up(user: int) -> tuple[int, str]:
    """Wait for the answer: meanwhile nothing else happens."""
    time.sleep(ANSWER_S)
    return user, f"name {user}"


class LookUp(AsyncFunction):
    """Asks for many users at a time."""

    async def async_invoke(self, value: int) -> list[tuple[int, str]]:
        await asyncio.sleep(ANSWER_S)
        return [(value, f"name {value}")]

    def timeout(self, value: int) -> list[tuple[int, str]]:
        return [(value, "unknown")]


def one_by_one(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """Each lookup waits for the one before."""
    return env.from_collection(range(count)).map(look_up)


def many_at_a_time(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """A hundred lookups are under way at the same time; results keep their order."""
    users = env.from_collection(range(count))
    return AsyncDataStream.ordered_wait(users, LookUp(), Time.seconds(10), 100)


def timed(stream: DataStream) -> tuple[float, list[tuple[int, str]]]:
    """Run a job; return how long it took and what came out."""
    began = time.perf_counter()
    with stream.execute_and_collect() as rows:
        found = list(rows)
    return time.perf_counter() - began, found


def main(count: int) -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    timed(env.from_collection([0]).map(lambda user: user))  # Spark has started after that
    print(f"{count} lookups, one by one: {timed(one_by_one(env, count))[0]:.1f} s")
    print(f"{count} lookups, many at a time: {timed(many_at_a_time(env, count))[0]:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
