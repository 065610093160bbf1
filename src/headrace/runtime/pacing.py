"""How large an epoch is: as large as keeps it near its target duration while there is a backlog.

Without a backlog an epoch takes what is there and is as short as that makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

#: Bounds of one correction, so that one odd epoch does not throw the pace far off.
_MOST_GROWTH = 16.0
_MOST_SHRINKAGE = 0.25


@dataclass(frozen=True)
class PacingSettings:
    """The options behind the pace."""

    target_duration: timedelta
    initial_records: int
    #: A fixed bound on what one source subtask reads per epoch; None leaves it to the pacer.
    max_records: int | None
    #: Bytes that one subtask may send per epoch.
    max_bytes: int


class EpochPacer:
    """Decides how many records one source subtask reads in the next epoch."""

    def __init__(self, settings: PacingSettings) -> None:
        self._settings = settings
        self._records = float(settings.initial_records)

    @property
    def max_records(self) -> int:
        """The bound for the next epoch."""
        bound = max(1, int(self._records))
        return bound if self._settings.max_records is None else min(bound, self._settings.max_records)

    def observe(self, *, duration_s: float, most_records: int, most_bytes: int) -> None:
        """Learn from an epoch: how long it took, and what its busiest source subtask read and sent."""
        if most_records < self.max_records:
            return  # no backlog: the epoch says nothing about how much would fit
        wanted = self._settings.target_duration.total_seconds() / max(duration_s, 1e-3)
        if most_bytes:
            wanted = min(wanted, self._settings.max_bytes / most_bytes)
        self._records = max(1.0, most_records * min(_MOST_GROWTH, max(_MOST_SHRINKAGE, wanted)))
