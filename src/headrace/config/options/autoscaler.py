"""Autoscaling: parallelism that follows the load."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

ENABLED = (
    option("headrace.autoscaler.enabled", bool)
    .default(False)
    .describe(
        "Whether the parallelism of a job follows its load: docs/slots.md. For jobs in epochs, without "
        "`jobmanager.scheduler: Adaptive`."
    )
)
TARGET = (
    option("headrace.autoscaler.utilization.target", float)
    .default(0.7)
    .describe("The part of the time in which subtasks should be at work.")
    .at_least(0.05)
    .at_most(0.95)
)
BOUNDARY = (
    option("headrace.autoscaler.utilization.boundary", float)
    .default(0.2)
    .describe("How far from the target that may be before the parallelism changes.")
    .at_least(0.0)
    .at_most(0.9)
)
WINDOW = (
    option("headrace.autoscaler.metrics.window", timedelta)
    .default(timedelta(minutes=1))
    .describe("The time over which utilization is measured; it starts again after every change.")
    .at_least(timedelta(milliseconds=1))
)
COOLDOWN = (
    option("headrace.autoscaler.cooldown", timedelta)
    .default(timedelta(minutes=1))
    .describe("The minimum time between two changes.")
    .at_least(timedelta(0))
)
MIN_PARALLELISM = (
    option("headrace.autoscaler.min-parallelism", int)
    .default(1)
    .describe("The lowest parallelism.")
    .at_least(1)
)
MAX_PARALLELISM = (
    option("headrace.autoscaler.max-parallelism", int)
    .no_default("the slots of Spark's executors, or the cores of a local Spark")
    .describe("The highest parallelism; never more than the max parallelism of an operator.")
    .at_least(1)
)
