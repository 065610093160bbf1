"""Keys as bytes: one canonical encoding, the same in every process, on every machine, in every version.

Equal keys have equal bytes, so the bytes decide the key group and are the key of the state store. Numbers follow
Python's equality (``1``, ``1.0`` and ``True`` are one key), because records meet in Python dictionaries as well.
Objects that compare by identity have no stable form and are refused.
"""

from __future__ import annotations

import copyreg
import datetime
import hashlib
import math
import struct
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import repeat
from typing import Any
from zlib import crc32

from headrace.common.types import Row, RowKind
from headrace.errors import KeyTypeError, StateError

_pack_i64 = struct.Struct(">Q").pack
_pack_f64 = struct.Struct(">d").pack
_pack_u32 = struct.Struct(">I").pack

#: Sign flip: signed 64-bit integers sort as their big-endian bytes do.
_SIGN = 1 << 63
STRING_TAG = b"s"
#: The hash of the tag: what the hash of a string continues from.
STRING_SEED = crc32(STRING_TAG)


def encode_key(key: Any) -> bytes:
    """Return the canonical bytes of a key.

    >>> encode_key("a"), encode_key(1) == encode_key(1.0)
    (b'sa', True)
    """
    if type(key) is str:
        return STRING_TAG + _utf8(key)
    encoder = _ENCODERS.get(type(key))
    return encoder(key) if encoder is not None else _encode_other(key)


def hash_key(key: Any) -> int:
    """Return the stable 32-bit hash of a key."""
    return crc32(encode_key(key))


def hash_keys(keys: Collection[Any]) -> Iterable[int]:
    """Return the stable hashes of many keys, in C for strings."""
    if all_strings(keys):
        try:
            return map(crc32, list(map(str.encode, keys)), repeat(STRING_SEED))
        except UnicodeEncodeError:
            pass
    return [crc32(encode_key(key)) for key in keys]


def all_strings(keys: Iterable[Any]) -> bool:
    """Whether every key is exactly a ``str``."""
    return set(map(type, keys)) == {str}


def shorten(encoded: bytes, limit: int) -> bytes:
    """Bound the length of an encoded key: a long one becomes a digest (the store limits its keys)."""
    if len(encoded) <= limit:
        return encoded
    return b"\xff" + hashlib.blake2b(encoded, digest_size=32).digest()


@dataclass(frozen=True, slots=True)
class KeyDigest:
    """Stands for a key of which only a digest was stored, because it is long. Equal keys have equal digests."""

    digest: bytes

    def __repr__(self) -> str:
        return f"KeyDigest({self.digest.hex()[:16]}...)"


@dataclass(frozen=True, slots=True)
class ClassKey:
    """Stands for a key of a class of the user's: an enum's member, or the fields of an object that are compared.

    Keys are stored without the module of their class, so the object itself cannot be had back.
    """

    class_name: str
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.class_name}({', '.join(map(repr, self.values))})"


def decode_key(encoded: bytes) -> Any:
    """Return the key that has these bytes, as `encode_key` or `shorten` returned them.

    It is equal to the key that was encoded, but may be of another type that is equal: ``1`` for ``True``, a tuple for a
    named tuple. Where there is no equal to be had it is a `ClassKey` or a `KeyDigest`.

    >>> decode_key(encode_key(("a", 1.0, None)))
    ('a', 1, None)
    """
    decoder = _DECODERS.get(encoded[:1])
    if decoder is None:
        raise StateError(f"the bytes {encoded[:20]!r} are not an encoded key", retryable=False)
    return decoder(encoded[1:])


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _encode_int(value: int) -> bytes:
    if -_SIGN <= value < _SIGN:
        return b"i" + _pack_i64(value + _SIGN)
    length = (value.bit_length() + 8) // 8
    return b"I" + value.to_bytes(length, "big", signed=True)


def _encode_float(value: float) -> bytes:
    if value.is_integer():
        return _encode_int(int(value))
    if math.isnan(value):
        raise _no_number("NaN")
    return b"f" + _pack_f64(value)


def _encode_decimal(value: Decimal) -> bytes:
    if value.is_nan():
        raise _no_number(str(value))
    return _encode_float(float(value)) if value.is_infinite() else _encode_ratio(value)


def _encode_ratio(value: Decimal | Fraction) -> bytes:
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1:
        return _encode_int(numerator)
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    # What a float can hold is equal to that float, and so must meet it.
    if as_float == value:
        return _encode_float(as_float)
    return _encode_items(b"q", (_encode_int(numerator), _encode_int(denominator)))


def _encode_complex(value: complex) -> bytes:
    if value.imag == 0:
        return _encode_float(value.real)
    return _encode_items(b"c", (_encode_float(value.real), _encode_float(value.imag)))


def _no_number(shown: str) -> KeyTypeError:
    return KeyTypeError(
        f"{shown} is not equal to itself and cannot be a key",
        hint="filter such records out, or map them to None before key_by",
    )


def _encode_items(tag: bytes, items: Iterable[bytes]) -> bytes:
    return tag + b"".join(_pack_u32(len(item)) + item for item in items)


def _encode_tuple(value: tuple[Any, ...]) -> bytes:
    return _encode_items(b"t", map(encode_key, value))


def _encode_frozenset(value: frozenset[Any]) -> bytes:
    return _encode_items(b"S", sorted(map(encode_key, value)))


def _encode_timestamp(value: datetime.datetime) -> bytes:
    if value.utcoffset() is not None:
        value = value.astimezone(datetime.UTC)
        return b"Z" + value.isoformat().encode()
    return b"T" + value.replace(tzinfo=None).isoformat().encode()


def _encode_time(value: datetime.time) -> bytes:
    offset = value.utcoffset()
    if offset is None:
        return b"H" + value.replace(tzinfo=None).isoformat().encode()
    # Times with a zone are equal at the same moment of the day in UTC, which may lie on another day.
    since_midnight = datetime.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )
    return b"h" + _encode_duration(since_midnight - offset)


def _encode_duration(value: datetime.timedelta) -> bytes:
    return _encode_int(value // datetime.timedelta(microseconds=1))


def _encode_row(value: Row) -> bytes:
    return _encode_items(b"R", (encode_key(value.get_row_kind().name), *map(encode_key, value)))


_ENCODERS: dict[type, Any] = {
    int: _encode_int,
    bool: _encode_int,
    float: _encode_float,
    bytes: lambda value: b"b" + value,
    type(None): lambda value: b"n",
    tuple: _encode_tuple,
    frozenset: _encode_frozenset,
    Decimal: _encode_decimal,
    Fraction: _encode_ratio,
    complex: _encode_complex,
    datetime.date: lambda value: b"D" + value.isoformat().encode(),
    datetime.time: _encode_time,
    datetime.datetime: _encode_timestamp,
    datetime.timedelta: lambda value: b"L" + _encode_duration(value),
    uuid.UUID: lambda value: b"U" + value.bytes,
    Row: _encode_row,
}


#: Types whose subclasses are equal to the plain value, and how to get at that whatever the subclass overrides.
_PLAIN: dict[Any, Any] = {
    str: str.__str__,
    tuple: lambda value: tuple(tuple.__iter__(value)),
    int: int.__int__,
    float: float.__float__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
}


def _encode_other(key: Any) -> bytes:
    """Encode enums, dataclasses, named tuples, numpy scalars and user classes that define equality."""
    cls = type(key)
    if cls.__hash__ is None:
        raise _refusal(key, "is not hashable", _unhashable_hint(key))
    equality: Any = cls.__eq__
    for base, plain in _PLAIN.items():  # an IntEnum and a named tuple, too
        if isinstance(key, base) and equality is base.__eq__:
            return encode_key(plain(key))
    if isinstance(key, Enum):
        return _encode_items(b"E", (_class_name(cls), key.name.encode()))
    if is_dataclass(key) and equality is not object.__eq__:
        compared = [encode_key(getattr(key, f.name)) for f in fields(key) if f.compare]
        return _encode_items(b"C", (_class_name(cls), *compared))
    if hasattr(key, "item") and hasattr(key, "dtype"):  # numpy scalars are equal to python's
        return _encode_scalar(key)
    if equality is object.__eq__:
        raise _refusal(
            key,
            "compares by identity, so equal keys would not be grouped",
            "use a str, number, tuple or frozen dataclass, or define __eq__ and __hash__ on the class",
        )
    return _encode_by_state(key)


def _encode_scalar(key: Any) -> bytes:
    item = key.item()
    if key != key:  # noqa: PLR0124 - NaN, and numpy's NaT
        raise _no_number(str(key))
    if type(item) is type(key):
        raise _refusal(key, "has no equivalent Python type", "convert it to a float or str")
    return encode_key(item)


def _encode_by_state(key: Any) -> bytes:
    reduced = key.__reduce_ex__(2)
    if isinstance(reduced, str) or reduced[0] not in (copyreg.__newobj__, type(key)):  # type: ignore[attr-defined]
        raise _refusal(key, "has no stable encoding", "use a str, number, tuple or frozen dataclass")
    arguments = tuple(part for part in reduced[1] if not isinstance(part, type))
    state = reduced[2] if len(reduced) > 2 else None
    members = tuple(sorted(state.items())) if isinstance(state, dict) else state
    return _encode_items(b"O", (_class_name(type(key)), encode_key(arguments), encode_key(members)))


def _class_name(cls: type) -> bytes:
    # The module is left out: a class of the program's main script is called differently in a worker.
    return cls.__qualname__.encode()


def _unhashable_hint(key: Any) -> str:
    if isinstance(key, list):
        return "return tuple(x) instead"
    if isinstance(key, set):
        return "return frozenset(x) instead"
    if isinstance(key, dict):
        return "return one of its values, or tuple(sorted(x.items())) instead"
    return "define __hash__ on the class, or use a frozen dataclass"


def _refusal(key: Any, why: str, hint: str) -> KeyTypeError:
    text = repr(key)
    shown = text if len(text) <= 80 else text[:77] + "..."
    return KeyTypeError(f"key {shown} of type {type(key).__qualname__} {why}", hint=hint)


# -- back again ----------------------------------------------------------------------------------------------------


def _decode_utf8(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _decode_int(data: bytes) -> int:
    return int.from_bytes(data, "big") - _SIGN


def _decode_long_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _decode_float(data: bytes) -> float:
    (value,) = struct.unpack(">d", data)
    return float(value)


def _items(data: bytes) -> list[bytes]:
    items = []
    start = 0
    while start < len(data):
        end = start + 4 + int.from_bytes(data[start : start + 4], "big")
        items.append(data[start + 4 : end])
        start = end
    return items


def _decode_items(data: bytes) -> list[Any]:
    return list(map(decode_key, _items(data)))


def _decode_ratio(data: bytes) -> Decimal | Fraction:
    """Return a decimal where there is an exact one: more keys are decimals than fractions."""
    numerator, denominator = _decode_items(data)
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    if rest != 1:
        return Fraction(numerator, denominator)
    places = max(twos, fives)
    digits = abs(numerator) * 10**places // denominator
    return Decimal((numerator < 0, tuple(map(int, str(digits))), -places))


def _decode_zoned_time(data: bytes) -> datetime.time:
    """Return a time of day in UTC; one that lies on another day there, in a zone in which it does not."""
    moment = datetime.timedelta(microseconds=decode_key(data))
    minute, day = datetime.timedelta(minutes=1), datetime.timedelta(days=1)
    offset = datetime.timedelta(0)  # in whole minutes, as Python compares zones
    if moment < offset:
        offset = minute * -(moment // minute)
    elif moment >= day:
        offset = minute * -((moment - day) // minute + 1)
    midnight = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone(offset))
    return (midnight + moment + offset).timetz()


def _decode_row(data: bytes) -> Row:
    kind, *values = _decode_items(data)
    row = Row(*values)
    row.set_row_kind(RowKind[kind])
    return row


def _decode_enum(data: bytes) -> ClassKey:
    class_name, member = map(_decode_utf8, _items(data))
    return ClassKey(class_name, (member,))


def _decode_object(data: bytes) -> ClassKey:
    class_name, *values = _items(data)
    return ClassKey(_decode_utf8(class_name), tuple(map(decode_key, values)))


_DECODERS: dict[bytes, Callable[[bytes], Any]] = {
    STRING_TAG: _decode_utf8,
    b"i": _decode_int,
    b"I": _decode_long_int,
    b"f": _decode_float,
    b"q": _decode_ratio,
    b"c": lambda data: complex(*_decode_items(data)),
    b"b": bytes,
    b"n": lambda data: None,
    b"t": lambda data: tuple(_decode_items(data)),
    b"S": lambda data: frozenset(_decode_items(data)),
    b"D": lambda data: datetime.date.fromisoformat(data.decode()),
    b"H": lambda data: datetime.time.fromisoformat(data.decode()),
    b"h": _decode_zoned_time,
    b"T": lambda data: datetime.datetime.fromisoformat(data.decode()),
    b"Z": lambda data: datetime.datetime.fromisoformat(data.decode()),
    b"L": lambda data: datetime.timedelta(microseconds=decode_key(data)),
    b"U": lambda data: uuid.UUID(bytes=data),
    b"R": _decode_row,
    b"E": _decode_enum,
    b"C": _decode_object,
    b"O": _decode_object,
    b"\xff": KeyDigest,
}
