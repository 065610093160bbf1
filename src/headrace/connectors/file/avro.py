"""Avro container files: records in blocks, with their schema in front.

    magic, schema, marker | block | marker | block | marker | ...

The marker is sixteen bytes that the writer has drawn, so the next block is found from any byte on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NoReturn

from headrace.common.serialization import BulkWriterFactory
from headrace.connectors.base import BATCH_RECORDS
from headrace.connectors.file._bulk import BulkFormat, RecordBlock
from headrace.errors import FormatError, HeadraceError, JobDefinitionError, require
from headrace.formats._avro_names import with_names_of
from headrace.formats.avro import fastavro

#: What every container file begins with.
_MAGIC = b"Obj\x01"
_MARKER_BYTES = 16
#: How much is read at a time to find a marker: most blocks are shorter.
_SEARCH_BYTES = 1 << 16


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
            raise JobDefinitionError(f"AvroSchema: not a valid Avro schema: {error!r}") from error
        except fastavro().schema.SchemaParseException as error:
            raise JobDefinitionError(f"AvroSchema: not a valid Avro schema: {error}") from error
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

    Large files are shared by their blocks.

    Args:
        schema: The schema to read with; fields that a file does not have get their defaults. None: the file's own.
    """

    is_splittable = True

    def __init__(self, schema: AvroSchema | None = None) -> None:
        fastavro()
        if schema is not None and not isinstance(schema, AvroSchema):
            raise JobDefinitionError(
                f"AvroBulkFormat: expected an AvroSchema; got {schema!r}",
                hint="use AvroSchema.parse_string(...)",
            )
        self._schema = None if schema is None else schema.schema

    def blocks(self, file: Any, start: int, end: int) -> Iterator[RecordBlock]:
        """Find the blocks that begin in a range of bytes."""
        if file.read(len(_MAGIC)) != _MAGIC:
            raise FormatError("this is not an Avro container file")
        file.seek(0)
        with _sound():
            blocks = fastavro().block_reader(file)  # has read what is in front
            if self._schema is not None:
                schema = with_names_of(fastavro().parse_schema(self._schema), blocks.writer_schema)
                file.seek(0)
                blocks = fastavro().block_reader(file, schema)
        file.seek(_first_block(file, start, file.tell()))
        while file.tell() < end:
            with _sound():
                block = next(blocks, None)
            if block is None:
                return
            yield _AvroBlock(block)


def _first_block(file: Any, start: int, front: int) -> int:
    """Return where the first block begins at or after a byte; the end of the file if there is none.

    Args:
        file: The open file; where it is afterwards is not said.
        start: The byte.
        front: The length of what is in front of the first block; the marker is its last sixteen bytes.
    """
    if start <= front:
        return front
    file.seek(front - _MARKER_BYTES)
    marker = file.read(_MARKER_BYTES)
    # A block begins after a marker, and a marker may begin before the byte:
    #     ... block | marker | block
    #                    ^ start
    position = start - _MARKER_BYTES
    file.seek(position)
    data = b""
    while chunk := file.read(_SEARCH_BYTES):
        data += chunk
        found = data.find(marker)
        if found >= 0:
            return int(position + found + _MARKER_BYTES)
        kept = data[-(_MARKER_BYTES - 1) :]
        position += len(data) - len(kept)
        data = kept
    return position + len(data)


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
    with _sound():
        yield from block
        if block.bytes_.read(1):
            raise FormatError(f"the Avro block holds more than the {block.num_records} records it claims")


@contextmanager
def _sound() -> Iterator[None]:
    """Blame the file for what fastavro fails with: damaged bytes raise anything, KeyError, zlib.error, MemoryError."""
    try:
        yield
    except (HeadraceError, OSError):
        raise
    except fastavro().read.SchemaResolutionError as error:
        raise FormatError(f"the file's schema is not compatible with the reader schema: {error}") from error
    except Exception as error:
        raise FormatError(f"the Avro file is damaged: {type(error).__name__}: {error}") from error


class AvroBulkWriters:
    """Makes what writes Avro container files. PyFlink's name."""

    @staticmethod
    def for_generic_record(schema: AvroSchema, codec: str = "deflate") -> BulkWriterFactory:
        """Write dictionaries, as their schema says.

        Args:
            schema: The schema.
            codec: How blocks are compressed: null, deflate, bzip2 or xz.

        Raises:
            JobDefinitionError: It is not a schema.
        """
        require(
            isinstance(schema, AvroSchema),
            "AvroBulkWriters.for_generic_record",
            "an AvroSchema",
            schema,
            hint="use AvroSchema.parse_string(...)",
        )
        return _AvroFiles(schema.schema, codec)


class _AvroFiles(BulkWriterFactory):
    def __init__(self, schema: Any, codec: str) -> None:
        self._schema = schema
        self._codec = codec

    def create(self, stream: BinaryIO) -> _AvroWriter:
        return _AvroWriter(stream, self._schema, self._codec)

    @property
    def can_join(self) -> bool:
        return True

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        """Copy the blocks of several files to one, as they are."""
        writer = fastavro().write.Writer(stream, self._schema, codec=self._codec)
        for file in files:
            with _sound():
                for block in fastavro().block_reader(file):
                    writer.write_block(block)
        writer.flush()


class _AvroWriter:
    def __init__(self, stream: BinaryIO, schema: Any, codec: str) -> None:
        self._writer = fastavro().write.Writer(stream, schema, codec=codec, validator=True)

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
        raise FormatError(f"Avro: the record does not match the schema: {error}", example=element) from error
