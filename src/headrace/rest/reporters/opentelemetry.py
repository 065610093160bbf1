"""Reporters for OpenTelemetry: metrics, and checkpoints and failures as spans, over OTLP and HTTP.

The packages are those of the extra `otel`. They build and send the messages; what is in them is decided here.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from headrace.config.configuration import Configuration
from headrace.errors import ConfigurationError, ConnectorError
from headrace.rest.reporters.samples import Sampler
from headrace.rest.reporters.settings import ReporterSettings
from headrace.rest.reporters.spans import TraceSpan
from headrace.rest.resources.metric_sets import MetricSet

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric
    from opentelemetry.sdk.resources import Resource

__all__ = ["OpenTelemetryMetrics", "OpenTelemetrySpans"]

_SCOPE = "headrace"


class _Endpoint:
    """Where messages go, and who sends them."""

    def __init__(self, settings: ReporterSettings, path: str) -> None:
        protocol = settings.text("exporter.protocol", "http").lower()
        if protocol not in ("http", "http/protobuf"):
            raise ConfigurationError(
                f"{settings.prefix}.exporter.protocol: {protocol!r} is not supported",
                hint="use http; collectors take it on port 4318",
            )
        base = settings.text("exporter.endpoint").rstrip("/")
        self.url = base if base.endswith(path) else f"{base}{path}"
        self.timeout_s = settings.duration_s("exporter.timeout", timedelta(seconds=10))
        self._name = settings.text("service.name", "headrace")
        self._version = settings.options.get("service.version")

    @property
    def resource(self) -> Resource:
        from opentelemetry.sdk.resources import Resource

        own: dict[str, Any] = {"service.name": self._name}
        if self._version is not None:
            own["service.version"] = self._version
        return Resource.create(own)


class OpenTelemetryMetrics:
    """Sends metrics as gauges.

    Args:
        settings: `exporter.endpoint`, `exporter.timeout`, `service.name`, `service.version`.
        configuration: Of the process.
        clock_ns: The time, in ns since the Unix epoch.

    Raises:
        ConfigurationError: If the packages are missing, or an option is wrong.
    """

    def __init__(
        self,
        settings: ReporterSettings,
        configuration: Configuration,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        exporters = _packages("opentelemetry.exporter.otlp.proto.http.metric_exporter")
        endpoint = _Endpoint(settings, "/v1/metrics")
        self._sampler = Sampler(configuration, settings)
        self._resource = endpoint.resource
        self._clock_ns = clock_ns
        self._exporter = exporters.OTLPMetricExporter(endpoint=endpoint.url, timeout=endpoint.timeout_s)

    def report(self, metrics: Sequence[MetricSet]) -> None:
        """Send all metrics in one message."""
        from opentelemetry.sdk.metrics.export import (
            MetricExportResult,
            MetricsData,
            ResourceMetrics,
            ScopeMetrics,
        )
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        scope = ScopeMetrics(InstrumentationScope(_SCOPE), self._gauges(metrics), "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        if self._exporter.export(data) is not MetricExportResult.SUCCESS:
            raise ConnectorError("the OpenTelemetry collector did not take the metrics")

    def close(self) -> None:
        self._exporter.shutdown()

    def _gauges(self, metrics: Sequence[MetricSet]) -> list[Metric]:
        from opentelemetry.sdk.metrics.export import Gauge, Metric, NumberDataPoint

        now = self._clock_ns()
        points: dict[str, list[NumberDataPoint]] = {}
        for each in chain.from_iterable(map(self._sampler.samples, metrics)):
            point = NumberDataPoint(dict(each.labels), now, now, each.value)
            points.setdefault(f"flink.{each.name}", []).append(point)
        return [Metric(name, None, None, Gauge(found)) for name, found in points.items()]


class OpenTelemetrySpans:
    """Sends spans.

    Args:
        settings: As of `OpenTelemetryMetrics`.

    Raises:
        ConfigurationError: If the packages are missing, or an option is wrong.
    """

    def __init__(self, settings: ReporterSettings) -> None:
        exporters = _packages("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor

        endpoint = _Endpoint(settings, "/v1/traces")
        exporter = exporters.OTLPSpanExporter(endpoint=endpoint.url, timeout=endpoint.timeout_s)
        self._provider = TracerProvider(resource=endpoint.resource, shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_SCOPE)

    def send(self, spans: Sequence[TraceSpan]) -> None:
        """Send spans that have ended."""
        for each in spans:
            begun = self._tracer.start_span(
                each.name, start_time=each.start_ms * 1_000_000, attributes=dict(each.attributes)
            )
            begun.end(each.end_ms * 1_000_000)

    def close(self) -> None:
        self._provider.shutdown()


def _packages(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"reports to OpenTelemetry need the package {error.name}, which is not installed",
            hint="run pip install 'headrace[otel]' where the driver runs",
        ) from None
