"""Tables whose rows Spark makes from numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from headrace.connectors import base
from headrace.connectors.datagen.columns import MOST_ROWS, GeneratedPiece, can_make
from headrace.connectors.datagen.fields import GeneratedField
from headrace.errors import JobDefinitionError


@dataclass(frozen=True)
class NumberRange(base.SourceSplit):
    """Every row whose number leaves this remainder: the share of one subtask."""

    start: int
    #: None: without end.
    end: int | None


@dataclass(frozen=True)
class RangeTableSource(base.SparkSource):
    """Rows made from numbers, the same for the same number: datagen, and sequences.

    Args:
        columns: Spark SQL over ``id`` for each column.
        count: How many rows; None: without end.
        rate_per_second: At most how many, those of the first second at once; None: as fast as the job takes them.
        fields: How workers make the same rows; nothing if they cannot.
    """

    columns: tuple[str, ...]
    count: int | None = None
    rate_per_second: float | None = None
    fields: tuple[GeneratedField, ...] = ()
    concurrent_splits = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 0:
            raise JobDefinitionError(f"the number of rows must not be negative; got {self.count}")
        if self.rate_per_second is not None and self.rate_per_second <= 0:
            raise JobDefinitionError(f"rows per second must be more than 0; got {self.rate_per_second}")

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else base.Boundedness.BOUNDED

    @property
    def is_paced(self) -> bool:
        return self.rate_per_second is not None

    def create_enumerator(
        self, parallelism: int, *, clock: Callable[[], float] = time.monotonic
    ) -> base.SplitEnumerator:
        return _NumberRanges(self, clock)

    def spark_read(self, slices: Sequence[base.Slice]) -> base.RangeRead:
        (piece,) = slices
        return base.RangeRead(piece.start, piece.end, self.columns)

    @property
    def is_at_hand(self) -> bool:
        return True

    def column_pieces(
        self,
        slices: Sequence[base.Slice],
        columns: Sequence[tuple[str, pa.DataType]],
        wanted: Collection[str],
    ) -> Sequence[GeneratedPiece] | None:
        if sum(map(self.records_in, slices)) > MOST_ROWS:
            return None
        by_name = dict(zip((name for name, _ in columns), self.fields, strict=False))
        if not all(name in by_name and can_make(by_name[name]) for name in wanted):
            return None
        all_of_it = GeneratedPiece(self.fields, tuple(columns), 0, 0, tuple(wanted))
        return [replace(all_of_it, start=piece.start, end=piece.end) for piece in slices]

    def reached(self, piece: base.Slice) -> base.SplitProgress:
        return base.SplitProgress(piece.end, is_finished=self.count is not None and piece.end >= self.count)

    def records_in(self, piece: base.Slice) -> int:
        return int(piece.end - piece.start)


class _NumberRanges(base.SplitEnumerator):
    """One split: Spark deals the numbers of an epoch out to its cores by itself."""

    def __init__(self, source: RangeTableSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._started: tuple[float, int] | None = None
        self._is_found = False

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        self._is_found = bool(splits)

    def discover(self) -> Sequence[NumberRange]:
        if self._is_found:
            return ()
        self._is_found = True
        return [NumberRange("numbers", 0, self._source.count)]

    @property
    def is_complete(self) -> bool:
        return True

    def start_position(self, split: base.SourceSplit) -> int:
        return 0

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        end = position + max_records
        if self._source.rate_per_second is not None:
            if self._started is None:
                self._started = (self._clock(), position)
            begun, first = self._started
            rate = self._source.rate_per_second
            # Flink makes the rows of a second at its beginning.
            at_once = max(1, math.floor(rate))
            end = min(end, first + math.floor((self._clock() - begun) * rate) + at_once)
        if self._source.count is not None:
            end = min(end, self._source.count)
        if end <= position and position != self._source.count:
            return None
        return base.Slice(split, position, end)

    def next_discovery_delay(self) -> float | None:
        rate = self._source.rate_per_second
        return None if rate is None else 1 / rate
