"""The elements of a stream: runs of records, and the events that stand between them.

Everything that crosses a chain or the exchange is one of these, in stream order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

#: The watermark that says no more records will come (Flink's ``Watermark.MAX_WATERMARK``).
MAX_WATERMARK = 2**63 - 1
#: The watermark before any has been seen.
MIN_WATERMARK = -(2**63)


class Batch:
    """Records between two events: values and, when the stream has time, one timestamp each."""

    __slots__ = ("timestamps", "values")

    def __init__(self, values: list[Any], timestamps: list[int | None] | None = None) -> None:
        self.values = values
        #: Event timestamps in ms, as many as values; None when no record of the batch has one.
        self.timestamps = timestamps

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Batch({self.values!r}, {self.timestamps!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self.values == other.values and self.timestamps == other.timestamps

    __hash__ = None  # type: ignore[assignment]  # a mutable carrier, never a key


def part_of(batch: Batch, start: int, end: int) -> Batch:
    """Return some of a batch's records, as a batch of rows."""
    return Batch(batch.values[start:end], None if batch.timestamps is None else batch.timestamps[start:end])


class Columns(Protocol):
    """Rows that are still columns."""

    def __len__(self) -> int:
        """How many rows there are."""

    def rows(self) -> list[Any]:
        """Convert the columns to a list of rows."""

    def select(self, indexes: Sequence[int]) -> Columns:
        """Keep some of the columns, in this order."""


class ColumnBatch(Batch):
    """A batch of columns. Records are only made when they are accessed, so a projection need not make them."""

    __slots__ = ("_rows", "columns")

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._rows: list[Any] | None = None
        self.timestamps = None

    @property
    def values(self) -> list[Any]:  # type: ignore[override]
        """The records as rows, converted on first use."""
        if self._rows is None:
            self._rows = self.columns.rows()
        return self._rows

    @property
    def is_untouched(self) -> bool:
        """Whether the records were not accessed, so that no function can have changed them."""
        return self._rows is None

    def __len__(self) -> int:
        return len(self.columns)


class TableRows(Batch):
    """Rows on their way between a stream and a table: bytes that only the two ends of the border look into."""

    __slots__ = ("_count", "payload")

    def __init__(self, payload: bytes | memoryview, count: int) -> None:
        super().__init__([])
        self.payload = payload
        self._count = count

    def __len__(self) -> int:
        return self._count


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with a timestamp at or before this one is expected any more."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """Whether a channel takes part in the watermark (active) or is left out of the minimum (idle)."""

    active: bool


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """The channel will carry nothing more, ever: Flink's EndOfData."""


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Sent by a source to be timed on its way; operators do not see it, and records are not held up by it."""

    #: When the epoch was planned in which it left, ms since the Unix epoch.
    marked_ms: int
    source_id: str
    source_subtask: int


Event = Watermark | StreamStatus | LatencyMarker | EndOfInput
Element = Batch | Event
