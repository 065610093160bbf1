"""State files written by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.state.changes import column_of, write_change
from headrace.state.handles import StateChain, StateFile

#: Storage key -> value; None for removed. Keys begin with their key group.
Written = Mapping[bytes, bytes | None]


class ChainWriter:
    """Writes change files into a directory and keeps the chain that names them."""

    def __init__(self, directory: Path, lineage: str = "line") -> None:
        self._directory = directory
        self.chain = StateChain(lineage)

    def change(self, version: int, **states: Written) -> StateChain:
        """Append what an epoch changed."""
        self.chain = self.chain.append(self._write(f"{version}.change", self.chain.version, version, states))
        return self.chain

    def base(self, version: int, **states: Written) -> StateChain:
        """Put a base in the place of all files so far."""
        file = self._write(f"{version}.base", 0, version, states, is_base=True)
        self.chain = StateChain(self.chain.lineage, (file,))
        return self.chain

    def _write(
        self, name: str, before: int, after: int, states: Mapping[str, Written], *, is_base: bool = False
    ) -> StateFile:
        path = str(self._directory / name)
        change = {state: column_of(list(found), list(found.values())) for state, found in states.items()}
        return StateFile(path, before, after, write_change(path, change), is_base=is_base)
