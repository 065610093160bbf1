"""Scheduling: which slots there are, and whether a job's parallelism is fixed or follows them."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from headrace.config.option import option


class SchedulerType(Enum):
    """Who says how many subtasks a job has; named as in Flink."""

    Default = 0
    Adaptive = 1
    AdaptiveBatch = 2


TASK_SLOTS = (
    option("taskmanager.numberOfTaskSlots", int)
    .no_default("as many as the executor runs tasks at once; as many as jobs ask for on a local Spark")
    .describe(
        "How many slots each of Spark's executors offers; a local Spark is one executor. A job that needs more slots "
        "than are free waits for them, and fails after `slot.request.timeout`. If there are more slots than an "
        "executor runs tasks at once, subtasks take turns."
    )
    .at_least(1)
)
SLOT_REQUEST_TIMEOUT = (
    option("slot.request.timeout", timedelta)
    .default(timedelta(minutes=5))
    .describe("How long a job waits for its slots, while executors register or other jobs have them.")
    .at_least(timedelta(0))
)
FAILOVER_STRATEGY = (
    option("jobmanager.execution.failover-strategy", str)
    .default("region")
    .describe(
        "What a live job restarts when a subtask fails. `region`: the subtasks that are connected with it, directly or "
        "through others, while the rest of the job continues. `full`: all of them. In epochs Spark retries failed "
        "tasks, and after that the job restarts as a whole."
    )
    .one_of("region", "full")
)
SCHEDULER = (
    option("jobmanager.scheduler", SchedulerType)
    .default(SchedulerType.Default)
    .describe(
        "`Default` runs a job with the parallelism it asks for. `Adaptive` runs it with as many subtasks as Spark's "
        "executors have slots, at most what it asks for, and follows when executors come and go. `AdaptiveBatch` is "
        "for queries in BATCH mode: the number of tasks follows from the volume of data, and skewed joins are split."
    )
)
MODE = (
    option("scheduler-mode", str)
    .default("none")
    .describe(
        "With `reactive`, jobs use all slots there are, up to their max parallelism, and follow when executors come "
        "and go, as with `jobmanager.scheduler: Adaptive`. They start with the slots that are there, and wait for the "
        "first one without a limit, if the options of the adaptive scheduler do not say otherwise."
    )
    .one_of("none", "reactive")
)
SUBMISSION_TIMEOUT = (
    option("jobmanager.adaptive-scheduler.submission.resource-wait-timeout", timedelta)
    .default(timedelta(minutes=5))
    .describe("How long an adaptive job waits at its start for one slot in each of its slot sharing groups.")
    .deprecates("jobmanager.adaptive-scheduler.resource-wait-timeout")
    .at_least(timedelta(0))
)
SUBMISSION_STABILIZATION_TIMEOUT = (
    option("jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout", timedelta)
    .default(timedelta(seconds=10))
    .describe(
        "How long the number of slots must stay unchanged before an adaptive job starts with fewer than it requests."
    )
    .deprecates("jobmanager.adaptive-scheduler.resource-stabilization-timeout")
    .at_least(timedelta(0))
)
STABILIZATION_TIMEOUT = (
    option("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", timedelta)
    .default(timedelta(minutes=1))
    .describe("How long the number of slots must stay unchanged before a running adaptive job adapts to it.")
    .at_least(timedelta(0))
)
COOLDOWN = (
    option("jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", timedelta)
    .default(timedelta(seconds=30))
    .describe("The minimum time between two changes of an adaptive job's parallelism.")
    .deprecates("jobmanager.adaptive-scheduler.scaling-interval.min")
    .at_least(timedelta(0))
)
