"""The adaptive scheduler: a job's parallelism follows the slots there are.

It holds no clock and asks nobody: slots and time come in, a parallelism goes out. With fewer slots than a job asks for,
the job runs narrower; with more, up to what it asks for, or in reactive mode up to its max parallelism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.config.configuration import Configuration
from headrace.config.options import scheduler as options
from headrace.config.scheduling import scheduler_type
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.rescaling import is_single

#: How often it is worth asking how many slots there are, ms.
LOOK_INTERVAL_MS = 1_000
#: A job in reactive mode waits for its first slots until it is cancelled, as in Flink.
_NEVER_MS = 1 << 60


@dataclass(frozen=True)
class AdaptiveSettings:
    """The options of the adaptive scheduler."""

    is_reactive: bool = False
    #: How long slots must stay as they are before a running job follows them.
    stabilization_ms: int = 60_000
    #: From one change to the next.
    cooldown_ms: int = 30_000
    #: How long slots must stay as they are before a job starts with fewer than it asks for.
    submission_stabilization_ms: int = 10_000
    #: How long a job waits for the least it can start with.
    submission_timeout_ms: int = 300_000

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> AdaptiveSettings | None:
        """Return the settings; None if jobs have the parallelism they ask for."""
        get = configuration.get
        if scheduler_type(configuration) is not options.SchedulerType.Adaptive:
            return None
        millisecond = timedelta(milliseconds=1)
        is_reactive = get(options.MODE) == "reactive"
        settles = configuration.contains(options.SUBMISSION_STABILIZATION_TIMEOUT) or not is_reactive
        gives_up = configuration.contains(options.SUBMISSION_TIMEOUT) or not is_reactive
        return cls(
            is_reactive=is_reactive,
            stabilization_ms=get(options.STABILIZATION_TIMEOUT) // millisecond,
            cooldown_ms=get(options.COOLDOWN) // millisecond,
            submission_stabilization_ms=get(options.SUBMISSION_STABILIZATION_TIMEOUT) // millisecond
            if settles
            else 0,
            submission_timeout_ms=get(options.SUBMISSION_TIMEOUT) // millisecond if gives_up else _NEVER_MS,
        )


def widest_fitting(parallelism: Callable[[int], Mapping[str, int]], slots: int) -> int:
    """Return the highest parallelism of a live job whose subtasks all have a slot; 1 if there are too few for any.

    Args:
        parallelism: Returns what vertices have at a parallelism of the job; never less with a higher one.
        slots: How many there are.
    """
    room = 1
    while room < slots and sum(parallelism(room + 1).values()) <= slots:
        room += 1
    return room


class AdaptiveScheduler:
    """Decides about one job.

    Args:
        settings: The options.
        job: The job as it was submitted.
        is_live: Whether every subtask has a slot of its own.
    """

    def __init__(self, settings: AdaptiveSettings, job: JobGraph, *, is_live: bool = False) -> None:
        self._settings = settings
        self._is_live = is_live
        self._most = {vertex.vertex_id: self._most_of(vertex, job) for vertex in job.vertices}
        self._groups = max(1, len(job.slots_by_group()))
        #: With fewer slots the job cannot run.
        self._least = len(self._most) if is_live else self._groups
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

    @property
    def _enough(self) -> int:
        """With so many slots there is nothing to wait for."""
        if self._is_live:
            return sum(self._most.values())
        return self._groups * max(self._most.values(), default=1)

    def require(self, most: Mapping[str, int], slots: int) -> dict[str, int]:
        """Take what somebody requires as what the job asks for, and return the parallelism for the slots there are.

        Args:
            most: The highest parallelism from now on, by vertex id.
            slots: How many there are.
        """
        self._most = {**self._most, **most}
        return self._fitting(slots)

    def at_first(self, slots: int) -> dict[str, int]:
        """Return a parallelism to plan with before the job may start, by vertex id."""
        return self._fitting(slots)

    def at_start(self, slots: int, now_ms: int, *, may_grow: bool = False) -> dict[str, int] | None:
        """Return the parallelism to start with, by vertex id; None to wait for more slots.

        Args:
            slots: How many there are.
            now_ms: The time.
            may_grow: Whether more may come.
        """
        self._see(slots, now_ms)
        if slots < self._least:
            return None
        is_settled = now_ms - self._slots_since_ms >= self._settings.submission_stabilization_ms
        if may_grow and slots < self._enough and not is_settled:
            return None
        return self._fitting(slots)

    def decide(self, slots: int, present: Mapping[str, int], now_ms: int) -> dict[str, int] | None:
        """Return the parallelism to change to; None to stay.

        Args:
            slots: How many there are; with none, a running job waits for them.
            present: The parallelism the job has, by vertex id.
            now_ms: The time.
        """
        self._see(slots, now_ms)
        wanted = self._fitting(slots)
        if slots < (self._least if self._is_live else 1) or wanted == dict(present):
            return None
        if now_ms - self._slots_since_ms < self._settings.stabilization_ms:
            return None
        if self._rescaled_ms is not None and now_ms - self._rescaled_ms < self._settings.cooldown_ms:
            return None
        self._rescaled_ms = now_ms
        return wanted

    def _see(self, slots: int, now_ms: int) -> None:
        if slots != self._slots:
            self._slots, self._slots_since_ms = slots, now_ms

    def _fitting(self, slots: int) -> dict[str, int]:
        # Slot sharing groups do not share slots with each other.
        room = widest_fitting(self._at, slots) if self._is_live else max(1, slots // self._groups)
        return self._at(room)

    def _at(self, room: int) -> dict[str, int]:
        return {vertex_id: min(most, room) for vertex_id, most in self._most.items()}

    def _most_of(self, vertex: JobVertex, job: JobGraph) -> int:
        may_grow = self._settings.is_reactive and not is_single(vertex, job)
        return vertex.max_parallelism if may_grow else vertex.parallelism
