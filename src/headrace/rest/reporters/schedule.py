"""Finds the reporters that are configured, and lets each report by its clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Final, Protocol

from headrace.config.flink.reporters import OPEN_TELEMETRY_OPTIONS, PAGE_OPTIONS, PUSH_OPTIONS
from headrace.config.options import metrics as options
from headrace.errors import ConfigurationError, HeadraceError
from headrace.rest.context import RestContext
from headrace.rest.reporters import opentelemetry
from headrace.rest.reporters.lines import JsonLinesReporter, LogReporter, StatsDReporter
from headrace.rest.reporters.prometheus import (
    PrometheusPage,
    PushGatewayReporter,
)
from headrace.rest.reporters.reporter import ReporterKind
from headrace.rest.reporters.settings import ReporterSettings, reporters_of
from headrace.rest.reporters.spans import NewSpans
from headrace.rest.resources.metric_sets import MetricSet, metric_sets

__all__ = ["Reporters"]

_FLINK: Final = "org.apache.flink.metrics."
_PAGE: Final = f"{_FLINK}prometheus.PrometheusReporterFactory"
_SPANS: Final = "org.apache.flink.traces.otel.OpenTelemetryTraceReporterFactory"
_KINDS: Final[Mapping[str, ReporterKind]] = {
    f"{_FLINK}prometheus.PrometheusPushGatewayReporterFactory": ReporterKind(
        PushGatewayReporter, PUSH_OPTIONS
    ),
    f"{_FLINK}statsd.StatsDReporterFactory": ReporterKind(StatsDReporter, ("host", "port")),
    f"{_FLINK}otel.OpenTelemetryMetricReporterFactory": ReporterKind(
        opentelemetry.OpenTelemetryMetrics, OPEN_TELEMETRY_OPTIONS
    ),
    f"{_FLINK}slf4j.Slf4jReporterFactory": ReporterKind(LogReporter),
    "headrace.JsonLinesReporter": ReporterKind(JsonLinesReporter, ("file",)),
}
_log = logging.getLogger(__name__)


class _Closing(Protocol):
    def close(self) -> None: ...


class Reporters:
    """All reporters of a process.

    Args:
        context: What REST knows.

    Raises:
        ConfigurationError: If one of them cannot be made.
    """

    def __init__(self, context: RestContext) -> None:
        self._context = context
        self._stopped = Event()
        self._threads: list[Thread] = []
        self._opened: list[_Closing] = []
        configuration = context.configuration
        try:
            for settings in reporters_of(configuration, options.REPORTERS, options.REPORTER):
                self._add_metrics(settings)
            for settings in reporters_of(configuration, options.TRACE_REPORTERS, options.TRACE_REPORTER):
                self._add_spans(settings)
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def close(self) -> None:
        """Report a last time, then close all reporters."""
        self._stopped.set()
        for each in self._threads:
            if each.ident is not None:
                each.join()
        for opened in self._opened:
            _safely(opened.close, "closing a reporter")

    def _add_metrics(self, settings: ReporterSettings) -> None:
        configuration = self._context.configuration
        if settings.factory == _PAGE:
            settings.check(PAGE_OPTIONS)
            self._opened.append(PrometheusPage(settings, configuration, self._metrics))
            return
        kind = _KINDS.get(settings.factory)
        if kind is None:
            raise _unknown(settings, [_PAGE, *_KINDS])
        settings.check(kind.options)
        interval_s = settings.interval_s
        reporter = kind.make(settings, configuration)
        self._opened.append(reporter)
        self._schedule(settings.prefix, interval_s, lambda: reporter.report(self._metrics()))

    def _add_spans(self, settings: ReporterSettings) -> None:
        if settings.factory != _SPANS:
            raise _unknown(settings, [_SPANS])
        settings.check(OPEN_TELEMETRY_OPTIONS)
        interval_s = settings.interval_s
        sender, new = opentelemetry.OpenTelemetrySpans(settings), NewSpans()
        self._opened.append(sender)
        jobs = self._context.dispatcher.live_jobs
        self._schedule(settings.prefix, interval_s, lambda: sender.send(list(new.find(jobs()))))

    def _metrics(self) -> list[MetricSet]:
        # A subtask that has not reported yet has no place.
        return [each for each in metric_sets(self._context) if all(each.variables.values())]

    def _schedule(self, name: str, interval_s: float, act: Callable[[], None]) -> None:
        def run() -> None:
            stopped = False
            while not stopped:
                stopped = self._stopped.wait(interval_s)
                _safely(act, name)

        self._threads.append(Thread(target=run, name=name, daemon=True))


def _safely(act: Callable[[], None], name: str) -> None:
    """Do something whose failure must not disturb a job."""
    try:
        act()
    except (HeadraceError, OSError, ValueError) as error:
        _log.warning("%s: %s", name, error)
    except Exception:  # noqa: BLE001  # the same, with what to look for
        _log.exception("%s failed", name)


def _unknown(settings: ReporterSettings, known: list[str]) -> ConfigurationError:
    return ConfigurationError(
        f"{settings.prefix}.factory.class: unknown reporter {settings.factory}",
        hint="available: " + ", ".join(known),
    )
