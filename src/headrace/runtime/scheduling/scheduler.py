"""Scheduler: which parallelism a job runs with, and that it has the slots for it.

    default     the parallelism the job asks for, when all its slots are there
    adaptive    what the slots there are allow: at the start, and again whenever they change
    autoscaled  what the load needs, from then on

It decides and takes slots; waiting, and going on in another shape, is the `JobMaster`'s.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import NoResourceAvailableError
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import with_parallelism
from headrace.runtime.scheduling.adaptive_scheduler import AdaptiveScheduler, AdaptiveSettings
from headrace.runtime.scheduling.autoscaler import Autoscaler
from headrace.runtime.scheduling.slots import SlotPool


class Scheduler:
    """Schedules one job.

    Args:
        slots: The slots the job may take.
        adaptive: Given if the parallelism follows the slots.
        timeout_ms: How long a job that does not follow them waits for its slots.
        job: The job as it was submitted.
        autoscaler: Given if the parallelism follows the load.
        is_live: Whether all subtasks run at the same time, so that each needs a slot of its own.
    """

    def __init__(
        self,
        slots: SlotPool,
        adaptive: AdaptiveSettings | None,
        timeout_ms: int,
        job: JobGraph,
        *,
        autoscaler: Autoscaler | None = None,
        is_live: bool = False,
    ) -> None:
        self.autoscaler = autoscaler
        self._is_live = is_live
        self._slots = slots
        self._adaptive = None if adaptive is None else AdaptiveScheduler(adaptive, job, is_live=is_live)
        #: How long to wait for slots.
        self.timeout_ms = timeout_ms if adaptive is None else adaptive.submission_timeout_ms

    @property
    def slots_held(self) -> int:
        """How many slots the job has now."""
        return self._slots.held

    def planned(self, job: JobGraph) -> JobGraph:
        """Return the job in the shape it will probably have; nothing is taken yet."""
        if self._adaptive is None:
            return job
        return with_parallelism(job, self._adaptive.at_first(self._slots.available()[0]))

    def start(self, job: JobGraph, now_ms: int) -> Mapping[str, int] | None:
        """Take the slots for a start and return the parallelism it has, by vertex id; None to wait for slots."""
        if self._adaptive is None:
            return parallelism_of(job) if self.take(job) else None
        available, offer = self._slots.available()
        wanted = self._adaptive.at_start(available, now_ms, may_grow=offer.may_grow)
        return self._taken(job, wanted)

    def follow(self, job: JobGraph, now_ms: int) -> Mapping[str, int] | None:
        """Return the parallelism a running job is to change to, for its slots or its load; they are taken."""
        if self.autoscaler is not None:
            available, _ = self._slots.available()
            return self._taken(job, self.autoscaler.decide(parallelism_of(job), available, now_ms))
        if self._adaptive is None or not self._adaptive.is_time_to_look(now_ms):
            return None
        available, _ = self._slots.available()
        return self._taken(job, self._adaptive.decide(available, parallelism_of(job), now_ms))

    def require(self, job: JobGraph) -> Mapping[str, int] | None:
        """Take the slots for the parallelism that somebody requires; return what the job has then, None if refused.

        A job whose parallelism follows the slots takes it as what it asks for: it has less while slots are missing.
        """
        if self._adaptive is None:
            return parallelism_of(job) if self.take(job) else None
        available, _ = self._slots.available()
        return self._taken(job, self._adaptive.require(parallelism_of(job), available))

    def observe(self, work_s: float, wall_s: float, now_ms: int) -> None:
        """Learn from an epoch how busy the job is."""
        if self.autoscaler is not None:
            self.autoscaler.observe(work_s, wall_s, now_ms)

    def why_followed(self) -> str:
        """Say what the last change follows."""
        if self.autoscaler is None:
            return "the available slots"
        return f"its load ({self.autoscaler.decisions[-1].reason})"

    def rescaled(self, now_ms: int) -> None:
        """Note that the job has another parallelism, whoever asked for it."""
        if self.autoscaler is not None:
            self.autoscaler.changed(now_ms)

    def take(self, job: JobGraph) -> bool:
        """Take the slots for a job in this shape, instead of those it has; False if there are too few."""
        return self._slots.take(self._needed(job))

    def _needed(self, job: JobGraph) -> int:
        return sum(parallelism_of(job).values()) if self._is_live else job.slots_needed()

    def free(self) -> None:
        """Give all slots back."""
        self._slots.free()

    def refusal(self, job: JobGraph, waited_ms: int) -> NoResourceAvailableError:
        """Say in numbers why the job does not get its slots."""
        return self._slots.refusal(job, waited_ms, self._needed(job))

    def _taken(self, job: JobGraph, wanted: Mapping[str, int] | None) -> Mapping[str, int] | None:
        return wanted if wanted is not None and self.take(with_parallelism(job, wanted)) else None


def parallelism_of(job: JobGraph) -> dict[str, int]:
    """Return the parallelism of a job's vertices, by their ids."""
    return {vertex.vertex_id: vertex.parallelism for vertex in job.vertices}
