"""A record counts once in the accumulators of a job: whatever the epochs, the faults, restarts and the parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common.accumulators import Histogram, IntCounter, ListAccumulator
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction, MapFunction, RuntimeContext
from headrace.errors import JobDefinitionError
from headrace.testing.mini_cluster import MiniJob, random_faults
from tests.unit.runtime.jobs import run, start_watched

LAST = 60
EXPECTED = {"seen": LAST + 1, "digits": {digit: 6 for digit in range(10)} | {0: 7}, "evens": 31}


class Count(MapFunction):
    """Counts by an accumulator of its own and one that the context makes."""

    def __init__(self) -> None:
        self.seen = IntCounter()

    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.add_accumulator("seen", self.seen)
        self.digits = runtime_context.get_histogram("digits")

    def map(self, value: int) -> int:
        self.seen.add(1)
        self.digits.add(value % 10)
        return value


class CountEvens(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.evens = runtime_context.get_long_counter("evens")

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        if value % 2 == 0:
            self.evens.add(1)
        yield value


def counted(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_source(NumberSequenceSource(0, LAST), WatermarkStrategy.no_watermarks(), "numbers")
    return numbers.map(Count()).key_by(lambda n: n % 7).process(CountEvens())


@pytest.mark.parametrize("max_records", [3, 1000])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_result_has_what_all_subtasks_counted(parallelism: int, max_records: int) -> None:
    result = run(counted, parallelism=parallelism, max_records=max_records).job.wait()
    assert result.get_all_accumulator_results() == EXPECTED
    assert result.get_accumulator_result("seen") == LAST + 1


@pytest.mark.parametrize("seed", range(4))
def test_attempts_that_fail_and_epochs_that_run_again_count_once(seed: int) -> None:
    faults = random_faults(seed, 0.08)
    result = run(counted, parallelism=2, max_records=4, seed=seed, faults=faults).job.wait()
    assert result.get_all_accumulator_results() == EXPECTED


class FailOnce(MapFunction):
    """Fails at a record, as often as there are files to take away."""

    def __init__(self, at: int, directory: str) -> None:
        self._at, self._directory = at, directory

    def map(self, value: int) -> int:
        if value == self._at:
            for left in Path(self._directory).iterdir():
                left.unlink()
                raise ValueError("once more")
        return value


@pytest.mark.parametrize("interval", ["1 ms", "1 h"])
def test_a_restart_goes_back_to_what_the_checkpoint_had(interval: str, tmp_path: Path) -> None:
    failures = tmp_path / "failures"
    failures.mkdir()
    for number in range(3):
        (failures / str(number)).touch()
    options = {
        "execution.checkpointing.interval": interval,
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "0 ms",
        "headrace.spark.task-retries": "0",
    }

    def program(env: StreamExecutionEnvironment) -> DataStream:
        return counted(env).map(FailOnce(20, str(failures)))

    job = run(program, parallelism=2, max_records=4, options=options, sink=BlackholeSink()).job
    assert job.progress.restarts == 3
    assert job.wait().get_all_accumulator_results() == EXPECTED


def test_a_change_of_parallelism_loses_nothing() -> None:
    def watch(job: MiniJob) -> None:
        wanted = {2: 4, 4: 1, 6: 3}.get(job.progress.epochs)
        if wanted is not None:
            job.rescale(wanted)

    started = start_watched(counted, watch, parallelism=2, max_records=3)
    result = started.job.wait()
    assert started.job.progress.rescales == 3
    assert result.get_all_accumulator_results() == EXPECTED


def test_values_can_be_had_while_the_job_runs() -> None:
    seen: list[Any] = []
    started = start_watched(
        counted, lambda job: seen.append(job.accumulators()["seen"]), max_records=10, parallelism=1
    )
    started.job.wait()
    assert seen[:3] == [10, 20, 30]


class CountAs(MapFunction):
    def __init__(self, accumulator: Any) -> None:
        self.accumulator = accumulator

    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.add_accumulator("mine", self.accumulator)

    def map(self, value: int) -> int:
        self.accumulator.add(value)
        return value


def test_one_name_for_two_kinds_fails_the_job() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection([1, 2])
        return numbers.map(CountAs(IntCounter())).rebalance().map(CountAs(Histogram()))

    with pytest.raises(
        JobDefinitionError, match="'mine' is a IntCounter in one place and a Histogram in another"
    ):
        run(program)


def test_the_same_name_in_two_tasks_is_one_accumulator() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection([1, 2])
        return numbers.map(CountAs(ListAccumulator())).rebalance().map(CountAs(ListAccumulator()))

    assert sorted(run(program).job.wait().get_accumulator_result("mine")) == [1, 1, 2, 2]
