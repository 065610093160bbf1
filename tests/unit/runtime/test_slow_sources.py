"""Live jobs whose functions are slow, in the same subtask as the source: barriers do not wait for many records."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    MapFunction,
)
from headrace.operators.leased_splits import LeasedSplits
from headrace.runtime.run.source_feeder import _Pace
from tests.unit.runtime.jobs import start
from tests.unit.runtime.test_live import LIVE, OFTEN


class Fed(DataGeneratorSource):
    """Is told by the driver what to read next."""

    plans_anywhere: ClassVar[bool] = False


class Stuck(MapFunction, CheckpointedFunction):
    """Takes a record whenever it is allowed to, and writes down after how many a barrier has come."""

    permits: ClassVar[threading.Semaphore]
    taken: ClassVar[threading.Semaphore]
    seen: ClassVar[int]
    at_barriers: ClassVar[list[int]]

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        pass

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        Stuck.at_barriers.append(Stuck.seen)

    def map(self, value: int) -> int:
        assert Stuck.permits.acquire(timeout=30)
        Stuck.seen += 1
        Stuck.taken.release()
        return value


@pytest.mark.parametrize("source", [DataGeneratorSource, Fed], ids=["leased", "fed"])
def test_the_first_barrier_waits_for_few_records(source: Any) -> None:
    Stuck.permits, Stuck.taken = threading.Semaphore(0), threading.Semaphore(0)
    Stuck.seen, Stuck.at_barriers = 0, []

    def program(env: StreamExecutionEnvironment) -> DataStream:
        endless = source(lambda index: index, None)
        numbers = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers")
        return numbers.map(Stuck())

    job = start(program, max_records=100_000, options={**LIVE, **OFTEN}, sink=BlackholeSink()).job
    try:
        while not Stuck.at_barriers:
            Stuck.permits.release()
            assert Stuck.taken.acquire(timeout=30)
        assert Stuck.at_barriers[0] < 100
    finally:
        Stuck.permits.release(1_000_000)
        job.cancel().result(30)


def test_rounds_of_slow_records_have_one_and_those_of_fast_records_many() -> None:
    lease = LeasedSplits(DataGeneratorSource(lambda index: index, None), 1)
    pace = _Pace(None)
    for _ in range(20):
        lease.advance({}, lease._records, lease._records * 0.1)
        pace.observe(pace.records, pace.records * 0.1)
    assert (lease._records, pace.records) == (1, 1)
    for _ in range(20):
        lease.advance({}, lease._records, lease._records * 1e-6)
        pace.observe(pace.records, pace.records * 1e-6)
    assert lease._records >= 10_000
    assert pace.records >= 10_000
