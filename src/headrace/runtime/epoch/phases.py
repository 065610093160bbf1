"""How long the driver spent on the parts of an epoch.

    | planning | running: one Spark job, level after level | publishing |  checkpoint | waiting |  next epoch
                                                            epoch observed ^            after it ^

What comes after an epoch is known only when the next one begins, so the next one's summary carries it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class BehindEpoch:
    """What the driver did between an epoch and the plan of the next, s."""

    #: Waiting for checkpoints that were being written, taking the next one, clearing away old ones.
    checkpoint_s: float = 0.0
    #: Publishing what a completed checkpoint covers.
    publishing_s: float = 0.0
    #: No source had anything to read, and no timer was due.
    waiting_s: float = 0.0


@dataclass(frozen=True)
class EpochPhases:
    """The driver's part in an epoch, s; the rest of its time is Spark's."""

    #: Asking sources for new splits, and cutting the slices.
    planning_s: float = 0.0
    #: Publishing right after the epoch, where no checkpoint has to cover the output first.
    publishing_s: float = 0.0
    #: How often the epoch was run as a whole.
    tries: int = 1
    #: What came between the epoch before and this one.
    before: BehindEpoch = BehindEpoch()


class PhaseClock:
    """Notes phases as the job master goes through them.

    Args:
        timer: Seconds that only go forward.
    """

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self._timer = timer
        self._lap = timer()
        self._planning_s = 0.0
        self._behind = BehindEpoch()

    def begin(self) -> None:
        """A turn of the master begins."""
        self._lap = self._timer()

    def planned(self) -> None:
        """The sources were asked."""
        self._planning_s = self._take_lap()

    def settled(self, published_s: float) -> None:
        """Checkpoints were looked after, of which publishing took a part; called once per turn."""
        behind = self._behind
        self._behind = replace(
            behind,
            checkpoint_s=behind.checkpoint_s + max(0.0, self._take_lap() - published_s),
            publishing_s=behind.publishing_s + published_s,
        )

    def waited(self) -> None:
        """There was nothing to do in this turn."""
        self._behind = replace(
            self._behind, waiting_s=self._behind.waiting_s + self._planning_s + self._take_lap()
        )

    def epoch(self, published_s: float, tries: int) -> EpochPhases:
        """An epoch is complete and published; what comes from here on is after it."""
        phases = EpochPhases(self._planning_s, published_s, tries, self._behind)
        self._behind = BehindEpoch()
        self._lap = self._timer()
        return phases

    def _take_lap(self) -> float:
        now = self._timer()
        lap, self._lap = now - self._lap, now
        return lap
