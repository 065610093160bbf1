"""What live mode refuses before anything runs, with what to set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkConf

from headrace.config import Configuration
from headrace.errors import ConfigurationError
from headrace.spark import live_requirements
from headrace.spark.cluster import SparkExecutorInfo
from headrace.spark.live_requirements import check_live, needed_slots, runs_live
from headrace.spark.pipelined_exchange import check_version
from tests.unit.runtime.jobs import job_graph, make_env

LIVE = {"headrace.exchange.kind": "pipelined"}


@pytest.fixture
def job() -> Any:
    env = make_env(2)
    env.from_collection([1]).key_by(lambda n: n).map(lambda n: n).print()
    return job_graph(env, "numbers")


def context(settings: dict[str, str], master: str = "spark://host:7077") -> Any:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    return SimpleNamespace(getConf=lambda: conf, master=master)


def test_only_jobs_that_ask_for_it_run_live(job: Any) -> None:
    assert runs_live(job, Configuration(LIVE))
    for kind in ("auto", "blocking"):
        assert not runs_live(job, Configuration({"headrace.exchange.kind": kind}))


def test_batch_jobs_are_refused(job: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"execution\.runtime-mode is BATCH"):
        runs_live(job, Configuration({**LIVE, "execution.runtime-mode": "BATCH"}))


def test_a_parallelism_that_follows_the_slots_needs_one_for_each_vertex(
    job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    adaptive = Configuration({**LIVE, "jobmanager.scheduler": "Adaptive"})
    assert runs_live(job, adaptive)
    here = SparkExecutorInfo("driver", "here", 1, 2, 0, 0, 0, 0)
    monkeypatch.setattr(live_requirements, "spark_executors", lambda: [here])
    check_live(context({}, "local[2]"), job, adaptive)
    monkeypatch.setattr(live_requirements, "spark_executors", lambda: [here._replace(cores=1)])
    with pytest.raises(ConfigurationError, match="started with 1 threads"):
        check_live(context({}, "local[1]"), job, adaptive)


def test_another_version_of_spark_is_refused() -> None:
    check_version("4.3.7")
    with pytest.raises(ConfigurationError, match=r"needs Spark 4\.3\.x; this is 4\.4\.0"):
        check_version("4.4.0")


@pytest.mark.parametrize("key", ["spark.speculation", "spark.dynamicAllocation.enabled"])
def test_settings_of_spark_that_do_not_go_with_it(job: Any, key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"does not go with {key}: true"):
        check_live(context({key: "true"}), job, Configuration(LIVE))


def test_a_cluster_that_authenticates_is_refused_unless_its_network_is_trusted(job: Any) -> None:
    cluster = context({"spark.authenticate": "true"})
    with pytest.raises(ConfigurationError, match=r"spark\.authenticate.*(.|\n)*trusted-network"):
        check_live(cluster, job, Configuration(LIVE))
    check_live(cluster, job, Configuration({**LIVE, "headrace.live.trusted-network": "true"}))
    check_live(context({}), job, Configuration(LIVE))


def test_a_local_spark_with_too_few_threads_is_refused(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SparkExecutorInfo("driver", "here", 1, needed_slots(job) - 1, 0, 0, 0, 0)
    monkeypatch.setattr(live_requirements, "spark_executors", lambda: [here])
    with pytest.raises(ConfigurationError, match=r"has 3 subtasks.*started with 2 threads"):
        check_live(context({}, "local[2]"), job, Configuration(LIVE))
    monkeypatch.setattr(live_requirements, "spark_executors", lambda: [here._replace(cores=3)])
    check_live(context({}, "local[3]"), job, Configuration(LIVE))
