"""Reporters send what REST shows to real servers of this machine."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace.config import Configuration
from headrace.errors import ConfigurationError
from headrace.metrics.reports import CounterReport, MetricName
from headrace.rest.reporters import Reporters
from headrace.rest.reporters.lines import statsd_lines
from headrace.rest.reporters.prometheus import PrometheusPage
from headrace.rest.reporters.samples import Sample, Sampler
from headrace.rest.reporters.settings import ReporterSettings
from headrace.rest.resources.metric_sets import MetricSet
from headrace.runtime.job.dispatcher import LiveJob
from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until

FLINK = "org.apache.flink.metrics."
STATSD = f"{FLINK}statsd.StatsDReporterFactory"


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """An HTTP server that keeps what it gets: method, path, body."""
    requests: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            requests.append((self.command, self.path, self.rfile.read(size)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PUT = do_POST = do_DELETE = _take

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", requests
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def reporting(tmp_path: Path, options: dict[str, str]) -> Iterator[LiveJob]:
    """A job that runs and has a checkpoint, with reporters that report when they are closed."""
    cluster = RestCluster(options)
    try:
        job = cluster.submit(
            counting(ENDLESS),
            {
                "execution.checkpointing.interval": "20 ms",
                "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            },
        )
        statistics = job.master.checkpoints.coordinator.statistics
        wait_until(lambda: statistics().counts.completed > 0, "a checkpoint")
        wait_until(lambda: all(each.host for each in job.monitor.subtasks().values()), "places")
        reporters = Reporters(cluster.context)
        reporters.start()
        yield job
        reporters.close()
    finally:
        cluster.close()


def of(name: str, factory: str, **options: str) -> dict[str, str]:
    prefix = f"metrics.reporter.{name}."
    own = {key.replace("__", "."): value for key, value in options.items()}
    return {f"{prefix}factory.class": factory, **{f"{prefix}{key}": value for key, value in own.items()}}


def test_statsd_gets_gauges_in_datagrams(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        options = of(
            "st", STATSD, host="127.0.0.1", port=str(server.getsockname()[1]), filter__includes="*:num*"
        )
        with reporting(tmp_path, options) as job:
            pass
        server.settimeout(5)
        packet = server.recv(1 << 16)
    assert len(packet) <= 1_400
    lines = packet.decode().splitlines()
    assert all(line.endswith("|g") for line in lines)
    name, _, value = lines[0].partition(":")
    assert name.split(".")[-1].startswith("num")
    assert float(value.removesuffix("|g")) >= 0
    assert job.name in packet.decode()


def test_a_gauge_goes_below_zero_through_zero():
    assert list(statsd_lines(Sample("a.lag", "lag", {}, -3))) == ["a.lag:0|g", "a.lag:-3|g"]
    assert list(statsd_lines(Sample("a.lag", "lag", {}, float("nan")))) == []


def test_a_push_gateway_gets_the_page_and_is_cleaned_up(tmp_path):
    with collector() as (url, requests):
        options = of(
            "push",
            f"{FLINK}prometheus.PrometheusPushGatewayReporterFactory",
            hostUrl=url,
            jobName="clicks/eu",
            randomJobNameSuffix="false",
            groupingKey="team=web",
        )
        with reporting(tmp_path, options) as job:
            pass
    (put, path, body), (delete, same, _) = requests
    assert (put, delete) == ("PUT", "DELETE")
    assert path == same == "/metrics/job/clicks%2Feu/team/web"
    assert f'flink_jobmanager_job_numberOfCompletedCheckpoints{{job_id="{job.job_id}"' in body.decode()


def test_prometheus_asks_a_port_of_its_own(tmp_path):
    cluster = RestCluster()
    settings = ReporterSettings("metrics.reporter.prom", "page", {"port": "0"})
    page = PrometheusPage(
        settings, cluster.context.configuration, lambda: [MetricSet("jm", {"host": "here"}, {"slots": 4})]
    )
    with urlopen(f"http://localhost:{page.port}/") as answer:
        text = answer.read().decode()
    page.close()
    cluster.close()
    assert 'flink_jobmanager_slots{host="here"} 4' in text


def test_a_file_gets_a_line_for_each_number(tmp_path):
    file = tmp_path / "metrics.jsonl"
    options = of(
        "file", "headrace.JsonLinesReporter", file=str(file), filter__includes="taskmanager.job.task"
    )
    with reporting(tmp_path, options) as job:
        pass
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    found = [each for each in lines if each["name"] == "taskmanager.job.task.numRecordsIn"]
    assert {each["labels"]["job_id"] for each in found} == {job.job_id}
    assert all(isinstance(each["value"], int | float) for each in found)
    assert {each["name"].rpartition(".")[0] for each in lines} == {"taskmanager.job.task"}


def test_opentelemetry_gets_metrics_and_spans_of_checkpoints(tmp_path):
    with collector() as (url, requests):
        options: dict[str, Any] = of(
            "otel", f"{FLINK}otel.OpenTelemetryMetricReporterFactory", exporter__endpoint=url
        )
        prefix = "traces.reporter.otel."
        options[f"{prefix}factory.class"] = "org.apache.flink.traces.otel.OpenTelemetryTraceReporterFactory"
        options[f"{prefix}exporter.endpoint"] = url
        options[f"{prefix}service.name"] = "clicks"
        with reporting(tmp_path, options) as job:
            pass
    bodies: dict[str, list[bytes]] = {}
    for _, path, body in requests:
        bodies.setdefault(path, []).append(body)
    metrics = ExportMetricsServiceRequest.FromString(bodies["/v1/metrics"][0])
    [scope] = metrics.resource_metrics[0].scope_metrics
    assert "flink.jobmanager.job.numberOfCompletedCheckpoints" in {each.name for each in scope.metrics}
    spans = [
        span
        for body in bodies["/v1/traces"]
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for each in resource.scope_spans
        for span in each.spans
    ]
    attributes = {each.key: each.value for each in spans[0].attributes}
    assert (spans[0].name, attributes["jobId"].string_value) == ("Checkpoint", job.job_id)
    ids = [
        next(each.value.int_value for each in span.attributes if each.key == "checkpointId") for span in spans
    ]
    assert len(ids) == len(set(ids))


def test_a_server_that_is_gone_is_logged_and_nothing_else(tmp_path, caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        options = of("push", f"{FLINK}prometheus.PrometheusPushGatewayReporterFactory", hostUrl=url)
        with reporting(tmp_path, options):
            pass
    assert "metrics.reporter.push" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics.reporters": "a"}, "metrics.reporter.a.factory.class is not set"),
        (of("a", "org.example.Factory"), "unknown reporter org.example.Factory"),
        (of("a", STATSD), "metrics.reporter.a.host is required"),
        (of("a", STATSD, host="h", prot="1"), "has no such option"),
        (of("a", STATSD, host="h", port="many"), "expected a whole number"),
        (of("a", STATSD, host="h", interval="never"), "metrics.reporter.a.interval"),
        (of("a", STATSD, host="h", filter__includes="a:b:c:d"), "expected scope:names:types"),
    ],
)
def test_impossible_options_are_refused_before_anything_runs(options, message):
    cluster = RestCluster(options)
    with pytest.raises(ConfigurationError, match=message):
        Reporters(cluster.context)


def test_only_named_reporters_report(tmp_path):
    options = {
        "metrics.reporters": "b",
        **of("a", "org.example.Unknown"),
        **of("b", "headrace.JsonLinesReporter", file=str(tmp_path / "b")),
    }
    cluster = RestCluster(options)
    Reporters(cluster.context).close()
    assert (tmp_path / "b").exists()


def test_filters_and_labels_follow_the_options():
    metrics = MetricSet(
        "operator",
        {"host": "h", "tm_id": "1", "job_name": "j", "operator_name": "o", "subtask_index": "0"},
        reports={MetricName("seen"): CounterReport(3), MetricName("late"): CounterReport(1)},
    )
    settings = ReporterSettings(
        "metrics.reporter.x",
        "x",
        {
            "filter.includes": "*:*:counter",
            "filter.excludes": "*:late",
            "scope.variables.additional": "region:eu",
            "scope.variables.excludes": "tm_id;host",
        },
    )
    [sample] = Sampler(Configuration(), settings).samples(metrics)
    assert sample.name == "taskmanager.job.task.operator.seen"
    assert sample.labels == {"job_name": "j", "operator_name": "o", "subtask_index": "0", "region": "eu"}
    assert sample.value == 3


def test_the_dashboard_asks_for_metrics_that_exist(running, cluster):
    page = cluster.ask("GET", "/metrics").body.decode()
    exported = set(re.findall(r"^(flink_\w+)", page, re.MULTILINE))
    dashboard = (Path(__file__).parents[3] / "docs" / "grafana.json").read_text()
    asked = set(re.findall(r"flink_\w+", dashboard))
    assert asked
    assert asked <= exported
