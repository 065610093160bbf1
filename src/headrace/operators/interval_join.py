"""The interval join: records of two streams with the same key whose timestamps are near each other.

    left   ------5---------------       bounds -2 and +1: a left record at 5 meets right ones from 3 to 6
    right  --3-----6--7----------       (3, 6), not 7

Both sides are kept by timestamp until the watermark says that nothing can meet them any more; then a timer takes them
out. Follows Flink's IntervalJoinOperator.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.common.typeinfo import Types
from headrace.elements import MAX_WATERMARK, Batch, Watermark
from headrace.operators.base import EpochPlace, KeyOf, Operator
from headrace.operators.context import OperatorContext
from headrace.operators.functions import Emission, FunctionOperator, key_getter, method_of
from headrace.operators.timers import OperatorTimers
from headrace.state.descriptors import MapStateDescriptor
from headrace.state.interfaces import MapState
from headrace.state.timers import Timer
from headrace.windowing.checks import no_timestamp

#: Flink's name for the count of windows' late records; its interval join has none.
LATE_DROPPED = "numLateRecordsDropped"
_SIDES = ("left", "right")


@dataclass(frozen=True)
class IntervalJoinDeclaration:
    """Joins ``left`` with each ``right`` for which ``left + lower_ms <= right <= left + upper_ms``."""

    function: Any
    key_selectors: tuple[Any, Any]
    #: Both bounds are part of the interval.
    lower_ms: int
    upper_ms: int
    #: Where late records go; None drops them.
    left_late_tag_id: str | None = None
    right_late_tag_id: str | None = None
    inputs: ClassVar[int] = 2
    is_keyed: ClassVar[bool] = True

    def build(self) -> Operator:
        return IntervalJoiner(self)


class PairContext:
    """The context of a ProcessJoinFunction, for the pair at hand."""

    def __init__(self) -> None:
        self.left_timestamp = 0
        self.right_timestamp = 0

    def get_left_timestamp(self) -> int:
        """Return the timestamp of the left record in ms."""
        return self.left_timestamp

    def get_right_timestamp(self) -> int:
        """Return the timestamp of the right record in ms."""
        return self.right_timestamp

    def get_timestamp(self) -> int:
        """Return the timestamp of the results: the later of the two."""
        return max(self.left_timestamp, self.right_timestamp)


class _Side:
    """One input: its records that may still meet others, and how far these may be from them."""

    def __init__(
        self,
        index: int,
        buffer: MapState[int, list[Any]],
        key_of: KeyOf,
        bounds: tuple[int, int],
        late_tag_id: str | None,
    ) -> None:
        #: 0 is left, 1 is right; also the namespace of its timers.
        self.index = index
        #: Records by timestamp.
        self.buffer = buffer
        self.key_of = key_of
        #: What the other side's timestamps may be, relative to a record of this one.
        self.lower_ms, self.upper_ms = bounds
        #: How far the watermark must be past a record's timestamp before it goes. As in Flink a record stays until its
        #: own time has come, even if all that it can meet is earlier.
        self.kept_ms = max(self.upper_ms, 0)
        self.late_tag_id = late_tag_id
        #: Timestamps in the buffer, in order, of keys that were touched in this epoch.
        self.times: dict[Any, list[int]] = {}

    def times_of(self, key: Any) -> list[int]:
        """Return the timestamps in the buffer of the current key, in order."""
        times = self.times.get(key)
        if times is None:
            times = self.times[key] = sorted(self.buffer.keys())
        return times

    def add(self, key: Any, value: Any, timestamp: int) -> None:
        """Keep a record of the current key."""
        bucket = self.buffer.get(timestamp)
        if bucket is None:
            insort(self.times_of(key), timestamp)
            bucket = []
        bucket.append(value)
        self.buffer.put(timestamp, bucket)

    def remove(self, key: Any, timestamp: int) -> None:
        """Forget the records of the current key at a time."""
        self.buffer.remove(timestamp)
        times = self.times.get(key)
        if times is not None:
            index = bisect_left(times, timestamp)
            if index < len(times) and times[index] == timestamp:
                del times[index]


class IntervalJoiner(FunctionOperator):
    """Keeps both sides and calls the function for every pair."""

    def __init__(self, declaration: IntervalJoinDeclaration) -> None:
        super().__init__(declaration.function)
        self._declaration = declaration
        self._pair = PairContext()

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        backend = context.require_keyed_state()
        self._current = backend.current
        declared = self._declaration
        keys = [key_getter(selector) for selector in declared.key_selectors]
        buffers = [
            backend.get_map_state(MapStateDescriptor(f"_interval_join/{side}", Types.LONG(), None))
            for side in _SIDES
        ]
        lower, upper = declared.lower_ms, declared.upper_ms
        self._sides = (
            _Side(0, buffers[0], keys[0], (lower, upper), declared.left_late_tag_id),
            _Side(1, buffers[1], keys[1], (-upper, -lower), declared.right_late_tag_id),
        )
        self._timers = OperatorTimers(
            backend,
            on_event_time=self._clean_up,
            on_processing_time=self._clean_up,
            encode_namespace=lambda side: bytes((side,)),
        )
        self._emission = Emission(self.output, object_reuse=context.object_reuse)
        self._dropped = context.metrics.counter(LATE_DROPPED)

    def begin_epoch(self, place: EpochPlace) -> None:
        super().begin_epoch(place)
        self._forget_times()

    def end_epoch(self) -> Sequence[Any]:
        self._forget_times()
        return super().end_epoch()

    def _forget_times(self) -> None:
        for side in self._sides:
            side.times.clear()

    # -- input -----------------------------------------------------------------------------------------

    def process(self, batch: Batch) -> None:
        self._take(batch, *self._sides)

    def process_second(self, batch: Batch) -> None:
        ours, other = reversed(self._sides)
        self._take(batch, ours, other)

    def _take(self, batch: Batch, ours: _Side, other: _Side) -> None:
        rest = iter(batch.values)
        timestamps = batch.timestamps if batch.timestamps is not None else [None] * len(batch)
        watermark = self.context.watermark()
        late: tuple[list[Any], list[int | None]] = [], []
        self._emission.start(Batch([], []))
        try:
            for value, timestamp in zip(rest, timestamps, strict=True):
                if timestamp is None:
                    raise no_timestamp(value)
                if timestamp < watermark:
                    late[0].append(value)
                    late[1].append(timestamp)
                    continue
                self._current.key = key = ours.key_of(value)
                ours.add(key, value, timestamp)
                self._join(value, timestamp, ours, other)
                until = min(timestamp + ours.kept_ms, MAX_WATERMARK)
                self._timers.register_event_time(until, ours.index)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        self._emission.flush()
        self._hand_on_late(Batch(*late), ours)

    def _join(self, value: Any, timestamp: int, ours: _Side, other: _Side) -> None:
        """Call the function for everything on the other side that a record meets, in the order of time."""
        call, pair, add = method_of(self.function, "process_element"), self._pair, self._emission.add
        times = other.times_of(self._current.key)
        first = bisect_left(times, timestamp + ours.lower_ms)
        last = bisect_right(times, timestamp + ours.upper_ms)
        for other_timestamp in times[first:last]:
            is_left = ours.index == 0
            pair.left_timestamp = timestamp if is_left else other_timestamp
            pair.right_timestamp = other_timestamp if is_left else timestamp
            for met in other.buffer.get(other_timestamp) or ():
                results = call(value, met, pair) if is_left else call(met, value, pair)
                if results is not None:
                    add(results, max(timestamp, other_timestamp))
                if len(self._emission.values) >= self.results_per_batch:
                    self._emission.flush()
                    self._emission.start(Batch([], []))

    def _hand_on_late(self, late: Batch, ours: _Side) -> None:
        if not late.values:
            return
        if ours.late_tag_id is None:
            self._dropped.inc(len(late))
        else:
            self.output.emit_side(ours.late_tag_id, late)

    # -- time ------------------------------------------------------------------------------------------

    def process_watermark(self, timestamp: int) -> None:
        self._timers.advance_watermark(timestamp)
        self.output.emit_event(Watermark(timestamp))

    def _clean_up(self, timer: Timer) -> None:
        side = self._sides[timer.namespace]
        side.remove(timer.key, timer.timestamp - side.kept_ms)
