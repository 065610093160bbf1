"""Keyed operators in BATCH mode: all records of a key, in the order of their timestamps, then those of the next key.

    gather    records go to keyed state until all input has ended
    then      key by key: its records in order, then its timers, of event time first; the watermark jumps at its end

    watermark of a key   MIN ..................... MAX | MIN .......... MAX |
    key a                r3 r5 r5 r9   timers of a     |
    key b                                              | r1 r4   timers of b

So no record is late, and functions see the same order whatever the order of the input was. Flink sorts the input of
keyed operators in the same way, by the bytes of the key; the order between keys is not part of the contract. Broadcast
input is not gathered: it goes to the function at once, and therefore first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, Event, Watermark
from headrace.operators.base import EpochPlace, KeyOf, Operator, OperatorDeclaration, Output
from headrace.operators.context import OperatorContext
from headrace.operators.functions import key_getter
from headrace.operators.keyed import ReduceDeclaration
from headrace.operators.located import locating
from headrace.operators.window.declaration import WindowDeclaration
from headrace.operators.window.operator import WindowProcessor

_STATE = "_batch_input"

#: A record that waits: the input it came from, its timestamp, the record.
_Waiting = tuple[int, int | None, Any]


def build_for_batch(declaration: OperatorDeclaration) -> Operator:
    """Build an operator of a BATCH job: one that works on keys gets its input sorted.

    Args:
        declaration: Of an operator of a stream, with or without keys.
    """
    selectors = getattr(declaration, "key_selectors", None) or (getattr(declaration, "key_selector", None),)
    if not declaration.is_keyed or selectors == (None,):
        return declaration.build()
    if isinstance(declaration, WindowDeclaration):
        # Slices of windows are for input in any order: they know no end of a key.
        return SortedInput(WindowProcessor(declaration), selectors)
    return SortedInput(
        declaration.build(), selectors, keeps_untimed=not isinstance(declaration, ReduceDeclaration)
    )


class SortedInput(Operator):
    """Gathers the keyed input of an operator, and hands it on sorted when it has ended.

    Args:
        operator: What gets the records.
        selectors: The key selectors of its keyed inputs; an input without one is not gathered.
        keeps_untimed: Whether records without timestamps wait as well. A reduction takes them as they come: only the
            order within a key counts for it, and that is the order of arrival.
    """

    def __init__(self, operator: Operator, selectors: Sequence[Any], *, keeps_untimed: bool = True) -> None:
        self._operator = operator
        self._keys_of: list[KeyOf] = [key_getter(selector) for selector in selectors]
        self._keeps_untimed = keeps_untimed
        self._watermark = MIN_WATERMARK

    @property
    def inner(self) -> Operator:
        """What gets the records."""
        return self._operator

    def open(self, context: OperatorContext) -> None:
        self._context = context
        # What functions see of event time is the time of the current key.
        context.watermark = lambda: self._watermark
        state = context.require_keyed_state()
        self._current = state.current
        self._waiting = state.list_table(_STATE)
        self._operator.output = _WithoutEvents(self.output)
        self._operator.open(context)

    def begin_epoch(self, place: EpochPlace) -> None:
        self._operator.begin_epoch(place)

    def process(self, batch: Batch) -> None:
        if batch.timestamps is None and not self._keeps_untimed:
            self._operator.process(batch)
        else:
            self._gather(0, batch)

    def process_second(self, batch: Batch) -> None:
        if len(self._keys_of) == 1:
            self._operator.process_second(batch)  # broadcast
        else:
            self._gather(1, batch)

    def _gather(self, index: int, batch: Batch) -> None:
        times: Sequence[int | None] = batch.timestamps or [None] * len(batch)
        by_key: dict[Any, list[_Waiting]] = {}
        with locating(self._context):
            for value, timestamp in zip(batch.values, times, strict=True):
                by_key.setdefault(self._keys_of[index](value), []).append((index, timestamp, value))
        for self._current.key, waiting in by_key.items():
            self._waiting.add_all(waiting)

    def process_watermark(self, timestamp: int) -> None:
        if timestamp == MAX_WATERMARK:
            self._work_through()
            self._watermark = MAX_WATERMARK
            self.output.emit_event(Watermark(timestamp))

    def finish(self) -> None:
        self._work_through()
        self._operator.finish()

    def _work_through(self) -> None:
        for waiting in self._waiting.take_all():
            waiting.sort(key=_time_of)
            self._watermark = MIN_WATERMARK
            for index, batch in _batches(waiting):
                (self._operator.process_second if index else self._operator.process)(batch)
            self._watermark = MAX_WATERMARK
            self._operator.process_watermark(MAX_WATERMARK)
            self._operator.advance_processing_time(MAX_WATERMARK)

    def end_epoch(self) -> Sequence[Any]:
        return self._operator.end_epoch()

    def notify_checkpoint(self, checkpoint_id: int, *, is_complete: bool) -> None:
        self._operator.notify_checkpoint(checkpoint_id, is_complete=is_complete)

    def close(self) -> None:
        self._operator.close()


class _WithoutEvents:
    """Hands records on. Watermarks of single keys mean nothing to operators after."""

    def __init__(self, output: Output) -> None:
        self.emit = output.emit
        self.emit_side = output.emit_side

    def emit_event(self, event: Event) -> None:
        """Drop the event, which concerns one key only."""


def _time_of(waiting: _Waiting) -> int:
    return MIN_WATERMARK if waiting[1] is None else waiting[1]


def _batches(waiting: list[_Waiting]) -> Iterator[tuple[int, Batch]]:
    """Put neighbours from the same input together."""
    for index, run in groupby(waiting, key=lambda each: each[0]):
        records = list(run)
        times = [timestamp for _, timestamp, _ in records]
        is_timed = any(timestamp is not None for timestamp in times)
        yield index, Batch([value for _, _, value in records], times if is_timed else None)
