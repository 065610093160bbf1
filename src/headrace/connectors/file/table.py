"""`FileTableSource`: the files below a path as a table that Spark's own readers read.

A split is a file, and an epoch reads whole files, as many as make the records it may have; so an epoch that runs again
reads the same. Parquet files say how many rows they have and how far their times go; of others rows are guessed by
size.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.connectors import base
from headrace.connectors.file._csv_pieces import csv_pieces, first_line_bytes
from headrace.connectors.file.source import list_files
from headrace.errors import ConnectorError
from headrace.formats.parquet_footers import UNREADABLE, ColumnTime, DamagedFooterError, highest_times
from headrace.storage.locations import Location
from headrace.storage.search import InputPath

#: Bytes that a row of text is taken to have.
_ROW_BYTES = 100
#: Bytes of a number in memory, the least that a value is taken to have.
_VALUE_BYTES = 8


@dataclass(frozen=True)
class TableFile(base.SourceSplit):
    """One file, and how many rows it has, or may have; about how many bytes they are in memory; how far times go."""

    location: Location
    rows: int
    size: int = 0
    times: tuple[base.KnownTime, ...] = ()


@dataclass(frozen=True)
class FileTableSource(base.SparkSource):
    """The rows of files.

    Args:
        path: A file, a directory or a pattern; files whose names begin with a dot or an underscore are passed over.
        format: Spark's name of the format: parquet, orc, json or csv.
        options: Of Spark's reader.
        metadata: Columns that are not in the files, by name, as Spark SQL over ``_metadata``.
        discovery_interval_s: How often to look for new files; None: those that are there when the job starts are all.
        reads_whole: Whether one epoch reads everything; for queries in BATCH mode.
        partition_keys: Columns that are in the names of directories.
        ignores_errors: Whether records that cannot be read are left out.
        has_event_time: Whether a watermark follows one of the columns, so that it helps to know how far times go.
        name_pattern: A regular expression that the paths of files must match; None: all are read.
        no_value: The directory of rows without a value in a partition column.
        has_statistics: Whether plans may depend on how large the files are.
    """

    path: InputPath
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    discovery_interval_s: float | None = None
    reads_whole: bool = False
    partition_keys: tuple[str, ...] = ()
    ignores_errors: bool = False
    has_event_time: bool = False
    name_pattern: str | None = None
    no_value: str = "__DEFAULT_PARTITION__"
    has_statistics: bool = True

    @property
    def boundedness(self) -> base.Boundedness:
        return (
            base.Boundedness.BOUNDED
            if self.discovery_interval_s is None
            else base.Boundedness.CONTINUOUS_UNBOUNDED
        )

    @property
    def concurrent_splits(self) -> int | None:  # type: ignore[override]  # it depends on how much is read
        return None if self.reads_whole else 1

    def create_enumerator(
        self, parallelism: int, *, clock: Callable[[], float] = time.monotonic
    ) -> base.SplitEnumerator:
        return _TableFiles(self, clock)

    def spark_read(self, slices: Sequence[base.Slice]) -> base.FileRead:
        paths = tuple(str(_file(piece).location) for piece in slices)
        return base.FileRead(
            self.format,
            paths,
            self.options,
            self.metadata,
            self.partition_keys,
            self.ignores_errors,
            self.no_value,
        )

    def column_pieces(
        self,
        slices: Sequence[base.Slice],
        columns: Sequence[tuple[str, pa.DataType]],
        wanted: Collection[str],
    ) -> Sequence[base.FilePiece] | None:
        if self.format != "csv" or self.ignores_errors or self.metadata or self.partition_keys:
            return None
        files = [(_file(piece).location, _file(piece).size) for piece in slices]
        return csv_pieces(files, self.options, columns, wanted)

    def reached(self, piece: base.Slice) -> base.SplitProgress:
        return base.SplitProgress(1, is_finished=True)

    def records_in(self, piece: base.Slice) -> int:
        return _file(piece).rows

    def bytes_in(self, piece: base.Slice) -> int:
        return _file(piece).size

    def row_bytes(self, slices: Sequence[base.Slice]) -> int | None:
        files = [_file(piece) for piece in slices]
        if self.knows_records:
            return sum(file.size for file in files) // max(1, sum(file.rows for file in files))
        # Text: by the first lines of the largest file.
        return first_line_bytes(max(files, key=lambda file: file.size).location) if files else 0

    def times_in(self, piece: base.Slice) -> Sequence[base.KnownTime]:
        return [time for time in _file(piece).times if time.column not in self.metadata]

    @property
    def knows_records(self) -> bool:
        return self.format == "parquet"

    @property
    def reports_statistics(self) -> bool:
        return self.has_statistics


class _TableFiles(base.SplitEnumerator):
    def __init__(self, source: FileTableSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._seen: set[str] = set()
        self._next = clock()
        self._is_complete = False

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        self._seen.update(split.split_id for split in splits)
        if splits and self._source.discovery_interval_s is None:
            self._is_complete = True  # the files that were there when the job started are all

    def discover(self) -> Sequence[TableFile]:
        if self._is_complete or self._clock() < self._next:
            return ()
        interval = self._source.discovery_interval_s
        files = list_files(self._source.path, is_static=interval is None)
        if interval is None:
            self._is_complete = True
        else:
            self._next = self._clock() + interval
        fresh = [
            file for file in files if str(file.location) not in self._seen and self._is_wanted(file.location)
        ]
        self._seen.update(str(file.location) for file in fresh)
        if self._source.format != "parquet":
            return [
                TableFile(str(file.location), file.location, max(1, file.size // _ROW_BYTES), file.size)
                for file in fresh
            ]
        return self._parquet_files([file.location for file in fresh])

    def _is_wanted(self, location: Location) -> bool:
        pattern = self._source.name_pattern
        return pattern is None or re.fullmatch(pattern, location.path) is not None

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def start_position(self, split: base.SourceSplit) -> int:
        return 0

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        return base.Slice(split, 0, 1)

    def next_discovery_delay(self) -> float | None:
        return None if self._is_complete else max(0.0, self._next - self._clock())

    def _parquet_files(self, locations: Sequence[Location]) -> list[TableFile]:
        footers = [_footer(location) for location in locations]
        times: Sequence[Sequence[ColumnTime]] = [()] * len(footers)
        if self._source.has_event_time:
            try:
                times = highest_times(footers)
            except DamagedFooterError as error:
                raise _unreadable(locations[error.index], error.message) from error
        return [_parquet_file(*each) for each in zip(locations, footers, times, strict=True)]


def _footer(location: Location) -> pq.FileMetaData:
    try:
        with location.store.open_arrow(location.path) as file:
            return pq.ParquetFile(file).metadata
    except UNREADABLE as error:
        raise _unreadable(location, str(error)) from error


def _unreadable(location: Location, why: str) -> ConnectorError:
    return ConnectorError(f"filesystem table: cannot read {location} as parquet: {why}")


def _parquet_file(location: Location, footer: pq.FileMetaData, times: Sequence[ColumnTime]) -> TableFile:
    encoded = sum(footer.row_group(index).total_byte_size for index in range(footer.num_row_groups))
    # Repeated values are stored once and read as often as they are there.
    in_memory = max(encoded, footer.num_rows * footer.num_columns * _VALUE_BYTES)
    known = tuple(base.KnownTime(*each) for each in times)
    return TableFile(str(location), location, footer.num_rows, in_memory, known)


def _file(piece: base.Slice) -> TableFile:
    assert isinstance(piece.split, TableFile)
    return piece.split
