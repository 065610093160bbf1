"""ORC files: read and shared by stripe, only the columns that are asked for.

ORC has no checksums, and its C++ reader trusts what it reads: a damaged file may end the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

import pyarrow as pa
from pyarrow import orc

from headrace.common.serialization import RowDataBulkWriterFactory
from headrace.config.table_options import TableOptions
from headrace.connectors.base import BATCH_RECORDS
from headrace.connectors.file._bulk import RecordBlock
from headrace.connectors.file._column_writer import ColumnWriter
from headrace.connectors.file._damaged_files import CarefulFormat
from headrace.errors import JobDefinitionError, UnsupportedFeatureError
from headrace.formats.columns import ArrowRows, RowColumns, check_row_type
from headrace.formats.tables import SparkReader
from headrace.types import RowType

#: Rows that are written at a time; the writer cuts stripes by size.
_BLOCK_ROWS = 1 << 17
#: Properties of Flink's ORC writer that there are here, with what they are called.
_PROPERTIES = {"orc.compress": "compression", "orc.stripe.size": "stripe_size"}


class OrcColumnarRowInputFormat(CarefulFormat):
    """Reads ORC files as rows. Flink's name; PyFlink does not have it.

    A file is shared by its stripes.

    Args:
        row_type: The fields of the rows: `DataTypes.ROW([...])`. Other columns are not read.

    Raises:
        JobDefinitionError: The type is not that of a row.
    """

    is_splittable = True
    _name = "ORC"
    _reading_program = """
import sys
from pyarrow import BufferReader, orc
orc.ORCFile(BufferReader(sys.stdin.buffer.read())).read()
"""

    def __init__(self, row_type: RowType) -> None:
        self._columns = RowColumns(check_row_type(row_type, "OrcColumnarRowInputFormat"))

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Find the stripes of a range of bytes.

        pyarrow does not say where stripes begin. They are about equally long, so each is taken to begin where it would
        if they were: whichever range that is in, it is one and only one.
        """
        self._see_that_it_is_readable(file)
        whole = orc.ORCFile(file)
        names = self._columns.names_in(whole.schema)
        size = file.size()
        for index in range(whole.nstripes):
            if start <= index * size // whole.nstripes < end:
                yield _Stripe(whole, index, self._columns, names)


@dataclass
class _Stripe:
    file: orc.ORCFile
    index: int
    columns: RowColumns
    #: What the fields are called in the file.
    names: list[str | None]
    skipped: int = 0

    def skip(self, count: int) -> int:
        # How many rows a stripe has is known when it has been read.
        self.skipped = min(count, self._read().num_rows) if count else 0
        return self.skipped

    def batches(self) -> Iterator[ArrowRows]:
        batch = self._read().slice(self.skipped)
        for first in range(0, batch.num_rows, BATCH_RECORDS):
            yield self.columns.rows_in(batch.slice(first, BATCH_RECORDS), self.names)

    def _read(self) -> pa.RecordBatch:
        return self.file.read_stripe(self.index, columns=[name for name in self.names if name is not None])


class OrcFormat:
    """'format' = 'orc': files of tables."""

    def __init__(self, options: TableOptions) -> None:
        self._properties = {
            key: value for key in _PROPERTIES if (value := options.text(key.removeprefix("orc."))) is not None
        }

    def spark_reader(self) -> SparkReader:
        return SparkReader("orc")

    def file_writer(self, row_type: RowType) -> RowDataBulkWriterFactory:
        return OrcBulkWriters.for_row_type(row_type, self._properties)


class OrcBulkWriters:
    """Makes what writes ORC files. PyFlink's name."""

    @staticmethod
    def for_row_type(
        row_type: RowType,
        writer_properties: Mapping[str, str] | None = None,
        hadoop_config: None = None,
    ) -> RowDataBulkWriterFactory:
        """Write rows (or tuples, or dictionaries by name).

        Args:
            row_type: The columns: `DataTypes.ROW([...])`.
            writer_properties: `orc.compress` (NONE, ZLIB, SNAPPY, LZ4, ZSTD) and `orc.stripe.size` in bytes.
            hadoop_config: Not taken: there is no Hadoop.

        Raises:
            JobDefinitionError: It is not the type of a row, or a property has no such value.
            UnsupportedFeatureError: There is no such property, or a Hadoop configuration is given.
        """
        who = "OrcBulkWriters.for_row_type"
        if hadoop_config is not None:
            raise UnsupportedFeatureError.not_yet(
                f"{who}: hadoop_config", "leave it out; headrace opens files through pyarrow.fs"
            )
        files = _OrcFiles(
            RowColumns(check_row_type(row_type, who)), tuple(_checked(writer_properties or {}, who))
        )
        return RowDataBulkWriterFactory(files, row_type)


def _checked(properties: Mapping[str, str], who: str) -> Iterator[tuple[str, Any]]:
    for key, value in properties.items():
        if key not in _PROPERTIES:
            raise UnsupportedFeatureError.not_yet(
                f"{who}: property {key!r}", f"known are {', '.join(_PROPERTIES)}"
            )
        try:
            yield _PROPERTIES[key], int(value) if key == "orc.stripe.size" else _compression(value)
        except ValueError:
            raise JobDefinitionError(f"{who}: {key} cannot be {value!r}") from None


def _compression(name: str) -> str:
    if name.upper() == "NONE":
        return "uncompressed"
    if name.upper() not in {"ZLIB", "SNAPPY", "LZ4", "ZSTD"}:
        raise ValueError(name)
    return name.lower()


@dataclass(frozen=True)
class _OrcFiles:
    columns: RowColumns
    options: tuple[tuple[str, Any], ...]

    def __call__(self, stream: BinaryIO) -> ColumnWriter:
        writer = orc.ORCWriter(pa.PythonFile(stream, "w"), **dict(self.options))
        schema = self.columns.schema
        return ColumnWriter(writer.write, writer.close, self.columns, schema, "ORC", _BLOCK_ROWS)

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        """Write the stripes of several files to one."""
        writer = self(stream)
        for file in files:
            whole = orc.ORCFile(file)
            stripes = (whole.read_stripe(index) for index in range(whole.nstripes))
            writer.add_tables(pa.Table.from_batches([stripe]) for stripe in stripes)
        writer.finish()
