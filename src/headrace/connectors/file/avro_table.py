"""'format' = 'avro' of tables of files. Spark has no reader of Avro in its distribution, so workers read the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, BinaryIO, Final

from headrace.common.serialization import BulkWriter, BulkWriterFactory
from headrace.common.time import Duration
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Source
from headrace.connectors.file._bulk import RecordBlock
from headrace.connectors.file.avro import AvroBulkFormat, AvroBulkWriters, AvroSchema
from headrace.connectors.file.source import FileSource
from headrace.connectors.tables import TableRequest
from headrace.errors import UnsupportedFeatureError
from headrace.formats.avro import record_converter, row_converter
from headrace.formats.avro_types import avro_schema
from headrace.formats.columns import arrow_converter
from headrace.types.logical import RowField, RowType

__all__ = ["avro_source", "avro_writer"]

_CODEC: Final = "avro.codec"
#: Those that need nothing beside Python.
_CODECS: Final = ("null", "deflate", "bzip2", "xz")


def avro_source(request: TableRequest, path: str, interval: timedelta | None) -> Source:
    """Return what reads the Avro files of a table.

    Raises:
        UnsupportedFeatureError: The table has columns that are not in the files.
    """
    _codec(request.options)
    if request.table.partition_keys or request.table.metadata_columns:
        raise UnsupportedFeatureError(
            f"table {request.name!r}: columns of directories and metadata columns cannot be read with Avro files",
            feature="partitions and metadata of Avro files",
            hint="use 'format' = 'parquet' or 'orc'",
        )
    fields = [RowField(each.name, each.type) for each in request.table.physical_columns]
    builder = FileSource.for_bulk_file_format(AvroRowFormat(RowType(fields)), path)
    if interval is not None:
        builder.monitor_continuously(Duration.of_millis(interval // timedelta(milliseconds=1)))
    return builder.build()


def avro_writer(options: TableOptions, row_type: RowType) -> BulkWriterFactory:
    """Return what writes Avro files of rows."""
    return _AvroRowFiles(avro_schema(row_type), _codec(options))


def _codec(options: TableOptions) -> str:
    codec = options.text(_CODEC, "deflate") or ""
    if codec not in _CODECS:
        raise options.wrong(_CODEC, f"one of {', '.join(_CODECS)}")
    return codec


class AvroRowFormat(AvroBulkFormat):
    """Reads Avro files as rows of a table: fields by name, and NULL for those that a file does not have.

    Args:
        row_type: The columns.
    """

    def __init__(self, row_type: RowType) -> None:
        super().__init__(AvroSchema.parse_string(avro_schema(row_type)))
        self._row_type = row_type

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Find the blocks that begin in a range of bytes."""
        to_row = row_converter(self._schema)
        inner = [arrow_converter(each) for each in self._row_type.field_types()]

        def convert(record: Any) -> tuple[Any, ...]:
            row = to_row(record)
            return tuple(value if c is None else c(value) for value, c in zip(row, inner, strict=True))

        for block in super().blocks(file, start, end):
            yield _RowBlock(block, convert)


class _RowBlock:
    def __init__(self, block: RecordBlock, convert: Callable[[Any], tuple[Any, ...]]) -> None:
        self._block = block
        self._convert = convert

    def skip(self, count: int) -> int:
        return self._block.skip(count)

    def batches(self) -> Iterator[list[Any]]:
        for records in self._block.batches():
            assert isinstance(records, list), "Avro is read record by record"
            yield [self._convert(record) for record in records]


class _AvroRowFiles(BulkWriterFactory):
    def __init__(self, schema: str, codec: str) -> None:
        self._schema = schema
        self._codec = codec

    def create(self, stream: BinaryIO) -> BulkWriter:
        schema = AvroSchema.parse_string(self._schema)
        writer = AvroBulkWriters.for_generic_record(schema, self._codec).create(stream)
        return _AvroRowWriter(writer, record_converter(schema.schema))


class _AvroRowWriter(BulkWriter):
    def __init__(self, writer: BulkWriter, convert: Callable[[Any], Any]) -> None:
        self._writer = writer
        self._convert = convert

    def add_element(self, element: Any) -> None:
        self._writer.add_element(self._convert(element))

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.finish()
