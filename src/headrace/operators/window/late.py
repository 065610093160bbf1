"""Records that arrive after their windows are gone: counted, or emitted to a side output."""

from __future__ import annotations

from typing import Any

from headrace.elements import Batch
from headrace.operators.base import Output
from headrace.operators.context import OperatorContext

#: Flink's name for the count.
LATE_DROPPED = "numLateRecordsDropped"


class LateRecords:
    """The late records of a window operator."""

    def __init__(self, tag_id: str | None, output: Output, context: OperatorContext) -> None:
        self._tag_id = tag_id
        self._output = output
        self._dropped = context.metrics.counter(LATE_DROPPED)
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []

    def take(self, value: Any, timestamp: int | None) -> None:
        """Take a late record."""
        if self._tag_id is None:
            self._dropped.inc()
        else:
            self._values.append(value)
            self._timestamps.append(timestamp)

    def flush(self) -> None:
        """Hand on what was taken."""
        if self._values and self._tag_id is not None:
            batch = Batch(self._values, self._timestamps)
            self._values, self._timestamps = [], []
            self._output.emit_side(self._tag_id, batch)
