"""A window of ten seconds that shows what it has every two seconds.

The assigner says which records belong together, the trigger when the result so far leaves. A continuous trigger fires
at every multiple of its interval and at the end of the window. Every result holds all records of the window up to then,
because the trigger does not purge.

    window     |0 - - - - - - - - - 10|
    fires          2   4   6   8   10        early, early, early, early, final

The same once by the records' own time and once by the clock of the machine. By event time a result leaves when the
watermark passes its time, so how early it is depends on how often watermarks come: once per batch of records. When a
watermark jumps over several intervals, the window fires once for each.

    headrace run examples/time/early_results.py
    headrace run examples/time/early_results.py --clock
"""

# What a window shows early depends on which records came first, its last result does not:
# headrace: verify --key 0 --only-last

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace.common import Configuration, Duration, Time, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from headrace.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

SIZE = Time.seconds(10)
EVERY = Time.seconds(2)
DISORDER_MS = 500


class Flow(NamedTuple):
    turbine: str
    litres: int
    time_ms: int


def flow(number: int, turbines: int = 2) -> Flow:
    """Make up the reading of a number, four of them in a second."""
    chance = random.Random(number)
    return Flow(f"turbine-{chance.randrange(turbines)}", chance.randrange(50, 150), number * 250)


def flows(count: int) -> list[Flow]:
    """Make up readings in the order they come: each up to half a second late."""
    chance = random.Random(2)
    return sorted(map(flow, range(count)), key=lambda each: each.time_ms + chance.randrange(DISORDER_MS))


class SumSoFar(ProcessWindowFunction[Flow, Any, str, TimeWindow]):
    """Adds the litres of a window up each time it fires."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Flow]
    ) -> Iterator[tuple[str, int, int]]:
        yield key, context.window().end, sum(each.litres for each in elements)


def build(env: StreamExecutionEnvironment, made: Sequence[Flow]) -> DataStream:
    """Return (turbine, end of the window, litres so far), by event time."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(DISORDER_MS)
    ).with_timestamp_assigner(lambda each, _: each.time_ms)
    timed = env.from_collection(made).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    return (
        timed.key_by(lambda each: each.turbine)
        .window(TumblingEventTimeWindows.of(SIZE))
        .trigger(ContinuousEventTimeTrigger.of(EVERY))
        .process(SumSoFar())
        .name("Litres so far")
    )


def build_by_clock(env: StreamExecutionEnvironment, flowing: DataStream) -> DataStream:
    """Return the same by the clock of the machine: when a reading comes decides which window it is in."""
    return (
        flowing.key_by(lambda each: each.turbine)
        .window(TumblingProcessingTimeWindows.of(SIZE))
        .trigger(ContinuousProcessingTimeTrigger.of(EVERY))
        .process(SumSoFar())
        .name("Litres so far")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Windows of ten seconds with a result every two.")
    parser.add_argument("--clock", action="store_true", help="by the clock of the machine: takes 24 seconds")
    configuration = Configuration()
    # Few records in an epoch, hence in a batch: a watermark comes after every five.
    configuration.set_string("headrace.epoch.max-records", "5")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    if parser.parse_args().clock:
        source = DataGeneratorSource(flow, count=96, rate_per_second=4)
        results = build_by_clock(env, env.from_source(source, WatermarkStrategy.no_watermarks(), "Flows"))
    else:
        results = build(env, flows(100))
    results.map(lambda row: (f"{row[0]}, window to second {row[1] // 1000 % 1000}", row[2])).print()
    env.execute("early results")


if __name__ == "__main__":
    main()
