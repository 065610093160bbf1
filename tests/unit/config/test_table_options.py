"""Flink's keys for tables: every one is known, and a value that cannot be honoured is refused with the reason."""

from __future__ import annotations

import pytest

from headrace.config.registry import known_options
from headrace.errors import ConfigurationError

#: Those that Flink's documents name for tables, with their defaults there.
FLINK = {
    "table.exec.state.ttl": "0 ms",
    "table.exec.mini-batch.enabled": "false",
    "table.optimizer.agg-phase-strategy": "AUTO",
    "table.optimizer.distinct-agg.split.enabled": "false",
    "table.optimizer.incremental-agg-enabled": "true",
    "table.optimizer.reuse-sink-enabled": "true",
    "table.optimizer.multi-join.enabled": "false",
    "table.optimizer.delta-join.strategy": "AUTO",
    "table.optimizer.non-deterministic-update.strategy": "IGNORE",
    "table.exec.rank.topn-cache-size": "10000",
    "table.exec.sink.rowtime-inserter": "ENABLED",
    "table.exec.source.cdc-events-duplicate": "false",
    "table.exec.deduplicate.insert-update-after-sensitive-enabled": "true",
    "table.exec.deduplicate.mini-batch.compact-changes-enabled": "false",
    "table.exec.interval-join.min-cleanup-interval": "0 ms",
    "table.exec.async-lookup.buffer-capacity": "100",
    "table.exec.async-lookup.output-mode": "ORDERED",
    "table.exec.async-lookup.timeout": "3 min",
    "table.exec.legacy-cast-behaviour": "DISABLED",
    "table.column-expansion-strategy": "",
    "table.plan.compile.catalog-objects": "ALL",
    "table.plan.restore.catalog-objects": "ALL",
    "table.plan.force-recompile": "false",
    "sql-client.verbose": "false",
    "table.exec.emit.early-fire.enabled": "false",
    "table.exec.emit.late-fire.enabled": "false",
}


@pytest.mark.parametrize("key", FLINK)
def test_the_default_of_flink_is_taken(key: str):
    option = known_options().look_up(key).option
    assert option is not None
    option.read(FLINK[key])


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("table.optimizer.multi-join.enabled", "true", "expected false, for every join is an operator"),
        ("table.optimizer.delta-join.strategy", "FORCE", "expected AUTO or NONE, for joins keep their rows"),
        ("table.exec.emit.allow-lateness", "1 s", "expected nothing, for a window emits once"),
        (
            "table.column-expansion-strategy",
            "EXCLUDE_ALIASED_VIRTUAL_METADATA_COLUMNS",
            "stands for all columns",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_the_reason(key: str, value: str, reason: str):
    option = known_options().look_up(key).option
    assert option is not None
    with pytest.raises(ConfigurationError, match=reason):
        option.read(value)
