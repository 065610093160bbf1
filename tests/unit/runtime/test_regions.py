"""Regions of a live job: one that fails starts again alone, and every sink has each record once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headrace.common import WatermarkStrategy
from headrace.common.job_status import JobStatus
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.connectors.function_source import FunctionSink
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    MapFunction,
    RuntimeContext,
)
from headrace.graph.execution_graph import ExecutionState
from headrace.runtime.epoch.messages import SubtaskId
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.test_live import (
    LIVE,
    OFTEN,
    RESTARTS,
    Count,
    Paced,
    PacedEnumerator,
    output_of,
    paced,
    start,
)

RECORDS = 400
COUNTED = sorted((n % 7, n // 7 + 1) for n in range(RECORDS))
opened: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _no_pace() -> Iterator[None]:
    yield
    PacedEnumerator.epochs = None


class Fed(Paced):
    """Is told by the driver what to read next."""

    plans_anywhere: ClassVar[bool] = False


class Endless(DataGeneratorSource):
    """Is told by the driver what to read next."""

    plans_anywhere: ClassVar[bool] = False


class NamedCount(Count):
    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, runtime_context: RuntimeContext) -> None:
        opened[self.name] += 1
        super().open(runtime_context)


def region(env: StreamExecutionEnvironment, name: str, source_class: Any) -> DataStream:
    source = source_class(lambda index: index, RECORDS)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), name).uid(name)
    return stream.key_by(lambda n: n % 7).process(NamedCount(name)).uid(f"count {name}")


def two_regions(other: MarkedSink, source_class: Any = Paced) -> Any:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        region(env, "right", source_class).sink_to(other).uid("other sink")
        return region(env, "left", source_class)

    return program


def count_of(job: MiniJob, name: str) -> str:
    """Return the id of the vertex that counts in a region."""
    return next(
        vertex.vertex_id
        for vertex in job.master.job.vertices
        if any(node.uid == f"count {name}" for node in vertex.operators)
    )


def run_and_kill(
    tmp_path: Path,
    options: dict[str, str],
    names: tuple[str, ...] = ("left",),
    source_class: Any = Paced,
) -> MiniJob:
    """Run both regions, and kill a subtask of some in the middle; sinks must have everything once."""
    opened.clear()
    killed = threading.Event()
    left, right = MarkedSink(str(tmp_path / "left")), MarkedSink(str(tmp_path / "right"))

    def kill(job: MiniJob) -> None:
        if not killed.is_set() and job.progress.records > 100:
            killed.set()
            job.live_cluster.delay_s = 0.1  # as processes need to start
            for name in names:
                job.live_cluster.kill_subtask(SubtaskId(count_of(job, name), 0))

    started = paced(
        two_regions(right, source_class),
        kill,
        parallelism=2,
        options={**LIVE, **RESTARTS, **options},
        sink=left,
    )
    started.job.wait()
    assert output_of(left) == COUNTED
    assert output_of(right) == COUNTED
    return started.job


@pytest.mark.parametrize("source_class", [Paced, Fed], ids=["leased", "fed"])
@pytest.mark.parametrize("options", [OFTEN, {}], ids=["checkpoints", "barriers"])
def test_a_region_that_fails_starts_again_alone(
    options: dict[str, str], source_class: Any, tmp_path: Path
) -> None:
    job = run_and_kill(tmp_path, options, source_class=source_class)
    assert opened == {"left": 4, "right": 2}
    assert job.progress.restarts == 1
    [failure] = job.master.failures.latest()
    assert "was lost" in failure.text


def test_attempts_are_counted_for_the_subtasks_that_were_restarted(tmp_path: Path) -> None:
    job = run_and_kill(tmp_path, OFTEN)
    attempts = {
        name: job.master.execution.subtask(count_of(job, name), 0).current.attempt
        for name in ("left", "right")
    }
    assert attempts == {"left": 1, "right": 0}
    assert job.master.execution.vertex_state(count_of(job, "left")) is ExecutionState.FINISHED


def test_regions_that_fail_at_the_same_time_all_start_again(tmp_path: Path) -> None:
    job = run_and_kill(tmp_path, OFTEN, ("left", "right"))
    assert opened == {"left": 4, "right": 4}
    assert job.progress.restarts >= 1


def test_with_the_strategy_full_all_subtasks_are_restarted(tmp_path: Path) -> None:
    job = run_and_kill(tmp_path, {**OFTEN, "jobmanager.execution.failover-strategy": "full"})
    assert opened == {"left": 4, "right": 4}
    assert job.progress.restarts == 1


def test_unaligned_checkpoints_of_regions_lose_nothing(tmp_path: Path) -> None:
    options = {**OFTEN, "execution.checkpointing.unaligned.enabled": "true"}
    assert run_and_kill(tmp_path, options).progress.restarts == 1


class NotesBarriers(MapFunction, CheckpointedFunction):
    """Writes down which barriers have come."""

    barriers: ClassVar[list[int]]

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        pass

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.barriers.append(context.get_checkpoint_id())

    def map(self, value: int) -> int:
        return value


class Free(NotesBarriers):
    """Has nothing to wait for."""


class Held(NotesBarriers):
    """Waits at one record, so its source cannot send a barrier."""

    waits: ClassVar[threading.Event]
    goes_on: ClassVar[threading.Event]

    def map(self, value: int) -> int:
        if value == RECORDS // 2:
            self.waits.set()
            assert self.goes_on.wait(30)
        return value


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("is_unaligned", [False, True], ids=["aligned", "unaligned"])
def test_a_region_that_reaches_the_barrier_after_another_one_has_failed_goes_on(is_unaligned: bool) -> None:
    Held.waits, Held.goes_on, Held.barriers, Free.barriers = threading.Event(), threading.Event(), [], []
    received: list[int] = []

    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = Fed(lambda index: index, RECORDS)
        right = env.from_source(source, WatermarkStrategy.no_watermarks(), "right").map(Held())
        right.sink_to(FunctionSink(received.append)).uid("other sink")
        left = env.from_source(
            Endless(lambda index: index, None, 50), WatermarkStrategy.no_watermarks(), "left"
        )
        return left.map(Free()).uid("count left")

    options = {
        **LIVE,
        **OFTEN,
        **RESTARTS,
        "restart-strategy.fixed-delay.delay": "1 h",
        "execution.checkpointing.unaligned.enabled": str(is_unaligned),
    }
    job = start(program, max_records=20, options=options).job
    try:
        assert Held.waits.wait(30)
        wait_until(lambda: max(Free.barriers, default=0) > max(Held.barriers, default=0))
        job.live_cluster.kill_subtask(SubtaskId(count_of(job, "left"), 0))
        wait_until(lambda: job.status() is JobStatus.RESTARTING)
        Held.goes_on.set()
        wait_until(lambda: len(received) == RECORDS)
    finally:
        Held.goes_on.set()
        job.cancel().result(30)
