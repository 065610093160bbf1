"""What the driver knows about the job's state: for every subtask, the handles that the next epoch starts from.

Every completed epoch increases the version by one. The registry also decides when a chain is long enough to be
compacted, and which files are no longer referenced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.state.handles import StateChain, StateFile


@dataclass(frozen=True)
class Compaction:
    """Files of one chain to be merged into one."""

    subtask: SubtaskId
    operator_id: str
    files: tuple[StateFile, ...]
    #: Where the merged file goes.
    path: str

    @property
    def is_full(self) -> bool:
        """Whether the result is a new base."""
        return self.files[0].from_version == 0


@dataclass(frozen=True)
class StateSize:
    """How much state an operator has over all its subtasks, and in the largest of them; bytes."""

    keyed: int = 0
    operator: int = 0
    files: int = 0
    largest: int = 0

    def plus(self, keyed: int, operator: int, files: int) -> StateSize:
        return StateSize(
            self.keyed + keyed,
            self.operator + operator,
            self.files + files,
            max(self.largest, keyed + operator),
        )


class StateRegistry:
    """Handles of all state at the last completed epoch."""

    def __init__(
        self,
        lineage: str,
        max_changes: int,
        keyed: Mapping[SubtaskId, Mapping[str, StateChain]] | None = None,
        operator_state: Mapping[SubtaskId, Mapping[str, bytes]] | None = None,
    ) -> None:
        self._lineage = lineage
        self._max_changes = max_changes
        self._keyed = {subtask: dict(chains) for subtask, chains in (keyed or {}).items()}
        self._operator = {subtask: dict(parts) for subtask, parts in (operator_state or {}).items()}
        self._compacting: set[tuple[SubtaskId, str]] = set()
        #: Files that were replaced, with the first epoch whose plan no longer names them.
        self._replaced: list[tuple[int, str]] = []

    def keyed(self, subtask: SubtaskId) -> dict[str, StateChain]:
        """Return a subtask's keyed state by operator id."""
        return dict(self._keyed.get(subtask, {}))

    def operator(self, subtask: SubtaskId) -> dict[str, bytes]:
        """Return a subtask's operator state by operator id."""
        return dict(self._operator.get(subtask, {}))

    def advance(self, report: SubtaskReport) -> None:
        """Take over what a subtask wrote in a completed epoch."""
        for operator_id, file in report.changes.items():
            chains = self._keyed.setdefault(report.subtask, {})
            chain = chains.get(operator_id) or StateChain(self._lineage)
            chains[operator_id] = chain.append(file)
        if report.operator_state:
            self._operator.setdefault(report.subtask, {}).update(report.operator_state)

    def sizes(self) -> dict[str, StateSize]:
        """Return how much state each operator has, by its id.

        Another thread may ask while an epoch is taken over: what it gets is of before, after, or between two subtasks.
        """
        sizes: dict[str, StateSize] = {}
        for subtask in {*tuple(self._keyed), *tuple(self._operator)}:
            chains, parts = self.keyed(subtask), self.operator(subtask)
            for operator_id in {*chains, *parts}:
                files = chains[operator_id].files if operator_id in chains else ()
                sizes[operator_id] = sizes.get(operator_id, StateSize()).plus(
                    sum(file.size for file in files), len(parts.get(operator_id, b"")), len(files)
                )
        return sizes

    def rename(self, names: Mapping[str, str]) -> None:
        """Put copies in the place of files; they hold the same."""
        for chains in self._keyed.values():
            for operator_id, chain in chains.items():
                if any(file.path in names for file in chain.files):
                    chains[operator_id] = chain.renamed(names)

    # -- compaction --------------------------------------------------------------------------------------------

    def due_compactions(self, name_file: Iterable[str]) -> list[Compaction]:
        """Return the chains that have too many changes, and mark them as being worked on.

        Changes are merged among themselves until they outweigh half of the base; then all becomes a new base. So a
        large state is rewritten only after changes in proportion to it.
        """
        names = iter(name_file)
        due = []
        for subtask, chains in self._keyed.items():
            for operator_id, chain in chains.items():
                changes = chain.changes
                if len(changes) < self._max_changes or (subtask, operator_id) in self._compacting:
                    continue
                base_size = sum(file.size for file in chain.files if file.is_base)
                is_full = sum(file.size for file in changes) * 2 >= base_size
                files = chain.files if is_full else changes
                due.append(Compaction(subtask, operator_id, files, next(names)))
                self._compacting.add((subtask, operator_id))
        return due

    def compacted(self, work: Compaction, size: int, epoch: int) -> None:
        """Put a merged file in the place of those it was made of; ``epoch`` is the one being planned next."""
        merged = StateFile(
            work.path, work.files[0].from_version, work.files[-1].to_version, size, is_base=work.is_full
        )
        chains = self._keyed[work.subtask]
        chains[work.operator_id] = chains[work.operator_id].compacted(merged)
        self._compacting.discard((work.subtask, work.operator_id))
        self._replaced += [(epoch, file.path) for file in work.files]

    def abandoned(self, work: Compaction) -> None:
        """A compaction failed: the chain stays as it is, and may be tried again."""
        self._compacting.discard((work.subtask, work.operator_id))

    def take_garbage(self, completed_epoch: int) -> list[str]:
        """Return the files that no plan and no reader needs once an epoch is complete."""
        if not self._replaced:
            return []
        # After a rescale several chains name the same file.
        live = self.live_files()
        replaced = {path for epoch, path in self._replaced if epoch <= completed_epoch}
        self._replaced = [(epoch, path) for epoch, path in self._replaced if epoch > completed_epoch]
        return sorted(replaced - live)

    def live_files(self) -> frozenset[str]:
        """Return the files that chains name now."""
        return frozenset(
            file.path for chains in self._keyed.values() for chain in chains.values() for file in chain.files
        )
