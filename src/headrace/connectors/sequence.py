"""A source of numbers: `NumberSequenceSource(1, 100)`, for tests, examples and benchmarks.

The range is cut as Flink's `NumberSequenceIterator.split` does it: one contiguous part a subtask, the first
parts one longer where it does not come out even.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from headrace.common.typeinfo import TypeInformation, Types
from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import JobDefinitionError


@dataclass(frozen=True)
class NumberSequenceSource(base.Source):
    """Reads the numbers from `start` to `end`, both included, in as many splits as there are subtasks.

    Args:
        start: The first number.
        end: The last number.

    Raises:
        JobDefinitionError: A bound is not an integer, or they are the wrong way round.

    Example:
        >>> NumberSequenceSource(1, 100)
        NumberSequenceSource(start=1, end=100)
    """

    start: int
    end: int
    plans_anywhere = True

    def __post_init__(self) -> None:
        for name, bound in (("start", self.start), ("end", self.end)):
            if type(bound) is not int:
                raise JobDefinitionError(f"NumberSequenceSource: {name} must be an int; got {bound!r}")
        if self.start > self.end:
            raise JobDefinitionError(
                f"NumberSequenceSource: start must not be greater than end; got {self.start} and {self.end}",
                hint="the end is included: NumberSequenceSource(1, 1) has one number",
            )

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half."""
        return _SequenceEnumerator(_cut(self.start, self.end, parallelism))

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _SequenceReader()

    def get_produced_type(self) -> TypeInformation:
        return Types.LONG()


@dataclass(frozen=True)
class _RangeSplit(base.SourceSplit):
    first: int
    #: The first number that is no more part of the split.
    stop: int


def _cut(start: int, end: int, parts: int) -> list[_RangeSplit]:
    size, longer = divmod(end - start + 1, parts)
    splits = []
    first = start
    for number in range(parts):
        stop = first + size + (number < longer)
        if stop > first:
            # The bounds are in the id: it means the same range under another parallelism.
            splits.append(_RangeSplit(f"{first}..{stop - 1}", first, stop))
        first = stop
    return splits


class _SequenceEnumerator(base.KnownSplits):
    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        if splits:
            self._new = []

    def start_position(self, split: base.SourceSplit) -> int:
        return cast(_RangeSplit, split).first

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice:
        return base.Slice(split, position, min(position + max_records, cast(_RangeSplit, split).stop))


class _SequenceReader(base.SourceReader):
    def __init__(self) -> None:
        self._progress = base.SplitProgress(None, is_finished=False)

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        stop = cast(_RangeSplit, piece.split).stop
        end = stop if piece.end is None else piece.end
        for first in range(piece.start, end, base.BATCH_RECORDS):
            yield Batch(list(range(first, min(first + base.BATCH_RECORDS, end))))
        position = max(piece.start, end)
        self._progress = base.SplitProgress(position, position >= stop)

    def progress(self) -> base.SplitProgress:
        return self._progress
