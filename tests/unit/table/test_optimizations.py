"""Options about how changes are gathered: each has an effect that EXPLAIN shows, or is refused with the reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.config import Configuration
from headrace.errors import ConfigurationError, SqlValidationError
from headrace.runtime.job.settings import job_master_settings
from headrace.table import EnvironmentSettings, TableEnvironment

_QUERY = "SELECT l.k, COUNT(*) FROM t l JOIN t r ON l.id = r.id GROUP BY l.k"


@pytest.fixture
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql("CREATE TABLE t (id BIGINT, k STRING) WITH ('connector' = 'datagen')")
    return t_env


def explained(t_env: TableEnvironment, **options: str) -> str:
    for key, value in options.items():
        t_env.get_config().set(_KEYS[key], value)
    return t_env.explain_sql(_QUERY).partition("== Optimizations ==\n")[2].strip()


_KEYS = {
    "mini": "table.exec.mini-batch.enabled",
    "size": "table.exec.mini-batch.size",
    "latency": "table.exec.mini-batch.allow-latency",
    "phases": "table.optimizer.agg-phase-strategy",
    "split": "table.optimizer.distinct-agg.split.enabled",
    "buckets": "table.optimizer.distinct-agg.split.bucket-num",
}


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, []),
        ({"mini": "true"}, ["mini-batch, an epoch changes each key once: Join[2], GroupAggregate[3]"]),
        ({"mini": "false"}, ["every row makes its own changes: Join[2], GroupAggregate[3]"]),
        (
            {"phases": "TWO_PHASE"},
            ["aggregated in two phases, before and after the exchange: GroupAggregate[3]"],
        ),
        ({"phases": "ONE_PHASE"}, ["aggregated in one phase, after the exchange: GroupAggregate[3]"]),
        (
            {"mini": "false", "phases": "AUTO"},
            [
                "every row makes its own changes: Join[2], GroupAggregate[3]",
                "aggregated in one phase, after the exchange: GroupAggregate[3]",
            ],
        ),
    ],
)
def test_explain_shows_which_operators_an_option_is_about(t_env, options, lines):
    assert explained(t_env, **options).splitlines() == lines


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        (
            "SELECT k, COUNT(DISTINCT id) FROM t GROUP BY k",
            ["DISTINCT split into 1024 buckets: GroupAggregate[2]"],
        ),
        (
            "SELECT COUNT(DISTINCT id) AS a, COUNT(DISTINCT k) AS b FROM t",
            [
                "DISTINCT split into 1024 buckets: no operator",
                "DISTINCT not split, because its calls with DISTINCT have several arguments: COUNT(DISTINCT id), "
                "COUNT(DISTINCT k)",
            ],
        ),
        (
            "SELECT k, COUNT(DISTINCT id) AS c, AVG(id) AS a FROM t GROUP BY k",
            [
                "DISTINCT split into 1024 buckets: no operator",
                "DISTINCT not split, because partial results of AVG cannot be combined: COUNT(DISTINCT id)",
            ],
        ),
    ],
)
def test_explain_shows_which_aggregations_are_split(t_env, query, lines):
    t_env.get_config().set(_KEYS["split"], "true")
    assert t_env.explain_sql(query).partition("== Optimizations ==\n")[2].strip().splitlines() == lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "100"}, "mini-batch.size has no effect unless table.exec.mini-batch.enabled is true"),
        ({"mini": "false", "latency": "1 s"}, "mini-batch.allow-latency has no effect unless"),
        ({"split": "true", "mini": "false"}, "every row would update its group twice"),
        (
            {"buckets": "8"},
            "bucket-num has no effect unless table.optimizer.distinct-agg.split.enabled is true",
        ),
        ({"mini": "false", "phases": "TWO_PHASE"}, "rows cannot be aggregated before they are exchanged"),
    ],
)
def test_options_that_contradict_each_other_are_refused(t_env, options, message):
    with pytest.raises(SqlValidationError, match=message):
        explained(t_env, **options)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("table.optimizer.distinct-agg.split.bucket-num", "0"),
        ("table.optimizer.incremental-agg-enabled", "false"),
        ("table.optimizer.multi-join.enabled", "true"),
        ("table.optimizer.reuse-source-enabled", "false"),
        ("table.optimizer.agg-phase-strategy", "THREE_PHASE"),
    ],
)
def test_optimizations_that_do_not_exist_are_refused(t_env, key, value):
    with pytest.raises(ConfigurationError, match=key):
        t_env.get_config().set(key, value)


def test_hints_that_have_no_effect_are_refused(t_env):
    for hint in ("BROADCAST(l)", "MULTI_JOIN(l, r)", "SKEW(l)"):
        with pytest.raises(SqlValidationError, match=hint.partition("(")[0]):
            t_env.explain_sql(_QUERY.replace("SELECT", f"SELECT /*+ {hint} */"))


@pytest.mark.parametrize(
    ("hint", "written"),
    [
        ("BROADCAST(r)", "BROADCAST(r)"),
        ("SHUFFLE_HASH(l), BROADCAST(r)", "SHUFFLE_HASH(l)"),
        ("SHUFFLE_MERGE(l, r)", "MERGE(l)"),
        ("NEST_LOOP(r)", "SHUFFLE_REPLICATE_NL(r)"),
    ],
)
def test_hints_say_how_batch_mode_joins(hint, written):
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    options = "WITH ('connector' = 'datagen', 'number-of-rows' = '1')"
    for name in "lr":
        t_env.execute_sql(f"CREATE TABLE {name} (id BIGINT) {options}")
    join = "* FROM l JOIN r ON l.id = r.id"
    assert f"/*+ {written} */" in t_env.explain_sql(f"SELECT /*+ {hint} */ {join}")
    with pytest.raises(SqlValidationError, match="no join of this SELECT reads"):
        t_env.explain_sql(f"SELECT /*+ {hint}, BROADCAST(z) */ {join}")


def test_a_mini_batch_bounds_an_epoch():
    def pacing(**values: str) -> tuple[timedelta, int | None]:
        named = {_KEYS.get(key, key): value for key, value in values.items()}
        made = job_master_settings(Configuration().with_values(named), "/d").pacing
        return made.target_duration, made.max_records

    five = timedelta(seconds=5)
    assert pacing() == (five, None)
    assert pacing(size="100", latency="2 s") == (five, None)
    assert pacing(mini="true", size="100", latency="2 s") == (timedelta(seconds=2), 100)
    assert pacing(mini="true", size="100", **{"headrace.epoch.max-records": "30"}) == (five, 30)
