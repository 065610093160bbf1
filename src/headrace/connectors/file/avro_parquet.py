"""Parquet files whose columns an Avro schema describes, under PyFlink's names: records are dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.common.serialization import BulkWriterFactory
from headrace.connectors.base import BATCH_RECORDS
from headrace.connectors.file._bulk import RecordBlock
from headrace.connectors.file._formats import StreamFormat
from headrace.connectors.file.avro import AvroSchema
from headrace.connectors.file.parquet import ParquetFiles
from headrace.errors import FormatError, JobDefinitionError, UnsupportedFeatureError, require

_PRIMITIVES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_ROW_GROUP_ROWS = 1 << 17


class AvroParquetReaders:
    """Makes formats that read Parquet files as dictionaries."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Read the columns that are fields of a schema; one that a file does not have is None.

        Raises:
            JobDefinitionError: It is not the schema of a record.
        """
        return _AvroParquetFormat(_record(schema, "AvroParquetReaders.for_generic_record"))


class AvroParquetWriters:
    """Makes what writes dictionaries to Parquet files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write dictionaries, as their schema says.

        Raises:
            JobDefinitionError: It is not the schema of a record.
            UnsupportedFeatureError: The schema has a type that Parquet has not.
        """
        return _AvroParquetFiles(_record(schema, "AvroParquetWriters.for_generic_record"))


def _record(schema: Any, who: str) -> pa.Schema:
    require(
        isinstance(schema, AvroSchema), who, "an AvroSchema", schema, hint="use AvroSchema.parse_string(...)"
    )
    found = _arrow_field("record", schema.schema).type
    if not pa.types.is_struct(found):
        raise JobDefinitionError(f"{who}: expected the schema of a record; got {schema}")
    return pa.schema(list(found))


def _arrow_field(name: str, avro: Any) -> pa.Field:
    """Return the column of a type of Avro; a union with null may be null."""
    if isinstance(avro, list):
        others = [each for each in avro if each != "null"]
        if len(others) != 1:
            raise UnsupportedFeatureError.not_yet(
                f"field {name!r}: a union of {len(others)} types in Parquet",
                "use a union of null and one type",
            )
        return _arrow_field(name, others[0]).with_nullable("null" in avro)
    return pa.field(name, _arrow_type(name, avro), nullable=avro == "null")


def _arrow_type(name: str, avro: Any) -> pa.DataType:
    if isinstance(avro, str):
        avro = {"type": avro}
    kind, logical = avro["type"], avro.get("logicalType")
    if isinstance(kind, dict | list):
        return _arrow_field(name, kind).type
    if logical == "decimal":
        return pa.decimal128(avro["precision"], avro.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    return _arrow_compound(name, kind, avro)


def _arrow_compound(name: str, kind: str, avro: Any) -> pa.DataType:
    if kind == "enum":
        return pa.string()
    if kind == "fixed":
        return pa.binary(avro["size"])
    if kind == "array":
        return pa.list_(_arrow_field("element", avro["items"]))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_field("value", avro["values"]))
    if kind == "record":
        return pa.struct([_arrow_field(each["name"], each["type"]) for each in avro["fields"]])
    raise UnsupportedFeatureError.not_yet(f"field {name!r}: the Avro type {kind!r} in Parquet")


class _AvroParquetFormat(ParquetFiles, StreamFormat):
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def compression_of(self, path: str) -> str | None:
        return None  # pages are packed, not the file

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        for parquet, index in self._row_groups(file, start, end):
            names = [name for name in self._schema.names if name in parquet.schema_arrow.names]
            yield _Records(parquet, index, names, self._schema)


@dataclass
class _Records:
    file: pq.ParquetFile
    index: int
    #: The columns that the file has.
    names: list[str]
    schema: pa.Schema
    skipped: int = 0

    def skip(self, count: int) -> int:
        self.skipped = min(count, self.file.metadata.row_group(self.index).num_rows)
        return self.skipped

    def batches(self) -> Iterator[list[Any]]:
        rest = self.skipped
        missing = dict.fromkeys(name for name in self.schema.names if name not in self.names)
        for batch in self.file.iter_batches(BATCH_RECORDS, row_groups=[self.index], columns=self.names):
            records = batch.slice(min(rest, batch.num_rows)).to_pylist(maps_as_pydicts="strict")
            rest -= min(rest, batch.num_rows)
            if records:
                yield [{**missing, **record} for record in records] if missing else records


class _AvroParquetFiles(BulkWriterFactory):
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def create(self, stream: BinaryIO) -> _AvroParquetWriter:
        writer = pq.ParquetWriter(pa.PythonFile(stream, "w"), self._schema)
        return _AvroParquetWriter(self._schema, writer.write_table, writer.close)


class _AvroParquetWriter:
    def __init__(
        self, schema: pa.Schema, write: Callable[[pa.Table], None], close: Callable[[], None]
    ) -> None:
        self._schema = schema
        self._write = write
        self._close = close
        self._waiting: list[Any] = []

    def add_element(self, element: Any) -> None:
        if hasattr(element, "as_dict"):
            element = element.as_dict(recursive=True)
        self._waiting.append(element)
        if len(self._waiting) >= _ROW_GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._write(self._table(self._waiting))
            self._waiting = []

    def finish(self) -> None:
        self.flush()
        self._close()

    def _table(self, records: list[Any]) -> pa.Table:
        try:
            table = pa.Table.from_pylist(records, self._schema)
            table.validate()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, AttributeError) as error:
            raise FormatError(
                f"Parquet: a record does not match the schema: {error}",
                example=_first_bad(records, self._schema),
            ) from error
        for field, column in zip(self._schema, table.columns, strict=True):
            if not field.nullable and column.null_count:
                raise FormatError(
                    f"Parquet: field {field.name!r} must not be null",
                    example=next(each for each in records if each.get(field.name) is None),
                )
        return table


def _first_bad(records: list[Any], schema: pa.Schema) -> Any:
    for record in records:
        try:
            pa.Table.from_pylist([record], schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, AttributeError):
            return record
    return None
