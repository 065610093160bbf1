"""Merging the files of a chain into one, so that a copy can be built from few files.

One key group after the other: what is in memory is the largest of them, not the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from headrace.state.changes import ALL_GROUPS, ChangeReader, merge_changes, write_sections
from headrace.state.handles import StateFile
from headrace.state.sections import Section
from headrace.state.ttl import without_expired
from headrace.util import clock


def compact(files: Sequence[StateFile], path: str, now_ms: int | None = None) -> int:
    """Write what the files amount to into a new one and return its size.

    From version 0 on, it is a base, and holds nothing whose time to live is over.

    Args:
        files: Files of one chain that follow each other.
        path: Where to write.
        now_ms: The time; the wall clock's if None.
    """
    now = clock.now_ms() if now_ms is None else now_ms
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(ChangeReader.of(file))) for file in files]
        return write_sections(path, _merged(readers, now, is_full=files[0].from_version == 0))


def read_groups(
    files: Sequence[StateFile], groups: range = ALL_GROUPS
) -> Iterator[tuple[int, dict[str, Section]]]:
    """Yield key groups with all that a chain from version 0 on holds of them, one after the other.

    What has a time to live is there until a compaction has left it out.
    """
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(ChangeReader.of(file, groups))) for file in files]
        for group in sorted({group for reader in readers for group in reader.groups}):
            changes = [{name: {group: part} for name, part in r.section(group).items()} for r in readers]
            merged = merge_changes(changes, keep_removals=False)
            del changes
            yield group, {name: column[group] for name, column in merged.items() if group in column}


def _merged(
    readers: Sequence[ChangeReader], now_ms: int, *, is_full: bool
) -> Iterator[tuple[int, dict[str, Section]]]:
    for group in sorted({group for reader in readers for group in reader.groups}):
        # Nothing here may hold on to one group while the next one is read.
        if left := _merged_group(readers, group, now_ms, is_full=is_full):
            yield group, left
        del left


def _merged_group(
    readers: Sequence[ChangeReader], group: int, now_ms: int, *, is_full: bool
) -> dict[str, Section]:
    sections = (reader.section(group) for reader in readers)
    changes = ({name: {group: entries} for name, entries in section.items()} for section in sections)
    merged = merge_changes(changes, keep_removals=not is_full)
    if is_full:
        merged = without_expired(merged, now_ms)  # the rules are those of the group, and lie in it
    return {name: column[group] for name, column in merged.items() if group in column}
