"""Recorded live jobs, replayed: the order of channels, the clock and the timers as they were."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headrace.elements import MIN_WATERMARK
from headrace.errors import HeadraceError, StateError, UserFunctionError
from headrace.replay.debugger import PdbDebugger
from headrace.replay.recordings import find_recording
from headrace.replay.run import ReplayResult, replay_epoch
from headrace.runtime.epoch.messages import SubtaskPlan
from headrace.runtime.exchange.buffers import Header, encode_items, pack
from headrace.runtime.task.script import ScriptStep, ScriptWriter, read_script
from headrace.testing.mini_cluster import MiniJob
from headrace.testing.replay import recorded_epochs, replay
from tests.unit.runtime.jobs import Run, run
from tests.unit.runtime.paced import Paced, PacedEnumerator, paced

RECORDS = 120


class Arrivals(KeyedProcessFunction):
    """Remembers the order in which records of a key came, and sets timers by the clock."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", None))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))
        self.calls = 0

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.calls += 1
        self.seen.add(value)
        self.count.update((self.count.value() or 0) + 1)
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + value % 5)
        yield value, self.count.value(), self.calls, now

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", timestamp, ctx.timer_service().current_processing_time(), list(self.seen.get())[-1]


class FailsAt(Arrivals):
    """Raises an error at one record, whenever it comes."""

    def __init__(self, bad: int) -> None:
        self.bad = bad

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value == self.bad:
            raise ValueError(f"{value} is too many")
        yield from super().process_element(value, ctx)


def racing(function: KeyedProcessFunction) -> Any:
    """Return a program whose two sources race for the same keyed operator."""

    def program(env: StreamExecutionEnvironment) -> DataStream:
        none = WatermarkStrategy.no_watermarks()
        left = env.from_source(Paced(lambda n: n, RECORDS), none, "left").rebalance().map(lambda n: n)
        right = env.from_source(Paced(lambda n: -n - 1, RECORDS), none, "right").rebalance().map(lambda n: n)
        return left.union(right).key_by(lambda n: n % 3).process(function).name("Arrivals")

    return program


def options(directory: Path, **more: str) -> dict[str, str]:
    return {
        "headrace.exchange.kind": "pipelined",
        "headrace.live.barrier-interval": "5 ms",
        "headrace.replay.keep": "1000",
        "headrace.replay.dir": str(directory),
        "restart-strategy.type": "disable",
        **more,
    }


def record(directory: Path, function: KeyedProcessFunction | None = None, **more: str) -> Run:
    """Run a live job, with at most ten records per source subtask between two barriers."""
    watched = paced(
        racing(function or Arrivals()),
        lambda job: None,
        parallelism=2,
        options=options(directory, **more),
    )
    watched.job.wait()
    return watched


@pytest.fixture(autouse=True)
def _no_pace() -> Iterator[None]:
    yield
    PacedEnumerator.epochs = None


def differences(directory: Path | str) -> list[str]:
    """Replay every epoch of a recording; return how they differ from what the job did."""
    results = [replay(str(directory), epoch) for epoch in recorded_epochs(str(directory))]
    assert [each.error for each in results] == [None] * len(results)
    assert all(each.was_completed for each in results)
    return [str(each) for result in results for each in result.differences]


def arrivals(result: ReplayResult) -> int:
    """Return how many records subtask 0 of the keyed operator got."""
    return next(
        records
        for name, records in result.records_in.items()
        if name.startswith("Arrivals") and name[-1] == "0"
    )


def test_epochs_of_a_live_job_are_replayed_bit_for_bit(tmp_path: Path) -> None:
    output = record(tmp_path).output
    epochs = recorded_epochs(str(tmp_path))
    assert differences(tmp_path) == []
    results = [replay(str(tmp_path), epoch) for epoch in epochs]
    assert sum(bool(arrivals(result)) for result in results) >= 3
    replayed = [row for each in results for rows in each.output.values() for row in rows]
    assert sorted(map(str, replayed)) == sorted(map(str, output))
    assert len([row for row in output if row[0] != "timer"]) == 2 * RECORDS


@pytest.mark.parametrize(
    "more",
    [
        {"execution.checkpointing.unaligned.enabled": "true"},
        {"execution.checkpointing.mode": "AT_LEAST_ONCE"},
        {"headrace.replay.inputs": "true"},
        {"metrics.latency.interval": "1 ms"},
    ],
    ids=["unaligned", "at-least-once", "inputs", "markers"],
)
def test_live_jobs_with_checkpoints_are_replayed(more: dict[str, str], tmp_path: Path) -> None:
    record(tmp_path, **{"execution.checkpointing.interval": "5 ms", **more})
    assert recorded_epochs(str(tmp_path))
    assert differences(tmp_path) == []


def test_input_of_a_live_source_is_kept_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, **{"headrace.replay.inputs": "true"})
    assert any(tmp_path.rglob("input-*"))
    monkeypatch.setattr(Paced, "create_reader", lambda self: pytest.fail("the source was read again"))
    assert differences(tmp_path) == []


def test_a_live_failure_is_replayed_with_its_record_and_state(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="70 is too many"):
        record(tmp_path, FailsAt(70))
    result = replay(str(tmp_path), last_failure=True)
    assert isinstance(result.error, UserFunctionError)
    assert result.recorded_error is not None
    assert not result.was_completed
    commands = io.StringIO("p value, self.count.value(), len(list(self.seen.get()))\nq\n")
    shown = io.StringIO()
    recording = find_recording(str(tmp_path))
    replay_epoch(recording, recording.last_failure(), debugger=PdbDebugger(stdin=commands, stdout=shown))
    assert "raise ValueError" in shown.getvalue()
    (stop,) = [line for line in shown.getvalue().splitlines() if line.startswith("(replay) (70,")]
    _, count, seen = eval(stop.removeprefix("(replay) "))
    assert count == seen > 0


def test_a_live_failure_with_more_input_than_is_kept_says_what_to_raise(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="70 is too many"):
        record(tmp_path, FailsAt(70), **{"headrace.replay.live.max-size": "10 b"})
    result = replay(str(tmp_path), last_failure=True)
    assert isinstance(result.error, StateError)
    assert "headrace.replay.live.max-size" in str(result.error.hint)


def test_a_region_that_failed_and_ran_again_is_still_the_last_failure(tmp_path: Path) -> None:
    marker = tmp_path / "failed"

    class FailsOnce(FailsAt):
        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            if value == self.bad and not marker.exists():
                marker.touch()
                raise ValueError("once")
            yield from Arrivals.process_element(self, value, ctx)

    def program(env: StreamExecutionEnvironment) -> DataStream:
        none = WatermarkStrategy.no_watermarks()
        env.from_source(Paced(lambda n: n, RECORDS), none, "other").key_by(lambda n: n).print()
        return racing(FailsOnce(70))(env)

    again = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms"}
    directory = tmp_path / "recorded"
    paced(program, lambda job: None, parallelism=2, options=options(directory, **again)).job.wait()
    assert differences(directory) == []
    marker.unlink()
    result = replay(str(directory), last_failure=True)
    assert "once" in str(result.error)


def test_a_live_replay_stops_before_a_record_of_a_subtask(tmp_path: Path) -> None:
    record(tmp_path)
    recording = find_recording(str(tmp_path))
    number = max(recording.epochs, key=lambda each: arrivals(replay(str(tmp_path), each)))
    shown = io.StringIO()
    debugger = PdbDebugger(stdin=io.StringIO("p value\nc\n"), stdout=shown)
    result = replay_epoch(
        recording, recording.epoch(number), debugger=debugger, subtask="Arrivals:0", until_record=3
    )
    assert result.differences == []
    assert any(line.removeprefix("(replay) ").lstrip("-").isdigit() for line in shown.getvalue().splitlines())


def test_only_the_last_epochs_of_a_live_job_are_kept(tmp_path: Path) -> None:
    record(tmp_path, **{"headrace.replay.keep": "3"})
    assert len(recorded_epochs(str(tmp_path))) == 3
    assert differences(tmp_path) == []


def test_a_savepoint_of_a_live_job_is_replayed_elsewhere(tmp_path: Path) -> None:
    asked: list[Any] = []

    def stop(job: MiniJob) -> None:
        if not asked and job.progress.records > 50:
            asked.append(job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))

    settings = options(tmp_path / "recorded", **{"headrace.replay.inputs": "true"})
    paced(racing(Arrivals()), stop, parallelism=2, options=settings).job.wait()
    (tmp_path / "recorded").rename(tmp_path / "gone")
    laptop = tmp_path / "laptop"
    Path(asked[0].result(10)).rename(laptop)
    assert len(recorded_epochs(str(laptop))) >= 2
    assert differences(laptop) == []


def test_a_live_job_that_was_not_recorded_says_what_to_set(tmp_path: Path) -> None:
    run(racing(Arrivals()), options=options(tmp_path, **{"headrace.replay.keep": "0"}))
    with pytest.raises(StateError, match="no recorded epochs found") as refused:
        replay(str(tmp_path))
    assert "headrace.replay.keep" in str(refused.value.hint)


# -- what is noted ---------------------------------------------------------------------------------------------


def buffer(producer: int, *values: int) -> tuple[Header, bytes]:
    header = Header(1, 0, 5, producer, 0, 0)
    return header, pack(header, encode_items([(list(values), None), MIN_WATERMARK]))


def test_buffers_of_another_epoch_are_noted_as_they_are() -> None:
    """One that a barrier has overtaken, and one that came after the barrier before the task's epoch ended."""
    script = ScriptWriter(10_000)
    script.begin_epoch()
    script.buffer(*buffer(0, 1))
    script.begin_epoch()  # a barrier has overtaken what follows
    script.buffer(*buffer(0, 2))
    script.barrier(buffer(0)[0])
    script.buffer(*buffer(0, 3))
    script.barrier(buffer(0)[0])  # the next one; the task does not wait for others
    script.buffer(*buffer(0, 4))
    noted = read_script(script.take())
    assert noted.steps == ((ScriptStep.COPY, (0,)), (ScriptStep.BUFFER, (5, 0, 0)), (ScriptStep.COPY, (1,)))
    assert noted.copies == [buffer(0, 2)[1], buffer(0, 4)[1]]
    script.begin_epoch()
    script.buffer(*buffer(0, 5))
    assert read_script(script.take()).steps == ((ScriptStep.BUFFER, (5, 0, 1)),)


def test_a_script_that_grows_too_long_is_dropped_until_the_next_barrier() -> None:
    script = ScriptWriter(60)
    script.begin_epoch()
    for number in range(9):
        script.buffer(*buffer(0, number))
    noted = read_script(script.take())
    assert noted.is_cut_short
    assert noted.steps == ()
    script.begin_epoch()
    script.feed(SubtaskPlan())
    assert not read_script(script.take()).is_cut_short
