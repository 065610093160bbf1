"""Failures that Flink's own client can read: an object of `SerializedThrowable`, as Java serializes it.

Flink's command line reads the failure of a savepoint from such an object and from nothing else. Java's stream format
lets a field be left out, which is then null; so the object has just its message, the class and the stack trace.

    magic, version | object: class description (fields) of SerializedThrowable, Exception, Throwable | their values,
                                                                                                        Throwable first
"""

from __future__ import annotations

import base64
import struct

_MAGIC = b"\xac\xed\x00\x05"
_NULL = b"\x70"
_OBJECT, _CLASS, _STRING, _LONG_STRING, _END = b"\x73", b"\x72", b"\x74", b"\x7c", b"\x78"
#: The class is serializable, and has no way of its own to write.
_SERIALIZABLE = b"\x02"
#: What Flink and Java declare: another number and the object would be refused.
_SERIALIZED_THROWABLE = ("org.apache.flink.util.SerializedThrowable", 7284183123441947635)
_EXCEPTION = ("java.lang.Exception", -3387516993124229948)
_THROWABLE = ("java.lang.Throwable", -3042686055658047285)


def serialized_throwable(class_name: str, message: str, stack_trace: str) -> str:
    """Return the object in base 64, as Flink's JSON has it."""
    descriptions = (
        _class(*_SERIALIZED_THROWABLE, ("fullStringifiedStackTrace", "originalErrorClassName"))
        + _class(*_EXCEPTION, ())
        + _class(*_THROWABLE, ("detailMessage",))
        + _NULL
    )
    values = _string(message) + _string(stack_trace) + _string(class_name)
    return base64.b64encode(_MAGIC + _OBJECT + descriptions + values).decode("ascii")


def _class(name: str, version: int, strings: tuple[str, ...]) -> bytes:
    fields = b"".join(b"L" + _short(field) + _string("Ljava/lang/String;") for field in strings)
    return (
        _CLASS
        + _short(name)
        + struct.pack(">q", version)
        + _SERIALIZABLE
        + struct.pack(">H", len(strings))
        + fields
        + _END
    )


def _short(text: str) -> bytes:
    data = text.encode("ascii")
    return struct.pack(">H", len(data)) + data


def _string(text: str) -> bytes:
    data = _modified_utf8(text)
    if len(data) < 0x10000:
        return _STRING + struct.pack(">H", len(data)) + data
    return _LONG_STRING + struct.pack(">Q", len(data)) + data


def _modified_utf8(text: str) -> bytes:
    """Encode as Java does: zero takes two bytes, and what is beyond 16 bits goes as a pair of surrogates."""
    units = text.encode("utf-16-be", "surrogatepass")
    encoded = bytearray()
    for (unit,) in struct.iter_unpack(">H", units):
        if 0 < unit < 0x80:
            encoded.append(unit)
        elif unit < 0x800:
            encoded += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            encoded += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return bytes(encoded)
