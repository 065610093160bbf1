"""How values of state become bytes: by their declared type where that is quicker, pickled otherwise.

Called once per key and epoch, both ways, so what is returned are plain functions around one C call each.
Encoded values carry no type: they are read back with the codec of the same declaration. Whole numbers of
every width take eight bytes, so a state may later be declared wider.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

from headrace.common.plain_pickle import Loads
from headrace.common.typeinfo import BasicType, BasicTypeInfo, PrimitiveArrayTypeInfo, TypeInformation
from headrace.errors import StateTypeError, shorten

__all__ = ["Codec", "Decode", "Encode", "encode_all", "named_codec", "value_codec"]

Encode: TypeAlias = Callable[[Any], bytes]
Decode: TypeAlias = Callable[[bytes], Any]
Codec: TypeAlias = tuple[Encode, Decode]

_LONG: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32}


def value_codec(type_info: TypeInformation | None) -> Codec:
    """Return the functions that encode and decode values of a declared type.

    Args:
        type_info: The declared type, or None if there is none.

    Returns:
        `encode(value) -> bytes` and `decode(bytes) -> value`. Encoding a value that does not fit the type
        raises `StateTypeError`; with pickled types, pickle's own errors come through.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> encode, decode = value_codec(Types.LONG())
        >>> decode(encode(42))
        42
    """
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC.get(type_info.basic_type, _PICKLED)
    if isinstance(type_info, PrimitiveArrayTypeInfo) and type_info.element_type == _BYTE:
        return _encode_bytes, bytes
    return _PICKLED


def encode_all(encode: Encode, values: Collection[Any]) -> list[bytes]:
    """Return what ``encode`` makes of each value.

    Without a call of Python's for each value, where the codec is a call in C and some handling of errors. An error may
    be another one than that of ``encode``, and does not say which value it is about.
    """
    return list(map(_IN_C.get(encode, encode), values))


def named_codec(type_name: str | None, loads: Loads = pickle.loads) -> Codec:
    """Return the functions of a type that is known by how it prints; None for an undeclared one.

    Args:
        type_name: How the declared type prints.
        loads: Reads pickled values.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> named_codec("LONG")[1](value_codec(Types.LONG())[0](42))
        42
    """
    if type_name == _BYTES.summary():
        return _encode_bytes, bytes
    if type_name is not None and type_name in BasicType.__members__:
        return _BASIC.get(BasicType[type_name], (_PICKLED[0], loads))
    return _PICKLED[0], loads


_BYTE: Final = BasicTypeInfo.BYTE_TYPE_INFO()
_BYTES: Final = PrimitiveArrayTypeInfo(_BYTE)
_PICKLED: Final[Codec] = (partial(pickle.dumps, protocol=5), pickle.loads)


def _refuse(declared: str, expected: str, value: object) -> NoReturn:
    raise StateTypeError(
        f"a value of type {declared} must be {expected}; got {type(value).__name__}: {shorten(value)}",
        hint="declare the type the values have; Types.PICKLED_BYTE_ARRAY() takes any",
    ) from None


def _encode_string(value: str, _encode: Callable[[str], bytes] = str.encode) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, as JSON may contain
        return value.encode("utf-8", "surrogatepass")
    except TypeError:
        _refuse("STRING", "a str", value)


def _decode_string(data: bytes, _decode: Callable[[bytes], str] = bytes.decode) -> str:
    try:
        return _decode(data)
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogatepass")


def _encode_long(value: int, _pack: Callable[[int], bytes] = _LONG.pack) -> bytes:
    try:
        return _pack(value)
    except struct.error:
        _refuse("LONG", "an int of 64 bits", value)


def _decode_long(data: bytes, _unpack: Callable[[bytes], tuple[Any, ...]] = _LONG.unpack) -> Any:
    return _unpack(data)[0]


def _narrow(basic_type: BasicType) -> Codec:
    bits = _BITS[basic_type]
    limit = 1 << (bits - 1)
    pack = _LONG.pack

    def encode(value: int) -> bytes:
        try:
            if -limit <= value < limit:
                return pack(value)
        except (TypeError, struct.error):
            pass
        _refuse(basic_type.name, f"an int of {bits} bits", value)

    return encode, _decode_long


def _double(declared: str) -> Codec:
    pack, unpack = _DOUBLE.pack, _DOUBLE.unpack

    def encode(value: float) -> bytes:
        try:
            return pack(value)
        except (struct.error, OverflowError):
            _refuse(declared, "a float", value)

    def decode(data: bytes) -> Any:
        return unpack(data)[0]

    return encode, decode


_BOOLEANS: Final = {True: b"\x01", False: b"\x00"}


def _encode_boolean(value: bool, _bytes_of: Callable[[bool], bytes] = _BOOLEANS.__getitem__) -> bytes:
    try:
        return _bytes_of(value)
    except (KeyError, TypeError):
        _refuse("BOOLEAN", "True or False", value)


def _encode_bytes(value: bytes) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    _refuse("PRIMITIVE_ARRAY<BYTE>", "bytes", value)


_BASIC: Final[dict[BasicType, Codec]] = {
    BasicType.STRING: (_encode_string, _decode_string),
    BasicType.LONG: (_encode_long, _decode_long),
    BasicType.INT: _narrow(BasicType.INT),
    BasicType.SHORT: _narrow(BasicType.SHORT),
    BasicType.BYTE: _narrow(BasicType.BYTE),
    BasicType.DOUBLE: _double("DOUBLE"),
    BasicType.FLOAT: _double("FLOAT"),
    BasicType.BOOLEAN: (_encode_boolean, b"\x01".__eq__),
}
#: What encoders call, if that is all they do with a value that they accept.
_IN_C: Final[dict[Encode, Encode]] = {
    _encode_string: str.encode,
    _encode_long: _LONG.pack,
}
