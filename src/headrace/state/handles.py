"""Names for state at a version: a chain of immutable files that together rebuild it.

    version   0 ......... 12   13   14
    chain     [== base ==]  [c] [c]          base: everything up to 12; c: the keys one epoch changed

A chain is small and travels: the report of a subtask adds a file to it, the plan of the next epoch carries it, a
checkpoint writes it down. A host whose local copy is older applies the files it lacks; one without a copy all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.errors import StateError


@dataclass(frozen=True, slots=True)
class StateFile:
    """One immutable file of keyed state, cut by key group."""

    path: str
    #: State before this file ...
    from_version: int
    #: ... and after it. A base starts at 0 and holds everything.
    to_version: int
    size: int
    is_base: bool = False
    #: The key groups that count, the last one included; None for all that are in the file.
    groups: tuple[int, int] | None = None

    def groups_within(self, groups: range) -> range:
        """Return which of these key groups are to be read from the file."""
        if self.groups is None:
            return groups
        first, last = self.groups
        return range(max(groups.start, first), min(groups.stop, last + 1))


@dataclass(frozen=True, slots=True)
class StateChain:
    """Keyed state of one operator subtask at a version."""

    #: Changes whenever a job starts over from a checkpoint: versions of different lineages do not compare.
    lineage: str
    files: tuple[StateFile, ...] = ()

    @property
    def version(self) -> int:
        """The version this chain leads to; 0 is empty state."""
        return self.files[-1].to_version if self.files else 0

    @property
    def tip(self) -> str:
        """What the last file is called: equal tips mean equal state, whatever was tried in between."""
        return self.files[-1].path if self.files else ""

    @property
    def changes(self) -> tuple[StateFile, ...]:
        """The change files since the base."""
        return tuple(file for file in self.files if not file.is_base)

    def append(self, file: StateFile) -> StateChain:
        """Return the chain one change further."""
        return replace(self, files=(*self.files, file))

    def compacted(self, merged: StateFile) -> StateChain:
        """Return the chain with the files that ``merged`` covers replaced by it."""
        kept_before = tuple(f for f in self.files if f.to_version <= merged.from_version)
        kept_after = tuple(f for f in self.files if f.from_version >= merged.to_version)
        return replace(self, files=(*kept_before, merged, *kept_after))

    def renamed(self, names: Mapping[str, str]) -> StateChain:
        """Return the chain with some files under other paths, where the same is."""
        files = tuple(replace(file, path=names.get(file.path, file.path)) for file in self.files)
        return replace(self, files=files)

    def since(self, version: int) -> tuple[StateFile, ...]:
        """Return the files that lead from a local copy at ``version`` to this chain's version.

        A change may overlap what the copy already has (changes hold values, not differences); a base in front means
        the copy must be emptied first.

        Raises:
            StateError: If the chain starts after the copy: what is missing between them is not known.
        """
        if self.files and version < self.files[0].from_version:
            raise StateError(
                f"the local copy of state is at version {version}, and the changes since "
                f"{self.files[0].from_version} are not enough to bring it to {self.version}"
            )
        return tuple(file for file in self.files if file.to_version > version)


def rescaled_chain(
    lineage: str, parts: Sequence[tuple[range, Sequence[StateFile]]], groups: range, version: int
) -> StateChain:
    """Return the chain of a subtask that owns other key groups than those before it.

    It names the files of all who owned some of its groups, each for the groups that its owner had: what a file says
    of other groups may be older.

                               old subtask 0        old subtask 1
        groups 0-63, 64-127    [== base ==] [c]     [== base ==] [c] [c]
        new subtask, 32-95     [= base 32-63 =] [= base 64-95 =] [c 32-63] [c 64-95] [c 64-95]

    Args:
        lineage: The new one.
        parts: The groups and files of each subtask before.
        groups: The key groups of the new subtask.
        version: The version they all lead to; the chain's is one higher.
    """
    files = [
        replace(file, groups=(shared.start, shared.stop - 1))
        for owned, chain in parts
        for file in chain
        if (shared := file.groups_within(range(max(groups.start, owned.start), min(groups.stop, owned.stop))))
    ]
    bases = [replace(file, from_version=0, to_version=version) for file in files if file.is_base]
    start = version if bases else 0
    changes = [
        replace(file, from_version=start, to_version=version + 1) for file in files if not file.is_base
    ]
    return StateChain(lineage, (*bases, *changes))
