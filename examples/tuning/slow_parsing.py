"""Flame graphs: a function that builds its parser for every record, and one that builds it in `open`.

Prints how long both take. While the first one runs, the flame graph of its vertex shows which line takes the time.

    headrace run --keep examples/tuning/slow_parsing.py [lines]
"""

from __future__ import annotations

import re
import sys
import time

from headrace.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment

#: What a line may be about: a long pattern, as rules of a firewall or names of products make them.
WORDS = [f"{first}{second}-{number}" for first in "abcd" for second in "wxyz" for number in range(10)]


def make_pattern() -> re.Pattern[str]:
    """Compile the rules; `re.compile` would keep a pattern that was compiled before, `purge` makes it forget."""
    re.purge()
    return re.compile("|".join(f"(?:^|\\s){re.escape(word)}(?=\\s|$)" for word in WORDS))


class CompilesEveryTime(MapFunction):
    """Compiles the rules for every line."""

    def map(self, value: str) -> tuple[str, int]:
        return value, len(make_pattern().findall(value))


class CompilesOnce(MapFunction):
    """Compiles the rules before the first line."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._pattern = make_pattern()

    def map(self, value: str) -> tuple[str, int]:
        return value, len(self._pattern.findall(value))


def build(env: StreamExecutionEnvironment, count: int, function: MapFunction) -> DataStream:
    """Find words of the rules in so many lines."""
    lines = [f"{WORDS[n % 7]} and {WORDS[n % len(WORDS)]} and nothing" for n in range(count)]
    return env.from_collection(lines).map(function)


def timed(stream: DataStream) -> tuple[float, list[tuple[str, int]]]:
    """Run a job; return how long it took and what came out."""
    began = time.perf_counter()
    with stream.execute_and_collect() as rows:
        found = list(rows)
    return time.perf_counter() - began, found


def main(count: int) -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    timed(build(env, 1, CompilesOnce()))  # Spark has started after that
    for name, function in (("in map", CompilesEveryTime()), ("in open", CompilesOnce())):
        print(f"{count} lines, compiled {name}: {timed(build(env, count, function))[0]:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
