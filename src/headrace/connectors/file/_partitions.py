"""The partitions of a table of files: directories `day=2024-02-29/hour=8`, one level for each column."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from headrace.storage.locations import Location
from headrace.storage.store import EntryKind

__all__ = ["list_partitions"]


def list_partitions(table: Location, keys: Sequence[str]) -> list[dict[str, str]]:
    """Return the values of each partition's columns, as its directories say them, in order."""
    if not keys:
        return [{}]
    key, rest = keys[0], keys[1:]
    found = []
    for entry in sorted(table.store.entries(table.path), key=lambda each: each.path):
        name, _, value = entry.name.partition("=")
        if entry.kind is EntryKind.DIRECTORY and name == key:
            below = list_partitions(Location(table.root, entry.path), rest)
            found += [{key: unquote(value), **each} for each in below]
    return found
