"""Savepoints as a program meets them: through its JobClient, whose they are, and what a changed program may do."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.common import JobClient, Types, WatermarkStrategy
from headrace.common.job_status import JobStatus
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from headrace.errors import CheckpointError, HeadraceError, StateMigrationError
from headrace.runtime.checkpoint.foreign import ForeignFiles
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.checkpoint.storage import CheckpointDirectory, load_checkpoint
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.testing.mini_cluster import MiniCluster, MiniJob
from tests.unit.runtime.fakes import MarkedSink, marked
from tests.unit.runtime.jobs import Executor, make_env, run
from tests.unit.runtime.test_recovery import (
    COUNTED,
    EVERY_EPOCH,
    NUMBERS,
    RESTARTS,
    counting,
    numbers,
    start_watched,
    stop_in_the_middle,
)


def output_of(sink: str) -> list[Any]:
    return sorted(record for batch in marked[sink].values() for record in batch)


# --- whose it is ----------------------------------------------------------------------------------


def fail_if_asked(number: int, switch: Path) -> int:
    """Fail once when the switch is there: workers get copies of functions, files are there for all."""
    if switch.exists():
        switch.unlink()
        raise ValueError("asked for")
    return number


def checkpoints_of(job: MiniJob) -> list[Any]:
    return list(job.master.checkpoints._store.checkpoints)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_savepoint_that_is_not_claimed_may_go_after_the_first_checkpoint(tmp_path: Path, parallelism: int):
    sink = MarkedSink(str(tmp_path))
    switch = tmp_path / "fail"
    moments: list[str] = []

    def program(env: StreamExecutionEnvironment) -> DataStream:
        return counting(env).map(lambda pair: (fail_if_asked(pair[0], switch), pair[1])).uid("failing")

    savepoint = stop_in_the_middle(program, tmp_path / "sp", parallelism=2, sink=sink.name)

    def watch(job: MiniJob) -> None:
        if not moments and checkpoints_of(job):
            shutil.rmtree(savepoint)
            moments.append("deleted")
            switch.touch()

    started = start_watched(
        program,
        watch,
        parallelism=parallelism,
        max_records=2,
        options={
            **EVERY_EPOCH,
            **RESTARTS,
            "execution.checkpointing.dir": str(tmp_path / "chk"),
            "execution.state-recovery.path": savepoint,
        },
        sink=sink,
        task_retries=0,
    )
    started.job.wait()
    assert moments == ["deleted"]
    assert started.job.progress.restarts == 1
    assert output_of(sink.name) == COUNTED


def test_the_first_checkpoint_names_copies_and_the_savepoint_is_left_as_it_was(tmp_path: Path):
    savepoint = stop_in_the_middle(counting, tmp_path / "sp", parallelism=2, sink=str(tmp_path))
    before = {path: path.read_bytes() for path in Path(savepoint).iterdir()}
    seen: list[set[str]] = []
    live: list[frozenset[str]] = []

    def watch(job: MiniJob) -> None:
        for stored in checkpoints_of(job):
            seen.append({file.path for file in stored.metadata.files()})
            live.append(job.master._steps.run.live_files())

    options = {
        **EVERY_EPOCH,
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.state-recovery.path": savepoint,
    }
    sink = MarkedSink(str(tmp_path))
    start_watched(counting, watch, parallelism=2, max_records=2, options=options, sink=sink).job.wait()
    assert seen
    assert not any(path.startswith(savepoint) for files in [*seen, *live] for path in files)
    assert {path: path.read_bytes() for path in Path(savepoint).iterdir()} == before


def test_a_rescaling_leaves_alone_what_the_first_checkpoint_copies_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The run is rescaled before the writer begins, and tidies up when the writer has copied but not completed."""
    savepoint = stop_in_the_middle(counting, tmp_path / "sp", parallelism=2, sink=str(tmp_path))
    is_rescaled, is_copied = threading.Event(), threading.Event()
    replaced_in, orphans = ForeignFiles.replaced_in, CheckpointDirectory.orphans
    missing: list[str] = []

    def copy_late(self: ForeignFiles, metadata: CheckpointMetadata) -> CheckpointMetadata:
        assert is_rescaled.wait(10)
        made = replaced_in(self, metadata)
        is_copied.set()
        return made

    def tidy_later(self: CheckpointDirectory, *named: Any, **more: Any) -> list[str]:
        if is_rescaling.is_set():
            is_rescaled.set()
            assert is_copied.wait(10)
        return orphans(self, *named, **more)

    monkeypatch.setattr(ForeignFiles, "replaced_in", copy_late)
    monkeypatch.setattr(CheckpointDirectory, "orphans", tidy_later)
    is_rescaling = threading.Event()

    def watch(job: MiniJob) -> None:
        if not is_rescaling.is_set():
            is_rescaling.set()
            job.rescale(3)
        for stored in checkpoints_of(job):
            missing.extend(file.path for file in stored.metadata.files() if not Path(file.path).exists())

    options = {
        **EVERY_EPOCH,
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.state-recovery.path": savepoint,
    }
    sink = MarkedSink(str(tmp_path))
    started = start_watched(counting, watch, parallelism=2, max_records=2, options=options, sink=sink)
    started.job.wait()
    assert is_copied.is_set()
    assert not missing
    assert output_of(sink.name) == COUNTED


def test_a_savepoint_that_is_claimed_goes_when_checkpoints_have_taken_its_place(tmp_path: Path):
    savepoint = stop_in_the_middle(counting, tmp_path / "sp", parallelism=2, sink=str(tmp_path))
    options = {
        **EVERY_EPOCH,
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.state-recovery.path": savepoint,
        "execution.state-recovery.claim-mode": "CLAIM",
    }
    sink = MarkedSink(str(tmp_path))
    start_watched(
        counting, lambda _: None, parallelism=2, max_records=2, options=options, sink=sink
    ).job.wait()
    assert output_of(sink.name) == COUNTED
    assert not (Path(savepoint) / "_metadata").exists()


def test_a_first_checkpoint_that_cannot_copy_says_what_to_do(tmp_path: Path):
    savepoint = stop_in_the_middle(counting, tmp_path / "sp", parallelism=1, sink=str(tmp_path))
    options = {
        **EVERY_EPOCH,
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.state-recovery.path": savepoint,
        "restart-strategy.type": "none",
    }
    started = start_watched(
        counting,
        lambda _: shutil.rmtree(savepoint, ignore_errors=True),
        max_records=1,
        options=options,
        sink=MarkedSink(str(tmp_path)),
    )
    with pytest.raises(CheckpointError) as failed:
        started.job.wait()
    assert "cannot copy the files" in str(failed.value) + str(failed.value.__cause__)


# --- a state that is declared otherwise -----------------------------------------------------------


class Remembering(KeyedProcessFunction):
    """Uses one state as it is described."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._descriptor, ValueStateDescriptor):
            state = runtime_context.get_state(self._descriptor)
            self._put: Any = state.update
        else:
            entries = runtime_context.get_map_state(self._descriptor)
            self._put = lambda number: entries.put(number, number)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self._put(value)
        yield value


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (ValueStateDescriptor("seen", Types.STRING()), "was written as value of LONG.* value of STRING"),
        (MapStateDescriptor("seen", None, None), "was written as value of LONG.* map from any type"),
    ],
    ids=["type", "kind"],
)
def test_a_program_that_declares_a_state_otherwise_fails_at_once_and_loses_nothing(
    tmp_path: Path, other: StateDescriptor, message: str
):
    def program(descriptor: StateDescriptor) -> Any:
        return lambda env: numbers(env).key_by(lambda n: n % 7).process(Remembering(descriptor)).uid("count")

    written = ValueStateDescriptor("seen", Types.LONG())
    savepoint = stop_in_the_middle(program(written), tmp_path, parallelism=2, sink=str(tmp_path))
    options = {**EVERY_EPOCH, **RESTARTS, "execution.state-recovery.path": savepoint}
    started = start_watched(program(other), lambda _: None, parallelism=3, options=options)
    with pytest.raises(HeadraceError, match=message) as failed:
        started.job.wait()
    assert isinstance(failed.value, StateMigrationError)
    assert started.job.progress.restarts == 0, "no restart can mend it"
    assert load_checkpoint(savepoint).metadata.is_savepoint

    sink = MarkedSink(str(tmp_path))
    start_watched(program(written), lambda _: None, options=options, sink=sink).job.wait()
    assert output_of(sink.name) == list(range(NUMBERS))


# --- JobClient ------------------------------------------------------------------------------------


def client_of(program: Any, sink: MarkedSink, options: dict[str, Any] | None = None) -> JobClient:
    env = make_env(2, {"headrace.epoch.max-records": 1, **(options or {})})
    program(env).sink_to(sink)
    Executor.settings = {"on_epoch": lambda _: time.sleep(0.002)}
    return env.execute_async("client")


def endless(env: StreamExecutionEnvironment) -> DataStream:
    source = NumberSequenceSource(0, 1_000_000)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return stream.key_by(lambda n: n % 7).map(lambda n: n).uid("map")


def test_a_client_takes_a_savepoint_and_the_job_continues(tmp_path: Path):
    client = client_of(endless, MarkedSink(str(tmp_path)))
    path = client.trigger_savepoint(str(tmp_path / "here")).result()
    assert Path(path).parent == tmp_path / "here"
    assert load_checkpoint(path).metadata.kind == "savepoint"
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert load_checkpoint(path), "cancelling does not touch it"


def test_a_client_takes_savepoints_where_the_options_say(tmp_path: Path):
    options = {"execution.checkpointing.savepoint-dir": str(tmp_path / "there")}
    client = client_of(endless, MarkedSink(str(tmp_path)), options)
    first = client.trigger_savepoint().result()
    last = client.stop_with_savepoint(False).result()
    assert {Path(first).parent, Path(last).parent} == {tmp_path / "there"}
    client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FINISHED


def test_a_savepoint_without_a_directory_is_refused_with_the_option_to_set(tmp_path: Path):
    client = client_of(endless, MarkedSink(str(tmp_path)))
    for ask in (client.trigger_savepoint, lambda: client.stop_with_savepoint(True)):
        with pytest.raises(HeadraceError, match="no directory is given for a savepoint") as refused:
            ask()
        assert "execution.checkpointing.savepoint-dir" in str(refused.value)
    assert client.get_job_status().result() is JobStatus.RUNNING, "the job goes on"
    client.cancel().result()


@pytest.mark.parametrize("drains", [False, True])
def test_a_client_stops_a_job_with_a_savepoint(tmp_path: Path, drains: bool):
    client = client_of(endless, MarkedSink(str(tmp_path)))
    path = client.stop_with_savepoint(drains, str(tmp_path)).result()
    client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert load_checkpoint(path).metadata.is_savepoint


def test_a_savepoint_that_cannot_be_written_leaves_the_job_running(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    client = client_of(endless, MarkedSink(str(tmp_path)))
    with pytest.raises(HeadraceError, match="could not be written"):
        client.stop_with_savepoint(False, str(tmp_path / "file")).result()
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()


def test_a_job_that_is_over_takes_no_savepoint(tmp_path: Path):
    client = client_of(endless, MarkedSink(str(tmp_path)))
    client.cancel().result()
    with pytest.raises(HeadraceError):
        client.trigger_savepoint(str(tmp_path)).result()


# --- the last epoch -------------------------------------------------------------------------------


def test_the_last_epoch_knows_whether_a_snapshot_may_follow(tmp_path: Path):
    """Without checkpoints nothing reads the state that a bounded job ends with."""
    without = run(counting, max_records=4).job
    with_checkpoints = run(
        counting, max_records=4, options={**EVERY_EPOCH, "execution.checkpointing.dir": str(tmp_path)}
    ).job
    assert {plan.keeps_last_state for plan in without.cluster.plans} == {False}
    assert {plan.keeps_last_state for plan in with_checkpoints.cluster.plans} == {True}


def test_a_savepoint_is_refused_if_the_last_epoch_wrote_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run_epoch = MiniCluster.run

    def run_without_state(self: MiniCluster, plan: EpochPlan) -> list[SubtaskReport]:
        return [replace(each, changes={}, keeps_state=False) for each in run_epoch(self, plan)]

    monkeypatch.setattr(MiniCluster, "run", run_without_state)
    asked: list[Future[str]] = []
    started = start_watched(
        counting,
        lambda job: asked.append(job.master.checkpoints.coordinator.trigger_savepoint(0, str(tmp_path))),
        max_records=1000,
    )
    started.job.wait()
    assert started.job.status() is JobStatus.FINISHED
    with pytest.raises(CheckpointError, match="the job has ended"):
        asked[0].result(10)
    assert not any(tmp_path.iterdir())
