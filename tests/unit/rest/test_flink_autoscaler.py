"""Flink's own autoscaler over REST: what it asks for, and that it scales a job.

It is the program of `FlinkAutoscaler.java`, made of the release that Maven Central has. The requests that it makes are
listed here, so that a test without Java shows that each has its answer.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.graph.job_graph import JobGraph
from headrace.rest.http import Response
from headrace.rest.server import RestServer
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import ENDLESS, Count, RestCluster, wait_until
from tests.unit.runtime.jobs import job_graph, make_env

_PROGRAM = Path(__file__).with_name("FlinkAutoscaler.java")
_ARTIFACTS = {"flink-autoscaler": "1.10.0", "flink-clients": "1.19.1", "flink-runtime": "1.19.1"}
_LOGGING = ("org.slf4j", "slf4j-simple", "1.7.36")

#: What it asks for, with names for ids; the order of metrics differs from time to time.
REQUESTS = {
    "GET /v1/jobs/overview",
    "GET /v1/jobs/JOB/jobmanager/config",
    "GET /v1/jobs/JOB",
    "GET /v1/jobs/JOB/vertices/SOURCE/subtasks/metrics",
    "GET /v1/jobs/JOB/vertices/OTHER/subtasks/metrics",
    "GET /v1/jobs/JOB/vertices/SOURCE/subtasks/metrics?get=Source__numbers.numRecordsIn,"
    "Source__numbers.numRecordsInPerSecond,Source__numbers.numRecordsOut,backPressuredTimeMsPerSecond,"
    "busyTimeMsPerSecond",
    "GET /v1/jobs/JOB/vertices/OTHER/subtasks/metrics?get=busyTimeMsPerSecond",
    "GET /v1/jobmanager/metrics?get=taskSlotsAvailable,taskSlotsTotal",
    "GET /v1/taskmanagers/metrics?agg=avg,max,min&get=Status.Flink.Memory.Managed.Used,"
    "Status.JVM.GarbageCollector.All.TimeMsPerSecond,Status.JVM.Memory.Heap.Max,Status.JVM.Memory.Heap.Used,"
    "Status.JVM.Memory.Metaspace.Used",
    "GET /v1/jobs/JOB/resource-requirements",
    "PUT /v1/jobs/JOB/resource-requirements",
}


class Slow(Count):
    """Takes some time for each record."""

    def process_element(self, value: int, ctx: Count.Context) -> Iterator[Any]:
        time.sleep(0.002)
        yield from super().process_element(value, ctx)


def counting(function: type[Count]) -> JobGraph:
    env = make_env(parallelism=1)
    numbers = env.from_source(NumberSequenceSource(0, ENDLESS), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % 7).process(function()).sink_to(BlackholeSink())
    return replace(job_graph(env, "counting"), job_id=uuid4().hex)


@pytest.fixture
def asked(cluster: RestCluster, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the cluster is asked, as in `REQUESTS`."""
    seen: set[str] = set()
    admit = cluster.application.admit

    def note(method: str, target: str, *others: Any) -> Any:
        names = _names(cluster.dispatcher.live_jobs()[0])
        path, mark, query = re.sub("[0-9a-f]{32}", lambda found: names[found[0]], target).partition("?")
        parts = [part.partition("=") for part in query.replace("%2C", ",").split("&")]
        ordered = sorted(f"{key}{sign}{','.join(sorted(words.split(',')))}" for key, sign, words in parts)
        seen.add(f"{method} {path}{mark}{'&'.join(ordered)}")
        return admit(method, target, *others)

    monkeypatch.setattr(cluster.application, "admit", note)
    return seen


def _names(job: LiveJob) -> dict[str, str]:
    source, other = (vertex.vertex_id for vertex in job.master.job.vertices)
    return {job.job_id: "JOB", source: "SOURCE", other: "OTHER"}


def submit(cluster: RestCluster, folder: Path, function: type[Count], kind: str) -> LiveJob:
    options = {
        "headrace.exchange.kind": kind,
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(folder),
    }
    made = cluster.submit(counting(function), options)
    wait_until(lambda: len(made.monitor.epochs()) > 2, "some epochs")
    return made


@pytest.mark.parametrize("kind", ["blocking", "pipelined"])
def test_everything_that_flinks_autoscaler_asks_for_is_there(
    cluster: RestCluster, kind: str, tmp_path: Path
) -> None:
    job = submit(cluster, tmp_path, Count, kind)
    ids = {name: found for found, name in _names(job).items()}

    def ask(request: str) -> Any:
        method, path = request.split()
        answer: Response = cluster.ask(method, re.sub("JOB|SOURCE|OTHER", lambda name: ids[name[0]], path))
        assert answer.status == 200, (request, answer.body)
        return json.loads(answer.body)

    for request in sorted(REQUESTS):
        if request.startswith("GET") and "?" in request:
            wanted = re.findall(r"get=([^&]+)", request)[0].split(",")
            found = {each["id"]: each for each in ask(request)}
            # Java's class space is unknown for executors that are not on this machine.
            assert found.keys() | {"Status.JVM.Memory.Metaspace.Used"} >= set(wanted), request
            own = {"value"} if "jobmanager" in request else {"min", "max", "avg"}
            assert all(each.keys() >= own for each in found.values()), request
    (overview,) = ask("GET /v1/jobs/overview")["jobs"]
    assert overview["tasks"]["running"] == overview["tasks"]["total"] == 2, "else it is not looked at"
    details = ask("GET /v1/jobs/JOB")
    assert details["timestamps"]["RUNNING"] > 0
    assert [each["maxParallelism"] for each in details["vertices"]] == [128, 128]
    assert all(each["metrics"]["accumulated-busy-time"] >= 0 for each in details["vertices"])
    inputs = {
        node["id"]: [each["id"] for each in node.get("inputs", ())] for node in details["plan"]["nodes"]
    }
    assert inputs == {ids["SOURCE"]: [], ids["OTHER"]: [ids["SOURCE"]]}
    listed = {each["id"] for each in ask("GET /v1/jobs/JOB/vertices/SOURCE/subtasks/metrics")}
    assert {"Source__numbers.numRecordsIn", "Source__numbers.numRecordsInPerSecond"} <= listed
    (rate,) = ask(
        "GET /v1/jobs/JOB/vertices/SOURCE/subtasks/metrics?get=Source__numbers.numRecordsInPerSecond"
    )
    assert rate["sum"] > 0


@pytest.mark.slow(seconds=90)
@pytest.mark.timeout(400)
def test_flinks_autoscaler_scales_a_job(cluster: RestCluster, asked: set[str], tmp_path: Path) -> None:
    jars = _fetch_jars(tmp_path)
    job = submit(cluster, tmp_path / "checkpoints", Slow, "blocking")
    options = {
        "job.autoscaler.enabled": "true",
        "job.autoscaler.stabilization.interval": "0 s",
        "job.autoscaler.metrics.window": "3 s",
        "job.autoscaler.catch-up.duration": "0 s",
        # The function works more than three quarters of the time: twice as many take it below the half.
        "job.autoscaler.target.utilization": "0.5",
        "job.autoscaler.target.utilization.boundary": "0.1",
    }
    server = RestServer(cluster.application, RestSettings())
    server.start()
    # The autoscaler brings some of Flink's classes in versions of its own, which have to come first.
    path = sorted(jars, key=lambda jar: "autoscaler" not in jar.name)
    java = ["java", "-cp", ":".join(map(str, path)), str(_PROGRAM), f"http://localhost:{server.port}"]
    words = [f"{key}={value}" for key, value in options.items()]
    with (tmp_path / "said").open("w+") as said:
        autoscaler = subprocess.Popen([*java, *words], stdout=said, stderr=subprocess.STDOUT)
        try:
            wait_until(
                lambda: autoscaler.poll() is not None or job.master.job.vertices[1].parallelism > 1,
                "another parallelism",
                seconds=200,
            )
        finally:
            autoscaler.kill()
            autoscaler.wait()
            server.close(fetch_s=0.0)
        said.seek(0)
        text = said.read()
    assert [vertex.parallelism for vertex in job.master.job.vertices] == [1, 2], text[-4000:]
    assert asked == REQUESTS
    assert "ERROR" not in text


def _fetch_jars(folder: Path) -> list[Path]:
    """Return the class path of the program, or skip the test."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("needs Java and Maven")
    wanted = [("org.apache.flink", name, version) for name, version in _ARTIFACTS.items()]
    fields = ("groupId", "artifactId", "version")
    dependencies = "".join(
        f"<dependency>{''.join(f'<{field}>{word}</{field}>' for field, word in zip(fields, each, strict=True))}"
        "</dependency>"
        for each in [*wanted, _LOGGING]
    )
    own = "<groupId>any</groupId><artifactId>any</artifactId><version>1</version>"
    project = folder / "pom.xml"
    project.write_text(
        f"<project><modelVersion>4.0.0</modelVersion>{own}<dependencies>{dependencies}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"]
    words = ["mvn", "-q", "-B", "-f", str(project), *goal]
    with suppress(subprocess.TimeoutExpired):
        if subprocess.run(words, capture_output=True, timeout=300, check=False).returncode == 0:
            return sorted((folder / "jars").glob("*.jar"))
    pytest.skip("Maven has no Flink 1.19 or its autoscaler")
