"""The names of the entries of keyed state in the store.

    value     group | key                       list     group | length, key | version of the chunk
    map       group | length, key | map key     (an entry's map key is kept with its value, to be iterated)

Where state is kept per namespace, the namespace follows the key.

The group comes first, so a key group is a range of keys; LMDB bounds a key to 511 bytes, so long ones are digests.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from itertools import repeat
from operator import add
from typing import Any, Protocol
from zlib import crc32

from headrace.common.plain_pickle import Loads
from headrace.state.changes import KEY_GROUP_PREFIX
from headrace.state.key_groups import SPREAD, key_groups_of
from headrace.state.keys import STRING_SEED, STRING_TAG, all_strings, encode_key, shorten

STRING_PREFIX = tuple(prefix + STRING_TAG for prefix in KEY_GROUP_PREFIX)
_LONE_KEY_LIMIT = 480
_KEY_LIMIT = 200
_NAMESPACE_LIMIT = 60
_MAP_KEY_LIMIT = 200
_length = struct.Struct(">H")
_pack_length = _length.pack
_version = struct.Struct(">Q")
_pack_version = _version.pack
#: How many bytes of a chunk's storage key say its version; they come last.
VERSION_SIZE = _version.size
_entry_header = struct.Struct(">I")


class KeyScheme(Protocol):
    """How the keys of a table are turned into storage keys."""

    def storage_key(self, key: Any) -> bytes:
        """Return what the single entry of a key is called."""

    def storage_keys(self, keys: list[Any]) -> list[bytes]:
        """Return what the entries of many keys are called."""

    def prefix(self, key: Any) -> bytes:
        """Return what all entries of a key begin with, and no other key's."""


class PlainKeys:
    """Keys as they are: the state of user functions."""

    def __init__(self, max_parallelism: int) -> None:
        self._max_parallelism = max_parallelism

    def storage_key(self, key: Any) -> bytes:
        if type(key) is str and key.isascii() and len(key) < _LONE_KEY_LIMIT:
            # What follows, written out for the most common keys.
            text = key.encode()
            return STRING_PREFIX[(crc32(text, STRING_SEED) * SPREAD >> 16) % self._max_parallelism] + text
        encoded = encode_key(key)
        return group_prefix(encoded, self._max_parallelism) + shorten(encoded, _LONE_KEY_LIMIT)

    def storage_keys(self, keys: list[Any]) -> list[bytes]:
        if not all_strings(keys) or max(map(len, keys)) * 4 >= _LONE_KEY_LIMIT:
            return list(map(self.storage_key, keys))
        try:
            texts = list(map(str.encode, keys))
        except UnicodeEncodeError:
            return list(map(self.storage_key, keys))
        groups = key_groups_of(map(crc32, texts, repeat(STRING_SEED)), len(texts), self._max_parallelism)
        return list(map(add, map(STRING_PREFIX.__getitem__, groups.tolist()), texts))

    def prefix(self, key: Any) -> bytes:
        encoded = encode_key(key)
        return group_prefix(encoded, self._max_parallelism) + with_length(shorten(encoded, _KEY_LIMIT))


class NamespacedKeys:
    """Pairs of a key and a namespace (a window): state of a key that is kept apart per namespace.

    The group is that of the key alone, so that a key's windows stay together.
    """

    def __init__(self, max_parallelism: int, encode_namespace: Callable[[Any], bytes]) -> None:
        self._max_parallelism = max_parallelism
        self._encode_namespace = encode_namespace

    def storage_key(self, key: Any) -> bytes:
        encoded = encode_key(key[0])
        return b"".join(
            (
                group_prefix(encoded, self._max_parallelism),
                with_length(shorten(encoded, _KEY_LIMIT)),
                with_length(shorten(self._encode_namespace(key[1]), _NAMESPACE_LIMIT)),
            )
        )

    def storage_keys(self, keys: list[Any]) -> list[bytes]:
        return list(map(self.storage_key, keys))

    def prefix(self, key: Any) -> bytes:
        return self.storage_key(key)


def group_prefix(encoded_key: bytes, max_parallelism: int) -> bytes:
    """Return the bytes of the key group that a key belongs to."""
    return KEY_GROUP_PREFIX[(crc32(encoded_key) * SPREAD >> 16) % max_parallelism]


def chunk_key(prefix: bytes, version: int) -> bytes:
    """Return what the chunk of a list is called that was appended by one epoch."""
    return prefix + _pack_version(version)


def map_key(prefix: bytes, key_in_map: Any) -> bytes:
    """Return what one entry of a map is called."""
    return prefix + shorten(encode_key(key_in_map), _MAP_KEY_LIMIT)


def with_length(part: bytes) -> bytes:
    """Put the length before a part, so that no part is the beginning of another."""
    return _pack_length(len(part)) + part


def part_at(data: bytes, start: int) -> tuple[bytes, int]:
    """Return the part that `with_length` put at a place, and where it ends."""
    (length,) = _length.unpack_from(data, start)
    end = start + _length.size + length
    return data[start + _length.size : end], end


def pack_map_entry(key_in_map: Any, value: bytes) -> bytes:
    """Put the map key and the encoded value into one."""
    encoded = pickle.dumps(key_in_map, protocol=5)
    return _entry_header.pack(len(encoded)) + encoded + value


def unpack_map_value(entry: bytes) -> bytes:
    """Return the encoded value of an entry."""
    (length,) = _entry_header.unpack_from(entry)
    return entry[_entry_header.size + length :]


def unpack_map_entry(entry: bytes, loads: Loads = pickle.loads) -> tuple[Any, bytes]:
    """Return the map key, which ``loads`` reads, and the encoded value of an entry."""
    (length,) = _entry_header.unpack_from(entry)
    start = _entry_header.size
    return loads(entry[start : start + length]), entry[start + length :]
