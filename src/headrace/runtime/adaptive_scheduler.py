"""The adaptive scheduler: a job's parallelism follows the slots there are.

It holds no clock and asks nobody: slots and time come in, a parallelism goes out. With fewer slots than a job asks for,
the job runs narrower; with more, up to what it asks for, or in reactive mode up to its max parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.config.configuration import Configuration
from headrace.config.options import scheduler as options
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.rescaling import is_single

#: How often it is worth asking how many slots there are, ms.
LOOK_INTERVAL_MS = 1_000


@dataclass(frozen=True)
class AdaptiveSettings:
    """The options of the adaptive scheduler."""

    is_reactive: bool = False
    #: How long slots must stay as they are before a running job follows them.
    stabilization_ms: int = 60_000
    #: From one change to the next.
    cooldown_ms: int = 30_000

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> AdaptiveSettings | None:
        """Return the settings; None if jobs have the parallelism they ask for."""
        if configuration.get(options.SCHEDULER) != "Adaptive":
            return None
        return cls(
            configuration.get(options.MODE) == "reactive",
            configuration.get(options.STABILIZATION_TIMEOUT) // timedelta(milliseconds=1),
            configuration.get(options.COOLDOWN) // timedelta(milliseconds=1),
        )


class AdaptiveScheduler:
    """Decides about one job.

    Args:
        settings: The options.
        job: The job as it was submitted.
    """

    def __init__(self, settings: AdaptiveSettings, job: JobGraph) -> None:
        self._settings = settings
        self._most = {vertex.vertex_id: self._most_of(vertex, job) for vertex in job.vertices}
        self._groups = max(1, len(job.slots_by_group()))
        self._slots: int | None = None
        self._slots_since_ms = 0
        self._looked_ms: int | None = None
        self._rescaled_ms: int | None = None

    def is_time_to_look(self, now_ms: int) -> bool:
        """Whether to ask for the number of slots again."""
        if self._looked_ms is not None and now_ms - self._looked_ms < LOOK_INTERVAL_MS:
            return False
        self._looked_ms = now_ms
        return True

    def at_start(self, slots: int, now_ms: int) -> dict[str, int]:
        """Return the parallelism a job starts with, by vertex id."""
        self._slots, self._slots_since_ms = slots, now_ms
        return self._fitting(slots)

    def decide(self, slots: int, present: Mapping[str, int], now_ms: int) -> dict[str, int] | None:
        """Return the parallelism to change to; None to stay.

        Args:
            slots: How many there are; with none, a running job waits for them.
            present: The parallelism the job has, by vertex id.
            now_ms: The time.
        """
        if slots != self._slots:
            self._slots, self._slots_since_ms = slots, now_ms
        wanted = self._fitting(slots)
        if slots == 0 or wanted == dict(present):
            return None
        if now_ms - self._slots_since_ms < self._settings.stabilization_ms:
            return None
        if self._rescaled_ms is not None and now_ms - self._rescaled_ms < self._settings.cooldown_ms:
            return None
        self._rescaled_ms = now_ms
        return wanted

    def _fitting(self, slots: int) -> dict[str, int]:
        # Slot sharing groups do not share slots with each other.
        room = max(1, slots // self._groups)
        return {vertex_id: min(most, room) for vertex_id, most in self._most.items()}

    def _most_of(self, vertex: JobVertex, job: JobGraph) -> int:
        may_grow = self._settings.is_reactive and not is_single(vertex, job)
        return vertex.max_parallelism if may_grow else vertex.parallelism
