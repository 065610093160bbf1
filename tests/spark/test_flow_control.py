"""A slow operator and a slow sink make epochs small, on a real Spark and with real time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.connectors.base import Committable, Committer, Sink, SinkWriter, WriterContext
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen import DataGeneratorSource
from headrace.runtime.back_pressure import BackPressureLevel, TimeShares
from headrace.runtime.job_run import EpochSummary
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER, read

pytestmark = pytest.mark.spark

TARGET_S = 0.5
OPTIONS = {"headrace.epoch.target-duration": "500 ms", "headrace.epoch.initial-records": 1_000}


def slow_from(number: int, seconds: float) -> Any:
    def work(value: int) -> int:
        if value >= number:
            time.sleep(seconds)
        return value

    return work


def source_shares(epoch: EpochSummary) -> list[TimeShares]:
    return [epoch.shares[report.subtask] for report in epoch.reports if report.progress]


def test_an_operator_that_becomes_slow_makes_epochs_small(env: EnvironmentFactory) -> None:
    # 2 x 2,000 records of an epoch take a moment at first, then 2 s.
    environment = env(max_records=2_000, options=OPTIONS)
    stream = read(environment, DataGeneratorSource(lambda index: index, 24_000))
    stream.rebalance().map(slow_from(16_000, 0.001)).sink_to(BlackholeSink())
    client = environment.execute_async()
    client.get_job_execution_result().result()
    epochs = RECORDER.of(client)
    assert max(epoch.records for epoch in epochs) == 4_000
    slow = [epoch for epoch in epochs if work_s(epoch) > TARGET_S / 2]
    assert work_s(slow[0]) > 2 * TARGET_S
    for epoch in slow[1:]:
        assert epoch.records < 2_000
    for shares in source_shares(slow[0]):
        assert shares.level is BackPressureLevel.HIGH


def work_s(epoch: EpochSummary) -> float:
    """Return how long the busiest subtask worked."""
    return max(report.busy_ns for report in epoch.reports) / 1e9


@dataclass(frozen=True)
class SlowToPublish(Sink):
    """Takes a millisecond a record."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Counting()

    def create_committer(self) -> Committer:
        return _Slow()


class _Counting(SinkWriter):
    def __init__(self) -> None:
        self._records = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records += 1

    def prepare_commit(self) -> Sequence[Any]:
        return [self._records]


class _Slow(Committer):
    def commit(self, committables: Sequence[Committable]) -> None:
        time.sleep(sum(each.payload for each in committables) * 0.001)


def test_a_sink_that_is_slow_to_publish_makes_epochs_small(env: EnvironmentFactory) -> None:
    environment = env(max_records=2_000, options=OPTIONS)
    stream = read(environment, DataGeneratorSource(lambda index: index, 10_000))
    stream.rebalance().map(abs).sink_to(SlowToPublish())
    started = time.monotonic()
    client = environment.execute_async()
    client.get_job_execution_result().result()
    elapsed_s = time.monotonic() - started
    epochs = RECORDER.of(client)
    last = epochs[-6:-1]
    # Half a second is 500 records of both subtasks together, less what an epoch takes for itself.
    assert max(epoch.records for epoch in last) <= 550
    assert elapsed_s > 10
    held = [shares for epoch in last for shares in source_shares(epoch)]
    assert sum(shares.level is BackPressureLevel.HIGH for shares in held) >= len(held) / 2
