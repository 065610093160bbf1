"""Every answer has the keys and types of Flink's own, while a job runs and after it has ended."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from headrace.common.accumulators import IntCounter, ListAccumulator
from headrace.errors import JobExecutionError
from headrace.rest.resources.accumulators import packed_accumulators, unpacked_accumulators
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import ENDLESS, OneExecutor, RestCluster, counting, wait_until
from tests.unit.rest.shapes import differences, shape_of

FLINK = json.loads(Path(__file__).with_name("flink_shapes.json").read_text())


def concrete(path: str, job: LiveJob) -> str:
    vertex = job.master.job.vertices[-1].vertex_id
    checkpoint = job.master.checkpoints.coordinator.statistics().latest_completed
    assert checkpoint is not None
    replaced = path.replace("VERTEX", vertex).replace("JOB", job.job_id).replace("/ID", f"/{checkpoint.id}")
    return replaced.replace("/TM", "/driver")


@pytest.mark.parametrize("path", sorted(FLINK))
def test_an_answer_has_the_shape_of_flinks(path: str, cluster: RestCluster, running: LiveJob) -> None:
    for _ in range(20):  # a checkpoint may be forgotten between two requests
        response = cluster.ask("GET", concrete(path, running))
        if response.status == 200:
            break
    assert response.status == 200
    answer = json.loads(response.body)
    if path.endswith("/checkpoints"):  # one that is under way has fewer keys, in Flink as well
        answer["history"] = [each for each in answer["history"] if each["status"] == "COMPLETED"]
    found = shape_of(answer)
    assert differences(FLINK[path], found) == []


def test_every_path_answers_with_and_without_the_version(cluster: RestCluster, running: LiveJob) -> None:
    assert (
        cluster.get("/v1/jobs")
        == cluster.get("/jobs")
        == {"jobs": [{"id": running.job_id, "status": "RUNNING"}]}
    )


def test_records_are_counted(cluster: RestCluster, running: LiveJob) -> None:
    source, sink = cluster.get(f"/jobs/{running.job_id}")["vertices"]
    assert source["metrics"]["read-records"] > 0
    assert sink["metrics"]["read-records"] > 0
    assert sink["metrics"]["read-bytes"] > 0
    assert source["metrics"]["write-bytes"] > 0
    assert source["tasks"]["RUNNING"] == 2


def test_metrics_of_user_functions_are_found_under_their_operator(
    cluster: RestCluster, running: LiveJob
) -> None:
    vertex = running.master.job.vertices[1].vertex_id
    base = f"/jobs/{running.job_id}/vertices/{vertex}"
    names = [metric["id"] for metric in cluster.get(f"{base}/metrics")]
    seen = next(name for name in names if name.startswith("0.") and name.endswith(".seen"))
    assert int(cluster.get(f"{base}/metrics?get={seen}")[0]["value"]) > 0
    [summary] = cluster.get(f"{base}/subtasks/metrics?get={seen.removeprefix('0.')}")
    assert summary["sum"] >= summary["max"] > 0
    [level] = [name for name in names if name.startswith("1.") and name.endswith(".level")]
    assert cluster.get(f"{base}/metrics?get={level}") == [{"id": level, "value": "7"}]


def test_watermarks_are_those_of_the_input(cluster: RestCluster, running: LiveJob) -> None:
    source, sink = (vertex.vertex_id for vertex in running.master.job.vertices)
    assert cluster.get(f"/jobs/{running.job_id}/vertices/{source}/watermarks") == []
    first, second = cluster.get(f"/jobs/{running.job_id}/vertices/{sink}/watermarks")
    assert first["id"] == "0.currentInputWatermark"
    assert int(second["value"]) > 0


def test_subtasks_of_a_busy_job_are_busy(cluster: RestCluster, running: LiveJob) -> None:
    for vertex in running.master.job.vertices:
        shown = cluster.get(f"/jobs/{running.job_id}/vertices/{vertex.vertex_id}/backpressure")
        for subtask in shown["subtasks"]:
            total = subtask["ratio"] + subtask["idleRatio"] + subtask["busyRatio"]
            assert total == pytest.approx(1.0, abs=0.01)
            assert subtask["busyRatio"] > 0


def test_a_job_that_has_ended_is_answered_from_its_archive(cluster: RestCluster) -> None:
    job = cluster.submit(counting(500))
    cluster.jobs[0].wait()
    cluster.dispatcher.close()
    base = f"/jobs/{job.job_id}"
    details = cluster.get(base)
    assert details["state"] == "FINISHED"
    assert details["vertices"][0]["metrics"]["read-records"] == 501
    assert cluster.get("/jobs/overview")["jobs"][0]["tasks"]["finished"] == 4
    assert cluster.get("/overview")["jobs-finished"] == 1
    vertex = details["vertices"][0]["id"]
    assert cluster.get(f"{base}/vertices/{vertex}")["subtasks"][1]["status"] == "FINISHED"
    total = sum(
        int(cluster.get(f"{base}/vertices/{vertex}/metrics?get={index}.numRecordsIn")[0]["value"])
        for index in range(2)
    )
    assert total == 501
    result = cluster.get(f"{base}/execution-result")
    assert result["status"]["id"] == "COMPLETED"
    assert result["job-execution-result"]["application-status"] == "SUCCEEDED"
    assert cluster.ask("GET", f"{base}/resource-requirements").status == 404


def test_a_failure_is_in_the_exception_history(cluster: RestCluster) -> None:
    from tests.unit.rest.conftest import Poisoned

    job = cluster.submit(counting(500, Poisoned))
    with pytest.raises(Exception, match="poisoned"):
        cluster.jobs[0].wait()
    cluster.dispatcher.close()
    [entry] = cluster.get(f"/jobs/{job.job_id}/exceptions")["exceptionHistory"]["entries"]
    assert "poisoned" in entry["stacktrace"]
    assert entry["exceptionName"].endswith("UserFunctionError")
    vertex = job.master.job.vertices[1]
    assert entry["taskName"] in {f"{vertex.name} (1/2)", f"{vertex.name} (2/2)"}
    result: dict[str, Any] = cluster.get(f"/jobs/{job.job_id}/execution-result")["job-execution-result"]
    assert result["application-status"] == "FAILED"
    assert "poisoned" in result["failure-cause"]["stack-trace"]


def test_other_failures_are_shown_next_to_the_first(cluster: RestCluster, running: LiveJob) -> None:
    operator = running.master.job.vertices[1].operators[0].name
    first = JobExecutionError("first", operator=operator, subtask=0)
    other = JobExecutionError("other", operator=operator, subtask=1)
    other.host = "here"
    first.concurrent = (other,)
    running.master.failures.add(first, 7, running.master.job)
    [entry] = cluster.get(f"/jobs/{running.job_id}/exceptions")["exceptionHistory"]["entries"]
    [beside] = entry["concurrentExceptions"]
    assert entry["stacktrace"].startswith("first")
    assert beside["stacktrace"].startswith("other")
    assert beside["taskName"] == f"{running.master.job.vertices[1].name} (2/2)"
    assert (beside["endpoint"], beside["taskManagerId"], beside["timestamp"]) == ("here:-1", "driver", 7)
    assert "concurrentExceptions" not in beside


def test_epochs_are_shown_with_their_levels(cluster: RestCluster, running: LiveJob) -> None:
    epochs = cluster.get(f"/jobs/{running.job_id}/epochs")["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == sorted(epoch["epoch"] for epoch in epochs)
    assert len(epochs[0]["levels"]) == 2


def test_prometheus_reads_every_line(cluster: RestCluster, running: LiveJob) -> None:
    response = cluster.ask("GET", "/metrics")
    assert response.content_type.startswith("text/plain; version=0.0.4")
    lines = response.body.decode().splitlines()
    records = [line for line in lines if line.startswith("flink_taskmanager_job_task_numRecordsIn{")]
    assert len(records) == 4
    for line in lines:
        assert line.startswith("# TYPE ") or float(line.rsplit(" ", 1)[1]) is not None


def values_by_id(cluster: RestCluster, path: str) -> dict[str, str]:
    names = ",".join(metric["id"] for metric in cluster.get(path))
    return {metric["id"]: metric["value"] for metric in cluster.get(f"{path}?get={names}")}


def test_metrics_of_functions_are_shown_under_their_operator(cluster: RestCluster, running: LiveJob) -> None:
    vertex = running.master.job.vertices[1].vertex_id
    values = values_by_id(cluster, f"/jobs/{running.job_id}/vertices/{vertex}/subtasks/0/metrics")
    own = {
        name.split(".", 1)[1]: value for name, value in values.items() if name.startswith("KEYED_PROCESS.")
    }
    assert own["level"] == "7"
    assert int(own["numRecordsIn"]) == int(own["numRecordsOut"]) == int(own["seen"])
    assert int(own["currentInputWatermark"]) == int(own["currentOutputWatermark"]) > 0
    assert float(own["numRecordsInPerSecond"]) == float(own["numRecordsOutPerSecond"]) > 0
    # A sink passes the watermark on, as in Flink, although nobody is behind it.
    assert values["Sink__Writer.currentOutputWatermark"] == values["Sink__Writer.currentInputWatermark"]
    assert int(values["Sink__Writer.currentOutputWatermark"]) > 0
    assert int(own["seen"]) == int(own["rate_count"]) == int(own["sizes_count"]) > 0
    assert float(own["rate"]) > 0
    digits = 'tables.table.the "big" one.digits'
    assert (own[f"{digits}_min"], own[f"{digits}_max"]) == ("0", "9")
    quantiles = ["median", "p75", "p90", "p95", "p98", "p99", "p999"]
    found = [float(own[f"{digits}_{name}"]) for name in ("min", *quantiles, "max")]
    assert found == sorted(found)
    assert {f"{digits}_mean", f"{digits}_stddev", f"{digits}_count"} <= set(own)


def test_prometheus_has_flinks_scopes_labels_and_types(cluster: RestCluster, running: LiveJob) -> None:
    lines = cluster.ask("GET", "/metrics").body.decode().splitlines()
    vertex = running.master.job.vertices[1]
    scope = "flink_taskmanager_job_task_operator"
    labels = (
        f'job_id="{running.job_id}",job_name="counting",task_id="{vertex.vertex_id}",task_name="{vertex.name}",'
        f'task_attempt_num="0",subtask_index="0",host="{socket.gethostname()}",tm_id="driver",'
        f'operator_id="{vertex.vertex_id}",operator_name="KEYED PROCESS"'
    )
    assert any(line.startswith(f"{scope}_seen{{{labels}}} ") for line in lines)
    assert f"{scope}_level{{{labels}}} 7" in lines
    summary = f"{scope}_tables_table_digits"
    own = labels + ',table="the \\"big\\" one"'
    assert f"# TYPE {summary} summary" in lines
    assert any(line.startswith(f"{summary}_count{{{own}}} ") for line in lines)
    quantiles = [f'{summary}{{{own},quantile="{point}"}} ' for point in (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)]
    assert all(any(line.startswith(quantile) for line in lines) for quantile in quantiles)
    assert f"# TYPE {scope}_rate gauge" in lines
    assert any(line.startswith("flink_jobmanager_job_uptime{job_id=") for line in lines)
    assert any(line.startswith("flink_jobmanager_taskSlotsTotal{host=") for line in lines)


def test_latencies_are_metrics_of_the_job(cluster: RestCluster) -> None:
    job = cluster.submit(counting(ENDLESS), {"metrics.latency.interval": "1 ms"})
    source, count = (vertex.head.operator_id for vertex in job.master.job.vertices)
    path = f"/jobs/{job.job_id}/metrics"
    name = f"latency.source_id.{source}.operator_id.{count}.operator_subtask_index.0.latency"
    wait_until(lambda: f"{name}_p99" in {metric["id"] for metric in cluster.get(path)}, "a latency")
    assert float(values_by_id(cluster, path)[f"{name}_p99"]) >= 0
    family = "flink_taskmanager_job_latency_source_id_operator_id_operator_subtask_index_latency"
    lines = cluster.ask("GET", "/metrics").body.decode().splitlines()
    labels = f'source_id="{source}",operator_id="{count}",operator_subtask_index="0"'
    assert any(line.startswith(f"{family}{{job_id=") and labels in line for line in lines)


def test_slots_are_those_that_are_not_taken(cluster: RestCluster, running: LiveJob) -> None:
    shown = cluster.get("/overview")
    assert (shown["taskmanagers"], shown["slots-total"], shown["slots-available"]) == (1, 2, 0)
    assert cluster.get("/taskmanagers/driver")["allocatedSlots"][0]["jobId"] == running.job_id


def test_an_elastic_executor_shows_as_many_slots_as_jobs_have(cluster: RestCluster, running: LiveJob) -> None:
    OneExecutor.is_elastic = True
    try:
        second = cluster.submit(counting(ENDLESS))
        wait_until(lambda: second.master.slots_held == 2, "slots")
        shown = cluster.get("/overview")
        assert (shown["slots-total"], shown["slots-available"]) == (4, 0)
        [manager] = cluster.get("/taskmanagers")["taskmanagers"]
        assert (manager["slotsNumber"], manager["freeSlots"]) == (4, 0)
        assert manager["hardware"]["cpuCores"] == 2
        jobs = [slot["jobId"] for slot in cluster.get("/taskmanagers/driver")["allocatedSlots"]]
        assert jobs == [running.job_id] * 2 + [second.job_id] * 2
        second.job.cancel().result(30)
        wait_until(lambda: cluster.get("/overview")["slots-total"] == 2, "given back")
    finally:
        OneExecutor.is_elastic = False


def test_accumulators_are_shown_by_job_vertex_and_subtask(cluster: RestCluster) -> None:
    job = cluster.submit(counting(99))
    job_path = f"/jobs/{job.job_id}"
    source, count = (vertex.vertex_id for vertex in job.master.job.vertices)
    wait_until(lambda: cluster.dispatcher.live_jobs() == (), "archived")
    whole = {"name": "processed", "type": "IntCounter", "value": "100"}
    shown = cluster.get(f"{job_path}/accumulators")
    assert shown["user-task-accumulators"] == [whole]
    assert unpacked_accumulators(shown["serialized-user-task-accumulators"]) == {"processed": 100}
    assert cluster.get(f"{job_path}/vertices/{count}/accumulators")["user-accumulators"] == [whole]
    assert cluster.get(f"{job_path}/vertices/{source}/accumulators")["user-accumulators"] == []
    subtasks = cluster.get(f"{job_path}/vertices/{count}/subtasks/accumulators")["subtasks"]
    values = [int(each["user-accumulators"][0]["value"]) for each in subtasks]
    assert (len(values), sum(values)) == (2, 100)
    result = cluster.get(f"{job_path}/execution-result")["job-execution-result"]
    assert unpacked_accumulators(result["accumulator-results"]) == {"processed": 100}


def test_values_of_accumulators_are_sent_when_asked_for(cluster: RestCluster, running: LiveJob) -> None:
    path = f"/jobs/{running.job_id}/accumulators"
    assert cluster.get(path)["serialized-user-task-accumulators"] == {}
    sent = cluster.get(f"{path}?includeSerializedValue=true")["serialized-user-task-accumulators"]
    assert unpacked_accumulators(sent)["processed"] > 0
    assert cluster.ask("GET", f"{path}?includeSerializedValue=maybe").status == 400
    vertex = running.master.job.vertices[1].vertex_id
    one = cluster.get(f"/jobs/{running.job_id}/vertices/{vertex}/subtasks/1/attempts/0/accumulators")
    assert one["user-accumulators"][0]["name"] == "processed"


@pytest.mark.parametrize(
    ("value", "read"),
    [(3, 3), (2.5, 2.5), ({1: 2}, {1: 2}), (["a", (1, 2)], ["a", [1, 2]]), ({1, 2} & {2}, [2]), (1j, "1j")],
)
def test_values_of_accumulators_cross_without_running_code(value: Any, read: Any) -> None:
    accumulator = ListAccumulator[Any]()
    accumulator.add(value)
    assert unpacked_accumulators(packed_accumulators({"a": accumulator})) == {"a": [read]}


def test_a_value_that_has_no_form_on_the_wire_crosses_as_its_text() -> None:
    assert unpacked_accumulators(packed_accumulators({"a": IntCounter(2**80)})) == {"a": str(2**80)}


def test_a_running_job_can_be_waited_for(cluster: RestCluster, running: LiveJob) -> None:
    assert cluster.get(f"/jobs/{running.job_id}/execution-result") == {"status": {"id": "IN_PROGRESS"}}
    running.job.cancel().result(30)
    wait_until(lambda: cluster.dispatcher.live_jobs() == (), "archived")
    result = cluster.get(f"/jobs/{running.job_id}/execution-result")["job-execution-result"]
    assert result["application-status"] == "CANCELED"


def test_a_flame_graph_shows_where_the_time_of_a_vertex_goes(cluster: RestCluster) -> None:
    often = {"rest.flamegraph.delay-between-samples": "1 ms", "headrace.epoch.max-records": "2000"}
    running = cluster.submit(counting(ENDLESS), often)
    vertex = running.master.job.vertices[-1].vertex_id
    path = f"/jobs/{running.job_id}/vertices/{vertex}/flamegraph"
    assert cluster.get(path) == {"endTimestamp": -1}
    wait_until(lambda: cluster.get(path)["endTimestamp"] > 0, "a flame graph")
    graph = cluster.get(f"{path}?type=full")["data"]
    assert graph["name"] == "root"
    assert graph["value"] == sum(child["value"] for child in graph["children"]) > 0
    names = json.dumps(graph)
    assert "headrace.runtime.task.stream_task.StreamTask." in names
    parts = [cluster.get(f"{path}?type={kind}")["data"]["value"] for kind in ("ON_CPU", "off_cpu")]
    assert sum(parts) == graph["value"]
    subtasks = [cluster.get(f"{path}?subtaskindex={index}")["data"]["value"] for index in range(2)]
    assert sum(subtasks) == graph["value"]


@pytest.mark.parametrize(
    ("query", "status"), [("type=odd", 400), ("subtaskindex=2", 404), ("subtaskindex=x", 400)]
)
def test_a_flame_graph_of_what_is_not_there_is_refused(
    cluster: RestCluster, running: LiveJob, query: str, status: int
) -> None:
    vertex = running.master.job.vertices[-1].vertex_id
    assert cluster.ask("GET", f"/jobs/{running.job_id}/vertices/{vertex}/flamegraph?{query}").status == status


def test_logs_are_listed_and_read(cluster: RestCluster) -> None:
    assert [each["name"] for each in cluster.get("/jobmanager/logs")["logs"]] == ["headrace.log"]
    assert cluster.ask("GET", "/jobmanager/log").body == b"begun\n"
    assert cluster.ask("GET", "/jobmanager/logs/headrace.log").body == b"begun\n"
    assert [each["name"] for each in cluster.get("/taskmanagers/driver/logs")["logs"]] == ["stderr", "stdout"]
    assert cluster.ask("GET", "/taskmanagers/driver/log").body == b"said\n"
    assert cluster.ask("GET", "/taskmanagers/driver/stdout").body == b"out\n"
    assert cluster.ask("GET", "/taskmanagers/driver/logs/stdout").body == b"out\n"
    assert cluster.ask("GET", "/taskmanagers/driver/logs/other").status == 404
    assert cluster.ask("GET", "/taskmanagers/17/log").status == 404


def test_the_memory_of_an_executor_is_what_its_processes_take(cluster):
    wanted = [
        "Status.JVM.Memory.Heap.Used",
        "Status.Python.Memory.Used",
        "Status.Flink.Memory.Managed.Used",
        "Status.Flink.Memory.Managed.Total",
        "Status.JVM.GarbageCollector.All.Count",
        "Status.Spark.Memory.Storage.Used",
    ]
    found = cluster.get(f"/taskmanagers/driver/metrics?get={','.join(wanted)}")
    assert [each["id"] for each in found] == wanted
    assert [int(each["value"]) for each in found] == [2**22, 2**23, 2**23, 2**24, 3, 2**20]
    details = cluster.get("/taskmanagers/driver")
    assert details["metrics"]["heapUsed"] == 2**22
    assert details["hardware"]["managedMemory"] == 2**24


def test_subtasks_say_how_late_barriers_and_watermarks_are(running, cluster):
    vertex = running.master.job.vertices[-1].vertex_id
    base = f"/jobs/{running.job_id}/vertices/{vertex}/subtasks/0/metrics"
    wanted = ["checkpointStartDelayNanos", "checkpointAlignmentTime", "watermarkLag"]
    found = {each["id"]: int(each["value"]) for each in cluster.get(f"{base}?get={','.join(wanted)}")}
    assert set(found) == set(wanted)
    assert all(value >= 0 for value in found.values())
    watermark = int(cluster.get(f"{base}?get=currentInputWatermark")[0]["value"])
    # Both are asked one after the other, and time advances.
    assert 0 <= cluster.dispatcher.now_ms() - watermark - found["watermarkLag"] < 60_000
