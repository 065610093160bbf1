"""Which job has slots of which executor, as an account: Spark chooses executors for tasks in every epoch."""

from __future__ import annotations

from typing import NamedTuple

from headrace.rest.context import Executor, RestContext


class ExecutorSlots(NamedTuple):
    """The slots of an executor."""

    executor: Executor
    #: The job ids of those that are taken.
    jobs: list[str]

    @property
    def total(self) -> int:
        """All slots; one that is elastic has as many as were taken."""
        return max(self.executor.slots, len(self.jobs))

    @property
    def free(self) -> int:
        """Those that no job has."""
        return self.total - len(self.jobs)


def slots_by_executor(context: RestContext) -> list[ExecutorSlots]:
    """Deal the slots that jobs have out to the executors, in order."""
    found = [ExecutorSlots(executor, []) for executor in context.cluster.executors()]
    for job in context.dispatcher.live_jobs():
        left = job.master.slots_held
        for each in found:
            given = left if each.executor.is_elastic else min(left, each.free)
            each.jobs.extend([job.job_id] * given)
            left -= given
    return found
