"""Time in whole jobs: windows against the model, and what waits for the clock, which is set by hand."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common.time import Duration, Time
from headrace.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction, ProcessFunction
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.metrics.reports import CounterReport, DistributionReport
from headrace.operators.window.late import LATE_DROPPED
from headrace.runtime.epoch.messages import SubtaskId
from headrace.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.testing.mini_cluster import random_faults
from headrace.testing.sources import ScriptedSource, Stop, Timestamped
from headrace.windowing.assigners import TumblingProcessingTimeWindows
from tests.unit.runtime.fakes import SplitsSource
from tests.unit.runtime.jobs import Run, run, start
from tests.windows import model
from tests.windows.scripts import (
    COMMUTATIVE,
    FixedGap,
    Process,
    Program,
    concatenate,
    gap_by_value,
    our_assigner,
    our_trigger,
    unite,
)

#: (key, (number,), value, time): a record of the windows' tests, and its time.
Event = tuple[str, tuple[int, ...], int, int]
DISORDER = 20


def timed(strategy: WatermarkStrategy) -> WatermarkStrategy:
    return strategy.with_timestamp_assigner(lambda event, _: event[3])


BOUNDED = timed(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER)))
NO_TIME = WatermarkStrategy.no_watermarks()


def events(seed: int, count: int = 80, splits: int = 3, disorder: int = DISORDER) -> dict[str, list[Event]]:
    """Splits whose records are out of order, and of which some are far ahead of the others."""
    chance = random.Random(seed)
    found: dict[str, list[Event]] = {f"s{split}": [] for split in range(splits)}
    for number in range(count):
        split = chance.randrange(splits)
        at = number * 5 + 100 * split - chance.randrange(disorder)
        found[f"s{split}"].append((chance.choice("abcde"), (number,), chance.randrange(10), at))
    return found


@pytest.fixture(params=[1000, 30, 2], ids=["1-epoch", "3-epochs", "40-epochs"])
def max_records(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[1, 2, 4], ids=lambda value: f"parallelism-{value}")
def parallelism(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def anyhow(program: Any, *, parallelism: int, max_records: int) -> Run:
    """Run a program; in a few epochs, with faults of every kind."""
    return run(
        program,
        parallelism=parallelism,
        max_records=max_records,
        options={"headrace.epoch.retries": 30, "headrace.state.compaction.max-changes": 3},
        workers=3,
        seed=max_records,
        faults=random_faults(max_records, 0.08) if max_records == 30 else None,
    )


def by_key(results: list[Any]) -> dict[str, list[Any]]:
    """Order is fixed within a key only, and within a window it is that of arrival."""
    found: dict[str, list[Any]] = {}
    for key, window, numbers in results:
        found.setdefault(key, []).append((window, sorted(numbers)))
    return found


def expected_of(program: Program, events: dict[str, list[Event]]) -> dict[str, list[Any]]:
    """What the windows hold when all is over; nothing is late, so the order does not matter."""
    windows = program.make_model()
    for *record, at in (event for split in events.values() for event in split):
        windows.record(program.key_of(tuple(record)), tuple(record), at)  # type: ignore[arg-type]
    windows.finish()
    return by_key([result for results in windows.output.values() for result, _ in results])


def windowed(stream: DataStream, program: Program) -> Any:
    keyed = stream.key_by(lambda event: event[0])
    assigner = our_assigner(program.assigner, is_event_time=program.is_event_time)
    return keyed.window(assigner).trigger(our_trigger(program.trigger))


# --------------------------------------------------------------------------------------- event time


@pytest.mark.parametrize(
    "assigner",
    [
        model.Tumbling(30),
        model.Tumbling(30, -7),
        model.Sliding(60, 25, 3),
        model.Sessions(FixedGap(4)),
        model.Sessions(gap_by_value),
    ],
    ids=["tumbling", "tumbling-offset", "sliding", "sessions", "dynamic-sessions"],
)
def test_windows_are_those_of_the_model_at_any_parallelism_wherever_epochs_end(
    assigner: Any, parallelism: int, max_records: int
) -> None:
    splits = events(seed=parallelism)
    program = Program(assigner, model.EventTime())

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), BOUNDED, "events")
        return windowed(stream, program).process(Process())

    result = anyhow(flow, parallelism=parallelism, max_records=max_records)
    assert by_key(result.output) == expected_of(program, splits)


@pytest.mark.parametrize("size", [30, 700], ids=["few-slices", "blocks"])
def test_windows_of_slices_are_those_of_the_model(size: int, parallelism: int, max_records: int) -> None:
    splits = events(seed=parallelism)
    program = Program(model.Sliding(size, 10), model.EventTime())

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), BOUNDED, "events")
        return windowed(stream, program).reduce(concatenate, Process())

    result = anyhow(flow, parallelism=parallelism, max_records=max_records)
    assert by_key(result.output) == expected_of(program, splits)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_windows_of_a_stream_that_gets_its_time_in_the_middle(is_parallel: bool, max_records: int) -> None:
    splits = events(seed=1, splits=1)
    program = Program(model.Tumbling(30), model.EventTime())

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), NO_TIME, "events")
        stamped = stream.assign_timestamps_and_watermarks(BOUNDED)
        return windowed(stamped, program).process(Process())

    result = anyhow(flow, parallelism=3 if is_parallel else 1, max_records=max_records)
    assert by_key(result.output) == expected_of(program, splits)


def test_windows_of_a_stream_without_a_key(parallelism: int, max_records: int) -> None:
    splits = events(seed=2)

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), BOUNDED, "events")
        records = stream.map(lambda event: event[:3])
        return records.window_all(our_assigner(model.Tumbling(40), is_event_time=True)).reduce(unite)

    result = anyhow(flow, parallelism=parallelism, max_records=max_records)
    program = Program(model.Tumbling(40), model.EventTime(), is_all=True, computation=COMMUTATIVE[0])
    windows = program.make_model()
    for *record, at in (event for split in splits.values() for event in split):
        windows.record("all", tuple(record), at)
    windows.finish()
    assert sorted(result.output) == sorted(value for value, _ in windows.output["all"])


LATE = OutputTag("late")


@pytest.mark.parametrize("lateness", [0, 12])
@pytest.mark.parametrize("window_parallelism", [1, 3])
@pytest.mark.parametrize("is_shared", [False, True], ids=["general", "slices"])
def test_what_is_late_follows_from_where_batches_end(
    lateness: int, window_parallelism: int, is_shared: bool, max_records: int
) -> None:
    """One source, whose watermarks are known: they come after every batch of two, and at the end of an epoch."""
    [stream_of] = events(seed=5, splits=1, disorder=70).values()
    program = Program(model.Tumbling(15), model.EventTime(), lateness=lateness)
    expected = program.make_model()
    for first in range(0, len(stream_of), max_records):
        epoch = stream_of[first : first + max_records]
        for start_of_batch in range(0, len(epoch), 2):
            batch = epoch[start_of_batch : start_of_batch + 2]
            for *record, at in batch:
                expected.record(record[0], tuple(record), at)
            expected.watermark(max([at for *_, at in batch] + [expected.event_time + 1]) - 1)
    expected.finish()

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        in_order = timed(WatermarkStrategy.for_monotonous_timestamps())
        stream = env.from_source(SplitsSource({"s": stream_of}, concurrent=None), in_order, "events")
        windows = windowed(stream, program).allowed_lateness(lateness).side_output_late_data(LATE)
        results = windows.reduce(concatenate, Process()) if is_shared else windows.process(Process())
        results.set_parallelism(window_parallelism)
        late = results.get_side_output(LATE).map(lambda event: (event[0], "late", event[1]))
        return results.union(late)

    result = anyhow(flow, parallelism=1, max_records=max_records)
    on_time = [each for each in result.output if each[1] != "late"]
    late = [each[2] for each in result.output if each[1] == "late"]
    found = [(key, [(window, sorted(ns)) for window, ns in each]) for key, each in by_key(on_time).items()]
    wanted = by_key([value for results in expected.output.values() for value, _ in results])
    assert dict(found) == wanted
    assert sorted(late) == sorted(record[1] for record, _ in expected.late)
    assert expected.late, "or this shows nothing"


class Marks(WatermarkGenerator):
    """Punctuated: every record whose value is 0 says that its time has come."""

    def on_event(self, value: Event, timestamp: int, output: Any) -> None:
        if value[2] == 0:
            output.emit_watermark(timestamp - DISORDER)

    def on_periodic_emit(self, output: Any) -> None:
        pass


@pytest.mark.parametrize("batch_records", [1, 3, 1000])
@pytest.mark.parametrize("window_parallelism", [1, 3])
@pytest.mark.parametrize("is_shared", [False, True], ids=["general", "slices"])
@pytest.mark.parametrize("is_in_the_middle", [False, True], ids=["source", "middle"])
def test_what_is_late_for_watermarks_of_records_depends_on_nothing_but_the_stream(
    batch_records: int, window_parallelism: int, is_shared: bool, is_in_the_middle: bool, max_records: int
) -> None:
    """The watermark is where Flink has it: right after the record that carries it."""
    [stream_of] = events(seed=5, splits=1, disorder=90).values()
    program = Program(model.Tumbling(15), model.EventTime())
    expected = program.make_model()
    for *record, at in stream_of:
        expected.record(record[0], tuple(record), at)
        if record[2] == 0:
            expected.watermark(at - DISORDER)
    expected.finish()
    strategy = timed(WatermarkStrategy.for_generator(Marks))

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        source = SplitsSource({"s": stream_of}, batch_records=batch_records)
        if is_in_the_middle:
            stream = env.from_source(source, NO_TIME, "events").assign_timestamps_and_watermarks(strategy)
        else:
            stream = env.from_source(source, strategy, "events")
        windows = windowed(stream, program).side_output_late_data(LATE)
        results = windows.reduce(concatenate, Process()) if is_shared else windows.process(Process())
        results.set_parallelism(window_parallelism)
        late = results.get_side_output(LATE).map(lambda event: (event[0], "late", event[1]))
        return results.union(late)

    result = run(flow, max_records=max_records, seed=max_records)
    on_time = [each for each in result.output if each[1] != "late"]
    late = [each[2] for each in result.output if each[1] == "late"]
    assert by_key(on_time) == by_key([value for results in expected.output.values() for value, _ in results])
    assert sorted(late) == sorted(record[1] for record, _ in expected.late)
    assert expected.late, "or this shows nothing"


class Highest(WatermarkGenerator):
    """Periodic, as a user would write it."""

    def __init__(self) -> None:
        self.highest = MIN_WATERMARK + DISORDER + 1

    def on_event(self, value: Event, timestamp: int, output: Any) -> None:
        self.highest = max(self.highest, timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(self.highest - DISORDER - 1)


@pytest.mark.parametrize(
    "strategy",
    [
        timed(NO_TIME),
        BOUNDED,
        BOUNDED.with_idleness(Duration.of_minutes(5)),
        BOUNDED.with_watermark_alignment("g", Duration.of_millis(50)),
        timed(WatermarkStrategy.for_generator(Highest)),
        timed(WatermarkStrategy.for_generator(Marks)),
    ],
    ids=["none", "bounded", "idleness", "aligned", "periodic", "punctuated"],
)
def test_results_do_not_depend_on_the_strategy_as_long_as_nothing_is_late(
    strategy: WatermarkStrategy, max_records: int
) -> None:
    splits = events(seed=9)
    program = Program(model.Tumbling(30), model.EventTime())

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), strategy, "events")
        return windowed(stream, program).process(Process())

    result = anyhow(flow, parallelism=2, max_records=max_records)
    assert by_key(result.output) == expected_of(program, splits)


class Watches(ProcessFunction):
    """Notes the watermark at each record."""

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Event, ctx: Any) -> Iterator[Any]:
        yield self.subtask, ctx.timer_service().current_watermark(), value[3]


def test_watermarks_never_go_back_and_no_record_is_late(parallelism: int, max_records: int) -> None:
    splits = events(seed=3)

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), BOUNDED, "events")
        return stream.rebalance().process(Watches())

    result = anyhow(flow, parallelism=parallelism, max_records=max_records)
    for subtask in range(parallelism):
        seen = [(mark, at) for index, mark, at in result.output if index == subtask]
        assert [mark for mark, _ in seen] == sorted(mark for mark, _ in seen)
        assert all(mark < at for mark, at in seen)
    reported = [summary.watermark for summary in result.job.epochs if summary.watermark is not None]
    assert reported == sorted(reported)


class AtTheEnd(KeyedProcessFunction):
    def process_element(self, value: str, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("strategy", [NO_TIME, BOUNDED], ids=["none", "bounded"])
def test_time_ends_with_bounded_input_also_without_watermarks(
    strategy: WatermarkStrategy, max_records: int
) -> None:
    splits = events(seed=4)

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), strategy, "events")
        return stream.key_by(lambda event: event[0]).process(AtTheEnd())

    result = anyhow(flow, parallelism=2, max_records=max_records)
    assert sorted(result.output) == [(key, MAX_WATERMARK) for key in "abcde"]


class SeesTime(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield timestamp, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("is_of_source", [True, False], ids=["source", "stream"])
def test_timers_of_a_small_bounded_stream_fire_at_the_end_of_time(is_of_source: bool) -> None:
    # Flink asks generators by the clock, and the end of the input comes first.
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        if is_of_source:
            stream = env.from_source(NumberSequenceSource(1, 3), strategy, "numbers")
        else:
            stream = env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(strategy)
        return stream.key_by(lambda value: 0).process(SeesTime())

    assert run(flow, parallelism=1).output == [(1, MAX_WATERMARK), (2, MAX_WATERMARK), (3, MAX_WATERMARK)]


# ---------------------------------------------------------------------------------------- the clock


class Clock:
    """A clock that is set by hand; the job master and all tasks go by it."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(1_000_000)
    monkeypatch.setattr("headrace.util.clock.now_ms", made)
    return made


def wait_until(condition: Callable[[], bool], started: Run, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if started.job.result_future().done():
            started.job.wait()
            raise AssertionError(f"the job ended with {started.output}")
        assert time.monotonic() < deadline, f"waited in vain; so far: {started.output}"
        time.sleep(0.002)


def wait_for(started: Run, output: list[Any]) -> None:
    wait_until(lambda: len(started.output) >= len(output), started)
    assert started.output == output


def wait_for_polls(started: Run, polls: int = 5) -> None:
    """Let the job look for input a few times: it has had its chance to do what it should not."""
    seen = started.job.master._steps.run._coordinators
    [coordinator] = list(seen.values())[:1]
    asked = [0]
    plan = coordinator.plan

    def counting(*arguments: Any) -> Any:
        asked[0] += 1
        return plan(*arguments)

    coordinator.plan = counting  # type: ignore[method-assign]
    wait_until(lambda: asked[0] >= polls, started)
    coordinator.plan = plan  # type: ignore[method-assign]


class Reminds(KeyedProcessFunction):
    """Reminds of every record a minute later, and again after another."""

    def process_element(self, value: str, ctx: Any) -> None:
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + 60_000)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp
        if timestamp < 1_100_000:
            ctx.timer_service().register_processing_time_timer(timestamp + 60_000)


def test_a_processing_time_timer_fires_without_new_input(clock: Clock, tmp_path: Path) -> None:
    source = ScriptedSource(["a", Stop(), "b"], directory=tmp_path)
    started = start(
        lambda env: env.from_source(source, NO_TIME, "script").key_by(str).process(Reminds()), now_ms=clock
    )
    wait_until(lambda: started.job.progress.epochs >= 1, started)
    clock.now = 1_059_999
    wait_for_polls(started)
    assert started.output == []
    clock.now = 1_060_001
    wait_for(started, [("a", 1_060_000)])
    # What a timer registers is waited for as well.
    clock.now = 1_120_001
    wait_for(started, [("a", 1_060_000), ("a", 1_120_000)])
    epochs = started.job.progress.epochs
    wait_for_polls(started)
    assert started.job.progress.epochs == epochs == 3, "nothing waits any more, so nothing runs"
    source.resume()
    started.job.wait()
    # As in Flink, what waits for the clock does not keep a job from ending.
    assert started.output == [("a", 1_060_000), ("a", 1_120_000)]


def test_a_window_of_processing_time_holds_records_of_its_last_millisecond(
    clock: Clock, tmp_path: Path
) -> None:
    #   window [1_000_000, 1_000_010)     a at 1_000_003, b at 1_000_009
    source = ScriptedSource(["a", Stop(), "b", Stop(), "c"], directory=tmp_path)

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        keyed = env.from_source(source, NO_TIME, "script").key_by(lambda value: 0)
        return keyed.window(TumblingProcessingTimeWindows(10)).reduce(lambda left, right: left + right)

    clock.now = 1_000_003
    started = start(flow, now_ms=clock)
    wait_until(lambda: started.job.progress.records >= 1, started)
    clock.now = 1_000_009
    source.resume()
    wait_until(lambda: started.job.progress.records >= 2, started)
    assert started.output == []
    clock.now = 1_000_010
    wait_for(started, ["ab"])
    source.resume()
    started.job.wait()


def sliced_by_stops(*parts: list[Timestamped]) -> list[Any]:
    """A script that stops after every part."""
    return [item for part in parts for item in (*part, Stop())][:-1]


def at(*times: int) -> list[Timestamped]:
    return [Timestamped(("k", (time,), 0), time) for time in times]


IN_ORDER = WatermarkStrategy.for_monotonous_timestamps()
MAY_IDLE = IN_ORDER.with_idleness(Duration.of_seconds(10))


class Idles:
    """Two scripts that are joined in windows of ten, one of which falls silent; time is in their records."""

    def __init__(self, clock: Clock, directory: Path, program: Callable[..., DataStream]) -> None:
        self.clock = clock
        self.busy = ScriptedSource(
            sliced_by_stops(at(5), at(15), at(25), at(35)), directory=directory / "busy"
        )
        self.quiet = ScriptedSource([*at(5), Stop(), *at(26), Stop(), *at(27)], directory=directory / "quiet")
        window = Program(model.Tumbling(10), model.EventTime())
        self.started = start(
            lambda env: windowed(program(env, self.busy, self.quiet), window).reduce(unite),
            now_ms=clock,
        )
        self.wait_for_records(2)

    def wait_for_records(self, count: int) -> None:
        wait_until(lambda: self.started.job.progress.records >= count, self.started)

    @property
    def times(self) -> list[list[int]]:
        return [sorted(numbers) for _, numbers, _ in self.started.output]


def two_sources(env: StreamExecutionEnvironment, busy: Any, quiet: Any) -> DataStream:
    return env.from_source(busy, MAY_IDLE, "busy").union(env.from_source(quiet, MAY_IDLE, "quiet"))


def in_the_middle(env: StreamExecutionEnvironment, busy: Any, quiet: Any) -> DataStream:
    streams = (env.from_source(each, NO_TIME, "script") for each in (busy, quiet))
    first, second = (stream.assign_timestamps_and_watermarks(MAY_IDLE) for stream in streams)
    return first.union(second)


@pytest.mark.parametrize("program", [two_sources, in_the_middle])
def test_a_stream_that_falls_silent_holds_time_until_it_is_idle_and_again_when_it_is_back(
    program: Any, clock: Clock, tmp_path: Path
) -> None:
    job = Idles(clock, tmp_path, program)
    clock.now += 5_000
    job.busy.resume()
    job.wait_for_records(3)
    wait_for_polls(job.started)
    assert job.times == [], "the other may still have something for [0, 10)"
    clock.now += 5_001
    wait_until(lambda: job.times == [[5, 5]], job.started)
    # It stays idle while epochs go on.
    clock.now += 4_000
    job.busy.resume()
    wait_until(lambda: job.times == [[5, 5], [15]], job.started)
    job.quiet.resume()
    job.wait_for_records(5)
    clock.now += 1
    job.busy.resume()
    job.wait_for_records(6)
    wait_for_polls(job.started)
    assert job.times == [[5, 5], [15]], "it is back, and may have more for [20, 30)"
    job.quiet.resume()
    job.started.job.wait()
    assert job.times == [[5, 5], [15], [25, 26, 27], [35]]


def test_a_timer_epoch_does_not_wake_an_idle_source(clock: Clock, tmp_path: Path) -> None:
    class Both(Reminds):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            super().process_element(value, ctx)
            yield "at", ctx.timer_service().current_watermark()

    busy = ScriptedSource([*at(5), Stop(), *at(50), Stop(), *at(90)], directory=tmp_path / "busy")
    quiet = ScriptedSource([*at(5), Stop(), *at(91)], directory=tmp_path / "quiet")
    started = start(
        lambda env: two_sources(env, busy, quiet).key_by(lambda value: "k").process(Both()), now_ms=clock
    )
    wait_until(lambda: started.job.progress.records == 2, started)
    clock.now += 20_000
    wait_until(lambda: started.job.progress.epochs >= 2, started)
    busy.resume()
    wait_until(lambda: started.job.progress.records == 3, started)
    clock.now = 1_060_001
    wait_until(lambda: ("k", 1_060_000) in started.output, started)
    busy.resume()
    wait_until(lambda: ("at", 49) in started.output, started)
    quiet.resume()
    started.job.wait()


def test_sources_that_are_aligned_wait_for_the_slowest() -> None:
    drift = 20
    strategy = timed(IN_ORDER).with_watermark_alignment("g", Duration.of_millis(drift))
    slow = {"slow": [("s", (n,), 0, n * 3) for n in range(60)]}
    fast = {"fast": [("f", (n,), 0, n * 10) for n in range(40)]}

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        first = env.from_source(SplitsSource(slow, concurrent=None), strategy, "slow")
        second = env.from_source(SplitsSource(fast, concurrent=None), strategy, "fast")
        return first.union(second).map(lambda event: event[0])

    result = run(flow, max_records=1)
    assert sorted(result.output) == ["f"] * 40 + ["s"] * 60
    names = {vertex.vertex_id: vertex.head.name for vertex in result.job.master.job.vertices}
    seen = {"slow": MIN_WATERMARK, "fast": MIN_WATERMARK}
    pauses = 0
    for summary in result.job.epochs:
        reports = {
            names[report.subtask.vertex_id].removeprefix("Source: "): report for report in summary.reports
        }
        ahead = seen["fast"] > seen["slow"] + drift and not reports["slow"].has_ended
        if ahead and seen["slow"] > MIN_WATERMARK:
            assert reports["fast"].records_in == 0
            pauses += 1
        for name in seen:
            if name in reports and reports[name].watermark is not None:
                seen[name] = reports[name].watermark
    assert pauses > 20


def test_a_job_knows_when_it_is_next_woken(clock: Clock, tmp_path: Path) -> None:
    source = ScriptedSource(["a", "b", Stop()], directory=tmp_path)
    started = start(
        lambda env: env.from_source(source, NO_TIME, "script").key_by(str).process(Reminds()),
        parallelism=2,
        now_ms=clock,
    )
    wait_until(lambda: started.job.progress.records == 2, started)
    wait_until(lambda: len(started.job.master._steps.run._timers) > 0, started)
    timers = started.job.master._steps.run._timers
    assert all(isinstance(subtask, SubtaskId) for subtask in timers)
    assert set(timers.values()) == {1_060_001}, "a moment is waited out"
    source.resume()
    started.job.wait()


# ------------------------------------------------------------------------------------ time to live


class Shared:
    """A clock that the function sets: workers have copies of the function, and this class in common."""

    clock: Clock


class Forgets(KeyedProcessFunction):
    """Counts visits in three kinds of state that all end 100 ms after they were written.

    A record is (key, how far the clock advances after it).
    """

    def open(self, runtime_context: Any) -> None:
        ttl = StateTtlConfig.new_builder(Time.milliseconds(100)).build()
        descriptors = (
            ValueStateDescriptor("count", None),
            ListStateDescriptor("steps", None),
            MapStateDescriptor("by-step", None, None),
        )
        for descriptor in descriptors:
            descriptor.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(descriptors[0])
        self.steps = runtime_context.get_list_state(descriptors[1])
        self.by_step = runtime_context.get_map_state(descriptors[2])

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        key, step = value
        self.count.update((self.count.value() or 0) + 1)
        self.steps.add(step)
        self.by_step.put(step, (self.by_step.get(step) or 0) + 1)
        yield key, self.count.value(), list(self.steps.get()), dict(self.by_step.items())
        Shared.clock.now += step


def forgetting(visits: list[tuple[str, int]]) -> list[Any]:
    """What `Forgets` says, by the rule: what was written 100 ms ago is gone."""
    now = 0
    counts: dict[str, tuple[int, int]] = {}
    steps: dict[str, list[tuple[int, int]]] = {}
    by_step: dict[tuple[str, int], tuple[int, int]] = {}
    found = []
    for key, step in visits:
        at, count = counts.get(key, (-1000, 0))
        counts[key] = now, 1 + (count if at + 100 > now else 0)
        steps[key] = [each for each in steps.get(key, []) if each[0] + 100 > now] + [(now, step)]
        at, times = by_step.get((key, step), (-1000, 0))
        by_step[key, step] = now, 1 + (times if at + 100 > now else 0)
        alive = {s: n for (k, s), (at, n) in by_step.items() if k == key and at + 100 > now}
        found.append((key, counts[key][1], [each for _, each in steps[key]], alive))
        now += step
    return found


@pytest.mark.parametrize("per_epoch", [1000, 7, 1], ids=["1-epoch", "9-epochs", "60-epochs"])
def test_state_ends_at_the_same_moment_wherever_epochs_end(clock: Clock, per_epoch: int) -> None:
    chance = random.Random(3)
    visits = [(chance.choice("abc"), chance.choice([0, 10, 35, 60, 99, 100])) for _ in range(60)]
    Shared.clock = clock

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource({"s": visits}, batch_records=1), NO_TIME, "visits")
        return stream.key_by(lambda visit: visit[0]).process(Forgets())

    # The clock is read per buffer: here that is once per record.
    options = {"headrace.exchange.buffer-records": 1, "headrace.state.compaction.max-changes": 3}
    result = run(flow, max_records=per_epoch, options=options, workers=2)
    assert len(result.job.epochs) >= 60 // per_epoch
    assert result.output == forgetting(visits)
    assert any(count > 2 for _, count, _, _ in result.output), "or this shows nothing"


# ----------------------------------------------------------------------------------------- metrics


class Counted(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group().add_group("own")
        self.seen = group.counter("seen")
        self.values = group.distribution("values")

    def process_element(self, value: Event, ctx: Any) -> None:
        self.seen.inc()
        self.values.update(value[2])


def totals_of(epochs: list[Any]) -> dict[str, Any]:
    """Add up what completed epochs report, as whoever shows metrics does."""
    totals: dict[str, Any] = {}
    for report in (report for epoch in epochs for report in epoch.reports):
        for metrics in report.user_metrics.values():
            for name, value in metrics.items():
                known = totals.get(name.dotted)
                totals[name.dotted] = value if known is None else known.then(value)
    return totals


def test_what_epochs_report_of_metrics_adds_up_however_often_they_were_tried(
    parallelism: int, max_records: int
) -> None:
    splits = events(seed=6)

    def flow(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(SplitsSource(splits, concurrent=None), BOUNDED, "events")
        return stream.key_by(lambda event: event[0]).process(Counted())

    result = anyhow(flow, parallelism=parallelism, max_records=max_records)
    values = [event[2] for split in splits.values() for event in split]
    totals = totals_of(result.job.epochs)
    assert totals["own.seen"] == CounterReport(len(values))
    assert totals["own.values"] == DistributionReport(len(values), sum(values), min(values), max(values))


@pytest.mark.parametrize("is_shared", [False, True], ids=["general", "slices"])
def test_late_records_that_are_dropped_are_counted_once(is_shared: bool, max_records: int) -> None:
    """The same job with a side output says which records those are."""
    [stream_of] = events(seed=5, splits=1, disorder=70).values()
    program = Program(model.Tumbling(15), model.EventTime())

    def flow(env: StreamExecutionEnvironment, *, with_tag: bool) -> DataStream:
        in_order = timed(WatermarkStrategy.for_monotonous_timestamps())
        stream = env.from_source(SplitsSource({"s": stream_of}, concurrent=None), in_order, "events")
        windows = windowed(stream, program)
        windows = windows.side_output_late_data(LATE) if with_tag else windows
        results = windows.reduce(concatenate, Process()) if is_shared else windows.process(Process())
        return results.get_side_output(LATE) if with_tag else results

    late = anyhow(lambda env: flow(env, with_tag=True), parallelism=1, max_records=max_records).output
    dropped = anyhow(lambda env: flow(env, with_tag=False), parallelism=1, max_records=max_records)
    assert late, "or this shows nothing"
    assert totals_of(dropped.job.epochs)[LATE_DROPPED] == CounterReport(len(late))
