"""The lines of text files, in the worker.

A line belongs to the byte range it starts in. Of files that have to be read from their beginning, because they are
packed or in a charset whose newlines cannot be found byte by byte, positions count lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, cast

from headrace.common.serialization import DeserializationSchema
from headrace.connectors.base import BATCH_RECORDS, ReaderContext, Slice, SourceReader, SplitProgress
from headrace.connectors.file import _lines
from headrace.connectors.file._splits import FileSplit, changed, open_split, reading, see_that_it_is_unchanged
from headrace.elements import Batch
from headrace.formats.dead_letter import ERRORS_METRIC, DeadLetter, RecordDecoder


class LineReader(SourceReader):
    """Reads the lines of file splits."""

    def __init__(self, charset: str, block_bytes: int = _lines.BLOCK_BYTES) -> None:
        self._charset = charset
        self._block_bytes = block_bytes
        self._position = 0
        self._is_finished = False

    def read(self, piece: Slice) -> Iterator[Batch]:
        """Yield the lines of a slice."""
        split = cast(FileSplit, piece.split)
        self._position = piece.start
        self._is_finished = False
        lines = self._read_counted(split, piece) if split.by_record else self._read_range(split, piece)
        with reading(split, lambda: _name(split, self._position)):
            see_that_it_is_unchanged(split, _name(split, piece.start))
            for position, found in lines:
                yield from self._batches(split, position, found)

    def _lines_of(self, data: bytes, charset: str) -> Sequence[Any]:
        """Cut a block into its lines."""
        return _lines.decode_lines(data, charset)

    def _batches(self, split: FileSplit, position: int, lines: Sequence[Any]) -> Iterator[Batch]:
        """Make records of lines, of which the first has this position."""
        for first in range(0, len(lines), BATCH_RECORDS):
            yield Batch(list(lines[first : first + BATCH_RECORDS]))

    def progress(self) -> SplitProgress:
        """Say where the slice ended."""
        return SplitProgress(self._position, self._is_finished)

    def _read_range(self, split: FileSplit, piece: Slice) -> Iterator[tuple[int, Sequence[Any]]]:
        """Read lines that start before the end of the range; the position is a byte."""
        end = split.start + split.length
        wanted = piece.max_records
        with closing(open_split(split)) as file:
            position = _lines.first_line_start(file, piece.start, end, self._block_bytes)
            pieces = _lines.lines_before(file, position, end, self._block_bytes)
            while position < end and wanted != 0:
                data = next(pieces, b"")
                if not data:
                    raise changed(split, _name(split, position))
                if wanted is not None:
                    data = _lines.first_lines(data, wanted)
                found = self._lines_of(data, self._charset)
                position += len(data)
                if wanted is not None:
                    wanted -= len(found)
                yield position - len(data), found
                self._position = position
        self._position = position
        self._is_finished = position >= end

    def _read_counted(self, split: FileSplit, piece: Slice) -> Iterator[tuple[int, Sequence[Any]]]:
        """Read lines of a file that has to be read from its beginning; the position is a number of lines."""
        skip: int = piece.start
        wanted = piece.max_records
        charset = self._charset
        with closing(open_split(split)) as stream:
            blocks = _lines.blocks_of(stream, self._block_bytes)
            if not _lines.has_byte_newline(charset):
                blocks, charset = _lines.as_utf8(blocks, charset), "utf-8"
            for data in _lines.whole_lines(blocks):
                count = _lines.count_lines(data)
                if count <= skip:
                    skip -= count
                    continue
                if wanted == 0:
                    return
                rest = data.split(b"\n", skip)[-1]
                taken = rest if wanted is None else _lines.first_lines(rest, wanted)
                found = self._lines_of(taken, charset)
                skip = 0
                if wanted is not None:
                    wanted -= len(found)
                yield self._position, found
                self._position += len(found)
                if len(taken) < len(rest):
                    return
        self._is_finished = True


class SchemaLineReader(LineReader):
    """Reads each line with a format of records: JSON, CSV, raw, ...

    Args:
        schema: The format.
        dead_letters: The side output for lines that cannot be read; None if there is none.
    """

    def __init__(
        self,
        schema: DeserializationSchema,
        dead_letters: str | None = None,
        block_bytes: int = _lines.BLOCK_BYTES,
    ) -> None:
        super().__init__("utf-8", block_bytes)
        self._schema = schema
        self._dead_letters = dead_letters
        self.open(ReaderContext())

    def open(self, context: ReaderContext) -> None:
        """Take the metrics and side outputs of the source."""
        self._decoder = record_decoder(self._schema, self._dead_letters, context)

    def _lines_of(self, data: bytes, charset: str) -> Sequence[bytes]:
        return _lines.split_lines(data)

    def _batches(self, split: FileSplit, position: int, lines: Sequence[Any]) -> Iterator[Batch]:
        def place(first: int, further: int) -> str:
            index = first + further
            before = index if split.by_record else sum(len(line) + 1 for line in lines[:index])
            return f"{split.location}, {_name(split, position + before)}"

        for first in range(0, len(lines), BATCH_RECORDS):
            some = [line.removesuffix(b"\r") or None for line in lines[first : first + BATCH_RECORDS]]
            batch = self._decoder.decode(some, position_of=partial(place, first))
            if batch:
                yield batch


def record_decoder(
    schema: DeserializationSchema, dead_letters: str | None, context: ReaderContext
) -> RecordDecoder:
    """Make what decodes the records of a source, and deals with those that cannot be read."""

    def emit(letter: DeadLetter) -> None:
        assert dead_letters is not None
        context.emit_side(dead_letters, letter)

    errors = context.metrics.counter(ERRORS_METRIC)
    return RecordDecoder(schema, errors=errors, emit_dead_letter=None if dead_letters is None else emit)


def _name(split: FileSplit, position: int) -> str:
    return f"{'line' if split.by_record else 'byte'} {position}"
