"""Which settings a batch query gets from the adaptive batch scheduler and its keys."""

from __future__ import annotations

import pytest

from headrace.config import Configuration
from headrace.errors import UnsupportedFeatureError
from headrace.graph.job_graph import JobGraph
from headrace.spark.executor import _refuse_what_is_not_there
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.table._adaptive_batch import batch_settings

ADAPTIVE = Configuration({"jobmanager.scheduler": "AdaptiveBatch"})
AQE = "spark.sql.adaptive."


def test_without_the_scheduler_a_query_has_a_fixed_parallelism() -> None:
    assert batch_settings(Configuration({"parallelism.default": "3"})) == {}


def test_the_scheduler_takes_flinks_defaults() -> None:
    assert batch_settings(ADAPTIVE) == {
        f"{AQE}enabled": "true",
        f"{AQE}advisoryPartitionSizeInBytes": "16777216",
        f"{AQE}coalescePartitions.initialPartitionNum": "128",
        f"{AQE}coalescePartitions.parallelismFirst": "false",
    }


def test_keys_of_the_scheduler_are_taken_and_turn_it_on_by_themselves() -> None:
    settings = batch_settings(
        Configuration(
            {
                "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": "1 mb",
                "execution.batch.adaptive.auto-parallelism.max-parallelism": "8",
                "table.optimizer.skewed-join-optimization.strategy": "forced",
                "table.optimizer.skewed-join-optimization.skewed-factor": "2.0",
            }
        )
    )
    assert settings[f"{AQE}enabled"] == "true"
    assert settings[f"{AQE}advisoryPartitionSizeInBytes"].rstrip("b") == "1048576"
    assert settings[f"{AQE}coalescePartitions.initialPartitionNum"] == "8"
    assert settings[f"{AQE}forceOptimizeSkewedJoin"] == "true"
    assert settings[f"{AQE}skewJoin.skewedPartitionFactor"] == "2.0"


def test_the_parallelism_of_the_job_is_the_most() -> None:
    configuration = Configuration({"jobmanager.scheduler": "AdaptiveBatch", "parallelism.default": "6"})
    assert batch_settings(configuration)[f"{AQE}coalescePartitions.initialPartitionNum"] == "6"


def job(settings: EnvironmentSettings) -> JobGraph:
    t_env = TableEnvironment.create(settings)
    t_env.get_config().set("jobmanager.scheduler", "AdaptiveBatch")
    t_env.execute_sql("CREATE TABLE s (a INT) WITH ('connector' = 'blackhole')")
    jobs = t_env._jobs
    table = t_env.from_elements([(1,)], ["a"])
    return jobs.job_graph(jobs.plan_query(table._plan), "job")


def test_the_settings_travel_with_a_batch_job_and_not_with_a_stream() -> None:
    batch = job(EnvironmentSettings.in_batch_mode())
    assert batch.session_settings[f"{AQE}enabled"] == "true"
    _refuse_what_is_not_there(batch, ADAPTIVE)
    streaming = job(EnvironmentSettings.in_streaming_mode())
    assert f"{AQE}enabled" not in streaming.session_settings
    with pytest.raises(UnsupportedFeatureError, match="is a STREAMING job"):
        _refuse_what_is_not_there(streaming, ADAPTIVE)
