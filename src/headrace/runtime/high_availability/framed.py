"""Small files that can be checked for damage: magic, length, checksum, then a struct as msgpack."""

from __future__ import annotations

import struct
import zlib
from typing import TypeVar

import msgspec

from headrace.errors import DamagedStateError
from headrace.storage.files import read_file

_HEAD = struct.Struct(">8sQI")

T = TypeVar("T", bound=msgspec.Struct)


def frame(value: msgspec.Struct, magic: bytes) -> bytes:
    """Return the content of a file that holds a struct.

    Args:
        value: The struct.
        magic: Eight bytes that say what kind of file it is, and in which version.
    """
    body = msgspec.msgpack.encode(value)
    return _HEAD.pack(magic, len(body), zlib.crc32(body)) + body


def read_framed(path: str, kind: type[T], magic: bytes, *, hint: str) -> T:
    """Read a file that `frame` made.

    Raises:
        DamagedStateError: If it was cut short or changed, or is something else; the hint says what to do then.
    """
    data = read_file(path)
    body = data[_HEAD.size :]
    if len(data) < _HEAD.size or _HEAD.unpack_from(data) != (magic, len(body), zlib.crc32(body)):
        raise DamagedStateError(
            f"{path} is damaged, or was written by another version of headrace", hint=hint
        )
    return msgspec.msgpack.decode(body, type=kind)
