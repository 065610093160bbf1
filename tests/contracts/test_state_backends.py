"""Whole jobs give the same results on every state backend, however they are cut into epochs, and whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.common import Duration, Time, Types, WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.datastream.window import SlidingEventTimeWindows
from headrace.testing.mini_cluster import Fault, random_faults
from tests.unit.runtime.jobs import run

RECORDS = [(f"key {n % 7}", n) for n in range(120)]


class AllKinds(KeyedProcessFunction):
    """Uses every kind of state, and timers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        lasting = ValueStateDescriptor("count", Types.LONG())
        lasting.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.count = runtime_context.get_state(lasting)
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
        )

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        number = value[1]
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.last.add(number)
        if count % 5 == 0:
            self.last.clear()
        self.seen.put(number % 4, count)
        if count % 6 == 0:
            self.seen.remove(number % 4)
        self.total.add(number)
        ctx.timer_service().register_event_time_timer(number + 20)
        yield value[0], number, count, tuple(self.last.get()), tuple(self.seen.items()), self.total.get()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer", timestamp, self.count.value()


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def timed(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(NumberIsTime())
    )


def all_kinds(env: StreamExecutionEnvironment) -> DataStream:
    return timed(env).key_by(lambda record: record[0]).process(AllKinds())


def windows(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timed(env).key_by(lambda record: record[0])
    window = SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(10))
    return keyed.window(window).reduce(lambda a, b: (a[0], a[1] + b[1]))


def by_key(rows: list[Any]) -> dict[str, list[Any]]:
    """Rows of each key in their order; that of different keys is not fixed."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


@pytest.mark.parametrize("program", [all_kinds, windows])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("seed", [1, 2])
def test_results_do_not_depend_on_the_backend(program: Any, backend: str, seed: int) -> None:
    # Watermarks come between the same records only if the epochs are the same.
    cut = {"parallelism": 2, "max_records": 7}
    expected = by_key(run(program, **cut).output)
    kinds = [Fault.AFTER, Fault.WORKER_KILLED, Fault.RECOMPUTED]
    for faults in (None, random_faults(seed, 0.1, kinds)):
        options = {"state.backend.type": backend, "headrace.state.compaction.max-changes": 3}
        finished = run(program, **cut, workers=3, seed=seed, faults=faults, options=options)
        assert by_key(finished.output) == expected


def test_batch_results_of_rocksdb_are_read_from_its_tables() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        pairs = env.from_collection(
            [(n % 50, 1) for n in range(1000)], Types.TUPLE([Types.INT(), Types.INT()])
        )
        return pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))

    options = {"state.backend.type": "rocksdb", "execution.runtime-mode": "BATCH"}
    assert sorted(run(program, max_records=100, options=options).output) == [(n, 20) for n in range(50)]
