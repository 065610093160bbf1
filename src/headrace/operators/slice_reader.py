"""SliceReader: reads what epochs plan of a source, for one subtask.

    open() -> begin_epoch() -> read(slice) ... read(slice) -> begin_epoch() -> ... -> close()
                                  |                 |
                               batches           progress, records

It owns the connector's reader: lends it the operator's metrics, side outputs and attempt, limits how many records an
epoch reads, notes how far each split was read, and says in which operator and subtask the connector failed. What
becomes of the records is up to its user: a stream's source operator gives them time, a table's scan makes columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from headrace.connectors.base import ReaderContext, Slice, Source, SplitProgress
from headrace.elements import Batch
from headrace.metrics.metricbase import MetricGroup
from headrace.operators.base import Output
from headrace.operators.context import OperatorContext
from headrace.operators.located import locating


class SliceReader:
    """Opens the reader of a source.

    Args:
        source: What is read.
        context: The operator's, whose metrics the reader counts in.
        output: Takes records of side outputs; None if there are none, as after tables.

    Raises:
        UserFunctionError: If the reader cannot be opened.
    """

    def __init__(self, source: Source, context: OperatorContext, output: Output | None = None) -> None:
        self._context = context
        #: Where each split stands that was read in this epoch.
        self.progress: dict[str, SplitProgress] = {}
        #: Records that were read in this epoch.
        self.records = 0
        self._max_records: int | None = None
        with locating(context):
            self._reader = source.create_reader()
            self._reader.open(_LentContext(context, output))

    def begin_epoch(self, max_records: int | None = None) -> None:
        """Start counting, and read at most so many records from here on."""
        self.progress = {}
        self.records = 0
        self._max_records = max_records

    @property
    def has_room(self) -> bool:
        """Whether the epoch may have more records."""
        return self._max_records is None or self.records < self._max_records

    def read(self, piece: Slice) -> Iterator[Batch]:
        """Read a slice, or as much of it as the epoch has room for."""
        with locating(self._context):
            for batch in self._reader.read(self._capped(piece)):
                self.records += len(batch)
                yield batch
            self.progress[piece.split.split_id] = self._reader.progress()

    def close(self) -> None:
        """Close the connector's reader."""
        self._reader.close()

    def _capped(self, piece: Slice) -> Slice:
        if self._max_records is None:
            return piece
        room = self._max_records - self.records
        if piece.max_records is not None and piece.max_records <= room:
            return piece
        return replace(piece, max_records=room)


class _LentContext(ReaderContext):
    """The operator's context, as far as a connector may see it."""

    def __init__(self, context: OperatorContext, output: Output | None) -> None:
        self._context = context
        self._output = output

    @property
    def metrics(self) -> MetricGroup:
        return self._context.metrics

    @property
    def attempt(self) -> int:
        return self._context.attempt

    def emit_side(self, tag_id: str, value: Any) -> None:
        if self._output is not None:
            self._output.emit_side(tag_id, Batch([value]))
