"""Recorded epochs, run again: the same output and state, and a stop where it was asked for."""

from __future__ import annotations

import io
import itertools
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Configuration as ProgramConfiguration
from headrace.common import Types, WatermarkStrategy
from headrace.config import Configuration
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headrace.errors import ConfigurationError, StateError
from headrace.replay.debugger import PdbDebugger
from headrace.replay.recordings import find_recording
from headrace.replay.run import replay_epoch
from headrace.testing.mini_cluster import Fault, MiniExecutor, MiniJob, TaskAttempt
from headrace.testing.replay import recorded_epochs, replay
from headrace.testing.sources import EndEpoch, ScriptedSource, Stop

ORDERS = [("ann", 5), ("bob", 7), ("ann", 3), ("bob", 1), ("ann", 4), ("bob", 2)]


class Total(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.amounts = runtime_context.get_list_state(ListStateDescriptor("amounts", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        customer, amount = value
        if amount == 1:
            ctx.timer_service().register_processing_time_timer(1)
        self.amounts.add(amount)
        self.total.update((self.total.value() or 0) + amount)
        yield customer, self.total.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.timer_service().current_processing_time()


class FailsAtFour(Total):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value[1] == 4:
            raise ValueError("four is too many")
        yield from super().process_element(value, ctx)


def run_job(
    directory: Path,
    function: KeyedProcessFunction | None = None,
    options: dict[str, str] | None = None,
    orders: list[Any] | None = None,
    **settings: Any,
) -> list[Any]:
    values = {
        "headrace.replay.keep": "100",
        "headrace.replay.dir": str(directory),
        "headrace.epoch.max-records": "2",
        "parallelism.default": "2",
    }
    configuration = Configuration(values | (options or {}))
    with ExecutionContext(configuration, executors={"spark": MiniExecutor(**settings)}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_collection(ORDERS if orders is None else orders)
        keyed = stream.key_by(lambda order: order[0])
        with keyed.process(function or Total()).name("Total").execute_and_collect() as rows:
            return list(rows)


def test_replayed_epochs_do_exactly_what_the_job_did(tmp_path: Path) -> None:
    rows = run_job(tmp_path)
    epochs = recorded_epochs(str(tmp_path))
    results = [replay(str(tmp_path), epoch) for epoch in epochs]
    assert [each.differences for each in results] == [[] for _ in epochs]
    replayed = [row for each in results for output in each.output.values() for row in output]
    assert sorted(map(str, replayed)) == sorted(map(str, rows))


def test_an_epoch_that_was_run_again_after_faults_is_replayed(tmp_path: Path) -> None:
    faults = {TaskAttempt(2, 1): Fault.HOST_LOST, TaskAttempt(1, 1): Fault.WORKER_KILLED}
    run_job(tmp_path, faults=faults)
    assert all(not replay(str(tmp_path), epoch).differences for epoch in recorded_epochs(str(tmp_path)))


def test_a_function_that_is_not_deterministic_is_reported_record_by_record(tmp_path: Path) -> None:
    class Draws(Total):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            self.total.update(random.getrandbits(60))
            yield value[0], self.total.value()

    run_job(tmp_path, Draws())
    differences = [str(each) for each in replay(str(tmp_path), 1).differences]
    assert any("record 1 is ('ann'," in each for each in differences)
    assert any("an entry of 'total' differs" in each for each in differences)


def test_the_last_failure_is_replayed_with_its_record_and_state(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="four is too many"):
        run_job(tmp_path, FailsAtFour())
    result = replay(str(tmp_path), last_failure=True)
    assert result.recorded_error is not None
    assert not result.was_completed
    assert "('ann', 4)" in str(result.error)
    commands = io.StringIO("p value, self.total.value(), list(self.amounts.get())\nq\n")
    shown = io.StringIO()
    recording = find_recording(str(tmp_path))
    replay_epoch(recording, recording.last_failure(), debugger=PdbDebugger(stdin=commands, stdout=shown))
    assert "raise ValueError" in shown.getvalue()
    assert "(('ann', 4), 8, [5, 3])" in shown.getvalue()


def test_a_replay_stops_before_a_record_of_a_subtask(tmp_path: Path) -> None:
    run_job(tmp_path, options={"headrace.epoch.max-records": "6"})
    recording = find_recording(str(tmp_path))
    shown = io.StringIO()
    debugger = PdbDebugger(stdin=io.StringIO("p value\nc\n"), stdout=shown)
    result = replay_epoch(recording, recording.epoch(1), debugger=debugger, subtask="Total:0", until_record=2)
    assert result.differences == []
    ours = [line for line in shown.getvalue().splitlines() if line.startswith("(replay)")]
    assert ours[0] == "(replay) ('ann', 3)"


@pytest.mark.parametrize(
    ("subtask", "message"),
    [
        ("Total:0", "Total:0 got 3 records in this epoch, so there is no record 9"),
        (None, "no subtask got 9 records in this epoch; the most that one got is"),
    ],
)
def test_a_replay_says_that_the_record_to_stop_before_did_not_come(
    subtask: str | None, message: str, tmp_path: Path
) -> None:
    run_job(tmp_path, options={"headrace.epoch.max-records": "6"})
    recording = find_recording(str(tmp_path))
    debugger = PdbDebugger(stdin=io.StringIO(), stdout=io.StringIO())
    result = replay_epoch(recording, recording.epoch(1), debugger=debugger, subtask=subtask, until_record=9)
    assert result.not_reached.startswith(message)


def test_an_unknown_subtask_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    run_job(tmp_path)
    recording = find_recording(str(tmp_path))
    debugger = PdbDebugger(stdin=io.StringIO(), stdout=io.StringIO())
    with pytest.raises(ConfigurationError, match="no operator is called 'Totl'") as refused:
        replay_epoch(recording, recording.epoch(1), debugger=debugger, subtask="Totl:0", until_record=1)
    assert "'Total'" in str(refused.value.hint)


def test_only_the_last_epochs_and_their_files_are_kept(tmp_path: Path) -> None:
    run_job(tmp_path, options={"headrace.replay.keep": "2", "headrace.epoch.max-records": "1"})
    epochs = recorded_epochs(str(tmp_path))
    assert len(epochs) == 2
    assert all(not replay(str(tmp_path), epoch).differences for epoch in epochs)
    with pytest.raises(StateError, match="epoch 1 is not recorded"):
        replay(str(tmp_path), 1)


def test_input_that_was_kept_is_replayed_without_the_source(tmp_path: Path) -> None:
    configuration = ProgramConfiguration.from_dict(
        {
            "headrace.replay.keep": "9",
            "headrace.replay.dir": str(tmp_path),
            "headrace.replay.inputs": "true",
            "execution.target": "headrace.testing.mini_cluster:MiniExecutor",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = ScriptedSource([1, 2, EndEpoch(), 3])
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "Script")
    with numbers.map(lambda n: n * n).execute_and_collect() as rows:
        assert sorted(rows) == [1, 4, 9]
    recording = find_recording(str(tmp_path))
    kept = [each for number in recording.epochs for each in Path(recording.epoch(number).directory).iterdir()]
    assert any(path.name.startswith("input-") for path in kept)
    for number in recording.epochs:
        assert replay(str(tmp_path), number).differences == []


def test_a_savepoint_that_was_copied_elsewhere_carries_the_recording_with_it(tmp_path: Path) -> None:
    values = {
        "headrace.replay.keep": "9",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "headrace.epoch.max-records": "1",
    }
    two_epochs = threading.Event()
    jobs: list[MiniJob] = []

    class Executor:
        def submit(self, graph: Any, configuration: Any) -> MiniJob:
            jobs.append(
                MiniJob(graph, configuration, on_epoch=lambda each: each.epoch == 2 and two_epochs.set())
            )
            return jobs[0]

    executor = Executor()
    with ExecutionContext(Configuration(values), executors={"spark": executor}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        source = ScriptedSource([("ann", 1), EndEpoch(), ("ann", 2), Stop()], directory=tmp_path / "counts")
        orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "Orders")
        orders.key_by(lambda order: order[0]).process(Total()).print()
        env.execute_async("job")
        assert two_epochs.wait(30)
        path = (
            jobs[0]
            .stop_with_savepoint(
                advance_to_end_of_event_time=False, savepoint_directory=str(tmp_path / "savepoints")
            )
            .result(30)
        )
    copied = shutil.copytree(path, tmp_path / "laptop" / "copy of a savepoint")
    for name in ("checkpoints", "savepoints"):
        shutil.rmtree(tmp_path / name)
    epochs = recorded_epochs(str(copied))
    assert len(epochs) >= 2
    for epoch in epochs:
        assert replay(str(copied), epoch).differences == []


def test_keeping_epochs_needs_a_directory() -> None:
    configuration = Configuration({"headrace.replay.keep": "3"})
    with ExecutionContext(configuration, executors={"spark": MiniExecutor()}).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1]).print()
        with pytest.raises(ConfigurationError, match="no directory for recorded epochs"):
            env.execute("job")


def test_a_place_without_a_recording_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no recorded epochs found") as refused:
        find_recording(str(tmp_path))
    assert "headrace.replay.keep" in str(refused.value.hint)


def test_nothing_is_recorded_unless_asked_for(tmp_path: Path) -> None:
    run_job(tmp_path, options={"headrace.replay.keep": "0"})
    assert list(itertools.islice(tmp_path.iterdir(), 1)) == []
