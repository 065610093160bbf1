"""Parquet files: read by row group, only the columns that are asked for; written as a row group an epoch or more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.common.serialization import RowDataBulkWriterFactory
from headrace.config.table_options import TableOptions
from headrace.connectors.base import BATCH_RECORDS
from headrace.connectors.file._bulk import RecordBlock
from headrace.connectors.file._column_writer import ColumnWriter
from headrace.connectors.file._damaged_files import CarefulFormat
from headrace.connectors.file._parquet_layout import ParquetLayout, parquet_layout
from headrace.errors import JobDefinitionError, UnsupportedFeatureError
from headrace.formats.columns import ArrowRows, RowColumns, check_row_type
from headrace.formats.parquet_footers import check_column
from headrace.formats.tables import SparkReader
from headrace.types import RowType

#: Rows of a row group at most: what Parquet writers commonly have.
ROW_GROUP_ROWS = 1 << 20


class ParquetFiles(CarefulFormat):
    """Files of row groups, whatever is made of their rows."""

    is_splittable = True
    _name = "Parquet"
    _reading_program = """
import sys
from pyarrow import BufferReader, parquet
for _ in parquet.ParquetFile(BufferReader(sys.stdin.buffer.read())).iter_batches():
    pass
"""

    def _row_groups(self, file: Any, start: int, end: int) -> Iterator[tuple[pq.ParquetFile, int]]:
        """Find the row groups that begin in a range of bytes, each with the file that it is in."""
        self._see_that_it_is_readable(file)
        parquet = pq.ParquetFile(file)
        for index in range(parquet.num_row_groups):
            check_column(parquet.metadata, index, 0)
            if start <= _offset(parquet.metadata.row_group(index)) < end:
                yield parquet, index


class ParquetColumnarRowInputFormat(ParquetFiles):
    """Reads Parquet files as rows. PyFlink's name.

    Args:
        row_type: The fields of the rows: `DataTypes.ROW([...])`. Other columns are not read.
        hadoop_config: Not taken: there is no Hadoop.
        batch_size: Rows decoded at a time.
        is_utc_timestamp: Whether old INT96 timestamps are in UTC; they must be.
        is_case_sensitive: Whether names of columns must match in case, too.

    Raises:
        JobDefinitionError: The type is not that of a row, or the batch size is not positive.
        UnsupportedFeatureError: A Hadoop configuration is given.
    """

    def __init__(
        self,
        row_type: RowType,
        hadoop_config: None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        who = "ParquetColumnarRowInputFormat"
        _refuse_hadoop(who, hadoop_config)
        if batch_size < 1:
            raise JobDefinitionError(f"{who}: batch_size must be positive; got {batch_size}")
        self._columns = RowColumns(check_row_type(row_type, who), is_case_sensitive)
        self._batch_rows = min(batch_size, BATCH_RECORDS)
        self._is_utc_timestamp = is_utc_timestamp

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Find the row groups that begin in a range of bytes."""
        for parquet, index in self._row_groups(file, start, end):
            names = self._columns.names_in(parquet.schema_arrow)
            yield _RowGroup(parquet, index, self._columns, names, self._batch_rows)


@dataclass
class _RowGroup:
    file: pq.ParquetFile
    index: int
    columns: RowColumns
    #: What the fields are called in the file.
    names: list[str | None]
    batch_rows: int
    skipped: int = 0

    def skip(self, count: int) -> int:
        self.skipped = min(count, self.file.metadata.row_group(self.index).num_rows)
        return self.skipped

    def batches(self) -> Iterator[ArrowRows]:
        left_out = self.skipped
        if left_out == self.file.metadata.row_group(self.index).num_rows:
            return
        wanted = [name for name in self.names if name is not None]
        for batch in self.file.iter_batches(self.batch_rows, row_groups=[self.index], columns=wanted):
            if left_out >= batch.num_rows:
                left_out -= batch.num_rows
                continue
            yield self.columns.rows_in(batch.slice(left_out), self.names)
            left_out = 0


def _offset(group: Any) -> int:
    """Return where a row group begins in the file."""
    first = group.column(0)
    offsets = (first.dictionary_page_offset, first.data_page_offset)
    return int(min(offset for offset in offsets if offset))


class ParquetFormat:
    """'format' = 'parquet': files of tables."""

    def __init__(self, options: TableOptions) -> None:
        self._layout = parquet_layout(options)

    def spark_reader(self) -> SparkReader:
        return SparkReader("parquet")

    def file_writer(self, row_type: RowType) -> RowDataBulkWriterFactory:
        columns = RowColumns(check_row_type(row_type, "format 'parquet'"))
        return RowDataBulkWriterFactory(
            _ParquetFiles(columns, is_utc_timestamp=False, layout=self._layout), row_type
        )


class ParquetBulkWriters:
    """Makes what writes Parquet files. PyFlink's name."""

    @staticmethod
    def for_row_type(
        row_type: RowType, hadoop_config: None = None, utc_timestamp: bool = False
    ) -> RowDataBulkWriterFactory:
        """Write rows (or tuples, or dictionaries by name), packed with snappy.

        Args:
            row_type: The columns: `DataTypes.ROW([...])`.
            hadoop_config: Not taken: there is no Hadoop.
            utc_timestamp: Whether TIMESTAMP columns are marked as being in UTC.

        Raises:
            JobDefinitionError: It is not the type of a row.
            UnsupportedFeatureError: A Hadoop configuration is given.
        """
        _refuse_hadoop("ParquetBulkWriters.for_row_type", hadoop_config)
        columns = RowColumns(check_row_type(row_type, "ParquetBulkWriters.for_row_type"))
        return RowDataBulkWriterFactory(_ParquetFiles(columns, utc_timestamp), row_type)


@dataclass(frozen=True)
class _ParquetFiles:
    columns: RowColumns
    is_utc_timestamp: bool
    layout: ParquetLayout = field(default_factory=ParquetLayout)

    def __call__(self, stream: BinaryIO) -> ColumnWriter:
        schema = self.columns.schema
        if self.is_utc_timestamp:
            schema = pa.schema([_in_utc(field) for field in schema])
        writer = pq.ParquetWriter(pa.PythonFile(stream, "w"), schema, **dict(self.layout.properties))
        limits = ROW_GROUP_ROWS, self.layout.row_group_bytes
        return ColumnWriter(writer.write_table, writer.close, self.columns, schema, "Parquet", *limits)

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        """Write the row groups of several files to one, small ones together."""
        writer = self(stream)
        for file in files:
            parquet = pq.ParquetFile(file)
            writer.add_tables(parquet.read_row_group(index) for index in range(parquet.num_row_groups))
        writer.finish()


def _in_utc(field: pa.Field) -> pa.Field:
    is_local = pa.types.is_timestamp(field.type) and field.type.tz is None
    return field.with_type(pa.timestamp("us", "UTC")) if is_local else field


def _refuse_hadoop(who: str, config: object) -> None:
    if config is not None:
        raise UnsupportedFeatureError.not_yet(
            f"{who}: hadoop_config", "leave it out; headrace opens files through pyarrow.fs"
        )
