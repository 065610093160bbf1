"""A day's takings that are told although nobody tells that the day is over: a trigger of one's own.

A day window of event time fires when the watermark passes midnight. The watermark follows the records, so if the tills
fall silent in the evening, the day stays open until the first sale of the next morning. The trigger here waits for
both clocks: the day is told when the watermark passes its end, or when no sale of the shop has come for some time by
the clock of the machine. If a sale comes after all, the day is told again, with the sale in it.

    sales        x  x x     x                              (silence)
    told                              ^ half an hour after the last sale, by the clock
    watermark    ...................  . . . . . . . . . .  ^ midnight: nothing new, so nothing is said

`ProcessingTimeoutTrigger`, which comes with headrace, does something like it around any other trigger, without the part
about nothing new.

    headrace run examples/time/quiet_day.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.common import Duration, Time, Types, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor
from headrace.datastream.window import TimeWindow, Trigger, TriggerResult, TumblingEventTimeWindows

DAY = Time.days(1)
HOUR_MS = 3_600_000


class Sale(NamedTuple):
    shop: str
    cents: int
    time_ms: int


SALES = [
    Sale("baker", 350, 7 * HOUR_MS),
    Sale("smith", 4_200, 9 * HOUR_MS),
    Sale("baker", 120, 10 * HOUR_MS),
    Sale("baker", 275, 17 * HOUR_MS),
    Sale("smith", 1_900, 18 * HOUR_MS),
]

#: When the clock says that a shop is quiet, if no more comes; no value if everything has been told.
_QUIET_AT = ValueStateDescriptor("quiet-at", Types.LONG())


@dataclass(frozen=True)
class QuietTrigger(Trigger[Any, TimeWindow]):
    """Fires at the end of a window, and when nothing has come for it for some time.

    A trigger has no fields that change: one object serves all keys and windows. What it must remember of a window is in
    partitioned state.

    Args:
        quiet_ms: How long, by the clock of the machine.
    """

    quiet_ms: int

    def on_element(
        self, element: Any, timestamp: int | None, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE  # late, and allowed to be
        ctx.register_event_time_timer(window.max_timestamp())
        self._wait_until(ctx.get_current_processing_time() + self.quiet_ms, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        quiet_at = ctx.get_partitioned_state(_QUIET_AT)
        if quiet_at.value() is None or quiet_at.value() > time:
            return TriggerResult.CONTINUE
        quiet_at.clear()
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        is_untold = ctx.get_partitioned_state(_QUIET_AT).value() is not None
        if time != window.max_timestamp() or not is_untold:
            return TriggerResult.CONTINUE
        self._wait_until(None, ctx)
        return TriggerResult.FIRE

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        self._wait_until(None, ctx)

    def _wait_until(self, time: int | None, ctx: Trigger.TriggerContext) -> None:
        quiet_at = ctx.get_partitioned_state(_QUIET_AT)
        before = quiet_at.value()
        if before == time:
            return
        if before is not None:
            ctx.delete_processing_time_timer(before)
        if time is not None:
            ctx.register_processing_time_timer(time)
        quiet_at.update(time)


def takings(shop: str, window: TimeWindow, sales: Iterable[Sale]) -> list[tuple[str, int, int]]:
    """Add up what a shop took on a day."""
    return [(shop, window.start // DAY.to_milliseconds(), sum(sale.cents for sale in sales))]


def build(env: StreamExecutionEnvironment, sales: DataStream, quiet: Time) -> DataStream:
    """Return (shop, number of the day, cents) of a stream of sales without timestamps."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(5))
    timed = sales.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda sale, _: sale.time_ms)
    ).set_parallelism(1)
    return (
        timed.key_by(lambda sale: sale.shop)
        .window(TumblingEventTimeWindows.of(DAY))
        .trigger(QuietTrigger(quiet.to_milliseconds()))
        .apply(takings)
        .name("Takings")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Takings of a day, told when the tills fall silent.")
    parser.add_argument("--quiet-ms", type=int, default=2_000, help="how long a shop must be quiet")
    parser.add_argument("--silence-ms", type=int, default=10_000, help="how long the job waits for more")
    arguments = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    # Without this the job would end with the last sale, and the end of all input closes every window. It says nothing,
    # ten times a second, and so keeps the job waiting.
    silence = env.from_source(
        DataGeneratorSource(lambda _: None, count=arguments.silence_ms // 100, rate_per_second=10),
        WatermarkStrategy.no_watermarks(),
        "Silence",
    ).set_parallelism(1)
    sales = env.from_collection(SALES).union(silence.filter(lambda _: False).set_parallelism(1))
    takings_of_a_day = build(env, sales, Time.milliseconds(arguments.quiet_ms))
    with takings_of_a_day.execute_and_collect("quiet day") as rows:
        for shop, day, cents in rows:
            print(f"day {day}: the {shop} took {cents / 100:.2f}")
            told = time.monotonic()
    print(f"that was told {time.monotonic() - told:.1f} seconds before the end of the input")


if __name__ == "__main__":
    main()
