"""The measured work as headrace programs, and the sources and sinks only a benchmark needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.workloads import enrich, is_wanted, key_of, record_maker, shorten
from headrace.common import Configuration, Types, WatermarkStrategy
from headrace.connectors.base import (
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
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor
from headrace.elements import Batch


class RunningCount(KeyedProcessFunction):
    """Counts records per key, in state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get the count."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Emit the key's count so far."""
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


def environment(parallelism: int, options: Mapping[str, str] | None = None) -> StreamExecutionEnvironment:
    """Return an environment with options."""
    configuration = Configuration()
    for name, value in (options or {}).items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    return env


def run_stateless(records: int, keys: int, parallelism: int) -> float:
    """Run map, filter, map; returns records per second of the whole job."""
    env = environment(parallelism)
    source = DataGeneratorSource(record_maker(keys), records)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    stream.map(enrich).filter(is_wanted).map(shorten).sink_to(BlackholeSink())
    return _rate(env, records)


def run_keyed_count(
    records: int, keys: int, parallelism: int, options: Mapping[str, str] | None = None
) -> float:
    """Run a running count per key; returns records per second of the whole job."""
    env = environment(parallelism, options)
    source = DataGeneratorSource(record_maker(keys), records)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    stream.key_by(key_of).process(RunningCount()).sink_to(BlackholeSink())
    return _rate(env, records)


def _rate(env: StreamExecutionEnvironment, records: int) -> float:
    started = time.perf_counter()
    env.execute("bench")
    return records / (time.perf_counter() - started)


@dataclass(frozen=True)
class PacedSource(Source):
    """Records that fall due by the clock: (key, due time), so many a second, or none at all in so many epochs."""

    rate: float
    count: int
    keys: int
    #: Due times count from here; the job's own start-up is not part of what is measured.
    start: float
    #: With more than one, the source answers every plan with this many records, due or not.
    per_plan: int | None = None
    plans_anywhere = True

    @property
    def boundedness(self) -> Boundedness:
        """It ends after ``count`` records."""
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Plan what has fallen due."""
        return _PacedEnumerator(self)

    def create_reader(self) -> SourceReader:
        """Make the records."""
        return _PacedReader(self)


class _PacedEnumerator(SplitEnumerator):
    def __init__(self, source: PacedSource) -> None:
        self._source = source
        self._found = False
        #: When the next record is due.
        self._next: float | None = None

    def discover(self) -> Sequence[SourceSplit]:
        found, self._found = self._found, True
        return () if found else (SourceSplit("paced"),)

    @property
    def is_complete(self) -> bool:
        return self._found

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        source = self._source
        if source.per_plan is not None:
            end = min(position + source.per_plan, source.count)
        else:
            due = int((time.time() - source.start) * source.rate)
            end = min(due, source.count, position + max_records)
            self._next = source.start + (position + 1) / source.rate
        return Slice(split, position, end) if end > position else None

    def next_discovery_delay(self) -> float | None:
        return None if self._next is None else max(0.0, self._next - time.time())


class _PacedReader(SourceReader):
    def __init__(self, source: PacedSource) -> None:
        self._source = source
        self._position = 0

    def read(self, piece: Slice) -> Iterator[Batch]:
        source = self._source
        yield Batch(
            [
                (f"user_{i % source.keys}", source.start + (i + 1) / source.rate)  # as the enumerator counts
                for i in range(piece.start, piece.end)
            ]
        )
        self._position = piece.end

    def progress(self) -> SplitProgress:
        return SplitProgress(self._position, self._position >= self._source.count)


#: Filled by the committer, which runs in this process.
LATENCIES: list[float] = []


@dataclass(frozen=True)
class LatencySink(Sink):
    """Notes how long after it fell due each record came out."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Hand records to the committer."""
        return _Hold()

    def create_committer(self, context: CommitterContext | None = None) -> Committer:
        """Look at the clock."""
        return _NoteLatency()


class _Hold(SinkWriter):
    def __init__(self) -> None:
        self._due: list[float] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._due.append(value[1])

    def prepare_commit(self) -> Sequence[Any]:
        return self._due


class _NoteLatency(Committer):
    def commit(self, committables: Sequence[Committable]) -> None:
        now = time.time()
        LATENCIES.extend(now - committable.payload for committable in committables)


class PassOn(KeyedProcessFunction):
    """Counts in state and hands the record on."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get the count."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Count, and hand on."""
        self.count.update((self.count.value() or 0) + 1)
        yield value


def run_paced(
    source: PacedSource, parallelism: int, sink: Sink, options: Mapping[str, str] | None = None
) -> None:
    """Run a paced source through a keyed process function."""
    env = environment(parallelism, options)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "paced")
    stream.key_by(key_of).process(PassOn()).sink_to(sink)
    env.execute("paced")
