"""The measured work about time as headrace programs: windows, and a million timers."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.jobs import environment
from bench.workloads import key_of, record_maker
from headrace.common import Time, WatermarkStrategy
from headrace.connectors.base import (
    BATCH_RECORDS,
    Boundedness,
    Committable,
    Committer,
    CommitterContext,
    Sink,
    SinkWriter,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
    WriterContext,
)
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows, WindowAssigner
from headrace.elements import Batch

HOUR = Time.hours(1)


# --- windows --------------------------------------------------------------------------------------


def records_in_time(env: StreamExecutionEnvironment, records: int, keys: int) -> DataStream:
    """Return the records of `make bench` with event time: a thousand of them in a second."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    return env.from_source(DataGeneratorSource(record_maker(keys), records), strategy, "records")


def add(one: tuple[str, int], two: tuple[str, int]) -> tuple[str, int]:
    """Add two records of a key."""
    return one[0], one[1] + two[1]


def run_windowed_sum(
    records: int, keys: int, parallelism: int, assigner: WindowAssigner[Any, Any], *, by_field: bool = False
) -> float:
    """Run a sum per key and window; returns records per second of the whole job.

    Args:
        records: How many.
        keys: Of how many keys.
        parallelism: Subtasks of every operator.
        assigner: The windows.
        by_field: Use ``sum(1)`` instead of a reduce function.
    """
    env = environment(parallelism)
    windows = records_in_time(env, records, keys).key_by(key_of).window(assigner)
    (windows.sum(1) if by_field else windows.reduce(add)).sink_to(BlackholeSink())
    started = time.perf_counter()
    env.execute("windows")
    return records / (time.perf_counter() - started)


def tumbling(size: Time) -> WindowAssigner[Any, Any]:
    """Return windows one after the other."""
    return TumblingEventTimeWindows.of(size)


def sliding(size: Time, slide: Time) -> WindowAssigner[Any, Any]:
    """Return windows that overlap."""
    return SlidingEventTimeWindows.of(size, slide)


# --- timers ---------------------------------------------------------------------------------------

#: When the first of the timers falls due; nothing is anywhere near it before they are to fire.
DUE = 1_000_000_000_000
#: Keys that have timers.
TIMER_KEYS = 100_000


@dataclass(frozen=True)
class Phase:
    """Epochs that all do the same."""

    name: str
    epochs: int
    records_per_epoch: int


@dataclass(frozen=True)
class PhasedSource(Source):
    """Records in phases, a given number in every epoch: (key, timestamp, when to be called or None).

    In the phase ``register`` each record asks for a timer. In the phase ``fire`` each record moves time on, so that all
    of them together pass all timers. In other phases nothing happens but records.
    """

    phases: tuple[Phase, ...]
    #: How many timers the phase ``register`` asks for.
    timers: int

    @property
    def boundedness(self) -> Boundedness:
        """It ends with its last phase."""
        return Boundedness.BOUNDED

    def ends(self) -> list[int]:
        """Return how many records were read when each epoch ends."""
        found, position = [], 0
        for phase in self.phases:
            for _ in range(phase.epochs):
                position += phase.records_per_epoch
                found.append(position)
        return found

    def epochs_of(self, name: str) -> range:
        """Return the epochs of a phase, counted from 0."""
        before = 0
        for phase in self.phases:
            if phase.name == name:
                return range(before, before + phase.epochs)
            before += phase.epochs
        raise KeyError(name)

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Plan one epoch after the other."""
        return _PhasedEnumerator(self)

    def create_reader(self) -> SourceReader:
        """Make the records."""
        return _PhasedReader(self)


class _PhasedEnumerator(SplitEnumerator):
    def __init__(self, source: PhasedSource) -> None:
        self._ends = source.ends()
        self._found = False

    def discover(self) -> Sequence[SourceSplit]:
        found, self._found = self._found, True
        return () if found else (SourceSplit("phases"),)

    @property
    def is_complete(self) -> bool:
        return self._found

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        return Slice(split, position, self._ends[bisect_right(self._ends, position)])


class _PhasedReader(SourceReader):
    def __init__(self, source: PhasedSource) -> None:
        ends = source.ends()
        self._end = ends[-1]
        registering, firing = source.epochs_of("register"), source.epochs_of("fire")
        self._register_from = ends[registering.start - 1]
        self._register_until = ends[registering.stop - 1]
        self._fire_from = ends[firing.start - 1]
        #: How far a record of the last phase moves time on.
        self._step = -(-source.timers // (self._end - self._fire_from))
        self._position = 0

    def read(self, piece: Slice) -> Iterator[Batch]:
        for start in range(piece.start, piece.end, BATCH_RECORDS):
            yield Batch([self._record(n) for n in range(start, min(start + BATCH_RECORDS, piece.end))])
        self._position = piece.end

    def _record(self, number: int) -> tuple[int, int, int | None]:
        key = number * 7919 % TIMER_KEYS
        if number >= self._fire_from:
            return key, DUE + (number + 1 - self._fire_from) * self._step, None
        if self._register_from <= number < self._register_until:
            return key, number, DUE + number - self._register_from
        return key, number, None

    def progress(self) -> SplitProgress:
        return SplitProgress(self._position, self._position >= self._end)


class SetTimers(KeyedProcessFunction):
    """Asks for a call if the record says so, and emits when it comes."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        """Register a timer."""
        if value[2] is not None:
            ctx.timer_service().register_event_time_timer(value[2])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> list[int]:
        """Emit its time."""
        return [timestamp]


#: Filled by the committer, which runs in this process: how many records came out of each epoch.
COUNTS: dict[int, int] = {}


@dataclass(frozen=True)
class CountSink(Sink):
    """Counts what comes out."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Count in the worker."""
        return _Count()

    def create_committer(self, context: CommitterContext | None = None) -> Committer:
        """Add up in the driver."""
        return _AddUp()


class _Count(SinkWriter):
    def __init__(self) -> None:
        self._count = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        self._count += 1

    def write_batch(self, batch: Batch) -> None:
        self._count += len(batch)

    def prepare_commit(self) -> Sequence[Any]:
        return [self._count]


class _AddUp(Committer):
    def commit(self, committables: Sequence[Committable]) -> None:
        for each in committables:
            COUNTS[each.epoch] = COUNTS.get(each.epoch, 0) + each.payload


def run_timers(source: PhasedSource, parallelism: int) -> None:
    """Run the phases; what each epoch took is for an epoch listener to see."""
    env = environment(parallelism)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    stream = env.from_source(source, strategy, "phases").set_parallelism(1)
    stream.key_by(key_of).process(SetTimers()).sink_to(CountSink())
    env.execute("timers")
