"""Ranges of CSV files that workers read into columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa

from headrace.connectors import base
from headrace.connectors.file._lines import first_line_start, lines_before
from headrace.errors import FormatError
from headrace.formats.plain_csv import NotPlainError, PlainCsv
from headrace.storage.locations import Location

#: Bytes that one task reads, at most. Large enough that starting it does not count, small enough to share the work.
_PIECE_BYTES = 24 << 20
#: Bytes that become one batch of rows.
_BLOCK_BYTES = 4 << 20
#: Bytes at the beginning of a file that are looked at before anybody tries to read it.
_FIRST_BYTES = 1 << 16
#: Names of files that are packed end like this.
_PACKED = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".lzo", ".zst", ".zlib", ".xz", ".br")


@dataclass(frozen=True)
class CsvPiece(base.FilePiece):
    """The lines that begin in a range of a file."""

    location: Location
    start: int
    end: int
    layout: PlainCsv

    def read(self) -> Iterator[pa.Table]:
        try:
            with self.location.store.open(self.location.path) as file:
                first = first_line_start(file, self.start, self.end)
                for data in lines_before(file, first, self.end, _BLOCK_BYTES):
                    table = self.layout.read(data)
                    if table is not None:
                        yield table
        except (OSError, NotPlainError) as error:
            raise FormatError(f"{self.location}: {error}") from error

    def only(self, names: Collection[str]) -> CsvPiece:
        wanted = tuple(each for each in self.layout.wanted if each[0] in names) or self.layout.wanted[:1]
        return replace(self, layout=replace(self.layout, wanted=wanted))


def csv_pieces(
    files: Sequence[tuple[Location, int]],
    options: Mapping[str, str],
    columns: Sequence[tuple[str, pa.DataType]],
    wanted: Collection[str],
) -> list[CsvPiece] | None:
    """Cut files into pieces that workers read; None if Spark should read them.

    Args:
        files: Files and their sizes.
        options: Of Spark's reader.
        columns: The columns of a line.
        wanted: Names of those to read.
    """
    layout = PlainCsv.of(options, columns, wanted)
    if layout is None or not all(_looks_plain(location, layout) for location, _ in files):
        return None
    return [
        CsvPiece(location, start, end, layout)
        for location, size in files
        for start, end in pairwise(_borders(size))
    ]


def _borders(size: int) -> list[int]:
    """Return where a file is cut: into pieces of the same size, so that no task ends long after the others."""
    count = -(-size // _PIECE_BYTES)
    return [size * number // count for number in range(count + 1)] if count else []


def first_line_bytes(location: Location) -> int | None:
    """Return how many bytes the first lines of a file have on average; None if that cannot be seen."""
    if location.path.endswith(_PACKED):
        return None
    try:
        with location.store.open(location.path) as file:
            data = file.read(_FIRST_BYTES)
    except OSError:
        return None
    return len(data) // max(1, data.count(b"\n"))


def _looks_plain(location: Location, layout: PlainCsv) -> bool:
    if location.path.endswith(_PACKED):
        return False
    try:
        with location.store.open(location.path) as file:
            return layout.is_plain(file.read(_FIRST_BYTES))
    except OSError:
        return False
