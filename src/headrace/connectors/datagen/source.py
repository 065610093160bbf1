"""A source of generated records: a function from an index to a record, bounded or endless, as fast as allowed.

The record is a function of its index, so a slice that is read again holds the same records. Subtasks take
turns in the indexes (0, p, 2p, …; 1, p+1, …), so that time derived from an index advances alike in all of
them. Flink's `DataGeneratorSource` gives each subtask a contiguous range instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any, cast

from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import JobDefinitionError, UserFunctionError
from headrace.util import clock

if TYPE_CHECKING:
    from headrace.common.typeinfo import TypeInformation


@dataclass(frozen=True)
class DataGeneratorSource(base.Source):
    """Makes records by calling a function with 0, 1, 2 and so on.

    Args:
        generator_function: Takes an index and returns the record. It must return the same record for the same
            index: after a failure it is asked again. Seed randomness with the index. If it has a method `at`, that
            is called with the time for which records are planned, in ms, and returns such a function. If it has a
            method `batch`, that is called with a range of indexes and returns a `Batch`.
        count: How many records to make over all subtasks; None means without end.
        rate_per_second: At most how many records a second over all subtasks; None means as fast as the job
            takes them. A job that has fallen behind catches up: record k is due k / rate seconds after
            the first was asked for.
        type_info: The type of the records, for those who build the stream.

    Raises:
        JobDefinitionError: An argument is out of its range.

    Example:
        >>> source = DataGeneratorSource(lambda index: f"record-{index}", count=1000, rate_per_second=50)
        >>> source.boundedness
        <Boundedness.BOUNDED: 'BOUNDED'>
    """

    generator_function: Callable[[int], Any]
    count: int | None
    rate_per_second: float | None = None
    type_info: TypeInformation | None = None

    # Endless splits do not finish and make room: all that a subtask has are read side by side.
    concurrent_splits = None
    plans_anywhere = True

    def __post_init__(self) -> None:
        if not callable(self.generator_function):
            raise JobDefinitionError(
                f"DataGeneratorSource: generator_function must be callable; got {self.generator_function!r}"
            )
        if self.count is not None and self.count < 0:
            raise JobDefinitionError(f"DataGeneratorSource: count must not be negative; got {self.count}")
        rate = self.rate_per_second
        if rate is not None and not 0 < rate < math.inf:
            raise JobDefinitionError(
                f"DataGeneratorSource: rate_per_second must be greater than 0; got {rate}",
                hint="leave it out to generate records as fast as possible",
            )

    @property
    def boundedness(self) -> base.Boundedness:
        """Bounded by `count`, if there is one."""
        return base.Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else base.Boundedness.BOUNDED

    def create_enumerator(
        self, parallelism: int, *, clock: Callable[[], float] = time.monotonic
    ) -> base.SplitEnumerator:
        """Make the driver's half. The clock, in seconds, is what the rate is measured with."""
        is_timed = hasattr(self.generator_function, "at")
        return _GeneratorEnumerator(self.count, self.rate_per_second, parallelism, clock, is_timed=is_timed)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _GeneratorReader(self.generator_function)


@dataclass(frozen=True)
class _StrideSplit(base.SourceSplit):
    """Indexes `first`, `first + stride`, …; a position counts them."""

    first: int
    stride: int
    #: How many there are; None means without end.
    length: int | None


def _length(first: int, count: int | None, stride: int) -> int | None:
    return None if count is None else len(range(first, count, stride))


class _GeneratorEnumerator(base.KnownSplits):
    def __init__(
        self,
        count: int | None,
        rate: float | None,
        parallelism: int,
        clock: Callable[[], float],
        *,
        is_timed: bool,
    ) -> None:
        #: Whether records depend on the time, too.
        self._is_timed = is_timed
        super().__init__(
            _StrideSplit(f"{first}+{parallelism}n", first, parallelism, _length(first, count, parallelism))
            for first in range(parallelism if count is None else min(parallelism, count))
        )
        self._rate = rate
        self._clock = clock
        #: When records were first asked for: starting Spark takes seconds, which are not to be caught up with.
        self._started: float | None = None
        #: Where each split stood when it was first planned; the rate counts from there.
        self._origins: dict[str, int] = {}
        #: When each split that had to wait has its next record due, in seconds of the clock.
        self._due: dict[str, float] = {}

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        if splits:
            self._new = []

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        part = cast(_StrideSplit, split)
        end = position + max_records
        if part.length is not None:
            end = min(end, part.length)
        if self._rate is not None and end > position:
            end = min(end, self._allowed(part, position, self._rate))
            if end <= position:
                return None
        # The time is that of the plan: the same if the slice is read again.
        return base.Slice(split, position, end, payload=clock.now_ms() if self._is_timed else None)

    def _allowed(self, split: _StrideSplit, position: int, rate: float) -> int:
        """Return the position up to which records are due by now, and note when the next one is."""
        # A restart under another parallelism keeps splits and strides, hence the sum of the splits' rates.
        own_rate = rate / split.stride
        now = self._clock()
        if self._started is None:
            self._started = now
        origin = self._origins.setdefault(split.split_id, position)
        allowed = origin + math.floor((now - self._started) * own_rate)
        if allowed > position:
            self._due.pop(split.split_id, None)
        else:
            self._due[split.split_id] = self._started + (position + 1 - origin) / own_rate
        return allowed

    def next_discovery_delay(self) -> float | None:
        if not self._due:
            return None
        return max(0.0, min(self._due.values()) - self._clock())


class _GeneratorReader(base.SourceReader):
    def __init__(self, function: Callable[[int], Any]) -> None:
        self._given = self._function = function
        self._progress = base.SplitProgress(0, is_finished=False)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        split = cast(_StrideSplit, piece.split)
        at = getattr(self._given, "at", None)
        self._function = self._given if at is None else at(piece.payload)
        for start in range(piece.start, piece.end, base.BATCH_RECORDS):
            end = min(start + base.BATCH_RECORDS, piece.end)
            first, after = (split.first + position * split.stride for position in (start, end))
            yield self._generate(range(first, after, split.stride))
        self._progress = base.SplitProgress(piece.end, split.length is not None and piece.end >= split.length)

    def _generate(self, indexes: range) -> Batch:
        function = self._function
        many = getattr(function, "batch", None)
        if many is not None:
            made: Batch = many(indexes)
            return made
        remaining = iter(indexes)
        try:
            return Batch([function(index) for index in remaining])
        except Exception as error:
            index = indexes[-length_hint(remaining) - 1]
            raise UserFunctionError.from_exception(error, record=index) from error

    def progress(self) -> base.SplitProgress:
        return self._progress
