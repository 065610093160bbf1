"""Requests that change something: cancel, savepoints, stop, checkpoints, disposal, rescaling."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.common import Configuration
from headrace.common.job_status import JobStatus
from headrace.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import RestCluster, wait_until

NOBODY = "f" * 32


def test_a_job_is_cancelled(cluster: RestCluster, running: LiveJob) -> None:
    response = cluster.ask("PATCH", f"/v1/jobs/{running.job_id}?mode=cancel")
    assert (response.status, response.body) == (202, b"{}")
    wait_until(lambda: running.status is JobStatus.CANCELED, "cancelled")
    wait_until(lambda: cluster.dispatcher.live_jobs() == (), "archived")
    assert cluster.ask("PATCH", f"/jobs/{running.job_id}?mode=cancel").status == 409
    assert cluster.ask("PATCH", f"/jobs/{NOBODY}").status == 404


def test_a_savepoint_is_taken_as_flinks_client_asks_for_it(
    cluster: RestCluster, running: LiveJob, tmp_path: Path
) -> None:
    target = str(tmp_path / "here")
    body = {"target-directory": target, "cancel-job": False, "formatType": "CANONICAL", "triggerId": None}
    response = cluster.ask("POST", f"/v1/jobs/{running.job_id}/savepoints", body)
    assert response.status == 202
    trigger = json.loads(response.body)["request-id"]
    done = cluster.result_of(f"/v1/jobs/{running.job_id}/savepoints/{trigger}")
    assert done["location"].startswith(target)
    assert Path(done["location"]).is_dir()
    assert running.status is JobStatus.RUNNING


def test_the_same_trigger_id_means_the_same_savepoint(cluster: RestCluster, running: LiveJob) -> None:
    trigger = "a" * 32
    for _ in range(2):
        response = cluster.ask("POST", f"/jobs/{running.job_id}/savepoints", {"triggerId": trigger})
        assert json.loads(response.body) == {"request-id": trigger}
    cluster.result_of(f"/jobs/{running.job_id}/savepoints/{trigger}")
    assert running.master.checkpoints.coordinator.statistics().latest_savepoint is not None


def test_a_job_is_stopped_with_a_savepoint_and_its_result_can_be_fetched_afterwards(
    cluster: RestCluster, running: LiveJob, tmp_path: Path
) -> None:
    body = {
        "targetDirectory": str(tmp_path / "stop"),
        "drain": False,
        "formatType": "NATIVE",
        "triggerId": None,
    }
    trigger = json.loads(cluster.ask("POST", f"/v1/jobs/{running.job_id}/stop", body).body)["request-id"]
    wait_until(lambda: cluster.dispatcher.live_jobs() == (), "archived")
    assert running.status is JobStatus.FINISHED
    assert not cluster.context.operations.wait_until_fetched(0.0)
    done = cluster.result_of(f"/v1/jobs/{running.job_id}/savepoints/{trigger}")
    assert Path(done["location"]).is_dir()
    assert cluster.context.operations.wait_until_fetched(0.0)


def test_a_savepoint_that_fails_says_why(cluster: RestCluster, running: LiveJob) -> None:
    body = {"target-directory": "/dev/null/nowhere"}
    trigger = json.loads(cluster.ask("POST", f"/jobs/{running.job_id}/savepoints", body).body)["request-id"]
    cause = cluster.result_of(f"/jobs/{running.job_id}/savepoints/{trigger}")["failure-cause"]
    assert set(cause) == {"class", "stack-trace", "serialized-throwable"}
    assert "/dev/null" in cause["stack-trace"]


def test_a_savepoint_is_disposed_of_and_nothing_else(
    cluster: RestCluster, running: LiveJob, tmp_path: Path
) -> None:
    trigger = json.loads(cluster.ask("POST", f"/jobs/{running.job_id}/savepoints").body)["request-id"]
    path = cluster.result_of(f"/jobs/{running.job_id}/savepoints/{trigger}")["location"]
    for place, fails in ((path, False), (str(tmp_path), True)):
        asked = cluster.ask("POST", "/v1/savepoint-disposal", {"savepoint-path": place})
        assert asked.status == 202
        done = cluster.result_of(f"/v1/savepoint-disposal/{json.loads(asked.body)['request-id']}")
        assert ("failure-cause" in done) is fails
    assert not Path(path).exists()
    assert tmp_path.exists()


def test_a_checkpoint_is_taken_on_request(cluster: RestCluster, running: LiveJob) -> None:
    asked = cluster.ask("POST", f"/v1/jobs/{running.job_id}/checkpoints", {"checkpointType": "CONFIGURED"})
    trigger = json.loads(asked.body)["request-id"]
    assert cluster.result_of(f"/v1/jobs/{running.job_id}/checkpoints/{trigger}")["checkpointId"] > 0


def test_a_job_is_rescaled(cluster: RestCluster, running: LiveJob) -> None:
    path = f"/jobs/{running.job_id}/resource-requirements"
    before = cluster.get(path)
    sink = running.master.job.vertices[1].vertex_id
    assert before[sink] == {"parallelism": {"lowerBound": 1, "upperBound": 2}}
    response = cluster.ask("PUT", path, {sink: {"parallelism": {"lowerBound": 1, "upperBound": 3}}})
    assert response.status == 200
    wait_until(lambda: cluster.get(path)[sink]["parallelism"]["upperBound"] == 3, "rescaled")
    assert len(cluster.get(f"/jobs/{running.job_id}/vertices/{sink}")["subtasks"]) == 3
    asked = cluster.ask("PATCH", f"/jobs/{running.job_id}/rescaling?parallelism=1")
    assert asked.status == 202
    done = cluster.result_of(f"/jobs/{running.job_id}/rescaling/{json.loads(asked.body)['request-id']}")
    assert done == {}
    assert cluster.get(path)[sink]["parallelism"]["upperBound"] == 1
    assert cluster.get(f"/jobs/{running.job_id}/epochs")["rescales"] == 2


def test_a_parallelism_that_cannot_be_is_refused(cluster: RestCluster, running: LiveJob) -> None:
    path = f"/jobs/{running.job_id}/resource-requirements"
    sink = running.master.job.vertices[1].vertex_id
    for body in (
        {sink: {"parallelism": {"lowerBound": 1, "upperBound": 10_000}}},
        {sink: {"parallelism": {"lowerBound": 0, "upperBound": 1}}},
        {NOBODY: {"parallelism": {"lowerBound": 1, "upperBound": 1}}},
        {},
        [],
    ):
        assert cluster.ask("PUT", path, body).status == 400
    assert cluster.ask("PATCH", f"/jobs/{running.job_id}/rescaling?parallelism=many").status == 400


def test_a_stopped_savepoint_without_a_directory_is_refused(cluster: RestCluster) -> None:
    from tests.unit.rest.conftest import ENDLESS, counting

    job = cluster.submit(counting(ENDLESS))
    response = cluster.ask("POST", f"/jobs/{job.job_id}/stop", {})
    assert response.status == 400
    assert "savepoint-dir" in json.loads(response.body)["errors"][0]


def test_a_kept_result_is_listed_and_deleted(cluster: RestCluster) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "headrace.testing.mini_cluster:MiniExecutor")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.set_runtime_mode(RuntimeExecutionMode.BATCH).from_collection([1, 2]).map(str).cache()

    def listed() -> list[dict[str, object]]:
        return list(json.loads(cluster.ask("GET", "/datasets").body)["dataSets"])

    (before,) = listed()
    assert before["isComplete"] is False
    numbers.execute_and_collect(limit=2)
    wait_until(lambda: listed() == [{**before, "isComplete": True}], "complete")

    response = cluster.ask("DELETE", f"/datasets/{before['id']}")
    assert response.status == 202
    cluster.result_of(f"/datasets/delete/{json.loads(response.body)['request-id']}")
    assert listed() == [before]
    assert cluster.ask("DELETE", f"/datasets/{NOBODY}").status == 404
    env.close()
    assert listed() == []
