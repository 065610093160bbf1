"""Calls of Flink's Java API that PyFlink does not have: `global_`, `count_window_all`, stagger, ingestion time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Configuration, Time
from headrace.common.watermark_strategy import IngestionTimeAssigner, WatermarkStrategy
from headrace.datastream import MapFunction, ProcessFunction, StreamExecutionEnvironment
from headrace.datastream.functions import ListCheckpointed, ProcessWindowFunction
from headrace.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows, WindowStagger
from headrace.errors import JobDefinitionError
from tests.engines import MINI_EXECUTOR


@pytest.fixture(params=["blocking", "pipelined"])
def env(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", MINI_EXECUTOR)
    configuration.set_string("headrace.exchange.kind", request.param)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(3)


def collect(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as rows:
        return sorted(rows)


class WithSubtask(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> tuple[int, int]:
        return self.subtask, value


def test_global_sends_everything_to_the_first_subtask(env: StreamExecutionEnvironment) -> None:
    rows = collect(env.from_collection(range(30)).rebalance().map(lambda n: n).global_().map(WithSubtask()))
    assert rows == [(0, n) for n in range(30)]


def test_count_windows_of_a_whole_stream(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection(range(7)).map(lambda n: n).set_parallelism(1)
    assert collect(numbers.count_window_all(3).reduce(lambda a, b: a + b)) == [3, 12]


def test_sliding_count_windows_of_a_whole_stream(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection(range(7)).map(lambda n: n).set_parallelism(1)
    assert collect(numbers.count_window_all(3, 2).reduce(lambda a, b: a + b)) == [3, 9, 15]


class Bounds(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield (
            context.window().start % 1000,
            context.window().end - context.window().start,
            len(list(elements)),
        )


def staggered(env: StreamExecutionEnvironment, stagger: WindowStagger) -> list[tuple[int, int, int]]:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    numbers = env.from_collection(range(0, 10_000, 10)).assign_timestamps_and_watermarks(strategy)
    windows = TumblingEventTimeWindows.of(Time.seconds(1), Time.milliseconds(0), stagger)
    return collect(numbers.key_by(lambda n: n % 70).window(windows).process(Bounds()))


def test_windows_with_a_random_stagger_start_at_another_time_in_each_subtask(
    env: StreamExecutionEnvironment,
) -> None:
    rows = staggered(env, WindowStagger.RANDOM)
    starts = {start for start, _, _ in rows}
    assert len(starts) == 3, "one start for each of three subtasks"
    assert {length for _, length, _ in rows} == {1000}
    assert sum(count for _, _, count in rows) == 1000, "every record is in one window"


def test_aligned_windows_start_together(env: StreamExecutionEnvironment) -> None:
    assert {start for start, _, _ in staggered(env, WindowStagger.ALIGNED)} == {0}


def test_a_natural_stagger_is_refused_with_the_reason() -> None:
    with pytest.raises(JobDefinitionError, match=r"when an epoch is repeated") as refused:
        TumblingProcessingTimeWindows.of(Time.seconds(1), None, WindowStagger.NATURAL)
    assert "RANDOM" in str(refused.value.hint)


class Timed(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.timestamp()


def test_ingestion_time_is_the_clock_and_never_goes_back(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(IngestionTimeAssigner())
    before = int(time.time() * 1000)
    stream = env.from_collection(range(100)).assign_timestamps_and_watermarks(strategy).process(Timed())
    times = collect(stream)
    assert before <= times[0] <= times[-1] <= int(time.time() * 1000)


def test_ingestion_time_survives_a_clock_that_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100, 90, 110])
    monkeypatch.setattr("headrace.common.watermark_strategy.now_ms", lambda: next(clock))
    assigner = IngestionTimeAssigner()
    assert [assigner.extract_timestamp("x", 0) for _ in range(3)] == [100, 100, 110]


class Numbering(MapFunction, ListCheckpointed):
    """Counts its records, and writes down which state it was restored with."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def open(self, runtime_context: Any) -> None:
        self.count = 0

    def map(self, value: int) -> int:
        self.count += 1
        return self.count

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        return [self.count, checkpoint_id, abs(timestamp - int(time.time() * 1000)) < 60_000]

    def restore_state(self, state: list[int]) -> None:
        with self.log.open("a") as file:
            file.write(f"{state}\n")
        self.count = state[0]


def test_a_list_checkpointed_function_is_restored_with_its_elements(tmp_path: Path) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", MINI_EXECUTOR)
    configuration.set_string("headrace.epoch.max-records", "10")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    assert collect(env.from_collection(range(35)).map(Numbering(tmp_path / "log"))) == list(range(1, 36))
    restored = (tmp_path / "log").read_text().splitlines()
    assert restored[:3] == ["[10, 1, True]", "[20, 2, True]", "[30, 3, True]"]
