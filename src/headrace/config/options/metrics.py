"""Metrics: what is measured beside the usual."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

LATENCY_INTERVAL = (
    option("metrics.latency.interval", timedelta)
    .default(timedelta(0))
    .describe(
        "How often sources send markers that measure latency on their way, at most once in an epoch. 0 turns them off."
    )
    .at_least(timedelta(0))
)
LATENCY_GRANULARITY = (
    option("metrics.latency.granularity", str)
    .default("operator")
    .describe(
        "What latencies are told apart by, besides the operator that measures: nothing (`single`), the source "
        "(`operator`), or the subtask of the source (`subtask`)."
    )
    .one_of("single", "operator", "subtask")
)
LATENCY_HISTORY_SIZE = (
    option("metrics.latency.history-size", int)
    .default(128)
    .describe("How many latencies an operator keeps of each.")
    .at_least(1)
)
STATE_LATENCY_ENABLED = (
    option("state.latency-track.keyed-state-enabled", bool)
    .default(False)
    .describe("Whether the time of accesses to keyed state is measured.")
    .deprecates("state.backend.latency-track.keyed-state-enabled")
)
STATE_LATENCY_SAMPLE_INTERVAL = (
    option("state.latency-track.sample-interval", int)
    .default(100)
    .describe("Of so many accesses of a kind, the first one is measured.")
    .deprecates("state.backend.latency-track.sample-interval")
    .at_least(1)
)
STATE_LATENCY_HISTORY_SIZE = (
    option("state.latency-track.history-size", int)
    .default(128)
    .describe("How many times of access are kept of each kind.")
    .deprecates("state.backend.latency-track.history-size")
    .at_least(1)
)
STATE_NAME_AS_VARIABLE = (
    option("state.latency-track.state-name-as-variable", bool)
    .default(True)
    .describe("Whether the name of a state is a variable of its metrics, a label in Prometheus.")
    .deprecates("state.backend.latency-track.state-name-as-variable")
)
