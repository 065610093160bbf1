"""The best tips of every hour: a window per waiter, then one window over all of them.

The first window adds the tips of a waiter up as they come and keeps one number for each waiter and hour: an
AggregateFunction does the adding, a ProcessWindowFunction puts the name and the hour to the result. What a window emits
has the last millisecond of the window as its timestamp, so the second window, over the same hours and all waiters, gets
all results of an hour before the watermark closes it.

    tips         ann 3   bob 5   ann 4 | ...          event time -->
    per waiter                         | ann 7, bob 5
    of the hour                        | ann 7

    headrace run examples/time/hourly_tips.py
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace.common import Duration, Time, WatermarkStrategy
from headrace.datastream import (
    AggregateFunction,
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from headrace.datastream.window import TimeWindow, TumblingEventTimeWindows

HOUR = Time.hours(1)
WAITERS = ("ann", "bob", "cid", "dora", "eve")
#: How much later than a later tip a tip may be entered.
DISORDER_MS = 120_000


class Tip(NamedTuple):
    waiter: str
    cents: int
    time_ms: int


def tips(count: int, seed: int = 5) -> list[Tip]:
    """Make up the tips of an evening in the order they are entered; the same ones every time."""
    chance = random.Random(seed)
    given = [
        Tip(chance.choice(WAITERS), chance.randrange(20, 900), number * 61_000 + chance.randrange(61_000))
        for number in range(count)
    ]
    return sorted(given, key=lambda tip: tip.time_ms + chance.randrange(DISORDER_MS))


class AddUp(AggregateFunction):
    """The accumulator is the sum so far."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Tip, accumulator: int) -> int:
        return accumulator + value.cents

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithHour(ProcessWindowFunction[int, Any, str, TimeWindow]):
    """Gets the one result of the aggregate, and knows whose and of which hour it is."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterator[tuple[int, str, int]]:
        [cents] = elements
        yield context.window().end, key, cents


def build(env: StreamExecutionEnvironment, given: Sequence[Tip]) -> dict[str, DataStream]:
    """Return (end of the hour, waiter, cents): for every waiter, and for the best one of each hour."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(DISORDER_MS)
    ).with_timestamp_assigner(lambda tip, _: tip.time_ms)
    # One subtask, as the collection has, so that the order stays as it is.
    timed = env.from_collection(given).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    hourly = (
        timed.key_by(lambda tip: tip.waiter)
        .window(TumblingEventTimeWindows.of(HOUR))
        .aggregate(AddUp(), WithHour())
        .name("Tips per waiter")
    )
    best = hourly.window_all(TumblingEventTimeWindows.of(HOUR)).max_by(2).name("Best of the hour")
    return {"hourly": hourly, "best": best}


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with build(env, tips(400))["best"].execute_and_collect("hourly tips") as rows:
        for hour_end_ms, waiter, cents in rows:
            hour = hour_end_ms // HOUR.to_milliseconds()
            print(f"{hour - 1:2} to {hour:2} o'clock: {waiter} with {cents / 100:.2f}")


if __name__ == "__main__":
    main()
