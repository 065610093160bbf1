"""Alerts for boats that are out too long: event-time timers in a KeyedProcessFunction.

Every hire of a boat has two events, "out" and "back", with the time on the jetty's clock. They come up to a minute out
of order, so "back" may come before "out"; some come hours late, and some never. The alert must not wait for "back": it
leaves when event time says that the boat is overdue, whether or not anything of that boat has come.

    out                    overdue            given up      event time -->
     |--------- two hours -----|-- ten hours ------|
     ^ a timer is set          ^ it fires: alert   ^ "no return" goes to the side, state is cleared
          ^ "back": the timer is deleted, nothing is said

An alert leaves once for each hire that is too long, also when "back" is there before the timer has fired. If the boat
comes back after its alert, that is said, too: the alert may have been too early, because "back" was late.

    headrace run examples/time/overdue_boats.py
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headrace.common import Duration, Types, WatermarkStrategy
from headrace.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import ValueStateDescriptor

MINUTE_MS = 60_000
#: A boat is overdue after this.
LIMIT_MS = 120 * MINUTE_MS
#: From then on nothing more is expected of it.
GIVE_UP_MS = 720 * MINUTE_MS
#: How much later than a later event an event may come. Some come later still.
DISORDER_MS = MINUTE_MS
#: Hires of which one event never came.
INCOMPLETE = OutputTag("incomplete")


class Event(NamedTuple):
    hire: int
    what: str  # "out" or "back"
    time_ms: int


def events(hires: int, seed: int = 11) -> list[Event]:
    """Make up events in the order they come; the same ones every time."""
    chance = random.Random(seed)
    coming: list[tuple[int, Event]] = []
    for hire in range(hires):
        out_ms = hire * 7 * MINUTE_MS + chance.randrange(MINUTE_MS)
        back_ms = out_ms + chance.randrange(10, 170) * MINUTE_MS + chance.randrange(MINUTE_MS)
        for event in (Event(hire, "out", out_ms), Event(hire, "back", back_ms)):
            fate = chance.random()
            if fate < 0.06:
                continue  # never comes
            delay_ms = (
                chance.randrange(100, 400) * MINUTE_MS if fate > 0.94 else chance.randrange(DISORDER_MS)
            )
            coming.append((event.time_ms + delay_ms, event))
    return [event for _, event in sorted(coming)]


class Overdue(KeyedProcessFunction):
    """Waits for the second event of a hire, whichever that is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.out = runtime_context.get_state(ValueStateDescriptor("out", Types.LONG()))
        self.back = runtime_context.get_state(ValueStateDescriptor("back", Types.LONG()))
        self.is_told = runtime_context.get_state(ValueStateDescriptor("told", Types.BOOLEAN()))

    def process_element(self, value: Event, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        mine, other = (self.out, self.back) if value.what == "out" else (self.back, self.out)
        mine.update(value.time_ms)
        first_ms = other.value()
        if first_ms is None:
            ctx.timer_service().register_event_time_timer(value.time_ms + LIMIT_MS)
            return
        # Both are there: nobody waits any more. A timer that is not set can be deleted, too.
        ctx.timer_service().delete_event_time_timer(first_ms + LIMIT_MS)
        ctx.timer_service().delete_event_time_timer(first_ms + GIVE_UP_MS)
        both = first_ms, value.time_ms
        back_ms, out_ms = both if value.what == "out" else reversed(both)
        lasted_ms = back_ms - out_ms
        if lasted_ms > LIMIT_MS and not self.is_told.value():
            yield value.hire, "overdue", out_ms + LIMIT_MS
        if lasted_ms > LIMIT_MS or self.is_told.value():
            yield value.hire, "back after", lasted_ms
        self._clear()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        hire, out_ms = ctx.get_current_key(), self.out.value()
        if out_ms is None:
            yield INCOMPLETE, (hire, "no departure")
        elif timestamp == out_ms + LIMIT_MS:
            self.is_told.update(True)
            ctx.timer_service().register_event_time_timer(out_ms + GIVE_UP_MS)
            yield hire, "overdue", timestamp
            return
        else:
            yield INCOMPLETE, (hire, "no return")
        self._clear()

    def _clear(self) -> None:
        for state in (self.out, self.back, self.is_told):
            state.clear()


def build(env: StreamExecutionEnvironment, coming: Sequence[Event]) -> dict[str, DataStream]:
    """Return the alerts, and the hires of which one event never came."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(DISORDER_MS)
    ).with_timestamp_assigner(lambda event, _: event.time_ms)
    # One subtask, as the collection has: several would each see a part of the events and mix their order.
    timed = env.from_collection(coming).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    alerts = timed.key_by(lambda event: event.hire).process(Overdue()).name("Overdue")
    return {"alerts": alerts, "incomplete": alerts.get_side_output(INCOMPLETE)}


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    streams = build(env, events(60))
    streams["alerts"].map(lambda alert: f"boat {alert[0]} {alert[1]} {clock(alert[2])}").print()
    streams["incomplete"].map(lambda hire: f"boat {hire[0]}: {hire[1]}").print("INCOMPLETE")
    env.execute("overdue boats")


def clock(time_ms: int) -> str:
    return f"{time_ms // 3_600_000}:{time_ms // MINUTE_MS % 60:02}"


if __name__ == "__main__":
    main()
