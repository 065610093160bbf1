"""Watches sensors: value state, map state, and a side output for alerts.

For every sensor the program remembers the last temperature (value state) and how many readings fell into which band
(map state). The main output is one line per reading with the change since the last one. An alert goes to a side
output when a reading jumps by ten degrees or more, and with every third reading in the hot band.

    headrace run examples/sensor_alerts.py
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.common import Types
from headrace.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import MapStateDescriptor, ValueStateDescriptor

ALERTS = OutputTag("alerts", Types.STRING())
JUMP = 10.0
HOT_READINGS = 3


class Reading(NamedTuple):
    sensor: str
    second: int
    celsius: float


def readings(count: int, sensors: int = 4) -> list[Reading]:
    """Make up readings; the same ones every time."""
    chance = random.Random(7)
    return [
        Reading(f"sensor-{chance.randrange(sensors)}", second, round(chance.uniform(15, 45), 1))
        for second in range(count)
    ]


def band_of(celsius: float) -> str:
    return "cold" if celsius < 20 else "hot" if celsius >= 40 else "normal"


class Watch(KeyedProcessFunction):
    """Compares each reading with what the sensor said before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
        self.bands = runtime_context.get_map_state(MapStateDescriptor("bands", Types.STRING(), Types.LONG()))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        before = self.last.value()
        self.last.update(value.celsius)
        change = 0.0 if before is None else round(value.celsius - before, 1)
        if abs(change) >= JUMP:
            yield ALERTS, f"{value.sensor}: jumped by {change:+} to {value.celsius} at second {value.second}"

        band = band_of(value.celsius)
        count = (self.bands.get(band) or 0) + 1
        self.bands.put(band, count)
        if band == "hot" and count % HOT_READINGS == 0:
            seen = ", ".join(f"{name} {times}" for name, times in self.bands.items())
            yield ALERTS, f"{value.sensor}: {count} hot readings by second {value.second} ({seen})"
        yield value.sensor, value.second, value.celsius, change


def build(env: StreamExecutionEnvironment, count: int = 40) -> tuple[DataStream, DataStream]:
    """Return the readings with their changes, and the alerts."""
    # A collection has one subtask, so the readings of a sensor come in order.
    watched = (
        env.from_collection(readings(count)).key_by(lambda each: each.sensor).process(Watch()).name("Watch")
    )
    return watched, watched.get_side_output(ALERTS)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    watched, alerts = build(env)
    watched.filter(lambda row: row[3] > 0).map(lambda row: f"{row[0]} is {row[3]} warmer").print()
    alerts.print("ALERT")
    env.execute("sensor alerts")


if __name__ == "__main__":
    main()
