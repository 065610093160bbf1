"""The two ends of a job: operators that read a source's slices, and that hand records to a sink's writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.common.watermark_strategy import WatermarkAlignment, WatermarkStrategy
from headrace.connectors.base import Sink, Slice, Source
from headrace.elements import MAX_WATERMARK, Batch, StreamStatus, Watermark
from headrace.operators.base import EpochPlace, Operator, Output
from headrace.operators.context import OperatorContext
from headrace.operators.epoch_writer import EpochWriter
from headrace.operators.located import locating
from headrace.operators.slice_reader import SliceReader
from headrace.operators.timestamps import WatermarkTracker, make_tracker
from headrace.state.descriptors import ListStateDescriptor


@dataclass(frozen=True)
class SourceDeclaration:
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
    def has_event_time(self) -> bool:
        """Whether watermarks follow its records."""
        return self.watermark_strategy is not None and self.watermark_strategy.kind != "none"

    @property
    def alignment(self) -> WatermarkAlignment | None:
        """The group of sources whose watermarks must stay close."""
        return None if self.watermark_strategy is None else self.watermark_strategy.alignment

    def build(self) -> SourceTask:
        return SourceTask(self.source, self.watermark_strategy)


@dataclass(frozen=True)
class SinkDeclaration:
    """Writes to a sink."""

    sink: Sink
    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    def build(self) -> Operator:
        return SinkTask(self.sink)


class SourceTask(Operator):
    """Reads the slices of its subtask. Each split has its own watermark; the lowest of them is the subtask's."""

    #: Knows what has been read in the epoch.
    reader: SliceReader
    _TIME = "time"
    #: The time of each split. A union, because splits move to other subtasks when the parallelism changes.
    _SPLIT_TIMES = ListStateDescriptor("split-times", None)

    def __init__(self, source: Source, strategy: WatermarkStrategy | None) -> None:
        self._source = source
        self._strategy = strategy
        self._trackers: dict[str, WatermarkTracker] = {}
        self._watermark: int | None = None
        #: Splits that do not hold the watermark, because no records came for long.
        self._idle_splits: frozenset[str] = frozenset()
        #: Whether there is any split to be read in this epoch.
        self._has_splits = True
        #: Splits of the subtask that had not ended before this epoch.
        self._open_splits: frozenset[str] = frozenset()
        self.is_idle = False
        #: Whether the task asks watermark generators.
        self._is_asked = False
        #: Cuts batches of records that take their time; set by the task.
        self.pieces_of: Callable[[Batch], Iterable[Batch]] = lambda batch: (batch,)
        #: Makes what reads slices; set by tasks whose epochs are recorded or replayed.
        self.reader_of: Callable[[Source, OperatorContext, Output], SliceReader] = SliceReader
        self.has_periodic_watermarks = strategy is not None

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._split_times = context.operator_state.get_union_list_state(self._SPLIT_TIMES)
        self.reader = self.reader_of(self._source, context, self.output)

    def begin_epoch(self, place: EpochPlace) -> None:
        if place.is_continued:
            return
        self._is_asked = place.asks_for_watermarks
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
        self.reader.begin_epoch(max_records)
        self._idle_splits = idle_splits
        self._has_splits = bool(open_splits)
        self._open_splits = open_splits
        # After a restart it got the times of all splits, also of those that others read now.
        self._trackers = {name: tracker for name, tracker in self._trackers.items() if name in open_splits}
        if self._source.concurrent_splits != 1:
            # Splits read side by side all hold the watermark, also those without a record so far.
            for split_id in open_splits:
                self._tracker(split_id)
        for piece in slices:
            if not self.reader.has_room:
                return
            yield from self._read(piece)
        self._advance(self._lowest())
        self._tell_status()

    def _read(self, piece: Slice) -> Iterator[None]:
        split_id = piece.split.split_id
        tracker = self._tracker(split_id)
        for raw in self.reader.read(piece):
            self._idle_splits -= {split_id}
            for piece_of_it in self.pieces_of(raw):
                self._hand_on(tracker, piece_of_it)
            yield
        if self.reader.progress[split_id].is_finished:
            if self._is_asked and self._has_unread_splits():
                with locating(self._context):
                    tracker.emit_periodically()
                self._advance(self._lowest())
            del self._trackers[split_id]
            if self._trackers:
                self._advance(self._lowest())

    def _has_unread_splits(self) -> bool:
        progress = self.reader.progress
        return any(name not in progress or not progress[name].is_finished for name in self._open_splits)

    def _hand_on(self, tracker: WatermarkTracker, raw: Batch) -> None:
        for batch in self._stamped(tracker, raw):
            if self.is_idle:
                self._tell_status()
            if batch:
                self.output.emit(batch)
            self._advance(self._lowest())
            self._tell_status()

    def _stamped(self, tracker: WatermarkTracker, raw: Batch) -> Iterator[Batch]:
        """Give records time. What fails in here is the strategy's, not the functions' after it."""
        pieces = tracker.stamp(raw)
        while True:
            with locating(self._context):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def emit_periodic_watermark(self) -> None:
        with locating(self._context):
            for tracker in self._trackers.values():
                tracker.emit_periodically()
        self._advance(self._lowest())
        self._tell_status()

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
        self.reader.close()

    def _tracker(self, split_id: str) -> WatermarkTracker:
        tracker = self._trackers.get(split_id)
        if tracker is None:
            tracker = make_tracker(self._strategy, is_by_clock=self._is_asked)
            self._trackers[split_id] = tracker
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


class SinkTask(Operator):
    """Stages each epoch's records through a writer of its own."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        #: Sees every batch before it is written; set by tasks whose epochs are recorded.
        self.tap: Callable[[Batch], None] | None = None
        #: Whether records go nowhere: a replayed epoch must not write again.
        self.is_muted = False

    @property
    def wants_declared_form(self) -> bool:
        """Whether its sink wants records in the form of their declared type."""
        return self._sink.wants_declared_form

    def open(self, context: OperatorContext) -> None:
        self._writer = EpochWriter(self._sink, context)

    def begin_epoch(self, place: EpochPlace) -> None:
        self._writer.begin_epoch(place)

    def process(self, batch: Batch) -> None:
        if self.tap is not None:
            self.tap(batch)
        if not self.is_muted:
            self._writer.write(batch)

    def end_epoch(self) -> Sequence[Any]:
        return self._writer.prepare_commit()

    def take_shown(self) -> Sequence[Any]:
        """Return what was written since the last call, if the sink shows it at once."""
        return self._writer.prepare_commit() if self._sink.shows_at_once else ()

    def close(self) -> None:
        self._writer.close()
