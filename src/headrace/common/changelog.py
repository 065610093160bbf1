"""Changelogs of tables: which kinds of rows an operator emits, and which of them its consumers need.

    GROUP BY          [I,UA] or [I,UB,UA]     an upsert sink takes the first, a join may need the second
      |
    scan              [I]

Inference goes over the physical tree twice. From the scans up: whether rows are inserted, updated, deleted. From
the sinks down: whether an update must come with the row as it was before (−U). What nobody needs is not
emitted. The rules are those of Flink's FlinkChangelogModeInferenceProgram.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from headrace.common.types import RowKind

__all__ = ["ALL", "INSERT_ONLY", "RETRACT", "UPSERT", "ChangelogMode"]

_SHORT: Final = {
    RowKind.INSERT: "I",
    RowKind.UPDATE_BEFORE: "UB",
    RowKind.UPDATE_AFTER: "UA",
    RowKind.DELETE: "D",
}


@dataclass(frozen=True)
class ChangelogMode:
    """The kinds of rows a changelog may have.

    Example:
        >>> str(ChangelogMode.upsert())
        '[I,UA,D]'
        >>> ChangelogMode.insert_only().is_insert_only
        True
    """

    kinds: frozenset[RowKind]

    @staticmethod
    def of(*kinds: RowKind) -> ChangelogMode:
        """Make a mode of the kinds it has."""
        return ChangelogMode(frozenset(kinds))

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Rows are added and never change."""
        return INSERT_ONLY

    @staticmethod
    def upsert() -> ChangelogMode:
        """An update is the new row alone; a key says which row it takes the place of."""
        return UPSERT

    @staticmethod
    def all() -> ChangelogMode:
        """Every kind of row."""
        return ALL

    def contains(self, kind: RowKind) -> bool:
        """Whether rows of this kind may come."""
        return kind in self.kinds

    @property
    def is_insert_only(self) -> bool:
        """Whether rows are only ever added."""
        return self.kinds <= {RowKind.INSERT}

    @property
    def has_updates(self) -> bool:
        """Whether rows may change."""
        return RowKind.UPDATE_AFTER in self.kinds

    @property
    def has_deletes(self) -> bool:
        """Whether rows may go."""
        return RowKind.DELETE in self.kinds

    @property
    def has_update_before(self) -> bool:
        """Whether an update comes with the row as it was before."""
        return RowKind.UPDATE_BEFORE in self.kinds

    def without_update_before(self) -> ChangelogMode:
        """Return the mode of the same changes, with updates as the new row alone."""
        return ChangelogMode(self.kinds - {RowKind.UPDATE_BEFORE})

    def with_update_before(self) -> ChangelogMode:
        """Return the mode of the same changes, with the row as it was before each update."""
        return ChangelogMode(self.kinds | {RowKind.UPDATE_BEFORE}) if self.has_updates else self

    def __or__(self, other: ChangelogMode) -> ChangelogMode:
        return ChangelogMode(self.kinds | other.kinds)

    def __iter__(self) -> Iterator[RowKind]:
        return iter(sorted(self.kinds, key=lambda kind: kind.value))

    def __str__(self) -> str:
        """Return the mode as EXPLAIN prints it."""
        return f"[{','.join(_SHORT[kind] for kind in self)}]" if self.kinds else "[NONE]"


def merged(modes: Iterable[ChangelogMode]) -> ChangelogMode:
    """Return the mode of several changelogs combined."""
    return ChangelogMode(frozenset(kind for mode in modes for kind in mode.kinds))


INSERT_ONLY: Final = ChangelogMode.of(RowKind.INSERT)
UPSERT: Final = ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
ALL: Final = ChangelogMode.of(*RowKind)
#: What a changelog is to a consumer that wants every change undone before it is made again.
RETRACT: Final = ALL
