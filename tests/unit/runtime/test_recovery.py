"""Whole jobs that stop, fail, come back and change their parallelism: results are those of an undisturbed run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headrace.common.job_status import JobStatus
from headrace.common.serialization import Encoder
from headrace.common.time import Time
from headrace.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.connectors.file_system import BucketAssigner, FileSink
from headrace.datastream.functions import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headrace.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from headrace.errors import CheckpointError, StateError, UserFunctionError
from headrace.graph.rescaling import uniform_parallelism
from headrace.runtime.checkpoint.storage import CheckpointDirectory
from headrace.testing.mini_cluster import MiniJob, random_faults
from tests.unit.runtime.fakes import MarkedSink, marked
from tests.unit.runtime.jobs import Run, run, start, start_watched, wait_for_checkpoints

NUMBERS = 120
EVERY_EPOCH = {"execution.checkpointing.interval": "1 ms"}
RESTARTS = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms"}


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 7, count


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    source = NumberSequenceSource(0, NUMBERS - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def counting(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 7).process(Count()).uid("count")


COUNTED = sorted((n % 7, n // 7 + 1) for n in range(NUMBERS))


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 100


def windows(env: StreamExecutionEnvironment, assigner: Any) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stamped = numbers(env).set_parallelism(1).assign_timestamps_and_watermarks(strategy).uid("stamped")
    return stamped.key_by(lambda n: n % 5).window(assigner).reduce(lambda a, b: a + b).uid("sums")


def tumbling(env: StreamExecutionEnvironment) -> DataStream:
    return windows(env, TumblingEventTimeWindows.of(Time.seconds(3)))


def sliding(env: StreamExecutionEnvironment) -> DataStream:
    return windows(env, SlidingEventTimeWindows.of(Time.seconds(3), Time.seconds(1)))


class Batching(ProcessFunction, CheckpointedFunction):
    """Holds records back until it has three of them."""

    def __init__(self, *, is_union: bool = False) -> None:
        self.is_union = is_union
        self.held: list[Any] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("held", None))
        if context.is_restored():
            for record in self.state.get():
                self.held.append(record)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update(self.held)

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        self.held.append(value)
        if len(self.held) >= 3:
            yield from self.held
            self.held.clear()


def batching(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).rebalance().process(Batching()).uid("batching")


PROGRAMS = {"counting": counting, "tumbling": tumbling, "sliding": sliding, "batching": batching}


def stop_in_the_middle(
    program: Any, target: Path, *, parallelism: int, sink: str | FileSink, start_from: str | None = None
) -> str:
    """Run two epochs, stop with a savepoint, and return where it is."""
    options = {**EVERY_EPOCH, **({"execution.state-recovery.path": start_from} if start_from else {})}
    asked: list[Any] = []

    def stop(job: MiniJob) -> None:
        if not asked and job.progress.epochs == 2:
            asked.append(job.master.stop_with_savepoint(str(target), drain=False))

    start_watched(
        program,
        stop,
        parallelism=parallelism,
        max_records=4,
        options=options,
        sink=MarkedSink(sink) if isinstance(sink, str) else sink,
    ).job.wait()
    return asked[0].result(10)


def output_of(sink: str) -> list[Any]:
    return [record for batch in marked[sink].values() for record in batch]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("steps", [(2, 2, 2), (1, 3, 2, 4), (4, 1, 3), (2, 4, 1, 3)], ids=str)
def test_a_job_that_stops_and_comes_back_with_any_parallelism_gives_the_same(
    name: str, steps: tuple[int, ...], tmp_path: Path
) -> None:
    program = PROGRAMS[name]
    expected = sorted(run(program, parallelism=1).output)
    sink = str(tmp_path)
    savepoint = None
    for parallelism in steps[:-1]:
        savepoint = stop_in_the_middle(
            program, tmp_path, parallelism=parallelism, sink=sink, start_from=savepoint
        )
    options = {"execution.state-recovery.path": savepoint}
    run(program, parallelism=steps[-1], options=options, sink=MarkedSink(sink))
    output = output_of(sink)
    if name != "batching":
        assert sorted(output) == expected
    else:
        # Which records are held back at the end depends on who has them.
        assert len(set(output)) == len(output)
        assert NUMBERS - len(output) <= 2 * steps[-1]
        assert set(output) <= set(range(NUMBERS))


@pytest.mark.parametrize("kind", ["blocking", "pipelined"])
def test_a_job_that_comes_back_with_another_output_directory_writes_each_record_once(
    kind: str, tmp_path: Path
) -> None:
    def files_in(name: str) -> FileSink:
        builder = FileSink.for_row_format(str(tmp_path / name), Encoder.simple_string_encoder())
        return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()

    def lines_in(name: str) -> list[str]:
        return [line for path in (tmp_path / name).glob("part-*") for line in path.read_text().splitlines()]

    expected = sorted(map(str, run(counting, parallelism=1).output))
    savepoint = stop_in_the_middle(counting, tmp_path, parallelism=2, sink=files_in("first"))
    assert lines_in("first") == [], "files are open: they are not full, and not old enough"
    savepoint = stop_in_the_middle(
        counting, tmp_path, parallelism=3, sink=files_in("second"), start_from=savepoint
    )
    options = {"execution.state-recovery.path": savepoint, "headrace.exchange.kind": kind}
    run(counting, parallelism=2, options=options, sink=files_in("third"))

    found = [lines_in(name) for name in ("first", "second", "third")]
    assert all(found), "each has what was written while it was the sink's directory"
    assert sorted(line for lines in found for line in lines) == expected


@pytest.mark.parametrize("name", ["counting", "tumbling", "sliding"])
def test_a_job_that_is_rescaled_between_epochs_gives_the_same(name: str) -> None:
    program = PROGRAMS[name]
    expected = sorted(run(program, parallelism=1).output)
    steps = iter([4, 1, 3])

    def rescale(job: MiniJob) -> None:
        parallelism = next(steps, None)
        if parallelism is not None:
            job.master.rescale(uniform_parallelism(job.master.job, parallelism))

    started = start_watched(program, rescale, parallelism=2, max_records=5)
    started.job.wait()
    assert sorted(started.output) == expected
    assert next(steps, None) is None


class Failing(KeyedProcessFunction):
    """Fails at a record, in its first attempts."""

    def __init__(self, marker: Path, times: int) -> None:
        self.marker = marker
        self.times = times

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if value == 80:
            tried = len(list(self.marker.iterdir()))
            if tried < self.times:
                (self.marker / str(tried)).touch()
                raise ValueError("not yet")
        yield value % 7, count


@pytest.mark.parametrize(
    "interval", [EVERY_EPOCH, {"execution.checkpointing.interval": "1 h"}], ids=["often", "never"]
)
def test_a_job_that_fails_goes_back_to_its_last_checkpoint(tmp_path: Path, interval: dict[str, str]) -> None:
    attempts = 4 + 3  # Spark would try each task four times

    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).key_by(lambda n: n % 7).process(Failing(tmp_path, attempts))

    options = {**interval, **RESTARTS, "restart-strategy.fixed-delay.attempts": 3}
    sink = MarkedSink(str(tmp_path))
    finished = run(program, parallelism=2, max_records=10, options=options, sink=sink)

    assert sorted(output_of(sink.name)) == COUNTED
    assert finished.job.progress.restarts == 1
    assert finished.job.status() is JobStatus.FINISHED


def test_a_job_fails_when_the_restart_strategy_gives_up(tmp_path: Path) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).key_by(lambda n: n % 7).process(Failing(tmp_path, 1000))

    options = {**EVERY_EPOCH, **RESTARTS, "restart-strategy.fixed-delay.attempts": 2}
    started = start(program, max_records=10, options=options, sink=MarkedSink(str(tmp_path)))
    with pytest.raises(UserFunctionError, match="not yet"):
        started.job.wait()
    assert started.job.progress.restarts == 2
    assert started.job.status() is JobStatus.FAILED


@pytest.mark.parametrize("seed", range(6))
def test_faults_of_all_kinds_with_checkpoints(seed: int, tmp_path: Path) -> None:
    options = {**EVERY_EPOCH, **RESTARTS, "restart-strategy.fixed-delay.attempts": 100}
    run(
        counting,
        parallelism=2,
        max_records=6,
        options=options,
        faults=random_faults(seed, 0.15),
        seed=seed,
        sink=MarkedSink(str(tmp_path)),
    )
    assert sorted(output_of(str(tmp_path))) == COUNTED


class CountInFields(KeyedProcessFunction):
    """Counts in its own fields."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        key = value % 7
        self.counts[key] = self.counts.get(key, 0) + 1
        yield key, self.counts[key]


def counting_in_fields(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 7).process(CountInFields()).uid("fields")


@pytest.mark.parametrize("seed", range(6))
def test_fields_survive_faults_of_all_kinds(seed: int, tmp_path: Path) -> None:
    options = {**EVERY_EPOCH, **RESTARTS, "restart-strategy.fixed-delay.attempts": 100}
    run(
        counting_in_fields,
        parallelism=2,
        max_records=6,
        options=options,
        faults=random_faults(seed, 0.15),
        seed=seed,
        sink=MarkedSink(str(tmp_path)),
    )
    assert sorted(output_of(str(tmp_path))) == COUNTED


def by_key(pairs: list[Any]) -> list[list[Any]]:
    return [[pair for pair in pairs if pair[0] == key] for key in range(7)]


def test_fields_come_back_from_a_savepoint_even_if_the_program_is_another_elsewhere(tmp_path: Path) -> None:
    sink = str(tmp_path)
    savepoint = stop_in_the_middle(counting_in_fields, tmp_path, parallelism=2, sink=sink)

    def other(env: StreamExecutionEnvironment) -> DataStream:
        env.from_collection([1]).sink_to(BlackholeSink())
        return counting_in_fields(env)

    options = {
        "execution.state-recovery.path": savepoint,
        "execution.state-recovery.ignore-unclaimed-state": "true",  # the sink has another id
    }
    counted = run(other, parallelism=2, options=options).output
    assert min(count for _, count in counted) > 1
    assert set(counted) <= set(COUNTED)
    assert {max(pairs) for pairs in by_key(counted)} == {max(pairs) for pairs in by_key(COUNTED)}


def test_fields_start_again_at_another_parallelism_and_do_not_keep_an_operator_in_the_program(
    tmp_path: Path,
) -> None:
    savepoint = stop_in_the_middle(counting_in_fields, tmp_path, parallelism=2, sink=str(tmp_path))
    options = {"execution.state-recovery.path": savepoint}
    rescaled = run(counting_in_fields, parallelism=1, options=options)
    assert {(key, 1) for key in range(7)} <= set(rescaled.output)
    with pytest.raises(StateError, match="not in the program") as caught:
        start(lambda env: numbers(env).map(lambda n: n), parallelism=2, options=options)
    assert "Sink: Writer" in str(caught.value)  # it has output that waits
    assert "fields" not in str(caught.value)


def test_output_waits_for_the_checkpoint_that_covers_it() -> None:
    seen: list[int] = []
    results: list[Run] = []
    options = {"execution.checkpointing.interval": "1 h"}
    started = start_watched(
        counting,
        lambda _: seen.append(sum(len(run.output) for run in results)),
        max_records=10,
        options=options,
    )
    results.append(started)
    started.job.wait()
    assert set(seen) == {0}
    assert sorted(started.output) == COUNTED


def test_retained_checkpoints_stay_and_can_be_started_from(tmp_path: Path) -> None:
    options = {
        **EVERY_EPOCH,
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.num-retained": 2,
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    sink = MarkedSink(str(tmp_path))
    started = start_watched(
        counting,
        lambda job: job.cancel() if job.progress.epochs == 6 else None,
        parallelism=2,
        max_records=5,
        options=options,
        sink=sink,
    )
    with pytest.raises(Exception, match="cancelled"):
        started.job.wait()
    [directory] = tmp_path.iterdir()
    checkpoints = sorted(directory.glob("chk-*"), key=lambda path: int(path.name[4:]))
    assert 1 <= len(checkpoints) <= 2

    run(counting, parallelism=3, options={"execution.state-recovery.path": str(checkpoints[-1])}, sink=sink)
    assert sorted(output_of(sink.name)) == COUNTED


@pytest.fixture
def second_write(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Have the second checkpoint be written slowly; return what says that it has begun, and what lets it end."""
    begun, goes_on = threading.Event(), threading.Event()
    write = CheckpointDirectory.write

    def slowly(directory: CheckpointDirectory, metadata: Any) -> Any:
        if metadata.checkpoint_id == 2:
            begun.set()
            assert goes_on.wait(10)
        return write(directory, metadata)

    monkeypatch.setattr(CheckpointDirectory, "write", slowly)
    return begun, goes_on


class Broken(Exception):
    """What the job fails with."""


def start_failing_while_written(events: tuple[threading.Event, threading.Event], **settings: Any) -> Run:
    """Start a job whose third epoch fails while checkpoint 2, of the second epoch, is being written."""
    begun, goes_on = events

    def watch(summary: Any) -> None:
        if summary.epoch == 2 and not begun.is_set():
            wait_for_checkpoints(running.result(10).job)  # so that the second one is begun after this epoch
        elif summary.epoch == 3 and not goes_on.is_set():
            assert begun.wait(10)
            goes_on.set()
            raise Broken

    running: Future[Run] = Future()
    started = start(counting, max_records=10, on_epoch=watch, **settings)
    running.set_result(started)
    return started


def test_a_restart_uses_the_checkpoint_that_was_being_written_when_the_job_failed(
    tmp_path: Path, second_write: tuple[threading.Event, threading.Event]
) -> None:
    sink = MarkedSink(str(tmp_path))
    started = start_failing_while_written(second_write, options={**EVERY_EPOCH, **RESTARTS}, sink=sink)
    started.job.wait()

    restored = started.job.master.checkpoints.coordinator.statistics().latest_restored
    assert restored is not None
    assert restored.id == 2
    assert sorted(output_of(sink.name)) == COUNTED


def test_a_failed_job_leaves_the_checkpoint_that_was_being_written(
    tmp_path: Path, second_write: tuple[threading.Event, threading.Event]
) -> None:
    options = {
        **EVERY_EPOCH,
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "none",
    }
    sink = MarkedSink(str(tmp_path))
    started = start_failing_while_written(second_write, options=options, sink=sink)
    with pytest.raises(Broken):
        started.job.wait()

    [checkpoint] = tmp_path.glob("*/chk-*")
    assert checkpoint.name == "chk-2"
    run(counting, options={"execution.state-recovery.path": str(checkpoint)}, sink=sink)
    assert sorted(output_of(sink.name)) == COUNTED


def test_a_finished_job_leaves_no_checkpoint(tmp_path: Path) -> None:
    run(counting, max_records=10, options={**EVERY_EPOCH, "execution.checkpointing.dir": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_state_that_would_be_lost_is_refused_unless_that_is_wanted(tmp_path: Path) -> None:
    savepoint = stop_in_the_middle(counting, tmp_path, parallelism=1, sink=str(tmp_path))

    def other(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).key_by(lambda n: n % 7).process(Count()).uid("renamed")

    with pytest.raises(StateError, match=r"uid count.*") as caught:
        start(other, options={"execution.state-recovery.path": savepoint})
    assert "--allow-non-restored-state" in (caught.value.hint or "")
    options = {
        "execution.state-recovery.path": savepoint,
        "execution.state-recovery.ignore-unclaimed-state": "true",
    }
    finished = run(other, options=options)
    assert len(finished.output) == NUMBERS - len(output_of(str(tmp_path)))
    assert finished.job.master.restore_report is not None
    assert "left behind" in finished.job.master.restore_report.lines()[-1]


def test_another_max_parallelism_is_refused(tmp_path: Path) -> None:
    savepoint = stop_in_the_middle(counting, tmp_path, parallelism=1, sink=str(tmp_path))

    def other(env: StreamExecutionEnvironment) -> DataStream:
        env.set_max_parallelism(64)
        return counting(env)

    with pytest.raises(StateError, match="max parallelism 128 and the job 64"):
        start(other, options={"execution.state-recovery.path": savepoint})


@pytest.mark.parametrize("checkpoints", [EVERY_EPOCH, {}], ids=["with checkpoints", "without"])
def test_a_checkpoint_directory_that_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, checkpoints: dict[str, str]
) -> None:
    (tmp_path / "file").touch()
    options = {**checkpoints, "execution.checkpointing.dir": str(tmp_path / "file" / "below")}
    with pytest.raises(CheckpointError, match="cannot be written"):
        start(counting, options=options)


def test_draining_fires_everything_before_the_savepoint(tmp_path: Path) -> None:
    asked: list[Any] = []

    def stop(job: MiniJob) -> None:
        if not asked:
            asked.append(job.master.stop_with_savepoint(str(tmp_path), drain=True))

    started = start_watched(tumbling, stop, max_records=10, options=EVERY_EPOCH)
    started.job.wait()
    assert asked[0].result(10).startswith(str(tmp_path))
    read = started.job.progress.records
    assert 0 < read < NUMBERS
    assert sum(started.output) == sum(range(read))


def test_what_was_staged_before_the_first_checkpoint_is_swept_when_the_job_starts_over(
    tmp_path: Path,
) -> None:
    failures = tmp_path / "failures"
    failures.mkdir()

    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).key_by(lambda n: n % 7).process(Failing(failures, 4)).map(str)

    options = {
        **RESTARTS,
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    files = tmp_path / "files"
    sink = FileSink.for_row_format(str(files), Encoder.simple_string_encoder()).build()
    finished = run(program, max_records=10, options=options, sink=sink)

    assert finished.job.progress.restarts == 1
    written = [path for path in files.rglob("*") if path.is_file()]
    lines = sorted(line for path in written for line in path.read_text().splitlines())
    assert lines == sorted(map(str, COUNTED))
