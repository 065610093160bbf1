"""`FileTableSource`: the files below a path as a table that Spark's own readers read.

A split is a file, and an epoch reads whole files, as many as make the records it may have; so an epoch that runs again
reads the same. Parquet files say how many rows they have and how far their times go; of others rows are guessed by
size.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.parquet as pq
from pyarrow import ArrowInvalid

from headrace.connectors import base
from headrace.connectors.file.source import list_files
from headrace.errors import ConnectorError
from headrace.storage.locations import Location
from headrace.storage.search import InputPath

#: Bytes that a row of text is taken to have.
_ROW_BYTES = 100
#: Microseconds of the units of time that Spark reads.
_MICROS = {"milliseconds": 1000, "microseconds": 1}
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
        format: Spark's name of the format: parquet, json or csv.
        options: Of Spark's reader.
        metadata: Columns that are not in the files, by name, as Spark SQL over ``_metadata``.
        discovery_interval_s: How often to look for new files; None: those that are there when the job starts are all.
        reads_whole: Whether one epoch reads everything; for queries in BATCH mode.
        partition_keys: Columns that are in the names of directories.
        ignores_errors: Whether records that cannot be read are left out.
    """

    path: InputPath
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    discovery_interval_s: float | None = None
    reads_whole: bool = False
    partition_keys: tuple[str, ...] = ()
    ignores_errors: bool = False

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
            self.format, paths, self.options, self.metadata, self.partition_keys, self.ignores_errors
        )

    def reached(self, piece: base.Slice) -> base.SplitProgress:
        return base.SplitProgress(1, is_finished=True)

    def records_in(self, piece: base.Slice) -> int:
        return _file(piece).rows

    def bytes_in(self, piece: base.Slice) -> int:
        return _file(piece).size

    def times_in(self, piece: base.Slice) -> Sequence[base.KnownTime]:
        return [time for time in _file(piece).times if time.column not in self.metadata]

    @property
    def knows_records(self) -> bool:
        return self.format == "parquet"


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
        fresh = [file for file in files if str(file.location) not in self._seen]
        self._seen.update(str(file.location) for file in fresh)
        return [self._table_file(file.location, file.size) for file in fresh]

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    def start_position(self, split: base.SourceSplit) -> int:
        return 0

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice | None:
        return base.Slice(split, 0, 1)

    def next_discovery_delay(self) -> float | None:
        return None if self._is_complete else max(0.0, self._next - self._clock())

    def _table_file(self, location: Location, size: int) -> TableFile:
        name = str(location)
        if self._source.format != "parquet":
            return TableFile(name, location, max(1, size // _ROW_BYTES), size)
        try:
            with location.store.open_arrow(location.path) as file:
                footer = pq.ParquetFile(file).metadata
        except (ArrowInvalid, OSError) as error:
            raise ConnectorError(f"filesystem table: cannot read {location} as parquet: {error}") from error
        encoded = sum(footer.row_group(index).total_byte_size for index in range(footer.num_row_groups))
        # Repeated values are stored once and read as often as they are there.
        in_memory = max(encoded, footer.num_rows * footer.num_columns * _VALUE_BYTES)
        return TableFile(name, location, footer.num_rows, in_memory, tuple(_times(footer)))


def _times(footer: pq.FileMetaData) -> Iterator[base.KnownTime]:
    """Yield how far the times of a Parquet file go, by what its footer says of every row group."""
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        kind = json.loads(column.logical_type.to_json())
        unit = _MICROS.get(kind.get("timeUnit"))
        if kind["Type"] != "Timestamp" or unit is None or column.path != column.name:
            continue
        groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        told = [group.statistics for group in groups if group.statistics is not None]
        filled = [each for each in told if each.num_values]
        if len(told) == len(groups) and all(each.has_min_max for each in filled):
            highest = max((each.max_raw * unit for each in filled), default=None)
            yield base.KnownTime(column.name, kind["isAdjustedToUTC"], highest)


def _file(piece: base.Slice) -> TableFile:
    assert isinstance(piece.split, TableFile)
    return piece.split
