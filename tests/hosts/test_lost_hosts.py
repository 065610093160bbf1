"""Hosts that are lost, stop, come, go or have no room left: every sink has what an undisturbed run gives."""

from __future__ import annotations

import pytest

from tests.hosts.cluster import Cluster
from tests.hosts.jobs import Job
from tests.hosts.network import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

_GROWING = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": 1,
    "spark.dynamicAllocation.maxExecutors": 2,
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.executor.cores": 1,
}


def test_a_job_over_two_hosts_writes_every_row_once(cluster: Cluster) -> None:
    job = Job(cluster)
    job.finish()
    job.check_finished()
    assert job.hosts() == {"one", "two"}


def test_a_job_continues_without_a_host_that_lost_power_and_with_one_that_takes_its_place(
    cluster: Cluster,
) -> None:
    job = Job(cluster)
    job.ask("gate")
    driver = job.start()
    lost = job.wait_at_gate(driver)
    cluster.remove_worker(lost)
    job.no_longer("gate")
    before = len(job.epochs())
    job.ask("hold", str(before + 1))
    job.wait_for_epochs(driver, before + 1)
    cluster.add_worker("three")
    job.no_longer("hold")
    job.finish(driver)
    assert lost not in job.hosts(before)
    job.check_finished()


@pytest.mark.parametrize(
    "word",
    ["", "CoarseGrainedExecutorBackend", "pyspark.daemon"],
    ids=["all of them", "the executor", "workers"],
)
def test_a_job_continues_when_processes_of_a_host_are_killed(cluster: Cluster, word: str) -> None:
    job = Job(cluster)
    job.ask("gate")
    driver = job.start()
    lost = job.wait_at_gate(driver)
    cluster.worker(lost).kill_processes(word)
    job.no_longer("gate")
    job.finish(driver)
    job.check_finished(lost)


def test_the_next_job_on_a_host_removes_what_a_killed_executor_left(cluster: Cluster) -> None:
    job, next_job = Job(cluster), Job(cluster)
    job.ask("hold", "3")
    driver = job.start()
    job.wait_for_epochs(driver, 3)
    assert set(job.copies_of_state()) >= {"one", "two"}
    cluster.driver.kill_processes()
    for name in ("one", "two"):
        cluster.worker(name).kill_processes("CoarseGrainedExecutorBackend")
        cluster.worker(name).kill_processes("pyspark.daemon")
    assert set(job.copies_of_state()) >= {"one", "two"}
    job.let_copies_expire()
    next_job.finish()
    next_job.check_finished()


def test_a_host_that_stops_past_every_timeout_changes_nothing_when_it_wakes(cluster: Cluster) -> None:
    job = Job(cluster)
    job.ask("gate")
    driver = job.start()
    stopped = cluster.worker(job.wait_at_gate(driver))
    before = len(job.epochs())
    stopped.pause()
    job.no_longer("gate")
    job.ask("hold", str(before + 2))
    # It is given up, and the other host does its work.
    job.wait_for_epochs(driver, before + 2)
    stopped.resume()
    job.no_longer("hold")
    job.finish(driver)
    job.check_finished(stopped.name)


def test_a_host_that_is_decommissioned_hands_its_work_over(cluster: Cluster) -> None:
    job = Job(cluster, **{"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"})
    job.ask("hold", "3")
    driver = job.start()
    job.wait_for_epochs(driver, 3)
    cluster.decommission("two")
    wait_until(lambda: not cluster.worker("two").processes("CoarseGrained"), "its executor to end", 60)
    job.no_longer("hold")
    job.finish(driver)
    assert job.hosts(4) == {"one"}
    job.check_finished("two")
    cluster.remove_worker("two")


def test_a_job_with_dynamic_allocation_takes_a_host_that_is_added(cluster: Cluster) -> None:
    cluster.remove_worker("two")
    job = Job(cluster, **_GROWING)
    job.ask("hold", "3")
    driver = job.start()
    job.wait_for_epochs(driver, 3)
    assert job.hosts() == {"one"}
    cluster.add_worker("two")
    job.no_longer("hold")
    job.finish(driver)
    job.check_finished()


@pytest.mark.parametrize("directory", ["/tmp", "/dev/shm"])
def test_a_job_continues_when_a_full_disk_of_one_host_has_room_again(
    cluster: Cluster, directory: str
) -> None:
    job = Job(cluster)
    job.ask("hold", "3")
    driver = job.start()
    job.wait_for_epochs(driver, 3)
    full = cluster.worker("two")
    full.fill(directory)
    job.no_longer("hold")
    # Where tasks of the host fail, there is a word of it; where they need no room, the job continues.
    job.wait_for_log(driver, "No space left on device")
    full.empty(directory)
    job.finish(driver)
    job.check_finished()
