"""The running job as its checkpoints see it: what a snapshot consists of, and who is notified when it is complete."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from headrace.graph.job_graph import JobGraph
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, Kind, PendingCommittable
from headrace.runtime.epoch.messages import SubtaskId


class StagedOutput(Protocol):
    """Output that waits for the checkpoint that covers it."""

    def cover(self, checkpoint_id: int) -> None:
        """Put everything that no checkpoint covers so far under this one."""

    def commit(self, checkpoint_id: int) -> None:
        """Publish what checkpoints up to this one cover."""

    def snapshot(self, operator_id: str) -> tuple[bytes | None, tuple[PendingCommittable, ...]]:
        """Return the state of a sink's committer, and what it may still have to publish."""


@dataclass(frozen=True)
class BarrierTimes:
    """How long a barrier took on its way to a subtask of a live job, and there, ms; and what it met on its way."""

    start_delay: int = 0
    alignment: int = 0
    sync: int = 0
    #: Bytes processed while the barrier came, and bytes that it has overtaken.
    processed: int = 0
    persisted: int = 0
    is_unaligned: bool = False


class CheckpointedRun(Protocol):
    """A run of a job, between two epochs."""

    @property
    def barrier_started_ms(self) -> int | None:
        """When the barrier was triggered that ended the last epoch of a live job, ms since 1970; None in epochs."""

    @property
    def barrier_times(self) -> Mapping[SubtaskId, BarrierTimes]:
        """What that took, by subtask."""

    @property
    def has_in_flight(self) -> bool:
        """Whether records are on their way between subtasks: then a snapshot is not a savepoint."""

    @property
    def job(self) -> JobGraph: ...

    @property
    def epoch(self) -> int:
        """The last epoch that is complete."""

    @property
    def ended(self) -> Collection[SubtaskId]:
        """Subtasks that have done all they ever will."""

    @property
    def keeps_state(self) -> bool:
        """Whether its state was written; not if it has ended, and nothing was to read what its last epoch left."""

    @property
    def num_subtasks(self) -> int: ...

    def live_files(self) -> frozenset[str]:
        """Return the state files that the next epoch needs."""

    def rename_files(self, names: Mapping[str, str]) -> None:
        """Continue with copies of some state files."""

    def snapshot(
        self, sinks: StagedOutput, *, kind: Kind, checkpoint_id: int, timestamp_ms: int
    ) -> CheckpointMetadata:
        """Return all there is to know after the last epoch."""

    def checkpoint_completed(self, metadata: CheckpointMetadata) -> None:
        """Notify sources and subtasks that a checkpoint is complete."""

    def checkpoint_aborted(self, metadata: CheckpointMetadata) -> None:
        """Notify subtasks that a checkpoint was aborted."""
