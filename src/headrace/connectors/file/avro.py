"""Avro container files: records in blocks, with their schema in front."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NoReturn

from headrace.common.serialization import BulkWriterFactory
from headrace.connectors.base import BATCH_RECORDS
from headrace.connectors.file._bulk import Block, BulkFormat
from headrace.errors import FormatError, JobDefinitionError
from headrace.formats.avro import fastavro

#: What every container file begins with.
_MAGIC = b"Obj\x01"


class AvroSchema:
    """The schema of Avro records. PyFlink's name.

    Args:
        schema: The schema as JSON describes it: a dictionary, or the name of a type.

    Raises:
        JobDefinitionError: It is not a schema.

    Example:
        >>> AvroSchema.parse_string('{"type": "record", "name": "U", "fields": []}').schema["name"]
        'U'
    """

    def __init__(self, schema: Any) -> None:
        try:
            fastavro().parse_schema(schema)
        except (KeyError, TypeError, ValueError) as error:
            raise JobDefinitionError(f"AvroSchema: not a schema of Avro: {error!r}") from error
        except fastavro().schema.SchemaParseException as error:
            raise JobDefinitionError(f"AvroSchema: not a schema of Avro: {error}") from error
        self.schema = schema

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Read a schema from JSON.

        Raises:
            JobDefinitionError: It is not JSON, or not a schema.
        """
        try:
            return AvroSchema(json.loads(json_schema))
        except json.JSONDecodeError as error:
            raise JobDefinitionError(f"AvroSchema.parse_string: not JSON: {error}") from error

    @staticmethod
    def parse_file(file_path: str | os.PathLike[str]) -> AvroSchema:
        """Read a schema from a local file.

        Raises:
            JobDefinitionError: The file is not there, or holds something else.
        """
        try:
            with open(file_path, encoding="utf-8") as file:
                return AvroSchema.parse_string(file.read())
        except OSError as error:
            raise JobDefinitionError(f"AvroSchema.parse_file: {error}") from error

    def __repr__(self) -> str:
        return f"AvroSchema({json.dumps(self.schema)})"


class AvroBulkFormat(BulkFormat):
    """Reads Avro container files as dictionaries, which is what PyFlink makes of generic records.

    A file is read by one subtask.

    Args:
        schema: The schema to read with; fields that a file does not have get their defaults. None: the file's own.
    """

    def __init__(self, schema: AvroSchema | None = None) -> None:
        fastavro()
        if schema is not None and not isinstance(schema, AvroSchema):
            raise JobDefinitionError(
                f"AvroBulkFormat: expected an AvroSchema; got {schema!r}",
                hint="use AvroSchema.parse_string(...)",
            )
        self._schema = None if schema is None else schema.schema

    def blocks(self, file: Any, start: int, end: int) -> Iterator[Block]:
        """Find the blocks."""
        if file.read(len(_MAGIC)) != _MAGIC:
            raise FormatError("this is no Avro container file")
        file.seek(0)
        for block in fastavro().block_reader(file, self._schema):
            yield _AvroBlock(block)


class _AvroBlock:
    def __init__(self, block: Any) -> None:
        self._block = block
        self._skipped = 0

    def skip(self, count: int) -> int:
        self._skipped = min(count, self._block.num_records)
        return self._skipped

    def batches(self) -> Iterator[list[Any]]:
        if self._skipped == self._block.num_records:
            return
        values: list[Any] = []
        for index, value in enumerate(_resolved(self._block)):
            if index >= self._skipped:
                values.append(value)
            if len(values) == BATCH_RECORDS:
                yield values
                values = []
        if values:
            yield values


def _resolved(block: Any) -> Iterator[Any]:
    try:
        yield from block
    except fastavro().read.SchemaResolutionError as error:
        raise FormatError(f"the file's schema does not fit the one to read with: {error}") from error


class AvroBulkWriters:
    """Makes what writes Avro container files. PyFlink's name."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write dictionaries, as their schema says.

        Raises:
            JobDefinitionError: It is not a schema.
        """
        if not isinstance(schema, AvroSchema):
            raise JobDefinitionError(
                f"AvroBulkWriters.for_generic_record: expected an AvroSchema; got {schema!r}",
                hint="use AvroSchema.parse_string(...)",
            )
        return _AvroFiles(schema.schema)


class _AvroFiles(BulkWriterFactory):
    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def create(self, stream: BinaryIO) -> _AvroWriter:
        return _AvroWriter(stream, self._schema)


class _AvroWriter:
    def __init__(self, stream: BinaryIO, schema: Any) -> None:
        self._writer = fastavro().write.Writer(stream, schema, codec="deflate", validator=True)

    def add_element(self, element: Any) -> None:
        if not isinstance(element, Mapping) and hasattr(element, "as_dict"):
            element = element.as_dict(recursive=True)
        try:
            self._writer.write(element)
        except fastavro().validation.ValidationError as error:
            self._refuse(element, error)

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.flush()

    @staticmethod
    def _refuse(element: Any, error: Exception) -> NoReturn:
        raise FormatError(f"Avro: the record does not fit the schema: {error}", example=element) from error
