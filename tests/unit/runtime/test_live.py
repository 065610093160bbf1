"""Live jobs: subtasks that last, barriers in band, and the same results, savepoints and guarantees as in epochs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headrace.common.job_status import JobStatus
from headrace.common.time import Time
from headrace.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkStrategy
from headrace.connectors.base import Sink
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.connectors.function_source import FunctionSink
from headrace.connectors.print import PrintSink
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction, MapFunction, RuntimeContext
from headrace.datastream.state import ValueStateDescriptor
from headrace.datastream.window import TumblingEventTimeWindows
from headrace.elements import Batch
from headrace.errors import CheckpointError, UserFunctionError
from headrace.graph.rescaling import uniform_parallelism
from headrace.operators.timestamps import GeneratedTime
from headrace.runtime.checkpoint.storage import load_checkpoint
from headrace.runtime.monitoring.flame_graphs import SampleKind
from headrace.runtime.run.live_run import barrier_interval_ms
from headrace.testing.mini_cluster import MiniJob
from headrace.util import clock
from tests.unit.runtime.fakes import MarkedSink, marked
from tests.unit.runtime.jobs import Executor, Run, job_graph, make_env, run, start, start_watched
from tests.unit.runtime.paced import Paced, PacedEnumerator, paced

RECORDS = 600
LIVE = {"headrace.exchange.kind": "pipelined", "headrace.live.barrier-interval": "5 ms"}
OFTEN = {"execution.checkpointing.interval": "5 ms"}
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "restart-strategy.fixed-delay.attempts": "10",
}


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 7, count


@pytest.fixture(autouse=True)
def _no_pace() -> None:
    PacedEnumerator.epochs = None


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    source = Paced(lambda index: index, RECORDS)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def counting(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 7).process(Count()).uid("count")


COUNTED = sorted((n % 7, n // 7 + 1) for n in range(RECORDS))


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 100


def windows(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stamped = numbers(env).set_parallelism(1).assign_timestamps_and_watermarks(strategy).uid("stamped")
    window = TumblingEventTimeWindows.of(Time.seconds(3))
    return stamped.key_by(lambda n: n % 5).window(window).reduce(lambda a, b: a + b).uid("sums")


def output_of(sink: MarkedSink) -> list[Any]:
    return sorted(record for batch in marked[sink.name].values() for record in batch)


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("program", [counting, windows])
def test_a_live_job_gives_what_epochs_give(program: Any, parallelism: int) -> None:
    expected = sorted(run(program, parallelism=1).output)
    live = run(program, parallelism=parallelism, options=LIVE)
    assert sorted(live.output) == expected
    assert live.job.status() is JobStatus.FINISHED


def test_records_pass_levels_that_are_not_theirs() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        read = numbers(env)
        far = read.key_by(lambda n: n).map(lambda n: n).key_by(lambda n: n % 3).map(lambda n: n)
        return far.union(read.rebalance().map(lambda n: n)).rebalance().map(lambda n: n)

    assert Counter(run(program, parallelism=2, options=LIVE).output) == Counter(list(range(RECORDS)) * 2)


# -- checkpoints and savepoints ------------------------------------------------------------------------------


def stop_in_the_middle(program: Any, target: Path, options: dict[str, str], sink: MarkedSink) -> str:
    asked: list[Any] = []

    def stop(job: MiniJob) -> None:
        if not asked and job.progress.records > 20:
            asked.append(job.master.stop_with_savepoint(str(target), drain=False))

    paced(program, stop, parallelism=2, max_records=7, options={**OFTEN, **options}, sink=sink).job.wait()
    PacedEnumerator.epochs = None
    return str(asked[0].result(10))


@pytest.mark.parametrize("program", [counting, windows])
@pytest.mark.parametrize("modes", [("live", "epochs"), ("epochs", "live"), ("live", "live")], ids="-".join)
def test_a_savepoint_of_one_mode_is_continued_in_the_other(
    program: Any, modes: tuple[str, str], tmp_path: Path
) -> None:
    expected = sorted(run(program, parallelism=1).output)
    first, second = ({} if mode == "epochs" else LIVE for mode in modes)
    sink = MarkedSink(str(tmp_path))
    savepoint = stop_in_the_middle(program, tmp_path, first, sink)
    before = len(output_of(sink))
    assert before < len(expected)
    run(
        program,
        parallelism=3,
        options={**OFTEN, **second, "execution.state-recovery.path": savepoint},
        sink=sink,
    )
    assert output_of(sink) == expected


def test_a_job_that_is_drained_lets_its_windows_fire(tmp_path: Path) -> None:
    asked: list[Any] = []

    def stop(job: MiniJob) -> None:
        if not asked and job.progress.records > 20:
            asked.append(job.master.stop_with_savepoint(str(tmp_path), drain=True))

    sink = MarkedSink(str(tmp_path))
    job = paced(windows, stop, parallelism=2, options={**LIVE, **OFTEN}, sink=sink).job
    job.wait()
    read = job.progress.records
    assert read < RECORDS
    # Every record that was read is in a window that has fired.
    assert sum(output_of(sink)) == sum(range(read))


def test_a_live_job_is_rescaled() -> None:
    steps = iter([3, 1])

    def rescale(job: MiniJob) -> None:
        if job.progress.records > 50 * (job.progress.rescales + 1):
            parallelism = next(steps, None)
            if parallelism is not None:
                job.master.rescale(uniform_parallelism(job.master.job, parallelism))

    started = paced(counting, rescale, parallelism=2, options=LIVE)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert started.job.progress.rescales == 2


# -- failures ------------------------------------------------------------------------------------------------


class FailsOnce(MapFunction):
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def map(self, value: Any) -> Any:
        if value[1] == 40 and not self.marker.exists():
            self.marker.touch()
            raise ValueError("not yet")
        return value


def test_a_function_that_fails_takes_the_job_back_to_its_last_checkpoint(tmp_path: Path) -> None:
    sink = MarkedSink(str(tmp_path))
    finished = paced(
        lambda env: counting(env).rebalance().map(FailsOnce(tmp_path / "failed")),
        lambda job: None,
        parallelism=2,
        options={**LIVE, **OFTEN, **RESTARTS},
        sink=sink,
    )
    finished.job.wait()
    assert output_of(sink) == COUNTED
    assert finished.job.progress.restarts == 1


def test_a_job_fails_with_the_cause_not_with_a_consequence(tmp_path: Path) -> None:
    started = start(
        lambda env: counting(env).rebalance().map(FailsOnce(tmp_path / "failed")),
        parallelism=2,
        options=LIVE,
    )
    with pytest.raises(UserFunctionError, match="not yet"):
        started.job.wait()


@pytest.mark.parametrize("place", [(0, 1), (1, 0)], ids=["source", "consumer"])
def test_a_subtask_that_is_killed_takes_the_job_back_to_its_last_checkpoint(
    place: tuple[int, int], tmp_path: Path
) -> None:
    killed = threading.Event()

    def kill(job: MiniJob) -> None:
        if not killed.is_set() and job.progress.records > 50:
            killed.set()
            job.live_cluster.kill(*place)

    sink = MarkedSink(str(tmp_path))
    options = {**LIVE, **OFTEN, **RESTARTS}
    started = paced(counting, kill, parallelism=2, options=options, sink=sink)
    started.job.wait()
    assert output_of(sink) == COUNTED
    assert started.job.progress.restarts == 1
    [failure] = started.job.master.failures.latest()
    assert "was lost" in failure.text


def test_a_live_job_is_cancelled() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        endless = DataGeneratorSource(lambda index: index, None, 1000)
        return (
            env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless")
            .key_by(lambda n: n)
            .map(str)
        )

    seen = threading.Event()
    started = start_watched(program, lambda job: seen.set(), options=LIVE, parallelism=2)
    assert seen.wait(20)
    started.job.cancel().result(20)
    assert started.job.status() is JobStatus.CANCELED


# -- what lasts ----------------------------------------------------------------------------------------------

calls: Counter[str] = Counter()


class Lasting(MapFunction):
    """Counts in a field how many records it has seen, and how often it was opened and closed."""

    def open(self, runtime_context: RuntimeContext) -> None:
        calls["open"] += 1
        self.seen = 0

    def map(self, value: int) -> int:
        self.seen += 1
        return self.seen

    def close(self) -> None:
        calls["close"] += 1


def test_functions_are_opened_and_closed_once_and_keep_their_fields() -> None:
    calls.clear()
    finished = paced(lambda env: numbers(env).rebalance().map(Lasting()), lambda job: None, options=LIVE)
    finished.job.wait()
    assert len(finished.job.epochs) > 3
    assert finished.output == list(range(1, RECORDS + 1))
    assert calls == {"open": 1, "close": 1}


class Ages(WatermarkGenerator):
    """Counts how often it is asked, and knows no other time."""

    asked = 0

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        self.asked += 1
        output.emit_watermark(self.asked)


def test_watermarks_come_by_the_clock_without_records() -> None:
    tracker = GeneratedTime(WatermarkStrategy.for_generator(Ages), is_by_clock=True)
    assert [batch.values for batch in tracker.stamp(Batch([1, 2], [5, 6]))] == [[1, 2]]
    assert tracker.watermark is None
    tracker.emit_periodically()
    tracker.emit_periodically()
    assert tracker.watermark == 2


def test_what_is_printed_waits_for_no_barrier(capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env(2, {**LIVE, "headrace.live.barrier-interval": "1 h"})
    endless = DataGeneratorSource(lambda index: index, None, 1000)
    read = env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless")
    read.key_by(lambda n: n).map(str).print()
    Executor.settings = {}
    env.execute_async("test")
    job = Executor.jobs.pop()
    printed = ""
    while printed.count("\n") < 3:
        assert not job.result_future().done()
        printed += capsys.readouterr().out
    job.cancel().result(20)
    assert {line[:3] for line in printed.splitlines()} <= {"1> ", "2> "}


def test_statistics_say_what_a_barrier_took() -> None:
    seen: list[Any] = []

    def look(job: MiniJob) -> None:
        seen.extend(job.master.checkpoints.coordinator.statistics().history)

    paced(counting, look, parallelism=2, options={**LIVE, **OFTEN}).job.wait()
    parts = [part for record in seen for task in record.tasks.values() for part in task.subtasks]
    assert parts
    assert all(part.alignment_duration >= 0 and part.start_delay >= 0 for part in parts)


class AtItsTime(KeyedProcessFunction):
    """Emits a record 30 ms after it has come."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 30)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        yield ctx.get_current_key()


def test_a_timer_fires_without_input() -> None:
    seen = threading.Event()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        # One record, and then nothing for a day.
        slow = DataGeneratorSource(lambda index: index, None, 1 / 86_400)
        first = env.from_collection([1])
        rest = env.from_source(slow, WatermarkStrategy.no_watermarks(), "slow")
        return first.union(rest).key_by(lambda n: n).process(AtItsTime())

    started = start(program, options=LIVE, on_epoch=lambda _: seen.set() if results() else None)

    def results() -> list[Any]:
        return started.output

    while not started.output:
        assert not started.job.result_future().done()
        seen.wait(0.01)
    assert started.output == [1]
    started.job.cancel().result(20)


def test_the_time_of_subtasks_is_measured() -> None:
    finished = run(counting, parallelism=2, options=LIVE)
    shares = [share for epoch in finished.job.epochs for share in epoch.shares.values()]
    assert shares
    for share in shares:
        assert share.busy + share.back_pressured + share.idle == pytest.approx(1)
        assert share.busy <= 1


# -- barriers that overtake ------------------------------------------------------------------------------------

UNALIGNED = {**LIVE, **OFTEN, **RESTARTS, "execution.checkpointing.unaligned.enabled": "true"}


class Metered(Count):
    """Counts when the test allows it, one record at a time."""

    permits: ClassVar[threading.Semaphore] = threading.Semaphore()
    is_open: ClassVar[threading.Event] = threading.Event()

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if not Metered.is_open.is_set():
            Metered.permits.acquire()
        yield from super().process_element(value, ctx)


def held_up(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 7).process(Metered()).uid("count")


def overtaken_in(job: MiniJob) -> list[Any]:
    """Return the completed checkpoints whose barriers have overtaken something."""
    history = job.master.checkpoints.coordinator.statistics().history
    return [record for record in history if record.persisted_data and record.external_path]


def meter(started: Run, until: threading.Event) -> None:
    """Let records pass one by one until something has happened, and then all of them."""
    while not until.is_set():
        assert not started.job.result_future().done()
        Metered.permits.release()
        until.wait(0.01)
    Metered.is_open.set()
    Metered.permits.release(RECORDS)


@pytest.mark.parametrize("timeout", ["0 ms", "20 ms"], ids=["at once", "after a while"])
@pytest.mark.parametrize("is_killed", [False, True], ids=["undisturbed", "killed"])
def test_a_checkpoint_overtakes_records_that_wait_and_none_is_lost(
    is_killed: bool, timeout: str, tmp_path: Path
) -> None:
    Metered.permits, overtaken = threading.Semaphore(0), threading.Event()
    Metered.is_open.clear()
    found: list[Any] = []

    def look(job: MiniJob) -> None:
        if not found and overtaken_in(job):
            found.extend(overtaken_in(job))
            if is_killed:
                job.live_cluster.kill(1, 0)
            overtaken.set()

    sink = MarkedSink(str(tmp_path))
    options = {**UNALIGNED, "execution.checkpointing.aligned-checkpoint-timeout": timeout}
    started = paced(held_up, look, parallelism=2, options=options, sink=sink)
    meter(started, overtaken)
    started.job.wait()
    assert output_of(sink) == COUNTED
    assert started.job.progress.restarts == int(is_killed)
    parts = [part for task in found[0].tasks.values() for part in task.subtasks]
    assert sum(part.persisted_data for part in parts) == found[0].persisted_data
    assert any(part.is_unaligned for part in parts)


def test_a_checkpoint_expires_while_its_barrier_is_on_its_way(tmp_path: Path) -> None:
    Metered.permits, Metered.is_open = threading.Semaphore(0), threading.Event()
    sink = MarkedSink(str(tmp_path))
    options = {**LIVE, **OFTEN, "execution.checkpointing.timeout": "50 ms"}
    options["execution.checkpointing.tolerable-failed-checkpoints"] = "1000"
    started = start(held_up, parallelism=2, options=options, sink=sink)
    statistics = started.job.master.checkpoints.coordinator.statistics
    deadline, expired = time.monotonic() + 20, False
    while not expired and time.monotonic() < deadline:
        time.sleep(0.01)
        expired = any("in time" in (record.failure_message or "") for record in statistics().history)
    Metered.is_open.set()
    Metered.permits.release(RECORDS)
    started.job.wait()
    assert expired
    assert output_of(sink) == COUNTED


def test_checkpoints_that_expire_too_often_fail_the_job() -> None:
    Metered.permits, Metered.is_open = threading.Semaphore(0), threading.Event()
    options = {**LIVE, **OFTEN, "execution.checkpointing.timeout": "50 ms", "restart-strategy.type": "none"}
    started = start(held_up, parallelism=2, options=options)
    deadline = time.monotonic() + 20
    while not started.job.master.failures.latest() and time.monotonic() < deadline:
        time.sleep(0.01)
    Metered.is_open.set()
    Metered.permits.release(RECORDS)
    with pytest.raises(CheckpointError, match="tolerable-failed-checkpoints"):
        started.job.wait()


def test_a_savepoint_never_has_records_in_flight(tmp_path: Path) -> None:
    Metered.permits, overtaken, saved = threading.Semaphore(0), threading.Event(), []
    Metered.is_open.clear()

    def look(job: MiniJob) -> None:
        if not saved and overtaken_in(job):
            saved.append(job.master.trigger_savepoint(str(tmp_path / "savepoints")))
            overtaken.set()

    started = paced(held_up, look, parallelism=2, options=UNALIGNED)
    meter(started, overtaken)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    metadata = load_checkpoint(saved[0].result()).metadata
    assert not any(operator.in_flight for operator in metadata.operators)


def test_beats_say_what_waits_and_how_time_is_spent() -> None:
    Metered.permits, seen = threading.Semaphore(0), threading.Event()
    Metered.is_open.clear()
    beats: list[Any] = []
    options = {**LIVE, "headrace.live.heartbeat-interval": "10 ms"}
    started = start(held_up, parallelism=2, options=options)
    while not any(beat.waiting_buffers and beat.pool_usage for beat in beats):
        assert not started.job.result_future().done()
        beats += started.job.master.beats().values()
        seen.wait(0.002)
    Metered.is_open.set()
    Metered.permits.release(RECORDS)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert started.job.master.beats() == {}


def test_a_flame_graph_shows_where_a_live_subtask_is() -> None:
    Metered.permits, waits = threading.Semaphore(0), threading.Event()
    Metered.is_open.clear()
    options = {
        **LIVE,
        "headrace.live.heartbeat-interval": "10 ms",
        "rest.flamegraph.num-samples": "5",
        "rest.flamegraph.delay-between-samples": "10 ms",
        "rest.flamegraph.refresh-interval": "10 ms",
    }
    started = start(held_up, parallelism=2, options=options)
    master = started.job.master
    vertex_id = master.job.vertices[1].vertex_id
    frames: set[str] = set()
    while not any("process_element" in frame for frame in frames):
        assert not started.job.result_future().done()
        recording = master.flame_graphs.ask(vertex_id, clock.now_ms())
        if recording is not None:
            frames |= {frame for sample in recording.samples(SampleKind.FULL) for frame in sample.frames}
        waits.wait(0.005)
    Metered.is_open.set()
    Metered.permits.release(RECORDS)
    started.job.wait()
    assert sorted(started.output) == COUNTED


@pytest.mark.parametrize(
    ("sinks", "interval_ms"),
    [
        ([PrintSink()], 1_000),
        ([FunctionSink(str), BlackholeSink()], 1_000),
        ([PrintSink(), MarkedSink("waits")], 200),
    ],
)
def test_barriers_are_rare_where_no_output_waits_for_them(sinks: list[Sink], interval_ms: int) -> None:
    env = make_env()
    counted = counting(env)
    for sink in sinks:
        counted.sink_to(sink)
    job = job_graph(env)
    assert barrier_interval_ms(job, 200) == interval_ms
    assert barrier_interval_ms(job, 5_000) == 5_000
