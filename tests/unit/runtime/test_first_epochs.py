"""First epochs are small where functions may be slow, and nobody sees it in the results."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from headrace.common import Duration, Time, Types, WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    DataStream,
    OutputTag,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import MapStateDescriptor
from headrace.datastream.window import TumblingEventTimeWindows
from headrace.runtime.run.job_run import EpochSummary
from headrace.testing.sources import ScriptedSource, Stop, Timestamped
from tests.unit.runtime.jobs import Run, run, start

#: Nobody says how large epochs are.
FREE: dict[str, Any] = {"max_records": 1_000_000}
LATE = OutputTag("late", Types.INT())
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())


def read_by_epoch(done: Run) -> list[int]:
    return [summary.records for summary in done.job.epochs]


def test_a_job_reads_a_few_records_and_then_many() -> None:
    done = run(lambda env: env.from_collection(list(range(6_000))).map(lambda n: n), **FREE)
    assert read_by_epoch(done) == [10, 320, 5_670]
    assert done.output == list(range(6_000))


def test_a_batch_job_reads_all_it_can() -> None:
    options = {"execution.runtime-mode": "batch"}
    done = run(lambda env: env.from_collection(list(range(100))).map(lambda n: n), options=options, **FREE)
    assert read_by_epoch(done) == [100]


class _Value(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


class _Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, first: int, second: int) -> int:
        return first + second


@pytest.mark.parametrize("is_exchanged", [False, True], ids=["at-the-source", "behind-an-exchange"])
def test_no_watermark_stands_where_a_probe_cuts_the_input(is_exchanged: bool) -> None:
    """Time runs backwards, so each record after a watermark would be late."""

    def counted(env: StreamExecutionEnvironment) -> DataStream:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))
        numbers = env.from_collection(list(range(3_000, 0, -1)), Types.INT())
        numbers = numbers.rebalance().map(lambda n: n) if is_exchanged else numbers
        timed = numbers.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(_Value()))
        windows = timed.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(1_000)))
        counts = windows.side_output_late_data(LATE).aggregate(_Count())
        return counts.union(counts.get_side_output(LATE).map(lambda n: ("late", n)))

    done = run(counted, **FREE)
    assert read_by_epoch(done) == [10, 320, 2_670]
    assert done.output == [999, 1_000, 1_000, 1]


class _KnownRules(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield len(list(ctx.get_broadcast_state(RULES).keys()))

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, value)


def test_all_rules_are_there_before_the_first_record_that_needs_them() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        rules = env.from_collection(list(range(1_000))).broadcast(RULES)
        return env.from_collection(list(range(50))).connect(rules).process(_KnownRules())

    done = run(program, **FREE)
    assert read_by_epoch(done) == [1_010, 40]
    assert set(done.output) == {1_000}


@pytest.mark.parametrize("records", [9, 10, 11])
def test_an_endless_stream_that_pauses_where_a_probe_ends_gets_its_watermark(
    records: int, tmp_path: Path
) -> None:
    """Whether more follows is not known when the tenth record of a probe has been read."""
    source = ScriptedSource(
        [*(Timestamped(n, n) for n in range(records)), Stop(), Timestamped(99, 99)], directory=tmp_path
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    is_there = Event()

    def look(summary: EpochSummary) -> None:
        if summary.watermark == records - 2:
            is_there.set()

    started = start(lambda env: env.from_source(source, strategy, "script"), on_epoch=look, **FREE)
    assert is_there.wait(20)
    source.resume()
    started.job.wait()
    assert len(started.output) == records + 1
