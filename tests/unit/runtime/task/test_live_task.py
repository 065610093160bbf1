"""What goes by the clock in a live task whose records take their time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction
from headrace.runtime.task.task_clock import TaskClock
from headrace.util import clock
from tests.unit.runtime.jobs import run
from tests.unit.runtime.test_live import LIVE

RECORDS = 200
#: From one look at the clock to the next, ms.
STEP_MS = 50


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have time pass between two looks at a task's clock, as if each record took long."""
    looks, start_ms = itertools.count(), clock.now_ms()
    monkeypatch.setattr(TaskClock, "seconds", lambda _: next(looks) * STEP_MS / 1000)
    monkeypatch.setattr(TaskClock, "now_ms", lambda _: start_ms + next(looks) * STEP_MS)


class Reminder(KeyedProcessFunction):
    """Sets a timer at its first record."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == 0:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 4 * STEP_MS)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer"


@pytest.mark.parametrize("interval", ["0 ms", "200 ms", "1 h"])
def test_a_timer_fires_between_slow_records_whatever_the_interval_of_watermarks(interval: str) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = DataGeneratorSource(lambda index: index, RECORDS)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        return numbers.key_by(lambda n: 0).process(Reminder())

    output = run(program, options={**LIVE, "pipeline.auto-watermark-interval": interval}).output
    assert output.index("timer") < RECORDS // 2


asked: list[int] = []


class Asked(WatermarkGenerator):
    """Counts how often it is asked."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        asked.append(1)


@pytest.mark.parametrize(
    ("interval", "least", "most"), [("0 ms", 0, 0), ("1 s", 10, RECORDS // 2), ("1 h", 0, 20)]
)
def test_generators_are_asked_between_slow_records_as_often_as_the_interval_says(
    interval: str, least: int, most: int
) -> None:
    asked.clear()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = DataGeneratorSource(lambda index: index, RECORDS)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        return numbers.rebalance().assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(Asked))

    run(program, options={**LIVE, "pipeline.auto-watermark-interval": interval})
    assert least <= len(asked) <= most
