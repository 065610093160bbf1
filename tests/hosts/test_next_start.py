"""What the next start of a job does, however the one before ended, on a cluster whose hosts share one directory."""

from __future__ import annotations

import signal

import pytest

from tests.hosts.cluster import Cluster
from tests.hosts.jobs import PATIENCE_S, Job
from tests.hosts.network import Process

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.slow(seconds=120), pytest.mark.timeout(600)]


def begin(job: Job) -> Process:
    """Start a job and let it come through some epochs; it waits then."""
    job.ask("hold", "4")
    driver = job.start()
    job.wait_for_epochs(driver, 4)
    return driver


def test_a_job_whose_driver_was_killed_continues_with_a_host_that_has_no_state(cluster: Cluster) -> None:
    job = Job(cluster)
    begin(job)
    cluster.driver.kill_processes()
    cluster.remove_worker("two")
    cluster.add_worker("three")
    job.let_copies_expire()
    job.no_longer("hold")
    job.finish()
    job.check_finished()


def test_a_job_whose_driver_host_lost_power_continues_from_another_host(cluster: Cluster) -> None:
    job = Job(cluster)
    begin(job)
    lost = cluster.driver
    cluster.add_driver_host()
    cluster.network.remove_host(lost.name)
    cluster.kill_applications()
    job.let_copies_expire()
    job.no_longer("hold")
    job.finish()
    job.check_finished()


def test_a_job_that_failed_continues_from_its_checkpoint(cluster: Cluster) -> None:
    job = Job(cluster, **{"restart-strategy.type": "none", "headrace.spark.task-retries": 0})
    job.ask("fail")
    driver = job.start()
    assert driver.wait(PATIENCE_S) == 1, driver.log
    assert "asked to fail" in driver.log
    published = job.contents()
    assert 0 < len(published["files"]) < len(job.expected())
    job.check_copies_of_state()
    job.no_longer("fail")
    job.finish()
    job.check_finished()


def test_a_job_that_was_cancelled_is_refused(cluster: Cluster) -> None:
    job = Job(cluster)
    driver = begin(job)
    driver.signal(signal.SIGINT)
    job.no_longer("hold")
    assert driver.wait(PATIENCE_S) == 128 + signal.SIGINT, driver.log
    published = job.contents()
    job.check_copies_of_state()
    again = job.start()
    assert again.wait(PATIENCE_S) == 2, again.log
    assert "was canceled" in again.log
    assert job.contents() == published


def test_a_driver_host_that_stops_past_its_lease_changes_nothing_when_it_wakes(cluster: Cluster) -> None:
    # Spark's master does not see that a driver has stopped: it keeps two cores for each, so more are needed.
    options = {"execution.checkpointing.dir": f"{cluster.bucket}/of-a-leader", "spark.cores.max": 2}
    job = Job(cluster, **options)
    first = begin(job)
    stopped = cluster.driver
    stopped.pause()
    cluster.add_worker("three", "four")
    cluster.add_driver_host()
    job.no_longer("hold")
    job.finish()
    job.check()
    published = job.contents()
    stopped.resume()
    assert first.wait(PATIENCE_S) == 3, first.log
    assert "no longer the leader" in first.log
    assert job.contents() == published
    assert cluster.objects("of-a-leader") == {}
    job.check_finished("one", "two")


def test_a_job_without_a_checkpoint_directory_that_all_hosts_share_is_refused(cluster: Cluster) -> None:
    # Every host has a /tmp of its own.
    job = Job(cluster, **{"execution.checkpointing.dir": "/tmp/checkpoints"})
    driver = job.start()
    assert driver.wait(PATIENCE_S) != 0, driver.log
    assert "is not shared by all hosts of the cluster" in driver.log
    assert "execution.checkpointing.dir" in driver.log
    assert job.epochs() == []
    assert all(rows == [] for rows in job.contents().values())
