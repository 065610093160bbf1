"""What is in a file: how bytes become records, in a reader, and records the bytes of a part file.

A format that is written says whether two of its files, one behind the other, are a file again. Rows are; columnar
formats, which end a file with an index, are not: of those every segment is a part of its own.
"""

from __future__ import annotations

import codecs
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol

from headrace.connectors.base import SourceReader
from headrace.connectors.file import _lines
from headrace.connectors.file._line_reader import LineReader
from headrace.errors import FormatError, JobDefinitionError, UnsupportedFeatureError, UserFunctionError

if TYPE_CHECKING:
    from headrace.common.serialization import BulkWriterFactory, Encoder

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

    @abstractmethod
    def can_split(self, compression: str | None) -> bool:
        """Whether a file can be read from any byte on."""

    @abstractmethod
    def create_reader(self) -> SourceReader:
        """Make the reader of this format's splits."""


@dataclass(frozen=True)
class StreamFormat(FileFormat):
    """How the bytes of a file become records, one after the other.

    Example:
        >>> StreamFormat.text_line_format("ISO-8859-1")
        StreamFormat(charset='iso8859-1')
    """

    charset: str

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        r"""Read lines of text; they end with `\n` or `\r\n`, which is not part of the record.

        Args:
            charset_name: The charset of the files, by Java's or Python's name.

        Raises:
            JobDefinitionError: There is no such charset.
        """
        try:
            return StreamFormat(codecs.lookup(charset_name).name)
        except LookupError as error:
            raise JobDefinitionError(
                f"StreamFormat.text_line_format: unknown charset {charset_name!r}",
                hint="for instance UTF-8, UTF-16, ISO-8859-1, windows-1252, GBK, Shift_JIS",
            ) from error

    def compression_of(self, path: str) -> str | None:
        """Return what a file is packed with, by its name."""
        extension = os.path.splitext(path)[1].lower()
        if extension in _UNREADABLE:
            raise UnsupportedFeatureError.not_yet(
                f"FileSource: reading {extension} files ({path})", "pack the file with gzip or zstd"
            )
        return _COMPRESSIONS.get(extension)

    def can_split(self, compression: str | None) -> bool:
        """Whether lines can be found from any byte on."""
        return compression is None and _lines.has_byte_newline(self.charset)

    def create_reader(self) -> SourceReader:
        """Make what reads the lines in a worker."""
        return LineReader(self.charset)


# --- writing --------------------------------------------------------------------------------------


class SegmentWriter(Protocol):
    """Writes the records of one staged file."""

    def write(self, values: Sequence[Any]) -> None:
        """Take records."""

    def finish(self) -> None:
        """Write what is left; the stream is closed by its owner."""

    @property
    def size(self) -> int:
        """Bytes written so far."""


@dataclass(frozen=True)
class RowFormat:
    """One record behind the other."""

    encoder: Encoder
    can_append: ClassVar[bool] = True

    def begin(self, stream: Any) -> SegmentWriter:
        """Begin a file."""
        return _RowSegment(self.encoder, stream)


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


@dataclass(frozen=True)
class BulkRows:
    """Files that a bulk writer writes as a whole."""

    factory: BulkWriterFactory
    can_append: ClassVar[bool] = False

    def begin(self, stream: Any) -> SegmentWriter:
        """Begin a file."""
        return _BulkSegment(self.factory, stream)


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

    @property
    def size(self) -> int:
        return self._stream.count


class CountingStream(io.RawIOBase, BinaryIO):
    """Counts what is written to a file, and leaves closing it to its owner: bulk writers like to do that."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.count = 0

    def write(self, data: Any) -> int:
        """Write bytes."""
        self._stream.write(data)
        size = memoryview(data).nbytes
        self.count += size
        return size

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Return how much was written."""
        return self.count
