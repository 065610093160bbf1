"""Scheduling: whether a job's parallelism is fixed, or follows the slots there are."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

SCHEDULER = (
    option("jobmanager.scheduler", str)
    .default("Default")
    .describe(
        "`Default` runs a job with the parallelism it asks for. `Adaptive` runs it with as many subtasks as Spark's "
        "executors have slots, at most what it asks for, and follows when executors come and go."
    )
    .one_of("Default", "Adaptive")
)
MODE = (
    option("scheduler-mode", str)
    .default("none")
    .describe("With `reactive`, an adaptive job uses all slots there are, up to its max parallelism.")
    .one_of("none", "reactive")
)
STABILIZATION_TIMEOUT = (
    option("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", timedelta)
    .default(timedelta(minutes=1))
    .describe("How long the number of slots must stay as it is before a running adaptive job follows it.")
    .at_least(timedelta(0))
)
COOLDOWN = (
    option("jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", timedelta)
    .default(timedelta(seconds=30))
    .describe("The least time between two changes of an adaptive job's parallelism.")
    .deprecates("jobmanager.adaptive-scheduler.scaling-interval.min")
    .at_least(timedelta(0))
)
