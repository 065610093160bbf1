"""Counts what comes for each customer in five seconds by the clock; with `field`, where the counts get lost."""

from __future__ import annotations

import sys
from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Reminder(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        if self.count.value() is None:
            now = ctx.timer_service().current_processing_time()
            ctx.timer_service().register_processing_time_timer(now + 5_000)
        self.count.update((self.count.value() or 0) + 1)
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), self.count.value(), timestamp
        self.count.clear()


class InField(KeyedProcessFunction):
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key = ctx.get_current_key()
        if key not in self.counts:
            now = ctx.timer_service().current_processing_time()
            ctx.timer_service().register_processing_time_timer(now + 5_000)
        self.counts[key] = self.counts.get(key, 0) + 1
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), self.counts.pop(ctx.get_current_key(), 0), timestamp


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    calls = env.from_collection([(f"customer-{n % 5}", n) for n in range(60)]).uid("calls")
    function = InField() if "field" in sys.argv else Reminder()
    calls.key_by(lambda call: call[0]).process(function).uid("reminders").print()
    env.execute("reminders")
