"""Sessions of readers: windows that grow until nothing comes for a while.

A session window begins with a record and ends a gap after the last one. Each record first makes a session of its own;
sessions of a key that overlap or touch become one, also when a record that came out of order closes the hole between
two of them.

    gap 5    x . x . . . . . . x . . x . . .      two sessions of two clicks each
             |-----------|     |-----------|

The gap may depend on the record: who starts a video is expected to stay quiet for longer than who opens an article.

    headrace run examples/time/session_gaps.py
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace.common import Duration, Time, WatermarkStrategy
from headrace.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from headrace.datastream.window import EventTimeSessionWindows, TimeWindow

MINUTE_MS = 60_000
GAP = Time.minutes(5)
#: How long after each kind of page a reader is expected to come back.
GAPS_MS = {"article": 5 * MINUTE_MS, "video": 20 * MINUTE_MS}
DISORDER_MS = 3 * MINUTE_MS


class Visit(NamedTuple):
    reader: str
    page: str
    time_ms: int


class Session(NamedTuple):
    reader: str
    start_ms: int
    #: When it is over: a gap after the last page.
    end_ms: int
    pages: int


def visits(count: int, readers: int = 4, seed: int = 3) -> list[Visit]:
    """Make up visits in the order they come; the same ones every time."""
    chance = random.Random(seed)
    made = [
        Visit(
            f"reader-{chance.randrange(readers)}",
            "video" if chance.random() < 0.25 else "article",
            chance.randrange(count * MINUTE_MS),
        )
        for _ in range(count)
    ]
    return sorted(made, key=lambda visit: visit.time_ms + chance.randrange(DISORDER_MS))


class Summarize(ProcessWindowFunction[Visit, Any, str, TimeWindow]):
    """Gets all visits of a session when it is over."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Visit]
    ) -> Iterator[Session]:
        window = context.window()
        yield Session(key, window.start, window.end, len(list(elements)))


def gap_after(visit: Visit) -> int:
    """Say how long a session waits for more after a visit, in ms."""
    return GAPS_MS[visit.page]


def build(env: StreamExecutionEnvironment, made: Sequence[Visit]) -> dict[str, DataStream]:
    """Return the sessions with one gap for all, and with a gap that depends on the page."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(DISORDER_MS)
    ).with_timestamp_assigner(lambda visit, _: visit.time_ms)
    timed = env.from_collection(made).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    by_reader = timed.key_by(lambda visit: visit.reader)
    fixed = EventTimeSessionWindows.with_gap(GAP)
    dynamic = EventTimeSessionWindows.with_dynamic_gap(gap_after)
    return {
        "fixed": by_reader.window(fixed).process(Summarize()).name("One gap"),
        "dynamic": by_reader.window(dynamic).process(Summarize()).name("Gap by page"),
    }


def main() -> None:
    made = visits(100)
    for name in ("fixed", "dynamic"):
        env = StreamExecutionEnvironment.get_execution_environment()
        with build(env, made)[name].execute_and_collect(f"session gaps, {name}") as rows:
            sessions = list(rows)
        longest = max(sessions, key=lambda session: (session.end_ms - session.start_ms, session.reader))
        minutes = (longest.end_ms - longest.start_ms) // MINUTE_MS
        print(f"{name}: {len(sessions)} sessions, the longest {minutes} minutes with {longest.pages} pages")


if __name__ == "__main__":
    main()
