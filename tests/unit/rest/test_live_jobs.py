"""What REST says of live jobs: barriers that overtake, time measured by subtasks, rescaling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until

QUEUE = "Shuffle.Netty.Input.Buffers"


@pytest.fixture
def live(cluster: RestCluster, tmp_path: Path) -> LiveJob:
    """A live job that has completed a checkpoint, and does not end."""
    options = {
        "headrace.exchange.kind": "pipelined",
        "headrace.live.heartbeat-interval": "10 ms",
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    job = cluster.submit(counting(ENDLESS), options)
    statistics = job.master.checkpoints.coordinator.statistics
    wait_until(lambda: statistics().counts.completed > 0 and len(job.master.beats()) > 0, "a checkpoint")
    return job


def test_checkpoints_say_what_their_barriers_took(cluster: RestCluster, live: LiveJob) -> None:
    at = f"/jobs/{live.job_id}/checkpoints"
    config = cluster.get(f"{at}/config")
    assert (config["unaligned_checkpoints"], config["aligned_checkpoint_timeout"]) == (True, 0)
    checkpoint = cluster.get(at)["latest"]["completed"]
    assert checkpoint["persisted_data"] >= 0
    vertex = live.master.job.vertices[0].vertex_id
    details = cluster.get(f"{at}/details/{checkpoint['id']}/subtasks/{vertex}")
    for subtask in details["subtasks"]:
        # A source has nothing that could be overtaken.
        assert subtask["unaligned_checkpoint"] is True
        assert subtask["alignment"]["persisted"] == 0
        assert subtask["start_delay"] >= 0


def test_metrics_have_what_subtasks_measure(cluster: RestCluster, live: LiveJob) -> None:
    vertex = live.master.job.vertices[1].vertex_id
    at = f"/jobs/{live.job_id}/vertices/{vertex}/subtasks/0/metrics"
    wait_until(lambda: any(each["id"] == f"{QUEUE}.inPoolUsage" for each in cluster.get(at)), "a beat")
    parts = ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
    names = ",".join((*parts, f"{QUEUE}.inPoolUsage", f"{QUEUE}.inputQueueLength", f"{QUEUE}.inputQueueSize"))
    values = {each["id"]: float(each["value"]) for each in cluster.get(f"{at}?get={names}")}
    assert sum(values[name] for name in parts) == pytest.approx(1000, abs=3)
    assert 0 <= values[f"{QUEUE}.inPoolUsage"] <= 1
    assert values[f"{QUEUE}.inputQueueSize"] >= 0


def test_metrics_have_what_waits_to_be_taken(cluster: RestCluster, live: LiveJob) -> None:
    vertex = live.master.job.vertices[0].vertex_id
    at = f"/jobs/{live.job_id}/vertices/{vertex}/subtasks/0/metrics"
    names = ("outPoolUsage", "outputQueueLength", "outputQueueSize")
    wanted = {f"Shuffle.Netty.Output.Buffers.{name}" for name in names}
    wait_until(lambda: wanted <= {each["id"] for each in cluster.get(at)}, "a beat")
    values = {each["id"]: float(each["value"]) for each in cluster.get(f"{at}?get={','.join(wanted)}")}
    assert 0 <= values["Shuffle.Netty.Output.Buffers.outPoolUsage"] <= 1


def test_a_live_job_is_rescaled_over_rest(cluster: RestCluster, live: LiveJob) -> None:
    asked = cluster.ask("PATCH", f"/jobs/{live.job_id}/rescaling?parallelism=3")
    assert asked.status == 202
    at = f"/jobs/{live.job_id}/rescaling/{json.loads(asked.body)['request-id']}"
    assert cluster.result_of(at) == {}
    vertex = live.master.job.vertices[1].vertex_id
    assert len(cluster.get(f"/jobs/{live.job_id}/vertices/{vertex}")["subtasks"]) == 3
