"""Footers of Parquet files that may be damaged.

pyarrow reports most damage as an exception. But where it reads the metadata of a column chunk or its statistics, an
exception of its C++ library ends the process. So the metadata is read once in a way that reports errors, before it is
used (`check_column`), and statistics, which have no such way, are read in another process (`highest_times`).
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import FormatError
from headrace.util.other_process import KilledError, run_module

#: What pyarrow raises for a footer that it cannot read; names of columns may be no UTF-8.
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
#: Microseconds of the units of time that Spark reads.
_MICROS = {"milliseconds": 1000, "microseconds": 1}
#: Bytes that say how long the footer is that follows.
_LENGTH = 8
#: Larger than any file, so that every range of bytes is within it.
_ANY_SIZE = 1 << 60

#: A TIMESTAMP column: its name, whether it holds moments (TIMESTAMP_LTZ), and the highest time in microseconds.
ColumnTime = tuple[str, bool, int | None]


class DamagedFooterError(FormatError):
    """A footer that pyarrow cannot read.

    Args:
        message: What is wrong.
        index: Which one of several.
    """

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.index)


def check_column(footer: pq.FileMetaData, group: int, column: int) -> None:
    """Make sure that the metadata of a column chunk can be used.

    Raises:
        FormatError: It is damaged.
    """
    data = _NoData()
    file = pq.ParquetFile(pa.PythonFile(data, mode="r"), metadata=footer)
    try:
        next(file.reader.iter_batches(1, row_groups=[group], column_indices=[column]), None)
    except OSError as error:
        if not data.was_read:  # it did not come to reading the column
            raise FormatError(f"the footer is damaged: {error}") from error


class _NoData(io.RawIOBase):
    """Stands for the data of a file, of which only the footer is there."""

    def __init__(self) -> None:
        self.was_read = False
        self._position = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = _ANY_SIZE if whence == os.SEEK_END else offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        self.was_read = True
        raise OSError("there is no data")


def highest_times(footers: Sequence[pq.FileMetaData]) -> list[list[ColumnTime]]:
    """Return how far the TIMESTAMP columns of files go, for each file those of which every row group says it.

    Raises:
        DamagedFooterError: A footer is damaged.
    """
    if not footers:
        return []
    request = io.BytesIO()
    for footer in footers:
        data = io.BytesIO()
        footer.write_metadata_file(data)
        request.write(len(data.getvalue()).to_bytes(_LENGTH, "big") + data.getvalue())
    try:
        answer = run_module(__name__, request.getvalue())
    except KilledError as error:
        message = f"the footer is damaged: the process reading it was killed by {error.signal}"
        raise DamagedFooterError(message, len(error.output.splitlines())) from None
    found = [json.loads(line) for line in answer.splitlines()]
    for index, each in enumerate(found):
        if isinstance(each, str):
            raise DamagedFooterError(each, index)
    return [[(name, is_local, highest) for name, is_local, highest in each] for each in found]


def _times_in(footer: pq.FileMetaData) -> Iterator[ColumnTime]:
    for index, (name, is_local, unit) in _time_columns(footer).items():
        groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        told = [group.statistics for group in groups if group.statistics is not None]
        filled = [each for each in told if each.num_values]
        if len(told) == len(groups) and all(each.has_min_max for each in filled):
            yield name, is_local, max((each.max_raw * unit for each in filled), default=None)


def _time_columns(footer: pq.FileMetaData) -> dict[int, tuple[str, bool, int]]:
    """Return the name of each column of times, whether it holds moments, and its unit in microseconds."""
    found = {}
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        kind = json.loads(column.logical_type.to_json())
        unit = _MICROS.get(kind.get("timeUnit"))
        if kind["Type"] == "Timestamp" and unit is not None and column.path == column.name:
            found[index] = column.name, kind["isAdjustedToUTC"], unit
    return found


def main() -> None:
    """Read footers from the standard input, and write a line for each: its times, or what is wrong with it."""
    footers = sys.stdin.buffer
    while length := footers.read(_LENGTH):
        data = footers.read(int.from_bytes(length, "big"))
        try:
            answer: Any = list(_times_in(pq.read_metadata(pa.BufferReader(data))))
        except UNREADABLE as error:
            answer = str(error)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
