"""The lines of text files, in the worker.

A line belongs to the byte range it starts in. Of files that have to be read from their beginning, because they are
packed or in a charset whose newlines cannot be found byte by byte, positions count lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import cast

from headrace.connectors.base import BATCH_RECORDS, Slice, SourceReader, SplitProgress
from headrace.connectors.file import _lines
from headrace.connectors.file._splits import FileSplit, changed, reading, see_that_it_is_unchanged
from headrace.elements import Batch


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
            for found in lines:
                for first in range(0, len(found), BATCH_RECORDS):
                    yield Batch(found[first : first + BATCH_RECORDS])

    def progress(self) -> SplitProgress:
        """Say where the slice ended."""
        return SplitProgress(self._position, self._is_finished)

    def _read_range(self, split: FileSplit, piece: Slice) -> Iterator[list[str]]:
        """Read lines that start before the end of the range; the position is a byte."""
        end = split.start + split.length
        wanted = piece.max_records
        with closing(split.location.file_system.open_input_file(split.location.path)) as file:
            position = _lines.first_line_start(file, piece.start, end, self._block_bytes)
            file.seek(position)
            pieces = _lines.whole_lines(_lines.blocks_of(file, self._block_bytes))
            while position < end and wanted != 0:
                data = next(pieces, b"")
                if not data:
                    raise changed(split, _name(split, position))
                if position + len(data) > end:
                    # The last line of ours is the one that holds the last byte of the range.
                    data = data[: data.find(b"\n", end - 1 - position) + 1] or data
                if wanted is not None:
                    data = _lines.first_lines(data, wanted)
                found = _lines.decode_lines(data, self._charset)
                position += len(data)
                if wanted is not None:
                    wanted -= len(found)
                self._position = position
                yield found
        self._position = position
        self._is_finished = position >= end

    def _read_counted(self, split: FileSplit, piece: Slice) -> Iterator[list[str]]:
        """Read lines of a file that has to be read from its beginning; the position is a number of lines."""
        skip: int = piece.start
        wanted = piece.max_records
        charset = self._charset
        with closing(
            split.location.file_system.open_input_stream(split.location.path, compression=split.compression)
        ) as stream:
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
                found = _lines.decode_lines(taken, charset)
                skip = 0
                self._position += len(found)
                if wanted is not None:
                    wanted -= len(found)
                yield found
                if len(taken) < len(rest):
                    return
        self._is_finished = True


def _name(split: FileSplit, position: int) -> str:
    return f"{'line' if split.by_record else 'byte'} {position}"
