"""Giving records time: timestamps out of the records, watermarks out of the timestamps.

A generator is asked when the watermark interval is over, and in epochs after every batch of the input but the last
(`runtime/task/pace.py`), unless it emits while it looks at a record; then the batch is cut after that record, and the
watermark stands there in the stream, as in Flink.

    records        3  5  5! 7  9! 4          ! emits its time
    out            3  5  5 W5 7  9 W9 4

Timestamps have 64 bits, as in Flink. One beyond would be behind the last watermark: no window or timer would ever get
to it, and the record would be gone without a word. So it is refused here, where records get their time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import index, length_hint
from typing import Any, ClassVar, Protocol, cast

from headrace.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, StreamStatus, Watermark
from headrace.errors import JobDefinitionError, UserFunctionError, shorten
from headrace.operators.base import EpochPlace, Operator
from headrace.operators.context import OperatorContext
from headrace.operators.functions import FunctionOperator

#: What Flink passes as the record timestamp when a record has none.
NO_TIMESTAMP = -(2**63)


class WatermarkTracker(Protocol):
    """Time of one split, or of one subtask of a stream."""

    #: The highest watermark so far; None before the first.
    watermark: int | None
    #: Whether the generator has said that nothing is to be expected for now.
    is_idle: bool

    def stamp(self, batch: Batch) -> Iterator[Batch]:
        """Yield the batch with timestamps, cut where time moves; after each piece, which may be empty, look at it."""

    def emit_periodically(self) -> None:
        """Ask the generator for a watermark, if that is done by the clock."""

    def snapshot(self) -> Any:
        """Return what must survive the epoch."""

    def restore(self, state: Any) -> None:
        """Continue from the state of a snapshot."""


class NoTime:
    """Leaves records as they are."""

    watermark: int | None = None
    is_idle = False

    def stamp(self, batch: Batch) -> Iterator[Batch]:
        if batch.timestamps is None:
            yield batch
        else:
            yield Batch(batch.values, checked_timestamps(batch.values, batch.timestamps))

    def emit_periodically(self) -> None:
        """Do nothing: there is no generator."""

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Do nothing: this generator has no state."""


class GeneratedTime:
    """Assigns timestamps and asks a watermark generator.

    What a generator says about a record takes effect right after that record. What it says periodically takes effect
    after the batch; where a batch ends is planned, so a re-run sees the same watermarks.

    Args:
        strategy: What is asked.
        is_by_clock: Whether the task asks the generator instead, by the clock and after batches of its input.
    """

    def __init__(self, strategy: WatermarkStrategy, *, is_by_clock: bool = False) -> None:
        self._is_by_clock = is_by_clock
        self._assigner = strategy.timestamp_assigner
        self._generator: WatermarkGenerator = strategy.build()
        #: Whether it can only emit periodically, or says itself what many records at once mean.
        self._takes_batches = type(self._generator).on_batch is not WatermarkGenerator.on_batch
        self.watermark: int | None = None
        self.is_idle = False
        #: Whether the generator has moved time, or the status, since the last piece.
        self._is_moved = False

    def stamp(self, batch: Batch) -> Iterator[Batch]:
        timestamps = self._timestamps(batch)
        if timestamps is not None:
            timestamps = checked_timestamps(batch.values, timestamps)
        if timestamps is None:
            known = [NO_TIMESTAMP] * len(batch)
        elif None in timestamps:
            known = [NO_TIMESTAMP if timestamp is None else timestamp for timestamp in timestamps]
        else:
            known = cast("list[int]", timestamps)
        start = 0
        if self._takes_batches:
            self._generator.on_batch(batch.values, known, self)
        else:
            on_event, rest = self._generator.on_event, iter(batch.values)
            self._is_moved = False
            for value, timestamp in zip(rest, known, strict=True):
                on_event(value, timestamp, self)
                if self._is_moved:
                    end = len(batch) - length_hint(rest)
                    yield _part(batch.values, timestamps, start, end)
                    self._is_moved = False
                    start = end
        if not self._is_by_clock:
            self._generator.on_periodic_emit(self)
        yield _part(batch.values, timestamps, start, len(batch))

    def emit_periodically(self) -> None:
        self._generator.on_periodic_emit(self)

    def _timestamps(self, batch: Batch) -> list[int | None] | None:
        if self._assigner is None:
            return batch.timestamps
        extract: Callable[[Any, Any], int | None] = self._assigner.extract_timestamp
        if batch.timestamps is None:
            return list(map(extract, batch.values, repeat(NO_TIMESTAMP)))
        before = (NO_TIMESTAMP if timestamp is None else timestamp for timestamp in batch.timestamps)
        return list(map(extract, batch.values, before))

    # The generator's output.

    def emit_watermark(self, timestamp: int) -> None:
        """Take a watermark; one that goes back is ignored."""
        self._set_idle(is_idle=False)
        if not _is_time(timestamp):
            raise UserFunctionError(
                f"the watermark generator emitted {shorten(timestamp)}: expected a 64-bit int"
            )
        if timestamp > MIN_WATERMARK and (self.watermark is None or timestamp > self.watermark):
            self.watermark = timestamp
            self._is_moved = True

    def mark_idle(self) -> None:
        """Leave the split out until it has something to say."""
        self._set_idle(is_idle=True)

    def mark_active(self) -> None:
        """Count the split again."""
        self._set_idle(is_idle=False)

    def _set_idle(self, *, is_idle: bool) -> None:
        if is_idle != self.is_idle:
            self.is_idle = is_idle
            self._is_moved = True

    def snapshot(self) -> Any:
        return self.watermark, self.is_idle, self._generator.snapshot()

    def restore(self, state: Any) -> None:
        self.watermark, self.is_idle, generator_state = state
        self._generator.restore(generator_state)


def checked_timestamps(values: Sequence[Any], timestamps: list[Any]) -> list[int | None]:
    """Return the timestamps of records; Flink's marker for none, the smallest number, is None.

    Raises:
        UserFunctionError: One of them is not an int of 64 bits; it names the record.
    """
    if set(map(type, timestamps)) == {int} and (
        min(timestamps) > NO_TIMESTAMP and max(timestamps) <= MAX_WATERMARK
    ):
        return timestamps
    for value, timestamp in zip(values, timestamps, strict=True):
        if timestamp is not None and not _is_time(timestamp):
            raise UserFunctionError(
                f"a record has the timestamp {shorten(timestamp)}: expected a 64-bit int in milliseconds "
                "since 1970",
                record=value,
                hint="correct the timestamp assigner or the source; convert seconds, microseconds and floats",
            )
    return [None if timestamp == NO_TIMESTAMP else timestamp for timestamp in timestamps]


def _is_time(timestamp: Any) -> bool:
    try:
        return MIN_WATERMARK <= index(timestamp) <= MAX_WATERMARK
    except TypeError:
        return False


def _part(values: list[Any], timestamps: list[int | None] | None, start: int, end: int) -> Batch:
    if start == 0 and end == len(values):
        return Batch(values, timestamps)
    return Batch(values[start:end], None if timestamps is None else timestamps[start:end])


def make_tracker(strategy: WatermarkStrategy | None, *, is_by_clock: bool = False) -> WatermarkTracker:
    """Create the tracker for a strategy; with ``is_by_clock``, periodic watermarks are asked for by the clock."""
    if strategy is None or (strategy.kind == "none" and strategy.timestamp_assigner is None):
        return NoTime()
    return GeneratedTime(strategy, is_by_clock=is_by_clock)


@dataclass(frozen=True)
class TimestampsDeclaration:
    """Gives time to a stream in the middle of a job; watermarks from upstream end here."""

    strategy: WatermarkStrategy
    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.strategy.alignment is not None:
            raise JobDefinitionError(
                "watermark alignment pauses sources, so it must be set where the source is added",
                hint="pass this strategy to from_source() instead of assign_timestamps_and_watermarks()",
            )

    def build(self) -> Operator:
        return Timestamper(self.strategy)


class Timestamper(FunctionOperator):
    """Runs a watermark strategy over a stream."""

    _STATE = "watermark"

    def __init__(self, strategy: WatermarkStrategy) -> None:
        super().__init__(strategy.timestamp_assigner)
        self._strategy = strategy

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._tracker = make_tracker(self._strategy)

    def begin_epoch(self, place: EpochPlace) -> None:
        super().begin_epoch(place)
        if place.is_continued:
            return
        self._tracker = make_tracker(self._strategy, is_by_clock=place.asks_for_watermarks)
        stored, self._is_idle, self._active_ms = self.context.operator_state.get(
            self._STATE, (None, False, self.context.processing_time())
        )
        if stored is not None:
            self._tracker.restore(stored)

    def process(self, batch: Batch) -> None:
        self._active_ms = self.context.processing_time()
        self._tell_status(is_idle=False)
        before = self._tracker.watermark
        pieces = self._tracker.stamp(batch)
        while (piece := self._next(pieces)) is not None:
            if piece:
                self._tell_status(is_idle=False)
                self.output.emit(piece)
            watermark = self._tracker.watermark
            if watermark is not None and watermark != before:
                self._tell_status(is_idle=False)
                self.output.emit_event(Watermark(watermark))
                before = watermark
            if self._tracker.is_idle:
                self._tell_status(is_idle=True)

    has_periodic_watermarks = True

    def emit_periodic_watermark(self) -> None:
        before = self._tracker.watermark
        try:
            self._tracker.emit_periodically()
        except Exception as error:
            raise self.located(error, None) from error
        watermark = self._tracker.watermark
        if watermark is not None and watermark != before:
            self._tell_status(is_idle=False)
            self.output.emit_event(Watermark(watermark))
        if self._tracker.is_idle:
            self._tell_status(is_idle=True)

    def _next(self, pieces: Iterator[Batch]) -> Batch | None:
        try:
            return next(pieces, None)
        except Exception as error:
            raise self.located(error, None) from error

    def process_watermark(self, timestamp: int) -> None:
        # Only the end of time passes: the stream has watermarks of its own from here on.
        if timestamp == MAX_WATERMARK:
            self._tell_status(is_idle=False)
            self.output.emit_event(Watermark(timestamp))

    def process_status(self, *, is_active: bool) -> None:
        """Whether this stream is idle is seen from its own records."""

    def advance_processing_time(self, now_ms: int) -> None:
        idleness = self._strategy.idleness_ms
        if idleness is not None and now_ms >= self._active_ms + idleness:
            self._tell_status(is_idle=True)

    def next_processing_time(self) -> int | None:
        idleness = self._strategy.idleness_ms
        return None if idleness is None or self._is_idle else self._active_ms + idleness

    def end_epoch(self) -> Sequence[Any]:
        state = self._tracker.snapshot()
        if state is not None:
            self.context.operator_state.put(self._STATE, (state, self._is_idle, self._active_ms))
        return super().end_epoch()

    def _tell_status(self, *, is_idle: bool) -> None:
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self.output.emit_event(StreamStatus(active=not is_idle))
