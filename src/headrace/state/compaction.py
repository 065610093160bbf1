"""Merging the files of a chain into one, so that a copy can be built from few files."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.state.changes import merge_changes, read_change, write_change
from headrace.state.handles import StateFile
from headrace.state.ttl import without_expired


def compact(files: Sequence[StateFile], path: str, now_ms: int | None = None) -> int:
    """Write what the files amount to into a new one and return its size.

    From version 0 on, it is a base, and holds nothing whose time to live is over.

    Args:
        files: Files of one chain that follow each other.
        path: Where to write.
        now_ms: The time; the wall clock's if None.
    """
    is_full = files[0].from_version == 0
    merged = merge_changes((read_change(file.path) for file in files), keep_removals=not is_full)
    return write_change(path, without_expired(merged, now_ms) if is_full else merged)
