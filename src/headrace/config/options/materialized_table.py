"""Materialized tables: how far they may be behind their queries, and how they keep up. Flink's keys."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

__all__ = ["CONTINUOUS_FRESHNESS", "FULL_FRESHNESS", "THRESHOLD"]

CONTINUOUS_FRESHNESS = (
    option("materialized-table.default-freshness.continuous", timedelta)
    .default(timedelta(minutes=3))
    .describe(
        "How far a materialized table that a streaming job writes may lag behind, if it has no FRESHNESS."
    )
)
FULL_FRESHNESS = (
    option("materialized-table.default-freshness.full", timedelta)
    .default(timedelta(hours=1))
    .describe("How far a materialized table that batch jobs write may lag behind, if it has no FRESHNESS.")
)
THRESHOLD = (
    option("materialized-table.refresh-mode.freshness-threshold", timedelta)
    .default(timedelta(minutes=30))
    .describe(
        "Without REFRESH_MODE, a materialized table whose freshness is below this is written by a streaming job, and "
        "others by batch jobs."
    )
)
