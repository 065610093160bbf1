"""The partitions of a table of files: directories `day=2024-02-29/hour=8`, one level for each column."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from pyarrow.fs import FileSelector, FileType

from headrace.storage.locations import Location

__all__ = ["list_partitions"]


def list_partitions(table: Location, keys: Sequence[str]) -> list[dict[str, str]]:
    """Return the values of each partition's columns, as its directories say them, in order."""
    if not keys:
        return [{}]
    key, rest = keys[0], keys[1:]
    found = []
    selector = FileSelector(table.path, allow_not_found=True)
    for info in sorted(table.file_system.get_file_info(selector), key=lambda each: each.path):
        name, _, value = info.base_name.partition("=")
        if info.type == FileType.Directory and name == key:
            below = list_partitions(Location(table.root, info.path), rest)
            found += [{key: unquote(value), **each} for each in below]
    return found
