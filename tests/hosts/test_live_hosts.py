"""Live jobs over several hosts: one is lost, stops, or cannot be reached, and every sink has each row once."""

from __future__ import annotations

import pytest

from tests.hosts.cluster import Cluster
from tests.hosts.jobs import Job

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.slow(seconds=120), pytest.mark.timeout(600)]

#: All subtasks of a live job run at the same time, and one host has to have room for them when the other is gone.
_CORES = 4


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    shared_cluster.restore("wide-one", "wide-two", cores=_CORES)
    shared_cluster.wait_for_storage()
    return shared_cluster


def _live_job(cluster: Cluster) -> Job:
    return Job(
        cluster,
        **{
            "headrace.exchange.kind": "pipelined",
            "execution.checkpointing.interval": "200 ms",
            "headrace.live.heartbeat-timeout": "12 s",
        },
    )


def test_a_live_job_over_two_hosts_writes_every_row_once(cluster: Cluster) -> None:
    job = _live_job(cluster)
    job.finish()
    assert job.hosts() == {"wide-one", "wide-two"}
    job.check_finished()


def test_a_live_job_restarts_without_a_host_that_lost_power(cluster: Cluster) -> None:
    job = _live_job(cluster)
    job.ask("gate")
    driver = job.start()
    lost = job.wait_at_gate(driver)
    before = len(job.epochs())
    cluster.remove_worker(lost)
    job.no_longer("gate")
    job.finish(driver)
    assert lost not in job.hosts(before)
    job.check_finished()


@pytest.mark.parametrize(
    "word", ["CoarseGrainedExecutorBackend", "pyspark.daemon"], ids=["executor", "workers"]
)
def test_a_live_job_restarts_when_processes_of_a_host_are_killed(cluster: Cluster, word: str) -> None:
    job = _live_job(cluster)
    job.ask("gate")
    driver = job.start()
    lost = job.wait_at_gate(driver)
    cluster.worker(lost).kill_processes(word)
    job.no_longer("gate")
    job.finish(driver)
    job.check_finished(lost)


def test_a_host_that_stops_past_every_timeout_adds_nothing_to_a_live_job_when_it_wakes(
    cluster: Cluster,
) -> None:
    job = _live_job(cluster)
    job.ask("gate")
    driver = job.start()
    stopped = cluster.worker(job.wait_at_gate(driver))
    before = len(job.epochs())
    stopped.pause()
    job.no_longer("gate")
    job.wait_for_epochs(driver, before + 1)
    stopped.resume()
    job.finish(driver)
    job.check_finished(stopped.name)


def test_a_live_job_restarts_without_an_executor_that_its_driver_cannot_reach(cluster: Cluster) -> None:
    job = _live_job(cluster)
    job.ask("gate")
    driver = job.start()
    lost = job.wait_at_gate(driver)
    before = len(job.epochs())
    with cluster.network.partition(cluster.driver, cluster.worker(lost)):
        job.no_longer("gate")
        job.finish(driver)
        assert job.hosts(before) == {"wide-one", "wide-two"} - {lost}
    job.check_finished(lost)
