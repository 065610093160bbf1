"""Late readings: a window that fires again for some time, and a side output for what comes later still.

Each gauge's readings are added up minute by minute. A minute's result leaves when the watermark passes the end of the
minute. The window stays for two minutes more, and every reading that comes for it in that time makes it fire again,
with the corrected sum. A reading that comes after that finds its window gone, and goes to the side output.

    window [0, 60)           |------ collects ------|---- fires again ----|  gone: side output
    watermark, in seconds    0                      60                   180

Which readings are late depends on the watermarks, which come once per batch of records: a reading is late if one has
passed it before it came. Every reading is counted once, in the last result for its minute or in the side output.

    headrace run examples/time/late_data.py
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace.common import Configuration, Duration, Time, Types, WatermarkStrategy
from headrace.datastream import DataStream, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor
from headrace.datastream.window import TimeWindow, TumblingEventTimeWindows

SIZE = Time.minutes(1)
LATENESS = Time.minutes(2)
#: What the watermark allows for; some readings are later than that.
DISORDER_MS = 5_000
TOO_LATE = OutputTag("too-late")


class Reading(NamedTuple):
    gauge: str
    litres: int
    time_ms: int


def readings(count: int, gauges: int = 3, seed: int = 4) -> list[Reading]:
    """Make up readings in the order they come; every fifth comes late, up to five minutes."""
    chance = random.Random(seed)
    made = [
        Reading(f"gauge-{chance.randrange(gauges)}", chance.randrange(1, 100), number * 4_000)
        for number in range(count)
    ]
    return sorted(
        made,
        key=lambda reading: (
            reading.time_ms + chance.randrange(300_000 if chance.random() < 0.2 else DISORDER_MS)
        ),
    )


class Total(ProcessWindowFunction[Reading, Any, str, TimeWindow]):
    """Adds the readings of a minute up, and says how often it has done so for this gauge and minute."""

    _firings = ValueStateDescriptor("firings", Types.LONG())

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Reading]
    ) -> Iterator[tuple[str, int, int, int]]:
        # State of this gauge in this window; global_state() would be state of the gauge in all windows.
        firings = context.window_state().get_state(self._firings)
        count = (firings.value() or 0) + 1
        firings.update(count)
        yield key, context.window().end, sum(reading.litres for reading in elements), count

    def clear(self, context: ProcessWindowFunction.Context[TimeWindow]) -> None:
        context.window_state().get_state(self._firings).clear()


def build(env: StreamExecutionEnvironment, made: Sequence[Reading]) -> dict[str, DataStream]:
    """Return (gauge, end of the minute, litres, number of the result), and the readings that came too late."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(DISORDER_MS)
    ).with_timestamp_assigner(lambda reading, _: reading.time_ms)
    timed = env.from_collection(made).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    totals = (
        timed.key_by(lambda reading: reading.gauge)
        .window(TumblingEventTimeWindows.of(SIZE))
        .allowed_lateness(LATENESS)
        .side_output_late_data(TOO_LATE)
        .process(Total())
        .name("Litres per minute")
    )
    return {"totals": totals, "too late": totals.get_side_output(TOO_LATE)}


def main() -> None:
    configuration = Configuration()
    # Few records in an epoch, hence in a batch: a watermark comes after every ten.
    configuration.set_string("headrace.epoch.max-records", "10")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    streams = build(env, readings(150))
    streams["totals"].map(
        lambda total: (
            f"{total[0]}, minute {total[1] // 60_000}: {total[2]} litres"
            + (f" (correction {total[3] - 1})" if total[3] > 1 else "")
        )
    ).print()
    streams["too late"].map(lambda reading: f"{reading.litres} litres of {reading.gauge}").print("TOO LATE")
    env.execute("late data")


if __name__ == "__main__":
    main()
