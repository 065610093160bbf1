"""What live mode refuses before anything runs, with what to set."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext

from headrace.common import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.datagen import DataGeneratorSource
from headrace.errors import ConfigurationError
from headrace.spark import live_options, live_requirements, slots
from headrace.spark.cluster import SparkExecutorInfo
from headrace.spark.live_requirements import check_live, choose_exchange, needed_slots
from headrace.spark.pipelined_exchange import check_version
from tests.unit.runtime.jobs import job_graph, make_env

LIVE = {"headrace.exchange.kind": "pipelined"}
#: What is set in a Spark that headrace has started.
OUR_SPARK = {"spark.shuffle.streaming.writerMaxMemory": "262144"}


@pytest.fixture
def job() -> Any:
    env = make_env(2)
    env.from_collection([1]).key_by(lambda n: n).map(lambda n: n).print()
    return job_graph(env, "numbers")


def context(settings: dict[str, str], master: str = "spark://host:7077") -> Any:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    return SimpleNamespace(getConf=lambda: conf, master=master)


@pytest.fixture
def endless_job(monkeypatch: pytest.MonkeyPatch) -> Any:
    # Other tests of the process may have started a Spark.
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    env = make_env(2)
    source = DataGeneratorSource(lambda n: n, count=None, rate_per_second=10)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n).map(lambda n: n).print()
    return job_graph(env, "numbers")


def runs_live(job: Any, configuration: Configuration) -> bool:
    return choose_exchange(job, configuration).is_live


def in_epochs_because(job: Any, caplog: pytest.LogCaptureFixture, settings: dict[str, str]) -> str:
    """Return what the log says about a job that leaves the choice to us."""
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert not runs_live(job, Configuration(settings))
    [said] = caplog.messages
    return said.removeprefix("job 'numbers' runs in epochs: ")


def test_jobs_whose_input_has_an_end_run_live_when_asked_to(
    job: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert runs_live(job, Configuration(LIVE))
    assert not runs_live(job, Configuration({"headrace.exchange.kind": "blocking"}))
    assert in_epochs_because(job, caplog, {}) == "its input has an end"


def test_endless_jobs_run_live_where_spark_gets_the_threads_they_need(endless_job: Any) -> None:
    assert runs_live(endless_job, Configuration({}))
    assert runs_live(endless_job, Configuration({"headrace.exchange.kind": "auto"}))
    assert runs_live(endless_job, Configuration({"headrace.replay.keep": "10"}))
    assert runs_live(endless_job, Configuration({"headrace.spark.master": "local[1]"}))
    assert not runs_live(endless_job, Configuration({"headrace.exchange.kind": "blocking"}))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"headrace.spark.master": "spark://host:7077"},
            "on a cluster, live mode takes a slot for each subtask (4 here); set headrace.exchange.kind: pipelined",
        ),
        ({"headrace.epoch.max-records": "10"}, "headrace.epoch.max-records is set"),
        ({"taskmanager.numberOfTaskSlots": "2"}, "it has 4 subtasks, and there are 2 slots"),
        ({"execution.runtime-mode": "BATCH"}, "its input has an end"),
        ({"spark.speculation": "true"}, "spark.speculation is true"),
        ({"spark.dynamicAllocation.enabled": "true"}, "spark.dynamicAllocation.enabled is true"),
    ],
)
def test_endless_jobs_run_in_epochs_for_a_reason(
    endless_job: Any, settings: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert in_epochs_because(endless_job, caplog, settings).startswith(reason)


def test_the_choice_says_why_and_whether_the_job_could_run_live(job: Any, endless_job: Any) -> None:
    bounded = choose_exchange(job, Configuration({}))
    assert (bounded.describe(), bounded.could_be_live) == ("runs in epochs: its input has an end", False)
    here = choose_exchange(endless_job, Configuration({}))
    assert (here.describe(), here.could_be_live) == ("runs live: its input has no end", True)
    limited = choose_exchange(endless_job, Configuration({"taskmanager.numberOfTaskSlots": "2"}))
    assert (limited.is_live, limited.could_be_live) == (False, True)
    asked = choose_exchange(endless_job, Configuration({"headrace.exchange.kind": "blocking"}))
    assert (asked.describe(), asked.could_be_live) == (
        "runs in epochs: headrace.exchange.kind is blocking",
        False,
    )


def test_a_spark_that_runs_already_must_have_room_for_others_too(
    endless_job: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", context(OUR_SPARK, "local[7]"))
    here = SparkExecutorInfo("driver", "here", 1, 7, 0, 0, 0, 0)
    monkeypatch.setattr(slots, "spark_executors", lambda: [here])
    said = in_epochs_because(endless_job, caplog, {})
    assert said == "it has 4 subtasks, and Spark has 3 threads for them"
    monkeypatch.setattr(slots, "spark_executors", lambda: [here._replace(cores=8)])
    assert runs_live(endless_job, Configuration({}))


def test_a_spark_of_the_programs_own_runs_epochs(
    endless_job: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", context({}, "local[64]"))
    assert in_epochs_because(endless_job, caplog, {}).startswith("its Spark was not started by headrace")


def test_a_setting_of_a_running_spark_is_accepted_if_the_job_does_not_set_it(
    endless_job: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = context({**OUR_SPARK, "spark.speculation": "true"}, "local[64]")
    monkeypatch.setattr(SparkContext, "_active_spark_context", running)
    assert in_epochs_because(endless_job, caplog, {}) == "spark.speculation is true"


def test_hundreds_of_processes_are_only_started_for_who_asks_for_them(
    endless_job: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(live_options, "_MOST_PER_CORE", 1)
    monkeypatch.setattr(live_options.os, "cpu_count", lambda: 3)
    said = in_epochs_because(endless_job, caplog, {})
    assert said == "it has 4 subtasks, too many for 3 cores unless asked for"
    assert runs_live(endless_job, Configuration(LIVE))


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
    with pytest.raises(ConfigurationError, match=f"cannot be combined with {key}: true"):
        check_live(context({key: "true"}), job, Configuration(LIVE))


def test_a_cluster_that_authenticates_is_refused_unless_its_network_is_trusted(job: Any) -> None:
    cluster = context({"spark.authenticate": "true"})
    with pytest.raises(ConfigurationError, match=r"spark\.authenticate.*(.|\n)*trusted-network"):
        check_live(cluster, job, Configuration(LIVE))
    check_live(cluster, job, Configuration({**LIVE, "headrace.live.trusted-network": "true"}))
    check_live(context({}), job, Configuration(LIVE))


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"spark.speculation": "true"}, "spark.speculation: true"),
        ({"spark.dynamicAllocation.enabled": "true"}, "spark.dynamicAllocation.enabled: true"),
        (
            {"headrace.spark.master": "spark://host:7077", "spark.authenticate": "true"},
            "neither authenticates",
        ),
        ({"taskmanager.numberOfTaskSlots": "3"}, "needs 4 slots.*numberOfTaskSlots is 3"),
    ],
)
def test_settings_are_refused_before_spark_is_started(
    endless_job: Any, settings: dict[str, str], refused: str
) -> None:
    with pytest.raises(ConfigurationError, match=refused):
        runs_live(endless_job, Configuration({**LIVE, **settings}))


def test_slots_that_suffice_are_not_refused(endless_job: Any) -> None:
    adaptive = {"jobmanager.scheduler": "Adaptive", "taskmanager.numberOfTaskSlots": "2"}
    assert runs_live(endless_job, Configuration({**LIVE, "taskmanager.numberOfTaskSlots": "4"}))
    assert runs_live(endless_job, Configuration({**LIVE, **adaptive}))
    cluster = {"headrace.spark.master": "spark://host:7077", "taskmanager.numberOfTaskSlots": "1"}
    assert runs_live(endless_job, Configuration({**LIVE, **cluster})), "there may be four executors"


def test_a_local_spark_with_too_few_threads_is_refused(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SparkExecutorInfo("driver", "here", 1, needed_slots(job) - 1, 0, 0, 0, 0)
    monkeypatch.setattr(live_requirements, "spark_executors", lambda: [here])
    with pytest.raises(ConfigurationError, match=r"has 3 subtasks.*started with 2 threads"):
        check_live(context({}, "local[2]"), job, Configuration(LIVE))
    monkeypatch.setattr(live_requirements, "spark_executors", lambda: [here._replace(cores=3)])
    check_live(context({}, "local[3]"), job, Configuration(LIVE))
