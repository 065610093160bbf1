"""Functions that listen hear of complete checkpoints and of those that were given up, in both modes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    MapFunction,
)
from headrace.errors import UserFunctionError
from headrace.runtime.checkpoint.checkpointing import Checkpointing
from headrace.runtime.epoch.messages import SubtaskId
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.jobs import start
from tests.unit.runtime.test_live import LIVE, OFTEN, RESTARTS, PacedEnumerator, numbers, paced

MODES = {"epochs": {}, "live": LIVE}

#: What listeners heard, in order: subtask by subtask it rises.
heard: list[tuple[str, int]] = []
#: Barriers that have come in another region.
passed: list[int] = []


class Listening(MapFunction, CheckpointedFunction, CheckpointListener):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        pass

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        heard.append(("snapshot", context.get_checkpoint_id()))

    def map(self, value: int) -> int:
        return value

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        heard.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        heard.append(("aborted", checkpoint_id))


class HeldUp(Listening):
    """Waits at one record, so the barrier behind it is late."""

    waits: ClassVar[threading.Event]
    goes_on: ClassVar[threading.Event]

    def map(self, value: int) -> int:
        if value == 100:
            self.waits.set()
            assert self.goes_on.wait(30)
        return value


class NothingSpecial(MapFunction, CheckpointedFunction):
    """Writes down which barriers have come."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        pass

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        passed.append(context.get_checkpoint_id())

    def map(self, value: int) -> int:
        return value


class Failing(Listening):
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        raise ValueError("not now")


@pytest.fixture(autouse=True)
def _nothing_heard() -> Any:
    heard.clear()
    passed.clear()
    PacedEnumerator.epochs = None
    yield
    PacedEnumerator.epochs = None


def listening(function: MapFunction) -> Any:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).rebalance().map(function)

    return program


def endless(function: MapFunction) -> Any:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        source = DataGeneratorSource(lambda index: index, None, 2_000)
        name = f"endless for {type(function).__name__}"
        return env.from_source(source, WatermarkStrategy.no_watermarks(), name).rebalance().map(function)

    return program


def run(function: MapFunction, mode: str, tmp_path: Path) -> MiniJob:
    started = paced(
        listening(function),
        lambda job: None,
        max_records=20,
        options={**OFTEN, **MODES[mode], "execution.checkpointing.tolerable-failed-checkpoints": "1000"},
        sink=MarkedSink(str(tmp_path)),
    )
    started.job.wait()
    return started.job


def ids(kind: str) -> list[int]:
    return [checkpoint_id for each, checkpoint_id in heard if each == kind]


@pytest.mark.parametrize("mode", MODES)
def test_functions_are_notified_of_complete_checkpoints(mode: str, tmp_path: Path) -> None:
    run(Listening(), mode, tmp_path)
    complete = ids("complete")
    assert len(complete) >= 3
    assert complete == sorted(set(complete))
    for checkpoint_id in complete:
        assert heard.index(("snapshot", checkpoint_id)) < heard.index(("complete", checkpoint_id))


@pytest.mark.parametrize("mode", MODES)
def test_functions_are_notified_of_aborted_checkpoints(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failed = Checkpointing._write, []

    def fails_twice(self: Checkpointing, metadata: Any, target: Any) -> Any:
        if len(failed) < 2:
            failed.append(metadata.epoch)
            raise OSError("no space left")
        return write(self, metadata, target)

    monkeypatch.setattr(Checkpointing, "_write", fails_twice)
    run(Listening(), mode, tmp_path)
    assert ids("aborted") == failed
    assert not set(failed) & set(ids("complete"))


def hear_in_order() -> None:
    """Nobody is told of a snapshot before it was taken, or that it was both complete and given up."""
    assert not set(ids("aborted")) & set(ids("complete"))
    for checkpoint_id in ids("aborted"):
        assert heard.index(("snapshot", checkpoint_id)) < heard.index(("aborted", checkpoint_id))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_functions_are_notified_of_a_checkpoint_whose_barrier_was_late() -> None:
    HeldUp.waits, HeldUp.goes_on = threading.Event(), threading.Event()
    options = {**OFTEN, **LIVE, "execution.checkpointing.timeout": "50 ms"}
    options["execution.checkpointing.tolerable-failed-checkpoints"] = "1000"
    job = start(endless(HeldUp()), options=options, sink=BlackholeSink()).job
    try:
        assert HeldUp.waits.wait(30)
        statistics = job.master.checkpoints.coordinator.statistics
        failed_before, behind = statistics().counts.failed, max(ids("snapshot"), default=0) + 1
        wait_until(lambda: statistics().counts.failed > failed_before)
        HeldUp.goes_on.set()
        wait_until(lambda: behind in ids("aborted"))
        hear_in_order()
    finally:
        HeldUp.goes_on.set()
        job.cancel().result(30)


def test_functions_are_notified_of_a_checkpoint_in_which_another_region_failed() -> None:
    HeldUp.waits, HeldUp.goes_on = threading.Event(), threading.Event()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        endless(HeldUp())(env).sink_to(BlackholeSink()).uid("other sink")
        return endless(NothingSpecial())(env).key_by(lambda n: n).map(NothingSpecial()).uid("second")

    job = start(program, options={**OFTEN, **LIVE, **RESTARTS}, sink=BlackholeSink()).job
    try:
        # A barrier has passed this region, and the other one is held up.
        wait_until(lambda: bool(passed) and passed[-1] > max(ids("snapshot"), default=0))
        waits_for = passed[-1]
        second = next(
            each for each in job.master.job.vertices if any(n.uid == "second" for n in each.operators)
        )
        job.live_cluster.kill_subtask(SubtaskId(second.vertex_id, 0))
        wait_until(lambda: bool(job.master.failures.latest()))
        HeldUp.goes_on.set()
        wait_until(lambda: waits_for in ids("aborted"))
        hear_in_order()
    finally:
        HeldUp.goes_on.set()
        job.cancel().result(30)


@pytest.mark.parametrize("mode", MODES)
def test_a_listener_that_fails_makes_the_job_fail(mode: str, tmp_path: Path) -> None:
    started = paced(
        listening(Failing()),
        lambda job: None,
        max_records=20,
        options={**OFTEN, **MODES[mode], "restart-strategy.type": "none"},
        sink=MarkedSink(str(tmp_path)),
    )
    with pytest.raises(UserFunctionError, match="not now"):
        started.job.wait()
