"""What is in a file: how bytes become records, in a reader, and records the bytes of a part file.

A format that is written says whether two of its files, one after the other, are a file again. Rows are; columnar
formats, which end a file with an index, are not: of those every segment is a part of its own.
"""

from __future__ import annotations

import codecs
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol

from headrace.common.serialization import produced_type_of
from headrace.common.typeinfo import TypeInformation, Types
from headrace.connectors import staged_files
from headrace.connectors.base import SourceReader
from headrace.connectors.file import _lines
from headrace.connectors.file._line_reader import LineReader, SchemaLineReader
from headrace.errors import (
    FormatError,
    JobDefinitionError,
    UnsupportedFeatureError,
    UserFunctionError,
    require,
)
from headrace.storage.locations import Location

if TYPE_CHECKING:
    from headrace.common.serialization import BulkWriterFactory, DeserializationSchema, Encoder

_COMPRESSIONS = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
#: What Flink can unpack and we cannot. As text it would be noise.
_UNREADABLE = (".deflate", ".xz")


class FileFormat(ABC):
    """How files are read. A value: it is part of the job."""

    #: Whether positions count records even where the file can be split; else they are bytes there.
    counts_records: bool = False

    def compression_of(self, path: str) -> str | None:
        """Return what a file is packed with as a whole, by its name."""
        return None

    def with_dead_letters(self, tag_id: str) -> FileFormat:
        """Send records that cannot be read to a side output.

        Raises:
            JobDefinitionError: The format has no records that could be told from others when they are damaged.
        """
        raise JobDefinitionError(
            f"FileSource: {type(self).__name__} does not support a dead-letter tag: it reads whole files, not records",
            hint="dead-letter tags work with StreamFormat.schema_line_format and CsvReaderFormat",
        )

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None if only the files know it."""
        return None

    @abstractmethod
    def can_split(self, compression: str | None) -> bool:
        """Whether a file can be read from any byte on."""

    @abstractmethod
    def create_reader(self) -> SourceReader:
        """Make the reader of this format's splits."""


def compression_by_name(path: str) -> str | None:
    """Return what a file of text is packed with.

    Raises:
        UnsupportedFeatureError: Flink could unpack it, we cannot.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension in _UNREADABLE:
        raise UnsupportedFeatureError.not_yet(
            f"FileSource: reading {extension} files ({path})", "compress the file with gzip or zstd"
        )
    return _COMPRESSIONS.get(extension)


class StreamFormat(FileFormat):
    """How the bytes of a file become records, one after the other. Files may be packed: `.gz`, `.zst`, `.bz2`."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        r"""Read lines of text; they end with `\n` or `\r\n`, which is not part of the record.

        Args:
            charset_name: The charset of the files, by Java's or Python's name.

        Raises:
            JobDefinitionError: There is no such charset.

        Example:
            >>> StreamFormat.text_line_format("ISO-8859-1")
            TextLines(charset='iso8859-1')
        """
        try:
            return TextLines(codecs.lookup(charset_name).name)
        except LookupError as error:
            raise JobDefinitionError(
                f"StreamFormat.text_line_format: unknown charset {charset_name!r}",
                hint="for example UTF-8, UTF-16, ISO-8859-1, windows-1252, GBK, Shift_JIS",
            ) from error

    @staticmethod
    def schema_line_format(schema: DeserializationSchema) -> StreamFormat:
        """Read each line with a format of records; empty lines are left out. PyFlink does not have it.

        Args:
            schema: For instance a `JsonRowDeserializationSchema`, for JSON lines.

        Raises:
            JobDefinitionError: It is no such schema.
        """
        require(
            callable(getattr(schema, "deserialize", None)),
            "StreamFormat.schema_line_format",
            "a DeserializationSchema",
            schema,
            hint="for instance JsonRowDeserializationSchema.builder().type_info(...).build()",
        )
        return SchemaLines(schema)

    def compression_of(self, path: str) -> str | None:
        """Return what a file is packed with, by its name."""
        return compression_by_name(path)


@dataclass(frozen=True)
class TextLines(StreamFormat):
    """Reads each line as a string, without its line ending."""

    charset: str

    def can_split(self, compression: str | None) -> bool:
        """Whether lines can be found from any byte on."""
        return compression is None and _lines.has_byte_newline(self.charset)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()

    def create_reader(self) -> SourceReader:
        """Make what reads the lines in a worker."""
        return LineReader(self.charset)


@dataclass(frozen=True)
class SchemaLines(StreamFormat):
    """Lines that are records of another format."""

    schema: DeserializationSchema
    #: The side output for lines that cannot be read.
    dead_letters: str | None = None

    def with_dead_letters(self, tag_id: str) -> SchemaLines:
        """Send lines that cannot be read to a side output."""
        return replace(self, dead_letters=tag_id)

    def can_split(self, compression: str | None) -> bool:
        """Whether lines can be found from any byte on."""
        return compression is None

    def create_reader(self) -> SourceReader:
        """Make what reads the lines in a worker."""
        return SchemaLineReader(self.schema, self.dead_letters)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that the schema declares."""
        return produced_type_of(self.schema)


# --- writing --------------------------------------------------------------------------------------


class SegmentWriter(Protocol):
    """Writes the records of one staged file."""

    def write(self, values: Sequence[Any]) -> None:
        """Append records to the file."""

    def finish(self) -> None:
        """Write what is left; the stream is closed by its owner."""

    def discard(self) -> None:
        """Write nothing more: the file is going to be deleted."""

    @property
    def size(self) -> int:
        """Bytes written so far."""


@dataclass(frozen=True)
class RowFormat:
    """One record after the other."""

    encoder: Encoder
    can_append: ClassVar[bool] = True
    can_join: ClassVar[bool] = True

    def begin(self, stream: Any) -> SegmentWriter:
        return _RowSegment(self.encoder, stream)

    def join(self, sources: Sequence[Location], target: Location) -> None:
        """Write the records of several files to one."""
        staged_files.concatenate(sources, target)

    def for_type(self, type_info: TypeInformation | None) -> RowFormat:
        # Anything with a method `encode` may be an encoder.
        return RowFormat(self.encoder.for_type(type_info)) if hasattr(self.encoder, "for_type") else self


class _RowSegment:
    def __init__(self, encoder: Encoder, stream: Any) -> None:
        self._encoder = encoder
        self._stream = stream
        self.size = 0

    def write(self, values: Sequence[Any]) -> None:
        encode = self._encoder.encode
        buffer = io.BytesIO()
        value = None
        try:
            for value in values:
                encode(value, buffer)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        data = buffer.getvalue()
        self._stream.write(data)
        self.size += len(data)

    def finish(self) -> None:
        """Nothing is held back."""

    def discard(self) -> None:
        """Nothing will be written."""


@dataclass(frozen=True)
class BulkRows:
    """Files that a bulk writer writes as a whole."""

    factory: BulkWriterFactory
    can_append: ClassVar[bool] = False

    @property
    def can_join(self) -> bool:
        """Whether files can be merged. Anything with a method `create` may be a factory."""
        return bool(getattr(self.factory, "can_join", False))

    def begin(self, stream: Any) -> SegmentWriter:
        return _BulkSegment(self.factory, stream)

    def join(self, sources: Sequence[Location], target: Location) -> None:
        """Write the records of several files to one."""

        def write(stream: Any) -> None:
            self.factory.join(_opened(sources), CountingStream(stream))

        staged_files.write_whole(target, write)

    def for_type(self, type_info: TypeInformation | None) -> BulkRows:
        return self


def _opened(sources: Sequence[Location]) -> Iterator[IO[bytes]]:
    """Open one file after the other."""
    for source in sources:
        with staged_files.blaming(source, "read"):
            file = source.store.open(source.path)
        with file:
            yield file


class _BulkSegment:
    def __init__(self, factory: BulkWriterFactory, stream: Any) -> None:
        self._stream = CountingStream(stream)
        self._writer = factory.create(self._stream)

    def write(self, values: Sequence[Any]) -> None:
        add, value = self._writer.add_element, None
        try:
            for value in values:
                add(value)
        except (FormatError, OSError):
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error

    def finish(self) -> None:
        self._writer.finish()

    def discard(self) -> None:
        # Writers of Arrow end their file when they are collected, whoever has closed it by then.
        self._stream.is_discarded = True

    @property
    def size(self) -> int:
        return self._stream.count


class CountingStream(io.RawIOBase, BinaryIO):
    """Counts what is written to a file, and leaves closing it to its owner: bulk writers like to do that."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.count = 0
        self.is_discarded = False

    def write(self, data: Any) -> int:
        """Write bytes, unless the file is being discarded."""
        if not self.is_discarded:
            self._stream.write(data)
        size = memoryview(data).nbytes
        self.count += size
        return size

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """Return how much was written."""
        return self.count
