"""Tumbling and sliding event-time windows with incremental functions: windows that overlap share their slices.

    size 6, slide 2      slices  |0-2|2-4|4-6|6-8|8-10|
                         windows |-----------|
                                     |-----------|
                                         |------------|

A record is added to its one slice, however many windows it lies in; a window is merged from its slices when the
watermark passes its end. Where a window has many slices, runs of them are merged once and kept as blocks, so a
window is made of few pieces.

Slices are merged in the order of time, not of arrival. Where a reduction keeps something of the first record, as
``sum`` does, that is still the one that came first: reduced values carry the number of their first record. A function
for which the order of all records matters sees them slice by slice.

What has fired is known from the watermark. After a change of parallelism a subtask may have key groups that were
further than others; theirs is in the groups' marks, and until the watermark has caught up they are distinguished.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, Watermark
from headrace.operators.base import EpochPlace
from headrace.operators.context import OperatorContext
from headrace.operators.functions import Emission, FunctionOperator, key_getter, method_of
from headrace.operators.window.encoding import window_bytes
from headrace.operators.window.functions import WindowContext, make_call
from headrace.operators.window.late import LateRecords
from headrace.operators.window.running import RunningWindow
from headrace.operators.window.spec import WindowSpec
from headrace.state.isolation import isolated
from headrace.state.key_groups import key_group_of
from headrace.state.keys import hash_key
from headrace.state.slices import StateSlice
from headrace.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from headrace.windowing.checks import beyond_time, no_timestamp
from headrace.windowing.triggers import EventTimeTrigger
from headrace.windowing.windows import TimeWindow

#: Slices or blocks that make up a block of the next level.
_RADIX = 8
_SIGN = 1 << 63
_STATE = "slices"
_name = struct.Struct(">BQ")


def can_share_slices(declaration: WindowSpec) -> bool:
    """Whether the general operator's results can be had from slices."""
    computation = declaration.computation
    if computation.kind == "buffer" or declaration.evictor is not None or declaration.allowed_lateness_ms:
        return False
    if type(declaration.trigger) is not EventTimeTrigger:
        return False
    if type(declaration.assigner) is TumblingEventTimeWindows:
        return True
    if type(declaration.assigner) is not SlidingEventTimeWindows:
        return False
    if declaration.assigner.slide_ms > declaration.assigner.size_ms:
        return False  # records between the windows lie in none
    if computation.kind == "reduce":
        return not getattr(computation.incremental, "needs_arrival_order", False)
    return _can_merge(computation.incremental)


def _can_merge(function: Any) -> bool:
    # Programs that never meet merging windows often leave `merge` empty.
    try:
        return function.merge(function.create_accumulator(), function.create_accumulator()) is not None
    except Exception:  # noqa: BLE001 - a merge that does not work is one that is not there
        return False


class SlicedWindowProcessor(FunctionOperator):
    """Runs windows over shared slices."""

    def __init__(self, declaration: WindowSpec) -> None:
        computation = declaration.computation
        super().__init__(computation.window_function, computation.incremental)
        self._declaration = declaration
        assigner: Any = declaration.assigner
        self._size: int = assigner.size_ms
        self._slide: int = getattr(assigner, "slide_ms", assigner.size_ms)
        self._offset: int = assigner.offset_ms
        self._step = math.gcd(self._size, self._slide)
        self._key_of = key_getter(declaration.key_selector)
        self._incremental = computation.incremental
        self._is_reduce = computation.kind == "reduce"
        #: Whether reduced values are pairs of an arrival number and the value.
        self._is_numbered = self._is_reduce and self._size != self._slide
        if self._is_numbered:
            self._combine = _combine_numbered(method_of(self._incremental, "reduce"))
        elif self._is_reduce:
            self._combine = method_of(self._incremental, "reduce")
        else:
            self._combine = _combine_accumulators(self._incremental.merge)

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        backend = context.require_keyed_state()
        self._current = backend.current
        self._slices = backend.slices("_slices", name_size=_name.size)
        self._groups = backend.groups
        self._max_parallelism = backend.max_parallelism
        self._user_scope = backend.namespaced("_window_state/", window_bytes)
        self._window_context = WindowContext(
            processing_time=context.processing_time,
            watermark=context.watermark,
            window_state=self._user_scope,
            global_state=backend,
            operator_name=context.place.operator_name,
        )
        self._call = make_call(self._declaration.computation)
        self._emission = Emission(self.output, object_reuse=context.object_reuse)
        self._late = LateRecords(self._declaration.late_tag_id, self.output, context)
        self._running = RunningWindow(self._combine, self._read, self._slide)

    def begin_epoch(self, place: EpochPlace) -> None:
        super().begin_epoch(place)
        marks = self._slices.marks
        #: Windows up to here have fired, but for what `_ahead` says.
        self._fired_until = self.context.watermark()
        #: Key groups for which more has fired, from a time when another subtask had them; until where.
        self._ahead = {
            group: mark.fired_until for group, mark in marks.items() if mark.fired_until > self._fired_until
        }
        self._arrivals = max((mark.arrivals for mark in marks.values()), default=0)
        self._restore_names()
        #: Where the slices start, in order; blocks left out.
        self._starts = sorted(
            start for level, start in map(unpack_slice_name, self._slices.names) if level == 0
        )
        self._running.forget()

    def _restore_names(self) -> None:
        """Say which slices there are, as they were remembered for these very key groups, or as they are found."""
        groups, names = self.context.operator_state.get(_STATE, (None, ()))
        if groups == self._groups or not self._slices.marks:
            self._slices.restore(names if groups == self._groups else ())
            return
        self._slices.restore(self._slices.find_names())
        for name in list(self._slices.names):
            if unpack_slice_name(name)[0]:
                self._slices.drop(name)  # a block that some groups have and others do not

    def end_epoch(self) -> Sequence[Any]:
        self.context.operator_state.put(_STATE, (self._groups, sorted(self._slices.names)))
        self._slices.mark(max(self._last_end() - 1, MIN_WATERMARK), self._arrivals)
        return super().end_epoch()

    # -- input -------------------------------------------------------------------------------------------------

    def process(self, batch: Batch) -> None:
        rest = iter(batch.values)
        timestamps = batch.timestamps or [None] * len(batch.values)
        try:
            self._add_all(rest, timestamps)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        self._late.flush()

    def _add_all(self, values: Iterable[Any], timestamps: Sequence[int | None]) -> None:
        key_of, step, offset = self._key_of, self._step, self._offset
        is_reduce, is_numbered = self._is_reduce, self._is_numbered
        add = method_of(self._incremental, "reduce") if is_reduce else self._incremental.add
        first_open = self._first_open_slice()
        opened: dict[int, StateSlice] = {}
        records: Iterable[tuple[Any, int | None]] = zip(values, timestamps, strict=True)
        if self._ahead:
            records = self._without_late_for_group(records)
        for value, timestamp in records:
            if timestamp is None:
                raise no_timestamp(value)
            start = timestamp - (timestamp - offset) % step
            piece = opened.get(start)
            if piece is None:
                if start < first_open:
                    self._late.take(value, timestamp)
                    continue
                last = start - (start - offset) % self._slide + self._size
                if last - 1 > MAX_WATERMARK or start < MIN_WATERMARK:
                    raise beyond_time(value, timestamp)
                piece = opened[start] = self._open_to_add(start)
            key = key_of(value)
            written = piece.written
            current = written.get(key)
            if current is None:
                current = piece.load(key)
            if is_numbered:
                if current is None:
                    self._arrivals += 1
                    written[key] = (self._arrivals, isolated(value))
                else:
                    written[key] = (current[0], add(current[1], value))
            elif is_reduce:
                written[key] = isolated(value) if current is None else add(current, value)
            else:
                written[key] = add(
                    value, self._incremental.create_accumulator() if current is None else current
                )

    def _open_to_add(self, start: int) -> StateSlice:
        """Open a slice; blocks that were made of it no longer hold."""
        if self._running.end is not None and start < self._running.end:
            self._running.forget()
        level = 1
        while (width := self._step * _RADIX**level) <= self._size:
            self._slices.drop(pack_slice_name(level, start - (start - self._offset) % width))
            level += 1
        name = pack_slice_name(0, start)
        if name not in self._slices.names:
            insort(self._starts, start)
        return self._slices.open_to_add(name)

    def _first_open_slice(self, watermark: int | None = None) -> int:
        """Return the first slice that lies in a window the watermark has not passed."""
        lower: int = (self.context.watermark() if watermark is None else watermark) + 1 - self._size
        return lower - (lower - self._offset) % self._slide + self._slide

    def _without_late_for_group(
        self, records: Iterable[tuple[Any, int | None]]
    ) -> Iterator[tuple[Any, int | None]]:
        """Leave out records for whose key group all their windows have fired, though the watermark is not there yet."""
        first_open = {group: self._first_open_slice(until) for group, until in self._ahead.items()}
        for value, timestamp in records:
            if timestamp is not None:
                lower = first_open.get(self._group_of(self._key_of(value)))
                if lower is not None and timestamp < lower:
                    self._late.take(value, timestamp)
                    continue
            yield value, timestamp

    def _group_of(self, key: Any) -> int:
        return key_group_of(hash_key(key), self._max_parallelism)

    # -- firing ------------------------------------------------------------------------------------------------

    def process_watermark(self, timestamp: int) -> None:
        self._emission.start(Batch([], []))
        while self._starts:
            end = self._next_end(self._starts[0])
            if end - 1 > timestamp:
                break
            self._fire(TimeWindow(end - self._size, end))
            self._fired_until = end - 1
            self._expire(end - self._size + self._slide)
        self._fired_until = max(self._fired_until, timestamp)
        if self._ahead:
            self._ahead = {group: until for group, until in self._ahead.items() if until > self._fired_until}
        self._emission.flush()
        self.output.emit_event(Watermark(timestamp))

    def _next_end(self, start: int) -> int:
        """Return the end of the first window that holds a slice and has not fired."""
        lower: int = max(start + self._step, self._fired_until + 2)
        return lower + (self._offset + self._size - lower) % self._slide

    def _last_end(self) -> int:
        """Return the end of the last window that has fired, or would have."""
        upper: int = self._fired_until + 1
        return upper - (upper - self._offset - self._size) % self._slide

    def _fire(self, window: TimeWindow) -> None:
        fired = {group for group, until in self._ahead.items() if window.max_timestamp() <= until}
        for key, accumulator in self._running.window(window).items():
            if fired and self._group_of(key) in fired:
                continue
            if self._is_numbered:
                self._emit(key, window, accumulator[1])
            elif self._is_reduce:
                self._emit(key, window, accumulator)
            else:
                self._emit(key, window, self._incremental.get_result(accumulator))

    def _read(self, start: int, end: int) -> Iterator[tuple[Any, Any]]:
        for name in self._pieces(start, end):
            yield from self._slices.open(name).items()

    def _emit(self, key: Any, window: TimeWindow, value: Any) -> None:
        self._current.key = key
        self._user_scope.current.key = (key, window)
        self._window_context.current_window = window
        try:
            results = self._call(key, self._window_context, [value])
            if results is not None:
                self._emission.add(results, window.max_timestamp())
            if hasattr(self.function, "clear"):
                self.function.clear(self._window_context)
        except Exception as error:
            raise self.located(error, key, f"window {window}") from error
        if len(self._emission.values) >= self.results_per_batch:
            self._emission.flush()
            self._emission.start(Batch([], []))

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the largest blocks and slices that make up a span of time."""
        names = self._slices.names
        while start < end:
            level, width = 0, self._step
            while (start - self._offset) % (width * _RADIX) == 0 and start + width * _RADIX <= end:
                level, width = level + 1, width * _RADIX
            name = pack_slice_name(level, start)
            if level and name not in names:
                self._build_block(level, start)
            if name in names or level:
                yield name
            start += width

    def _build_block(self, level: int, start: int) -> None:
        """Put the parts of a block together, once, for all windows that will hold it."""
        part_width = self._step * _RADIX ** (level - 1)
        # Also one that stays empty is kept: its parts need not be looked for again.
        block = self._slices.open_to_add(pack_slice_name(level, start)).written
        for index in range(_RADIX):
            part_start = start + index * part_width
            part = pack_slice_name(level - 1, part_start)
            if part not in self._slices.names:
                if level == 1:
                    continue
                self._build_block(level - 1, part_start)
            for key, accumulator in self._slices.open(part).items():
                current = block.get(key)
                block[key] = isolated(accumulator) if current is None else self._combine(current, accumulator)

    def _expire(self, first_needed: int) -> None:
        """Drop slices that no later window holds, and now and then such blocks."""
        count = bisect_left(self._starts, first_needed)
        for start in self._starts[:count]:
            self._slices.drop(pack_slice_name(0, start))
        del self._starts[:count]
        if not self._starts or (first_needed - self._offset) % (self._step * _RADIX) < self._slide:
            for name in list(self._slices.names):
                if unpack_slice_name(name)[1] < first_needed:
                    self._slices.drop(name)


# Of two values to be combined, the first is the caller's own; the second is still needed where it comes from, and a
# function may change and keep either of them.


def _combine_numbered(reduce: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Reduce numbered values so that the one whose first record came first is the first argument."""

    def combine(one: tuple[int, Any], other: tuple[int, Any]) -> tuple[int, Any]:
        value = isolated(other[1])
        if one[0] <= other[0]:
            return one[0], reduce(one[1], value)
        return other[0], reduce(value, one[1])

    return combine


def _combine_accumulators(merge: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: merge(one, isolated(other))


def pack_slice_name(level: int, start: int) -> bytes:
    """Return the name of a slice, or on a level above 0 of a block of several."""
    return _name.pack(level, start + _SIGN)


def unpack_slice_name(name: bytes) -> tuple[int, int]:
    """Return the level and the start of a slice; on a level above 0 it is a block of several."""
    level, start = _name.unpack(name)
    return level, start - _SIGN
