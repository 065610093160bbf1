"""'format' = 'avro' of tables of files. Spark has no reader of Avro in its distribution, so workers read the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import IO, Any, BinaryIO, Final

from headrace.common.serialization import BulkWriter, BulkWriterFactory
from headrace.common.time import Duration
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Source
from headrace.connectors.file._bulk import RecordBlock
from headrace.connectors.file._implied_columns import ImpliedColumns
from headrace.connectors.file._splits import FileSplit
from headrace.connectors.file.avro import AvroBulkFormat, AvroBulkWriters, AvroSchema
from headrace.connectors.file.source import FileSource
from headrace.connectors.tables import TableRequest
from headrace.formats.avro import record_converter, row_converter, table_schema
from headrace.formats.columns import arrow_converter
from headrace.types.logical import RowField, RowType

__all__ = ["avro_source", "avro_writer"]

_CODEC: Final = "avro.codec"
#: Those that need nothing beside Python.
_CODECS: Final = ("null", "deflate", "bzip2", "xz")


def avro_source(
    request: TableRequest,
    path: str,
    interval: timedelta | None,
    *,
    name_pattern: str | None,
    metadata: Mapping[str, str],
    no_value: str,
) -> Source:
    """Return what reads the Avro files of a table.

    Args:
        request: The table.
        path: Where the files are.
        interval: How often to look for new ones; None: those that are there are all.
        name_pattern: A regular expression that the paths of files must match; None: all are read.
        metadata: Flink's keys of metadata columns, by name.
        no_value: The directory of rows without a value in a partition column.

    Raises:
        UnsupportedFeatureError: The name of a directory cannot have the type of its column.
    """
    options, table = request.options, request.table
    _codec(options)
    keys = {each.name: each.type for each in table.physical_columns if each.name in table.partition_keys}
    row_type = RowType(
        [RowField(each.name, each.type) for each in table.physical_columns if each.name not in keys]
    )
    names = tuple(each.name for each in table.source_columns)
    schema = table_schema(options.below("avro."), row_type)
    implied = ImpliedColumns(request.name, keys, metadata, no_value)
    builder = FileSource.for_bulk_file_format(AvroRowFormat(row_type, schema, names, implied), path)
    if interval is not None:
        builder.monitor_continuously(Duration.of_millis(interval // timedelta(milliseconds=1)))
    return replace(builder.build(), name_pattern=name_pattern)


def avro_writer(options: TableOptions, row_type: RowType) -> BulkWriterFactory:
    """Return what writes Avro files of rows."""
    return _AvroRowFiles(table_schema(options.below("avro."), row_type), _codec(options))


def _codec(options: TableOptions) -> str:
    codec = options.text(_CODEC, "deflate") or ""
    if codec not in _CODECS:
        raise options.wrong(_CODEC, f"one of {', '.join(_CODECS)}")
    return codec


class AvroRowFormat(AvroBulkFormat):
    """Reads Avro files as rows of a table: fields by name, and NULL for those that a file does not have.

    Args:
        row_type: The columns that files contain.
        schema: Their schema in Avro.
        names: All columns of the table.
        implied: Finds the others.
    """

    def __init__(
        self, row_type: RowType, schema: str, names: tuple[str, ...], implied: ImpliedColumns
    ) -> None:
        super().__init__(AvroSchema.parse_string(schema))
        self._row_type = row_type
        self._names = names
        self._implied = implied
        #: Values of the columns that are not in the file, once it is known which file it is.
        self._implied_values: Mapping[str, Any] = {}

    def for_split(self, split: FileSplit) -> AvroRowFormat:
        """Return the format with the values of the columns that a file does not contain."""
        made = copy(self)
        made._implied_values = self._implied.of(split.location)
        return made

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Find the blocks that begin in a range of bytes."""
        convert = self._converter()
        for block in super().blocks(file, start, end):
            yield _RowBlock(block, convert)

    def _converter(self) -> Callable[[Any], tuple[Any, ...]]:
        to_row = row_converter(self._schema)
        stored = self._row_type.field_names()
        inner = [arrow_converter(each) for each in self._row_type.field_types()]
        around = self._implied_values

        def convert(record: Any) -> tuple[Any, ...]:
            row = to_row(record)
            return tuple(value if c is None else c(value) for value, c in zip(row, inner, strict=True))

        if not around:
            return convert
        places = [None if name in around else stored.index(name) for name in self._names]
        fixed = [around.get(name) for name in self._names]

        def convert_and_complete(record: Any) -> tuple[Any, ...]:
            values = convert(record)
            return tuple(value if at is None else values[at] for at, value in zip(places, fixed, strict=True))

        return convert_and_complete


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

    @property
    def can_join(self) -> bool:
        return True

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        schema = AvroSchema.parse_string(self._schema)
        AvroBulkWriters.for_generic_record(schema, self._codec).join(files, stream)


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
