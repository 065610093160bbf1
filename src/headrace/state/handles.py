"""Names for state at a version: a chain of immutable files that together rebuild it.

    version   0 ......... 12   13   14
    chain     [== base ==]  [c] [c]          base: everything up to 12; c: the keys one epoch changed

A chain is small and travels: the report of a subtask adds a file to it, the plan of the next epoch carries it, a
checkpoint writes it down. A host whose local copy is older applies the files it lacks; one without a copy all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


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

    def since(self, version: int) -> tuple[StateFile, ...]:
        """Return the files that lead from a local copy at ``version`` to this chain's version.

        A change may overlap what the copy already has (changes hold values, not differences); a base in the result
        means the copy must be emptied first.
        """
        return tuple(file for file in self.files if file.to_version > version)
