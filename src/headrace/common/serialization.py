"""Schemas and encoders: how connectors turn records into bytes and back, under PyFlink's names.

A connector calls `serialize` and `deserialize`; a file sink gives an `Encoder` its stream. Users may
subclass all of them. Formats with a schema (JSON, CSV, Avro) are in `headrace.formats`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import IO, Any, BinaryIO, Protocol

from headrace.common.typed_text import ToText, text_writer
from headrace.common.typeinfo import TypeInformation, Types
from headrace.common.types import Row
from headrace.errors import ConfigurationError, FormatError, UnsupportedFeatureError

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema:
    """Turns records into bytes."""

    def serialize(self, element: Any) -> bytes:
        """Return a record as bytes.

        Raises:
            FormatError: If the record cannot be written.
        """
        raise NotImplementedError


class DeserializationSchema:
    """Turns bytes into records."""

    def deserialize(self, message: bytes) -> Any:
        """Convert bytes to a record, or return None to skip it.

        Raises:
            FormatError: If the bytes cannot be read.
        """
        raise NotImplementedError

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether a record says that nothing more will come."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


def produced_type_of(schema: object) -> TypeInformation | None:
    """Return the type that a schema says its records have; None for an object that only deserializes."""
    ask = getattr(schema, "get_produced_type", None)
    return ask() if callable(ask) else None


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    r"""Records that are strings.

    Args:
        charset: How they are encoded.

    Raises:
        ConfigurationError: If the charset does not exist.

    Example:
        >>> SimpleStringSchema().serialize("Zürich")
        b'Z\xc3\xbcrich'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = _known_charset(charset)

    def serialize(self, element: str) -> bytes:
        """Return the encoded string."""
        try:
            return element.encode(self._charset)
        except (AttributeError, UnicodeEncodeError):
            raise FormatError(f"expected a str that {self._charset} can write", example=element) from None

    def deserialize(self, message: bytes) -> str:
        """Return the decoded string."""
        try:
            return message.decode(self._charset)
        except UnicodeDecodeError as error:
            raise FormatError(f"expected {self._charset}: {error.reason}", example=message) from None

    def get_produced_type(self) -> TypeInformation:
        """Return `Types.STRING()`, the type of every record."""
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Records that are bytes already."""

    def serialize(self, element: bytes) -> bytes:
        """Return the bytes unchanged."""
        return _expect_bytes(element, "ByteArraySchema")

    def deserialize(self, message: bytes) -> bytes:
        """Return the bytes unchanged."""
        return message

    def get_produced_type(self) -> TypeInformation:
        """Return the type of `bytes`."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Writes one field of a row, which must hold bytes: for the key or the value of a message.

    Args:
        field_index: The position of the field.

    Raises:
        ConfigurationError: If the position is negative.
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ConfigurationError(f"field_index: expected a position from 0; got {field_index}")
        self._field_index = field_index

    def serialize(self, element: Row | tuple[Any, ...]) -> bytes:
        """Return the bytes in the field."""
        try:
            field = element[self._field_index]
        except IndexError:
            raise FormatError(f"there is no field {self._field_index}", example=element) from None
        return b"" if field is None else _expect_bytes(field, f"field {self._field_index}")


class Encoder:
    r"""Writes records to a file, one after the other.

    Args:
        encode: Writes one record to a stream.

    Example:
        >>> import io
        >>> stream = io.BytesIO()
        >>> Encoder.simple_string_encoder().encode(("a", 1), stream)
        >>> stream.getvalue()
        b"('a', 1)\n"
    """

    def __init__(self, encode: Callable[[Any, BinaryIO], None]) -> None:
        self._encode = encode

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write one record to the stream."""
        self._encode(element, stream)

    def for_type(self, type_info: TypeInformation | None) -> Encoder:
        """Return the encoder for records of a declared type: only lines of text depend on it."""
        if isinstance(self._encode, _LineEncoder):
            return Encoder(self._encode.for_type(type_info))
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Write records a line each: those of a declared type as Java does, others as `str` does."""
        return Encoder(_LineEncoder(_known_charset(charset_name)))


class _LineEncoder:
    """A class rather than a closure, so that it pickles."""

    def __init__(self, charset: str, type_info: TypeInformation | None = None) -> None:
        self._charset = charset
        self._type_info = type_info
        self._text_of: ToText | None = None

    def for_type(self, type_info: TypeInformation | None) -> _LineEncoder:
        return _LineEncoder(self._charset, type_info)

    def __call__(self, element: Any, stream: BinaryIO) -> None:
        if self._text_of is None:  # made here, where the job has arrived: it does not pickle
            self._text_of = text_writer(self._type_info)
        stream.write(f"{self._text_of(element)}\n".encode(self._charset))

    def __reduce__(self) -> tuple[type[_LineEncoder], tuple[str, TypeInformation | None]]:
        return _LineEncoder, (self._charset, self._type_info)


class BulkWriter(Protocol):
    """Writes many records to a file as a whole, as columnar formats need it."""

    def add_element(self, element: Any) -> None:
        """Add one record to the bulk file."""

    def flush(self) -> None:
        """Write what can be written already."""

    def finish(self) -> None:
        """Write the rest, and what ends the file."""


class BulkWriterFactory(ABC):
    """Makes the writer for each file of a bulk format."""

    @property
    def can_join(self) -> bool:
        """Whether `join` is there, so that a sink can compact its files."""
        return False

    @abstractmethod
    def create(self, stream: BinaryIO) -> BulkWriter:
        """Make the writer for a file."""

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        """Write the records of several files to one: what a sink does that compacts its files. See `can_join`.

        Args:
            files: Files that writers of this factory have written. Each is closed when the next one is asked for.
            stream: The new file.

        Raises:
            UnsupportedFeatureError: Files of this format cannot be joined.
        """
        raise UnsupportedFeatureError.not_yet(f"compaction of files of {type(self).__name__}")


class RowDataBulkWriterFactory(BulkWriterFactory):
    """Makes writers for files of rows.

    Args:
        create: Makes the writer for a file.
        row_type: The type of the rows.
    """

    def __init__(self, create: Callable[[BinaryIO], BulkWriter], row_type: Any) -> None:
        self._create = create
        self._row_type = row_type

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Make the writer for a file."""
        return self._create(stream)

    @property
    def can_join(self) -> bool:
        """Whether what makes the writers can also join their files."""
        return hasattr(self._create, "join")

    def join(self, files: Iterable[IO[bytes]], stream: BinaryIO) -> None:
        """Write the records of several files to one."""
        join: Callable[[Iterable[IO[bytes]], BinaryIO], None] = getattr(self._create, "join", super().join)
        join(files, stream)

    def get_row_type(self) -> Any:
        """Return the type of the rows."""
        return self._row_type


def _known_charset(charset: str) -> str:
    try:
        "".encode(charset)
    except LookupError:
        raise ConfigurationError(f"unknown charset {charset!r}; UTF-8 is the usual one") from None
    return charset


def _expect_bytes(value: object, where: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise FormatError(f"{where}: expected bytes", example=value)
