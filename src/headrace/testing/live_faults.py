"""What fails in a live run that is simulated, and when: drawn from a seed, or planned step by step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["KINDS", "LiveFault", "LiveFaults", "PlannedLiveFaults"]

#: A subtask is killed; its control connection is cut; a message is late, or comes twice; a subtask does nothing until
#: its heartbeats are missed, or for a moment; a channel to another subtask breaks.
KINDS = ("kill", "kill", "cut", "late", "twice", "frozen", "stall", "broken channel")


@dataclass
class LiveFaults:
    """Decides when something of a live run fails, and what."""

    rng: random.Random
    #: How many are left.
    budget: int
    kinds: Sequence[str] = KINDS
    #: What failed, and how often.
    done: Counter[str] = field(default_factory=Counter)
    _until_next: int = 0

    def __post_init__(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self._until_next = self.rng.randrange(1, 25 if self.rng.random() < 0.3 else 160)

    def due(self) -> str | None:
        """Count a step; return what fails with it."""
        self._until_next -= 1
        if self.budget == 0 or self._until_next > 0:
            return None
        self.budget -= 1
        self._draw()
        return self.rng.choice(self.kinds)


class LiveFault(NamedTuple):
    """Something that fails in a live run."""

    #: The step of the world, counted from 1 over all runs of a job.
    step: int
    #: One of `KINDS`.
    kind: str


class PlannedLiveFaults(LiveFaults):
    """Faults at given steps.

    Args:
        rng: Decides which subtask a fault hits.
        planned: What fails, and when.
    """

    def __init__(self, rng: random.Random, planned: Sequence[LiveFault]) -> None:
        super().__init__(rng, budget=len(planned))
        self._planned = sorted(planned)
        self._steps = 0
        #: What has happened so far.
        self.happened: list[LiveFault] = []

    def due(self) -> str | None:
        """Count a step; return what fails with it."""
        self._steps += 1
        if not self._planned or self._planned[0].step > self._steps:
            return None
        fault = self._planned.pop(0)
        self.happened.append(fault)
        return fault.kind
