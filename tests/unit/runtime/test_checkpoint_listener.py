"""Functions that listen hear of complete checkpoints and of those that were given up, in both modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.fakes import MarkedSink
from tests.unit.runtime.test_live import LIVE, OFTEN, PacedEnumerator, numbers, paced

MODES = {"epochs": {}, "live": LIVE}

#: What listeners heard, in order: subtask by subtask it rises.
heard: list[tuple[str, int]] = []


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


class Failing(Listening):
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        raise ValueError("not now")


@pytest.fixture(autouse=True)
def _nothing_heard() -> Any:
    heard.clear()
    PacedEnumerator.epochs = None
    yield
    PacedEnumerator.epochs = None


def listening(function: MapFunction) -> Any:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).rebalance().map(function)

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
