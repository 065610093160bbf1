"""What `LiveRun` knows about a barrier that is under way, and the regions that it passes through."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from headrace.runtime.epoch.messages import EpochPlan, SubtaskId


class Deployment(Protocol):
    """The subtasks of a region, which run."""

    def finish(self, timeout_s: float) -> bool:
        """Wait until all have ended; return whether they have."""

    def cancel(self) -> None:
        """End the subtasks without waiting for them."""


@dataclass
class Region:
    """A part of the job that runs, and fails, by itself."""

    number: int
    vertices: frozenset[str]
    subtasks: frozenset[SubtaskId]
    #: Those of them that barriers begin at.
    level_0: frozenset[SubtaskId]
    deployment: Deployment | None = None


@dataclass
class Barrier:
    """A barrier that is under way."""

    plan: EpochPlan
    started_ms: int
    #: Whether it may overtake records, and after how long; None if not.
    overtakes_after_ms: int | None
    #: Whether sources wait after it until the run is told to continue.
    holds_sources: bool
    #: Whether a region has failed and does not run yet; guarded by the lock of the feeder.
    is_interrupted: bool = False
    #: Regions whose sources were told to send it.
    triggered: set[int] = field(default_factory=set)
    #: The state of sources where it stands, by vertex id.
    source_snapshots: dict[str, bytes] = field(default_factory=dict)

    def has_passed(self, region: Region, acknowledged: Collection[SubtaskId]) -> bool:
        """Whether a region's sources may continue, given who has acknowledged it.

        What a barrier that overtakes has in front of it is known when all subtasks of the region have answered.
        """
        needed = region.level_0 if self.overtakes_after_ms is None else region.subtasks
        return needed.issubset(acknowledged)

    def forget(self, region: int, sources: Iterable[str]) -> None:
        """A region starts again: the barrier has still to come there."""
        self.triggered.discard(region)
        for vertex_id in sources:
            self.source_snapshots.pop(vertex_id, None)
