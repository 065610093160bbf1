"""Settings of Spark that epochs rely on: refused, or set again, whoever has started Spark."""

from __future__ import annotations

import pytest
from pyspark import SparkConf

from headrace.errors import ConfigurationError
from headrace.spark.requirements import FIXED, changed_meaning, check_asked, check_foreign

CLUSTER = "spark://host:7077"


def conf_with(**settings: str) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(
        [(key.replace("_", "."), value) for key, value in settings.items()]
    )


def fit() -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(FIXED.items()))


def test_a_context_with_the_needed_settings_is_taken() -> None:
    check_foreign(fit(), CLUSTER)


def test_a_cluster_with_sparks_own_settings_is_refused_with_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.stage\.maxConsecutiveAttempts is 4") as caught:
        check_foreign(conf_with(), CLUSTER)
    assert ".config('spark.stage.maxConsecutiveAttempts', '1')" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.speculation", "true"),
        ("spark.speculation", "TRUE"),
        ("spark.stage.maxConsecutiveAttempts", "2"),
        ("spark.python.worker.reuse", "false"),
        ("spark.cleaner.referenceTracking", "false"),
    ],
)
def test_a_setting_that_breaks_epochs_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key} is {value}"):
        check_foreign(fit().set(key, value), CLUSTER)
    with pytest.raises(ConfigurationError, match=f"{key} must be"):
        check_asked({key: value})


def test_stages_that_a_decommissioned_executor_fails_are_not_tried_again() -> None:
    conf = fit().set("spark.stage.ignoreDecommissionFetchFailure", "true")
    check_foreign(conf, CLUSTER)  # nothing is decommissioned
    conf.set("spark.decommission.enabled", "true")
    with pytest.raises(ConfigurationError, match="ignoreDecommissionFetchFailure"):
        check_foreign(conf, CLUSTER)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*,2]"])
def test_a_local_context_as_spark_makes_it_is_taken(master: str) -> None:
    check_foreign(conf_with(spark_speculation="true"), master)
    with pytest.raises(ConfigurationError, match="reuse"):
        check_foreign(conf_with(spark_python_worker_reuse="false"), master)


@pytest.mark.parametrize(
    ("key", "value"), [("spark.sql.ansi.enabled", "true"), ("spark.sql.files.ignoreCorruptFiles", "true")]
)
def test_sql_settings_that_change_the_meaning_of_queries_are_refused_or_overridden(
    key: str, value: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"{key} must be false .* got true"):
        check_asked({key: value})
    conf = SparkConf(loadDefaults=False).set(key, value)
    assert changed_meaning(conf) == {key: "false"}


def test_legacy_settings_do_not_reach_the_session_of_a_job() -> None:
    conf = SparkConf(loadDefaults=False).setAll(
        [
            ("spark.sql.legacy.statisticalAggregate", "true"),
            ("spark.sql.optimizer.excludedRules", "a"),
            ("spark.sql.files.maxPartitionBytes", "1m"),
        ]
    )
    assert changed_meaning(conf) == {
        "spark.sql.legacy.statisticalAggregate": None,
        "spark.sql.optimizer.excludedRules": None,
    }
