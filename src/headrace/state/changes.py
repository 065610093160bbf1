"""What an epoch changed in keyed state, and the file it is written to.

A change holds, per state and key group, the storage keys that were touched with their new value (None: removed). A
file is cut by key group, so that a subtask of another parallelism reads its part only.

    file:  magic, format version | section of key group a | section of b | ... | index | index length, checksum

Sections and index are msgpack (`state/sections.py`): reading a file runs no code, whoever wrote it.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Self, cast

import msgspec

from headrace.errors import DamagedStateError, StateError
from headrace.state.handles import StateFile
from headrace.state.row_sets import RowSet
from headrace.state.sections import Section, decode_sections, encode_sections, rows_in
from headrace.storage.files import new_file, open_file

_MAGIC = b"HRSTATE2"
#: Files of this format held pickles. No released version wrote them.
_FIRST_MAGIC = b"HRSTATE1"
_FOOTER = struct.Struct(">II")
#: Bytes of a storage key that hold its key group.
KEY_GROUP_BYTES = 2
ALL_GROUPS = range(1 << 15)
KEY_GROUP_PREFIX = tuple(struct.pack(">H", group) for group in ALL_GROUPS)

#: Place, length and checksum of each key group's section.
_Index = dict[int, tuple[int, int, int]]
_index_decoder = msgspec.msgpack.Decoder(_Index)

#: The touched entries of one state, by key group.
Column = dict[int, Section]
#: State name to its touched entries.
StateChange = dict[str, Column]


def column_of(keys: Sequence[bytes], values: Sequence[bytes | None]) -> Column:
    """Cut entries by the key group that their storage keys begin with."""
    sections: defaultdict[bytes, Section] = defaultdict(lambda: ([], []))
    for key, value in zip(keys, values, strict=True):
        section_keys, section_values = sections[key[:KEY_GROUP_BYTES]]
        section_keys.append(key)
        section_values.append(value)
    return {int.from_bytes(prefix): section for prefix, section in sections.items()}


def write_change(path: str, change: StateChange) -> int:
    """Write a change to a new file and return its size in bytes."""
    groups = sorted(set().union(*change.values()))
    return write_sections(
        path,
        (
            (group, {name: column[group] for name, column in change.items() if group in column})
            for group in groups
        ),
    )


def write_sections(path: str, sections: Iterable[tuple[int, dict[str, Section]]]) -> int:
    """Write a change to a new file, one key group after the other, and return its size in bytes.

    Args:
        path: Where to write.
        sections: Key groups, each once, with their touched entries by the name of the state.
    """
    index: _Index = {}
    with new_file(path) as stream:
        offset = stream.write(_MAGIC)
        for group, entries in sections:
            data = encode_sections(entries)
            index[group] = (offset, len(data), zlib.crc32(data))
            stream.write(data)
            offset += len(data)
            del entries, data  # while the next group is made
        encoded_index = msgspec.msgpack.encode(index)
        stream.write(encoded_index)
        stream.write(_FOOTER.pack(len(encoded_index), zlib.crc32(encoded_index)))
    return offset + len(encoded_index) + _FOOTER.size


class ChangeReader:
    """A change file, read one key group at a time: it may be larger than memory. To be closed.

    Args:
        path: The file.
        groups: The key groups that count; None for all that are in it.
    """

    def __init__(self, path: str, groups: range | None = None) -> None:
        self._path = path
        self._stream = open_file(path)
        try:
            index = self._read_index()
            self._index = {
                group: place for group, place in index.items() if groups is None or group in groups
            }
        except BaseException:
            self._stream.close()
            raise

    @classmethod
    def of(cls, file: StateFile, groups: range = ALL_GROUPS) -> Self:
        """Open a file of a chain for the key groups that count in it."""
        return cls(file.path, file.groups_within(groups))

    @property
    def groups(self) -> list[int]:
        """The key groups that the file has something of, in order."""
        return sorted(self._index)

    def section(self, group: int) -> dict[str, Section]:
        """Return the touched entries of a key group by the name of the state."""
        if group not in self._index:
            return {}
        offset, length, checksum = self._index[group]
        self._stream.seek(offset)
        section = self._stream.read(length)
        if zlib.crc32(section) != checksum:
            raise DamagedStateError(
                f"{self._path} is damaged: the checksum of key group {group} does not match"
            )
        try:
            return decode_sections(section)
        except (ValueError, LookupError) as error:
            raise StateError(
                f"{self._path} is damaged: key group {group} cannot be decoded: {error}", retryable=False
            ) from error

    def close(self) -> None:
        self._stream.close()

    def _read_index(self) -> _Index:
        size = self._stream.seek(0, io.SEEK_END)
        self._stream.seek(0)
        magic = self._stream.read(len(_MAGIC))
        if magic == _FIRST_MAGIC:
            raise StateError(
                f"{self._path} was written by an older version of headrace, in a format that this version cannot read",
                hint="start the job without this checkpoint, or use the version of headrace that wrote it",
                retryable=False,
            )
        if magic != _MAGIC or size < len(_MAGIC) + _FOOTER.size:
            raise DamagedStateError(f"{self._path} is not a state file of this version, or is truncated")
        self._stream.seek(size - _FOOTER.size)
        length, checksum = _FOOTER.unpack(self._stream.read(_FOOTER.size))
        start = size - _FOOTER.size - length
        self._stream.seek(max(start, 0))
        encoded = self._stream.read(length)
        if start < 0 or zlib.crc32(encoded) != checksum:
            raise DamagedStateError(f"{self._path} is damaged: the checksum of its index does not match")
        try:
            return _index_decoder.decode(encoded)
        except msgspec.MsgspecError as error:
            raise DamagedStateError(
                f"{self._path} is damaged: its index cannot be decoded: {error}"
            ) from error


def read_change(path: str, groups: range | None = None) -> StateChange:
    """Read a change back, all of it or the given key groups only."""
    with closing(ChangeReader(path, groups)) as reader:
        return _read_all(reader)


def _read_all(reader: ChangeReader) -> StateChange:
    change: StateChange = {}
    for group in reader.groups:
        for name, entries in reader.section(group).items():
            change.setdefault(name, {})[group] = entries
    return change


def merge_changes(changes: Iterable[StateChange], *, keep_removals: bool) -> StateChange:
    """Lay changes over each other, the later one winning. A base needs no memory of what was removed.

    The entries come in the order of their keys, as stores like to have them.
    """
    merged: dict[str, dict[bytes, bytes | None]] = {}
    tables: dict[str, dict[int, list[RowSet]]] = {}
    for change in changes:
        for name, column in change.items():
            for group, section in column.items():
                rows = rows_in(section)
                if rows is not None:
                    tables.setdefault(name, {}).setdefault(group, []).append(rows)
                else:
                    keys, values = section
                    merged.setdefault(name, {}).update(zip(keys, values, strict=True))
    if not keep_removals:
        for name, entries in merged.items():
            merged[name] = {key: value for key, value in entries.items() if value is not None}
    return {
        **{name: _sorted_column(entries) for name, entries in merged.items()},
        **{name: _merged_tables(parts, keep_removals=keep_removals) for name, parts in tables.items()},
    }


def table_change(tables: Mapping[str, RowSet], max_parallelism: int) -> StateChange:
    """Return the touched rows of columnar state as a change, cut by key group."""
    return {
        name: cast(Column, dict(rows.by_group(max_parallelism))) for name, rows in tables.items() if len(rows)
    }


def _merged_tables(parts: Mapping[int, Sequence[RowSet]], *, keep_removals: bool) -> Column:
    merged = {group: RowSet.merged(sets, keep_removals=keep_removals) for group, sets in parts.items()}
    return cast(Column, {group: rows for group, rows in merged.items() if len(rows)})


def _sorted_column(entries: dict[bytes, bytes | None]) -> Column:
    keys = sorted(entries)
    return column_of(keys, list(map(entries.__getitem__, keys)))
