"""The network between hosts is cut, and comes back: every sink has what an undisturbed run gives."""

from __future__ import annotations

import pytest

from tests.hosts.cluster import Cluster
from tests.hosts.jobs import Job
from tests.hosts.network import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.slow(seconds=120), pytest.mark.timeout(600)]


def test_a_job_continues_without_an_executor_that_its_driver_cannot_reach(cluster: Cluster) -> None:
    job = Job(cluster)
    job.ask("gate")
    driver = job.start()
    lost = job.wait_at_gate(driver)
    before = len(job.epochs())
    with cluster.network.partition(cluster.driver, cluster.worker(lost)):
        # The executor is at work, and does not know that nobody waits for it any more.
        job.no_longer("gate")
        job.finish(driver)
        assert job.hosts(before) == {"one", "two"} - {lost}
    job.check_finished(lost)


def test_a_job_continues_when_two_executors_reach_each_other_again(cluster: Cluster) -> None:
    job = Job(cluster)
    job.ask("hold", "3")
    driver = job.start()
    job.wait_for_epochs(driver, 3)
    with cluster.network.partition(cluster.worker("one"), cluster.worker("two")):
        job.no_longer("hold")
        # Neither of them is lost: Spark only says that one could not fetch what the other has.
        job.wait_for_log(driver, "retrying epoch")
    job.finish(driver)
    job.check_finished()


def test_a_job_continues_when_its_driver_reaches_storage_and_sinks_again(cluster: Cluster) -> None:
    job = Job(cluster, **{"execution.checkpointing.dir": f"{cluster.bucket}/checkpoints"})
    job.ask("hold", "3")
    driver = job.start()
    job.wait_for_epochs(driver, 3)
    with cluster.network.partition(cluster.driver, cluster.network.hub):
        job.no_longer("hold")
        # Whatever asks the store first: the checkpoint of the last epoch, or the plan of the next one.
        job.wait_for_log(driver, "checkpoint 3 failed: ", "restarts in ")
        published = job.contents()
        assert all(len(rows) < len(job.expected()) for rows in published.values())
    job.finish(driver)
    job.check_finished()
    wait_until(lambda: not cluster.objects("checkpoints"), "checkpoints to be deleted", 20)
