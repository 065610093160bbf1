"""The two ends of a job: operators that read a source's slices, and that hand records to a sink's writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headrace.common.watermark_strategy import WatermarkAlignment, WatermarkStrategy
from headrace.connectors.base import (
    ReaderContext,
    Sink,
    SinkWriter,
    Slice,
    Source,
    SourceReader,
    SplitProgress,
    WriterContext,
)
from headrace.elements import MAX_WATERMARK, Batch, StreamStatus, Watermark
from headrace.errors import HeadraceError, UserFunctionError
from headrace.metrics.metricbase import MetricGroup
from headrace.operators.base import EpochPlace, Operator
from headrace.operators.context import OperatorContext
from headrace.operators.timestamps import WatermarkTracker, make_tracker
from headrace.state.descriptors import ListStateDescriptor


@dataclass(frozen=True)
class SourceOperator:
    """Reads a source and gives its records time."""

    source: Source
    watermark_strategy: WatermarkStrategy | None = None
    inputs: ClassVar[int] = 0
    is_keyed: ClassVar[bool] = False

    @property
    def idleness_ms(self) -> int | None:
        """After how long without records a split no longer holds the watermark."""
        return None if self.watermark_strategy is None else self.watermark_strategy.idleness_ms

    @property
    def alignment(self) -> WatermarkAlignment | None:
        """The group of sources whose watermarks must stay close."""
        return None if self.watermark_strategy is None else self.watermark_strategy.alignment

    def build(self) -> SourceTask:
        return SourceTask(self.source, self.watermark_strategy)


@dataclass(frozen=True)
class SinkOperator:
    """Writes to a sink."""

    sink: Sink
    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    def build(self) -> Operator:
        return SinkTask(self.sink)


@contextmanager
def _blaming(context: OperatorContext) -> Iterator[None]:
    """Say in which operator and subtask it was that a connector failed."""
    place = context.place
    try:
        yield
    except UserFunctionError as error:
        if error.operator is None:
            error.job, error.operator, error.subtask = place.job_name, place.operator_name, place.subtask
        raise
    except HeadraceError:
        raise
    except Exception as error:
        raise UserFunctionError.from_exception(
            error,
            job=place.job_name,
            operator=place.operator_name,
            subtask=place.subtask,
            attempt=context.attempt,
        ) from error


class SourceTask(Operator):
    """Reads the slices of its subtask. Each split has its own watermark; the lowest of them is the subtask's."""

    _TIME = "time"
    #: The time of each split. A union, because splits move to other subtasks when the parallelism changes.
    _SPLIT_TIMES = ListStateDescriptor("split-times", None)

    def __init__(self, source: Source, strategy: WatermarkStrategy | None) -> None:
        self._source = source
        self._strategy = strategy
        self._reader: SourceReader | None = None
        self._trackers: dict[str, WatermarkTracker] = {}
        self._watermark: int | None = None
        #: Splits that do not hold the watermark, because no records came for long.
        self._idle_splits: frozenset[str] = frozenset()
        #: Whether there is any split to be read in this epoch.
        self._has_splits = True
        self.is_idle = False
        #: How far each split was read in this epoch.
        self.progress: dict[str, SplitProgress] = {}
        self.records = 0

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._split_times = context.operator_state.get_union_list_state(self._SPLIT_TIMES)
        with _blaming(context):
            self._reader = self._source.create_reader()
            self._reader.open(_SourceReaderContext(self))

    @property
    def metrics(self) -> MetricGroup:
        """The operator's metrics."""
        return self._context.metrics

    @property
    def attempt(self) -> int:
        """How often Spark has tried the task before."""
        return self._context.attempt

    def begin_epoch(self, place: EpochPlace) -> None:
        self.progress = {}
        self.records = 0
        self._watermark, self.is_idle = self._context.operator_state.get(self._TIME, (None, False))
        self._trackers = {}
        for split_id, state in self._split_times:
            self._tracker(split_id).restore(state)

    def run(
        self,
        slices: Sequence[Slice],
        open_splits: frozenset[str],
        max_records: int | None,
        idle_splits: frozenset[str] = frozenset(),
    ) -> Iterator[None]:
        """Read the slices until enough was read; yields after every batch so that buffers can leave."""
        assert self._reader is not None
        self._idle_splits = idle_splits
        self._has_splits = bool(open_splits)
        # After a restart it got the times of all splits, also of those that others read now.
        self._trackers = {name: tracker for name, tracker in self._trackers.items() if name in open_splits}
        if self._source.concurrent_splits != 1:
            # Splits read side by side all hold the watermark, also those without a record so far.
            for split_id in open_splits:
                self._tracker(split_id)
        for piece in slices:
            remaining = None if max_records is None else max_records - self.records
            if remaining is not None and remaining <= 0:
                return
            yield from self._read(self._reader, _capped(piece, remaining))
        self._advance(self._lowest())
        self._tell_status()

    def _read(self, reader: SourceReader, piece: Slice) -> Iterator[None]:
        split_id = piece.split.split_id
        tracker = self._tracker(split_id)
        for raw in self._batches(reader, piece):
            self.records += len(raw)
            self._idle_splits -= {split_id}
            for batch in self._stamped(tracker, raw):
                if self.is_idle:
                    self._tell_status()
                if batch:
                    self.output.emit(batch)
                self._advance(self._lowest())
                self._tell_status()
            yield
        if self.progress[split_id].is_finished:
            del self._trackers[split_id]
            if self._trackers:
                self._advance(self._lowest())

    def _stamped(self, tracker: WatermarkTracker, raw: Batch) -> Iterator[Batch]:
        """Give records time. What fails in here is the strategy's, not the functions' behind it."""
        pieces = tracker.stamp(raw)
        while True:
            with _blaming(self._context):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def _batches(self, reader: SourceReader, piece: Slice) -> Iterator[Batch]:
        """Read a slice. What fails in here is the connector's, not the functions' behind it."""
        with _blaming(self._context):
            yield from reader.read(piece)
            self.progress[piece.split.split_id] = reader.progress()

    def finish(self) -> None:
        # The end of bounded input is the end of time.
        self._advance(MAX_WATERMARK)

    def end_epoch(self) -> Sequence[Any]:
        if self._strategy is not None or self._watermark is not None:
            self._context.operator_state.put(self._TIME, (self._watermark, self.is_idle))
            self._split_times.update(
                [(split_id, tracker.snapshot()) for split_id, tracker in self._trackers.items()]
            )
        return ()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _tracker(self, split_id: str) -> WatermarkTracker:
        tracker = self._trackers.get(split_id)
        if tracker is None:
            tracker = self._trackers[split_id] = make_tracker(self._strategy)
        return tracker

    def _lowest(self) -> int | None:
        """Return the lowest watermark of the splits that are not idle; None while one of them has none."""
        trackers = self._trackers.items()
        watermarks = [
            tracker.watermark
            for split_id, tracker in trackers
            if split_id not in self._idle_splits and not tracker.is_idle
        ]
        return None if not watermarks or None in watermarks else min(w for w in watermarks if w is not None)

    def _tell_status(self) -> None:
        """Say so when the subtask falls idle, and when it is active again."""
        if self._strategy is None:
            return
        if self._trackers:
            is_idle = all(
                split_id in self._idle_splits or tracker.is_idle
                for split_id, tracker in self._trackers.items()
            )
        else:
            # Between one split that is finished and the next, time must still wait.
            is_idle = self._strategy.idleness_ms is not None and not self._has_splits
        if is_idle != self.is_idle:
            self.is_idle = is_idle
            self.output.emit_event(StreamStatus(active=not is_idle))

    def _advance(self, watermark: int | None) -> None:
        if watermark is not None and (self._watermark is None or watermark > self._watermark):
            self._watermark = watermark
            self.output.emit_event(Watermark(watermark))


class _SourceReaderContext(ReaderContext):
    """Lends a reader the task it runs in."""

    def __init__(self, task: SourceTask) -> None:
        self._task = task

    @property
    def metrics(self) -> MetricGroup:
        return self._task.metrics

    @property
    def attempt(self) -> int:
        return self._task.attempt

    def emit_side(self, tag_id: str, value: Any) -> None:
        self._task.output.emit_side(tag_id, Batch([value]))


def _capped(piece: Slice, max_records: int | None) -> Slice:
    if max_records is None or (piece.max_records is not None and piece.max_records <= max_records):
        return piece
    return replace(piece, max_records=max_records)


class SinkTask(Operator):
    """Stages each epoch's records through a writer of its own."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._writer: SinkWriter | None = None

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def begin_epoch(self, place: EpochPlace) -> None:
        self._place = place

    def process(self, batch: Batch) -> None:
        with _blaming(self._context):
            if self._writer is None:  # an epoch without records stages nothing
                self._writer = self._sink.create_writer(
                    WriterContext(
                        subtask=self._context.place.subtask,
                        parallelism=self._context.place.parallelism,
                        epoch=self._place.epoch,
                        attempt_id=self._place.attempt_id,
                        job_id=self._place.job_id,
                        sink_id=self._context.place.operator_id,
                        staging_dir=self._place.staging_dir,
                    )
                )
            self._writer.write_batch(batch)

    def process_watermark(self, timestamp: int) -> None:
        """A sink ends the stream: nobody is behind it to tell."""

    def end_epoch(self) -> Sequence[Any]:
        if self._writer is None:
            return ()
        with _blaming(self._context):
            committables = self._writer.prepare_commit()
            self._writer.close()
        # Only now: a writer that could not finish is still there to be aborted.
        self._writer = None
        return committables

    def close(self) -> None:
        if self._writer is not None:  # only after a failure in the middle of an epoch
            self._writer.abort()
            self._writer.close()
            self._writer = None
