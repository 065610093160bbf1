"""Flame graphs: where the time of a task goes, from samples of its stack."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

ENABLED = (
    option("rest.flamegraph.enabled", bool)
    .default(True)
    .describe(
        "Whether flame graphs can be asked for. Stacks are sampled only for some seconds after a request. "
        "Flink's default is false."
    )
)
SAMPLES = (
    option("rest.flamegraph.num-samples", int)
    .default(500)
    .describe(
        "How many samples a recording takes of each task. A task is found only while it is at work, so a graph "
        "may have fewer samples. Flink's default is 100."
    )
    .at_least(1)
)
DELAY = (
    option("rest.flamegraph.delay-between-samples", timedelta)
    .default(timedelta(milliseconds=10))
    .describe("The time between two samples of a task. Flink's default is 50 ms: its tasks never pause.")
    .at_least(timedelta(milliseconds=1))
)
STACK_DEPTH = (
    option("rest.flamegraph.stack-depth", int)
    .default(100)
    .describe("How many calls of a stack are kept.")
    .at_least(1)
    .at_most(500)
)
REFRESH_INTERVAL = (
    option("rest.flamegraph.refresh-interval", timedelta)
    .default(timedelta(minutes=1))
    .describe("How long a flame graph is served before the next request records a new one.")
)
