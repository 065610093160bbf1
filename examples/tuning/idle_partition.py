"""Idleness: one of two partitions falls silent, and no window fires until it speaks again.

Prints how many windows fire in the meantime, with and without `with_idleness`. Partitions of a Kafka topic behave as
the two sources here.

    python examples/tuning/idle_partition.py
"""

# A row says when its window has fired, by the clock.
# headrace: verify --ignore 2

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from headrace.common import Duration, Time, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from headrace.datastream.window import TimeWindow, TumblingEventTimeWindows
from headrace.testing.sources import ScriptedSource, Stop

#: How many records the busy partition has, one for each second of event time; how many come in a second; and for how
#: long the other one is silent, s.
RECORDS, RATE, SILENT_S = 60, 20, 4.0


class CountAndTime(ProcessWindowFunction):
    """Says how many records a window has, and when it fired."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterable[tuple[int, int, float]]:
        window: TimeWindow = context.window()
        yield window.start // 1000, len(list(elements)), time.time()  # headrace: ignore[HR401]


def silent(directory: str) -> ScriptedSource:
    """Return a partition that falls silent after its first record, until it is resumed."""
    return ScriptedSource([("quiet", 0), Stop(), ("quiet", RECORDS)], directory=directory)


def build(env: StreamExecutionEnvironment, quiet: ScriptedSource, idle: Duration | None) -> DataStream:
    """Count the records of two partitions in windows of ten seconds."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1] * 1000
    )
    if idle is not None:
        strategy = strategy.with_idleness(idle)
    busy = DataGeneratorSource(lambda second: ("busy", second), count=RECORDS, rate_per_second=RATE)
    records = env.from_source(busy, strategy, "busy").union(env.from_source(quiet, strategy, "quiet"))
    windows = records.key_by(lambda _: "all").window(TumblingEventTimeWindows.of(Time.seconds(10)))
    return windows.process(CountAndTime())


def run(
    env: StreamExecutionEnvironment, idle: Duration | None, wake: Callable[[ScriptedSource], None]
) -> list[tuple[int, int, float]]:
    """Run a job; return the windows: start, records, when they fired."""
    with tempfile.TemporaryDirectory() as directory:
        source = silent(directory)
        with build(env, source, idle).execute_and_collect() as rows:
            wake(source)
            return list(rows)


def run_until_windows(
    env: StreamExecutionEnvironment, idle: Duration, count: int
) -> list[tuple[int, int, float]]:
    """Run a job whose partition stays silent until so many windows have fired; return these."""
    with tempfile.TemporaryDirectory() as directory:
        source = silent(directory)
        with build(env, source, idle).execute_and_collect() as rows:
            early = [row for row, _ in zip(rows, range(count), strict=False)]
            source.resume()
            list(rows)
    return early


def main() -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    for name, idle in (("without idleness", None), ("with idleness", Duration.of_millis(500))):
        woken: list[float] = []

        def wake(source: ScriptedSource, woken: list[float] = woken) -> None:
            def resume() -> None:
                woken.append(time.time())
                source.resume()

            threading.Timer(SILENT_S, resume).start()

        windows = run(env, idle, wake)
        early = [window for window in windows if window[2] < woken[0]]
        print(f"{name}: {len(early)} of {len(windows)} windows fired while the other partition was silent")


if __name__ == "__main__":
    main()
