"""What an epoch changed in keyed state, and the file it is written to.

A change holds, per state and key group, the storage keys that were touched with their new value (None: removed). A
file is cut by key group, so that a subtask of another parallelism reads its part only.

    file:  magic, format version | section of key group a | section of b | ... | index | index length, checksum
"""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterable, Sequence

from headrace.errors import StateError
from headrace.state.files import read_file, write_new_file

_MAGIC = b"HRSTATE1"
_FOOTER = struct.Struct(">II")
#: Bytes of a storage key that hold its key group.
KEY_GROUP_BYTES = 2
KEY_GROUP_PREFIX = tuple(struct.pack(">H", group) for group in range(1 << 15))


#: Storage keys and the new value bytes of each (None: removed). No key stands twice.
Section = tuple[list[bytes], list[bytes | None]]
#: The touched entries of one state, by key group.
Column = dict[int, Section]
#: State name to its touched entries.
StateChange = dict[str, Column]


def column_of(keys: Sequence[bytes], values: Sequence[bytes | None]) -> Column:
    """Cut entries by the key group that their storage keys begin with."""
    column: Column = {}
    for key, value in zip(keys, values, strict=True):
        group = key[0] << 8 | key[1]
        section = column.get(group)
        if section is None:
            section = column[group] = ([], [])
        section[0].append(key)
        section[1].append(value)
    return column


def write_change(path: str, change: StateChange) -> int:
    """Write a change to a new file and return its size in bytes."""
    parts = [_MAGIC]
    offset = len(_MAGIC)
    index: dict[int, tuple[int, int, int]] = {}
    for group in sorted(set().union(*change.values())):
        sections = {name: column[group] for name, column in change.items() if group in column}
        data = pickle.dumps(sections, protocol=5)
        index[group] = (offset, len(data), zlib.crc32(data))
        parts.append(data)
        offset += len(data)
    encoded_index = pickle.dumps(index, protocol=5)
    parts += [encoded_index, _FOOTER.pack(len(encoded_index), zlib.crc32(encoded_index))]
    data = b"".join(parts)
    write_new_file(path, data)
    return len(data)


def read_change(path: str, groups: range | None = None) -> StateChange:
    """Read a change back, all of it or the given key groups only."""
    data = read_file(path)
    if data[: len(_MAGIC)] != _MAGIC or len(data) < len(_MAGIC) + _FOOTER.size:
        raise StateError(f"{path} is not a state file of this version, or was cut short")
    index_length, index_sum = _FOOTER.unpack(data[-_FOOTER.size :])
    encoded_index = data[-_FOOTER.size - index_length : -_FOOTER.size]
    if zlib.crc32(encoded_index) != index_sum:
        raise StateError(f"{path} is damaged: the checksum of its index does not match")
    change: StateChange = {}
    for group, (offset, length, checksum) in sorted(pickle.loads(encoded_index).items()):
        if groups is not None and group not in groups:
            continue
        section = data[offset : offset + length]
        if zlib.crc32(section) != checksum:
            raise StateError(f"{path} is damaged: the checksum of key group {group} does not match")
        for name, entries in pickle.loads(section).items():
            change.setdefault(name, {})[group] = entries
    return change


def merge_changes(changes: Iterable[StateChange], *, keep_removals: bool) -> StateChange:
    """Lay changes over each other, the later one winning. A base needs no memory of what was removed."""
    merged: dict[str, dict[bytes, bytes | None]] = {}
    for change in changes:
        for name, column in change.items():
            entries = merged.setdefault(name, {})
            for keys, values in column.values():
                entries.update(zip(keys, values, strict=True))
    if not keep_removals:
        for name, entries in merged.items():
            merged[name] = {key: value for key, value in entries.items() if value is not None}
    return {name: column_of(list(entries), list(entries.values())) for name, entries in merged.items()}
