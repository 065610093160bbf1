"""Slots: how many subtasks a cluster takes, and which jobs have them.

    executors offer 4     job A needs 3: takes 3       job B needs 2: waits, there is 1     A ends: B takes 2

A job needs, for each of its slot sharing groups, as many slots as the group's highest parallelism, and gets all of them
or none: jobs that wait for each other's rest would wait forever. `SlotManager` keeps the account for all jobs of a
process; a `SlotPool` is the part of one job. Who offers slots is given as a function, so this knows no Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from headrace.errors import NoResourceAvailableError
from headrace.graph.job_graph import JobGraph


@dataclass(frozen=True)
class SlotOffer:
    """The slots that are there now."""

    slots: int
    executors: int = 1
    #: Whether jobs may take more than there are: their subtasks then take turns.
    is_elastic: bool = False
    #: Whether more may come by waiting: executors that register, or come back.
    may_grow: bool = False


class SlotManager:
    """Keeps the account of all jobs of a process. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Slots by job id.
        self._taken: dict[str, int] = {}

    def take(self, job_id: str, needed: int, offer: SlotOffer) -> bool:
        """Give a job all the slots it needs instead of those it has; False if there are too few."""
        with self._lock:
            if not offer.is_elastic and needed > offer.slots - self._taken_by_others(job_id):
                return False
            self._taken[job_id] = needed
            return True

    def free(self, job_id: str) -> None:
        """Take a job's slots back."""
        with self._lock:
            self._taken.pop(job_id, None)

    def held(self, job_id: str) -> int:
        """Return how many slots a job has."""
        return self._taken.get(job_id, 0)

    def taken_by_others(self, job_id: str) -> int:
        """Return how many slots the other jobs have."""
        with self._lock:
            return self._taken_by_others(job_id)

    def _taken_by_others(self, job_id: str) -> int:
        return sum(slots for other, slots in self._taken.items() if other != job_id)


class SlotPool:
    """The slots of one job.

    Args:
        manager: Keeps the account.
        job_id: The job.
        offer: Says which slots there are; may take a while.
    """

    def __init__(self, manager: SlotManager, job_id: str, offer: Callable[[], SlotOffer]) -> None:
        self._manager = manager
        self._job_id = job_id
        self._offer = offer

    @property
    def held(self) -> int:
        """How many slots the job has now."""
        return self._manager.held(self._job_id)

    def take(self, needed: int) -> bool:
        """Get all the slots the job needs, instead of those it has; False if there are too few now."""
        return self._manager.take(self._job_id, needed, self._offer())

    def free(self) -> None:
        """Give all slots back."""
        self._manager.free(self._job_id)

    def available(self) -> tuple[int, SlotOffer]:
        """Return how many slots the job could have, those it has included, and all there are."""
        offer = self._offer()
        others = 0 if offer.is_elastic else self._manager.taken_by_others(self._job_id)
        return max(0, offer.slots - others), offer

    def refusal(self, job: JobGraph, waited_ms: int, needed: int) -> NoResourceAvailableError:
        """Say in numbers why the job does not get the slots it needs."""
        available, offer = self.available()
        groups = job.slots_by_group()
        by_group = ", ".join(f"{name} {slots}" for name, slots in groups.items())
        return NoResourceAvailableError(
            f"job '{job.name}' needs {_count(needed, 'slot')}"
            f"{f' ({by_group})' if len(groups) > 1 and needed == sum(groups.values()) else ''}, but has {available}: "
            f"{_count(offer.executors, 'executor')} with {_count(offer.slots, 'slot')}, "
            f"{offer.slots - available} of them taken by other jobs; waited for {waited_ms / 1000:g} s",
            job=job.name,
            hint="lower the parallelism (-p), give Spark more executors or cores (spark.executor.instances, "
            "spark.executor.cores), set more slots per executor (taskmanager.numberOfTaskSlots), or let "
            "the parallelism follow the slots (jobmanager.scheduler: Adaptive)",
        )


def endless_slots(job_id: str) -> SlotPool:
    """Return a pool for a job that is alone, and takes what it needs."""
    return SlotPool(SlotManager(), job_id, lambda: SlotOffer(1, is_elastic=True))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
