"""Jobs that are stopped and come back: a source that gives out records as it is told, and sizes of what is on disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bench import jobs
from bench.workloads import key_of
from headrace.common import WatermarkStrategy
from headrace.common.job_client import JobClient
from headrace.connectors.base import (
    Boundedness,
    KnownSplits,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.connectors.blackhole import BlackholeSink
from headrace.elements import Batch
from headrace.graph.job_graph import JobGraph
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners, SparkExecutor

_BATCH = 1_000


class Gate:
    """How many records there are so far; the enumerator of the source is in this process, too."""

    def __init__(self) -> None:
        self.records = 0


GATE = Gate()


@dataclass(frozen=True)
class GatedSource(Source):
    """Records by their number, as many as the gate lets through. It does not end."""

    make: Callable[[int], Any]

    concurrent_splits = None

    @property
    def boundedness(self) -> Boundedness:
        """Without end."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Look at the gate."""
        return _GatedEnumerator(parallelism)

    def create_reader(self) -> SourceReader:
        """Make records."""
        return _GatedReader(self.make)


@dataclass(frozen=True)
class _Stride(SourceSplit):
    first: int
    stride: int


class _GatedEnumerator(KnownSplits):
    def __init__(self, parallelism: int) -> None:
        super().__init__(_Stride(f"{first}", first, parallelism) for first in range(parallelism))

    def restore(self, splits: Sequence[SourceSplit]) -> None:
        if splits:
            self._new = []

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        stride = cast("_Stride", split)
        open_now = len(range(stride.first, GATE.records, stride.stride))
        end = min(position + max_records, open_now)
        return Slice(split, position, end) if end > position else None


class _GatedReader(SourceReader):
    def __init__(self, make: Callable[[int], Any]) -> None:
        self._make = make
        self._position = 0

    def read(self, piece: Slice) -> Iterator[Batch]:
        stride = cast("_Stride", piece.split)
        for start in range(piece.start, piece.end, _BATCH):
            end = min(start + _BATCH, piece.end)
            first, after = (stride.first + position * stride.stride for position in (start, end))
            yield Batch(list(map(self._make, range(first, after, stride.stride))))
        self._position = piece.end

    def progress(self) -> SplitProgress:
        return SplitProgress(self._position, is_finished=False)


class Watch:
    """Waits for what epochs bring."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.records = 0
        self.epochs: list[EpochSummary] = []
        self.executor = SparkExecutor(listeners=[Listeners(epoch_completed=self._note)])

    def _note(self, job: JobGraph, summary: EpochSummary) -> None:
        with self._changed:
            self.records += summary.records
            self.epochs.append(summary)
            self._changed.notify_all()

    def start_over(self) -> None:
        """Forget what was seen."""
        with self._changed:
            self.records = 0
            self.epochs = []

    def wait_for(self, records: int, timeout_s: float = 3_600) -> None:
        """Wait until so many records have been read since the start."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.records >= records, timeout_s):
                raise TimeoutError(f"{self.records} of {records} records after {timeout_s} s")


def start_count(make: Callable[[int], Any], parallelism: int, options: dict[str, str]) -> JobClient:
    """Start a keyed running count over what the gate lets through."""
    env = jobs.environment(parallelism, options)
    stream = env.from_source(GatedSource(make), WatermarkStrategy.no_watermarks(), "gated").uid("source")
    stream.key_by(key_of).process(jobs.RunningCount()).uid("count").sink_to(BlackholeSink()).uid("sink")
    return env.execute_async("recovery")


def files_below(directory: str) -> dict[str, int]:
    """Return the sizes of the files below a directory, by path."""
    return {
        path: os.stat(path).st_size
        for parent, _, names in os.walk(directory)
        for name in names
        if os.path.isfile(path := os.path.join(parent, name))
    }
