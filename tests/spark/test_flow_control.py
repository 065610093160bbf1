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
from headrace.runtime.epoch.back_pressure import BackPressureLevel
from headrace.runtime.run.job_run import EpochSummary
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER, read

pytestmark = pytest.mark.spark

OPTIONS = {"headrace.epoch.target-duration": "500 ms", "headrace.epoch.initial-records": 1_000}


def slow_from(number: int, seconds: float) -> Any:
    def work(value: int) -> int:
        if value >= number:
            time.sleep(seconds)
        return value

    return work


def is_held(epochs: Sequence[EpochSummary]) -> bool:
    """Tell if a source was seen to wait; not in every epoch, for on a busy machine it is Spark that takes long."""
    shares = [epoch.shares[report.subtask] for epoch in epochs for report in epoch.reports if report.progress]
    return any(each.level is BackPressureLevel.HIGH for each in shares)


def test_an_operator_that_becomes_slow_makes_epochs_small(env: EnvironmentFactory) -> None:
    # From the second source's 4,000th record on, the 2 x 2,000 records of an epoch take at least a second.
    environment = env(max_records=2_000, options=OPTIONS)
    stream = read(environment, DataGeneratorSource(lambda index: index, 24_000))
    stream.rebalance().map(slow_from(16_000, 0.001)).sink_to(BlackholeSink())
    client = environment.execute_async()
    client.get_job_execution_result().result()
    epochs = RECORDER.of(client)
    assert max(epoch.records for epoch in epochs) == 4_000
    last = epochs[-3:-1]
    for epoch in last:
        assert epoch.records < 2_000
    assert is_held(last)


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


@pytest.mark.slow
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
    # Half a second is 500 records of both subtasks together, less what an epoch takes for itself: far from 4,000.
    assert max(epoch.records for epoch in last) <= 1_000
    assert elapsed_s > 10
    assert is_held(last)
