"""What is slow makes epochs small; what an epoch holds in memory is bounded."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Time, WatermarkStrategy
from headrace.connectors.base import Committable, Committer, Sink, SinkWriter, WriterContext
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import AsyncDataStream, AsyncFunction, DataStream, StreamExecutionEnvironment
from headrace.runtime.epoch.back_pressure import BackPressureLevel
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskPlan
from headrace.runtime.exchange.buffers import Header, encode_items, pack
from headrace.runtime.task.level import JobCode, LevelRunner, read_report
from headrace.runtime.task.settings import TaskSettings
from tests.unit.runtime.jobs import job_graph, make_env, run, start, start_watched

TARGET_S = 2.0


class Clock:
    """Time that passes when somebody lets it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


#: The one that committers look at: sinks are copied on their way to a worker.
clock = Clock()


@dataclass(frozen=True)
class SlowSink(Sink):
    """Takes so long to publish a record; from an epoch on, another time."""

    seconds: float
    slow_from: int = 1 << 30
    slow_seconds: float = 0.0

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Counting()

    def create_committer(self) -> Committer:
        return _SlowCommitter(self)


class _Counting(SinkWriter):
    def __init__(self) -> None:
        self._records = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        self._records += 1

    def prepare_commit(self) -> Sequence[Any]:
        return [self._records]


class _SlowCommitter(Committer):
    def __init__(self, sink: SlowSink) -> None:
        self._sink = sink

    def commit(self, committables: Sequence[Committable]) -> None:
        for each in committables:
            is_slow = each.epoch >= self._sink.slow_from
            clock.now_s += each.payload * (self._sink.slow_seconds if is_slow else self._sink.seconds)


@pytest.fixture(autouse=True)
def _new_clock() -> None:
    clock.now_s = 0.0


def numbers(count: int) -> Any:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = DataGeneratorSource(lambda index: index, count)
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").rebalance().map(abs)

    return program


def sizes(count: int, sink: Sink, options: dict[str, Any]) -> tuple[list[int], Any]:
    """Run a job whose time passes in its committer alone; return the records of its epochs, and the job."""
    run = start_watched(
        numbers(count),
        lambda _: None,
        options={"headrace.epoch.target-duration": f"{TARGET_S:g} s", **options},
        max_records=100_000,
        sink=sink,
        timer=clock,
    )
    run.job.wait()
    return [summary.records for summary in run.job.epochs], run.job


@pytest.mark.parametrize("interval", [None, "1 ms"])
def test_a_slow_committer_makes_epochs_small(interval: str | None, tmp_path: Path) -> None:
    options = {"headrace.epoch.initial-records": "5000"}
    if interval is not None:
        options |= {
            "execution.checkpointing.interval": interval,
            "execution.checkpointing.dir": str(tmp_path),
        }
    read, _ = sizes(40_000, SlowSink(0.002), {**options, "headrace.epoch.max-records": "5000"})
    # Checkpoints are written beside the epochs: some run before anything is published.
    settled = read[-10:]
    assert 800 <= max(settled) <= 1_010  # 2 s
    assert sum(read) == 40_000


def test_a_committer_that_becomes_a_hundred_times_slower_makes_one_long_epoch() -> None:
    read, _ = sizes(
        30_000, SlowSink(0.0002, slow_from=2, slow_seconds=0.02), {"headrace.epoch.initial-records": "10000"}
    )
    assert read[:2] == [10_000, 10_000]
    assert set(read[2:20]) == {100}


def test_subtasks_before_a_slow_committer_are_back_pressured() -> None:
    _, job = sizes(3_000, SlowSink(0.002), {"headrace.epoch.initial-records": "1000"})
    for shares in job.epochs[1].shares.values():
        assert shares.level is BackPressureLevel.HIGH
        assert shares.busy + shares.back_pressured + shares.idle == pytest.approx(1.0)


def test_bytes_bound_an_epoch_also_those_that_come_together_in_one_subtask() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = DataGeneratorSource(lambda index: bytes([index % 256]) * 1_000, 40_000)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "bytes")
        return stream.key_by(lambda _: "one").map(len)

    run = start(
        program,
        parallelism=4,
        max_records=100_000,
        options={"headrace.epoch.max-bytes": "1 mb", "headrace.epoch.initial-records": "500"},
    )
    run.job.wait()
    received = [
        report.bytes_in for summary in run.job.epochs for report in summary.reports if report.bytes_in
    ]
    # Four subtasks send 500 KB each to one: the first epoch could not know.
    assert received[0] > 2_000_000 * 0.95
    assert max(received[1:]) <= 1_100_000


def test_the_input_of_a_subtask_is_in_memory_once(tmp_path: Path) -> None:
    env = make_env(parallelism=1)
    env.from_collection([b""]).rebalance().map(len).print()
    job = job_graph(env)
    layout = Layout(job)
    settings = TaskSettings(scratch_name="scratch", scratch_parent=str(tmp_path))
    runner = LevelRunner(JobCode(job, lineage="line", settings=settings))
    subtasks = {subtask: SubtaskPlan() for level in layout.levels for subtask in level}
    plan = EpochPlan("job", 1, 0, str(tmp_path / "state"), subtasks)
    edge = job.inputs_of(layout.levels[1][0].vertex_id)[0]
    buffer_bytes, count = 200_000, 100

    def incoming() -> Iterator[bytes]:
        for sequence in range(count):
            payload = encode_items([([bytes(buffer_bytes)], None)])
            yield pack(Header(1, 0, edge.edge_id, 0, 0, sequence), payload)

    list(runner.run(plan, 1, 0, (), 0))  # what is made once is not counted
    tracemalloc.start()
    try:
        output = list(runner.run(plan, 1, 0, incoming(), 0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    report = read_report(output[-1][1])
    runner.close()
    assert report.bytes_in == pytest.approx(buffer_bytes * count, rel=0.01)
    # All of it once, and the few that are being read or written at a time.
    assert peak < report.bytes_in + 8 * buffer_bytes


class _SlowAnswers(AsyncFunction[int, int]):
    """Takes as long for one record as for a thousand at once."""

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0.1)
        return [value]


def test_epochs_do_not_shrink_because_answers_take_long() -> None:
    ran = run(
        lambda env: AsyncDataStream.unordered_wait(
            env.from_collection(list(range(2_000))), _SlowAnswers(), Time.seconds(10), capacity=5_000
        ),
        max_records=100_000,
        options={"headrace.epoch.target-duration": "50 ms", "headrace.epoch.initial-records": 50},
    )
    assert sorted(ran.output) == list(range(2_000))
    assert ran.job.progress.epochs < 20  # one record at a time it would be 2,000
