"""The raw format: a message is one value, as its bytes. Flink's `raw`.

Strings are encoded in a charset; numbers are as wide as their type, big-endian by default.
"""

from __future__ import annotations

import struct
from typing import Any, Literal

from headrace.common.serialization import SerializationSchema, _known_charset
from headrace.common.typeinfo import BasicType, BasicTypeInfo, RowTypeInfo, TypeInformation, Types
from headrace.common.types import make_row
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, JobDefinitionError
from headrace.formats.base import FormatDeserializationSchema
from headrace.types.logical import RowType
from headrace.types.type_information import type_information

Endianness = Literal["big-endian", "little-endian"]

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_CODES = {
    BasicType.BOOLEAN: "?",
    BasicType.BYTE: "b",
    BasicType.SHORT: "h",
    BasicType.INT: "i",
    BasicType.LONG: "q",
    BasicType.FLOAT: "f",
    BasicType.DOUBLE: "d",
}


class _RawValue:
    """The bytes of one value of a type."""

    def __init__(self, type_info: TypeInformation, charset: str, endianness: str) -> None:
        if endianness not in ("big-endian", "little-endian"):
            raise JobDefinitionError(
                f"raw: endianness must be big-endian or little-endian; got {endianness!r}"
            )
        self._charset = _known_charset(charset)
        self._type_info = type_info
        #: How the struct module calls a number; None for texts and bytes.
        self._code: str | None = None
        basic = type_info.basic_type if isinstance(type_info, BasicTypeInfo) else None
        if basic in _CODES:
            self._code = (">" if endianness == "big-endian" else "<") + _CODES[basic]
        elif basic not in (BasicType.STRING, BasicType.CHAR) and type_info != _BYTES:
            raise JobDefinitionError(
                f"raw: {type_info.summary()} cannot be used with the raw format",
                hint="use bytes, a string, a boolean or a number",
            )

    def read(self, message: bytes) -> Any:
        if self._code is not None:
            if len(message) != struct.calcsize(self._code):
                raise FormatError(
                    f"raw: expected {struct.calcsize(self._code)} bytes for {self._type_info.summary()}; "
                    f"got {len(message)}",
                    example=message,
                )
            return struct.unpack(self._code, message)[0]
        if self._type_info == _BYTES:
            return message
        try:
            return message.decode(self._charset)
        except UnicodeDecodeError as error:
            raise FormatError(f"raw: expected {self._charset}: {error.reason}", example=message) from None

    def write(self, value: Any) -> bytes:
        try:
            if self._code is not None:
                return struct.pack(self._code, value)
            return bytes(value) if self._type_info == _BYTES else value.encode(self._charset)
        except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as error:
            raise FormatError(f"raw: expected {self._type_info.summary()}: {error}", example=value) from None


def _inner_type(type_info: TypeInformation) -> tuple[TypeInformation, tuple[str, ...] | None]:
    """Return the type of the value, and the name of the field if it stands in a row."""
    if not isinstance(type_info, RowTypeInfo):
        return type_info, None
    types = type_info.get_field_types()
    if len(types) != 1:
        raise JobDefinitionError(f"raw: a row must have one field; got {type_info.summary()}")
    return types[0], tuple(type_info.get_field_names())


class RawDeserializationSchema(FormatDeserializationSchema):
    """Reads a message as one value, or as a row of one field.

    Args:
        type_info: The type of the value, or of a row that has it as its only field.
        charset: How texts are encoded.
        endianness: Which byte of a number comes first.
        ignore_parse_errors: Whether messages that cannot be read are left out.

    Raises:
        JobDefinitionError: The type cannot be used with the raw format.

    Example:
        >>> RawDeserializationSchema(Types.INT()).deserialize(bytes([0, 0, 1, 0]))
        256
    """

    def __init__(
        self,
        type_info: TypeInformation,
        *,
        charset: str = "UTF-8",
        endianness: Endianness = "big-endian",
        ignore_parse_errors: bool = False,
    ) -> None:
        super().__init__(type_info, ignore_parse_errors=ignore_parse_errors)
        inner, self._names = _inner_type(type_info)
        self._value = _RawValue(inner, charset, endianness)

    def parse(self, message: bytes) -> Any:
        """Return the value.

        Raises:
            FormatError: The bytes are too many, too few, or not in the charset.
        """
        value = self._value.read(message)
        return value if self._names is None else make_row(self._names, [value], 0)


class RawSerializationSchema(SerializationSchema):
    r"""Writes one value, or the only field of a row, as its bytes.

    Args:
        type_info: The type of the value, or of a row that has it as its only field.
        charset: How texts are encoded.
        endianness: Which byte of a number comes first.

    Raises:
        JobDefinitionError: The type cannot be used with the raw format.

    Example:
        >>> RawSerializationSchema(Types.SHORT(), endianness="little-endian").serialize(1)
        b'\x01\x00'
    """

    def __init__(
        self, type_info: TypeInformation, *, charset: str = "UTF-8", endianness: Endianness = "big-endian"
    ) -> None:
        inner, self._names = _inner_type(type_info)
        self._value = _RawValue(inner, charset, endianness)

    def serialize(self, element: Any) -> bytes:
        """Return the bytes.

        Raises:
            FormatError: The value is not of the type.
        """
        return self._value.write(element if self._names is None else element[0])


class RawFormat:
    """'format' = 'raw': the one column is the message."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options

    def reader(self, row_type: RowType) -> RawDeserializationSchema:
        return RawDeserializationSchema(
            type_information(row_type), charset=self._charset(), endianness=self._endianness()
        )

    def writer(self, row_type: RowType) -> RawSerializationSchema:
        return RawSerializationSchema(
            type_information(row_type), charset=self._charset(), endianness=self._endianness()
        )

    def _charset(self) -> str:
        return self._options.text("charset", "UTF-8") or "UTF-8"

    def _endianness(self) -> Endianness:
        given = self._options.text("endianness", "big-endian")
        if given == "little-endian":
            return "little-endian"
        if given != "big-endian":
            raise self._options.wrong("endianness", "big-endian or little-endian")
        return "big-endian"
