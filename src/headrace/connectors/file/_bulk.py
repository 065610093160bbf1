"""Files that are read by blocks of records, such as the row groups of Parquet.

    file    | block | block | block | footer |          a split is a byte range: the blocks that begin in it
    split   [ 0 ......... )[ 1 .........     )
    position              number of records of the split read so far

Blocks before the position are skipped without being decoded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.connectors.base import BATCH_RECORDS, ReaderContext, Slice, SourceReader, SplitProgress
from headrace.connectors.file._formats import FileFormat
from headrace.connectors.file._splits import FileSplit, open_split, reading, see_that_it_is_unchanged
from headrace.elements import Batch, ColumnBatch
from headrace.formats.columns import ArrowRows

#: What blocks hold: a list, or rows that are still columns.
Values = list[Any] | ArrowRows


class RecordBlock(Protocol):
    """Values that are decoded together; each is a record, or becomes one."""

    def skip(self, count: int) -> int:
        """Leave out this many values, or all of them; returns how many it were."""

    def batches(self) -> Iterator[Values]:
        """Decode what was not left out, in pieces of a few thousand at most."""


class BulkFormat(FileFormat):
    """A format that is read by blocks of records."""

    counts_records = True
    #: Whether blocks can be found from any byte on, so that a file can be read in several places at once.
    is_splittable = False

    def can_split(self, compression: str | None) -> bool:
        """Whether blocks can be found from any byte on."""
        return self.is_splittable

    def create_reader(self) -> SourceReader:
        """Make what reads the blocks in a worker."""
        return BulkReader(self)

    def opened(self, context: ReaderContext) -> BulkFormat:
        """Return the format as a reader uses it, with what the engine lends."""
        return self

    def for_split(self, split: FileSplit) -> BulkFormat:
        """Return the format as it reads one split; the place of a file may be a part of its records."""
        return self

    def records_of(self, values: Values, place: Callable[[int], str]) -> Values:
        """Make records of what blocks hold; some may be left out, for they cannot be read.

        Args:
            values: Some that stand next to each other.
            place: Says where the one of an index was found.
        """
        return values

    @abstractmethod
    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Find the blocks that begin in a range of bytes, in order.

        Args:
            file: The open file; can seek.
            start: The first byte; 0 if the format is not splittable.
            end: After the last byte.
        """


@dataclass
class _Reading:
    """A split that is being read: where the next record comes from."""

    split: FileSplit
    position: int
    batches: Iterator[Values]
    #: Decoded but not passed on.
    rest: Values

    def place(self, index: int) -> str:
        """Name the record of an index from here."""
        return f"{self.split.location}, {_name(self.split, self.position + index)}"


class BulkReader(SourceReader):
    """Reads splits of a bulk format.

    A split stays open when its slice has ended: if the next one continues from there, no block is decoded twice.
    """

    def __init__(self, bulk_format: BulkFormat) -> None:
        self._format = bulk_format
        self._reading: _Reading | None = None
        self._progress = SplitProgress(0, is_finished=False)

    def open(self, context: ReaderContext) -> None:
        """Take the metrics and side outputs of the source."""
        self._format = self._format.opened(context)

    def read(self, piece: Slice) -> Iterator[Batch]:
        """Yield the records of a slice."""
        here = self._take(piece)
        wanted = piece.max_records
        with reading(here.split, lambda: _name(here.split, here.position)):
            while wanted is None or wanted > 0:
                values: Values | None = here.rest or next(here.batches, None)
                if values is None:
                    self._progress = SplitProgress(here.position, is_finished=True)
                    return
                most = BATCH_RECORDS if wanted is None else min(wanted, BATCH_RECORDS)
                here.rest = values[most:]
                values = values[:most]
                records = self._format.records_of(values, here.place)
                here.position += len(values)
                if wanted is not None:
                    wanted -= len(values)
                if records:
                    yield ColumnBatch(records) if isinstance(records, ArrowRows) else Batch(records)
        self._reading = here
        self._progress = SplitProgress(here.position, is_finished=False)

    def progress(self) -> SplitProgress:
        """Say where the slice ended."""
        return self._progress

    def close(self) -> None:
        self._reading = None

    def _take(self, piece: Slice) -> _Reading:
        split = piece.split
        assert isinstance(split, FileSplit)
        kept, self._reading = self._reading, None
        see_that_it_is_unchanged(split, _name(split, piece.start))
        if kept is not None and (kept.split, kept.position) == (split, piece.start):
            return kept
        return _Reading(split, piece.start, self._decoded(split, piece.start), [])

    def _decoded(self, split: FileSplit, skip: int) -> Iterator[Values]:
        with open_split(split) as file:
            blocks = self._format.for_split(split).blocks(file, split.start, split.start + split.length)
            for block in blocks:
                skip -= block.skip(skip)
                if not skip:
                    yield from block.batches()


def _name(split: FileSplit, position: int) -> str:
    """Name a record; in a part of a file it is counted from where the part begins."""
    return f"record {position}" + (f" from byte {split.start} on" if split.start else "")
