"""Which options of Flink's reporters there are here, by the names that its pages give the reporters.

Options of reporters are read by the reporters, not by the configuration: one that a reporter does not have is an error
when the program starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["OPEN_TELEMETRY_OPTIONS", "PAGE_OPTIONS", "PUSH_OPTIONS", "answer_of_reporter"]

#: Prometheus fetches a page.
PAGE_OPTIONS: Final = ("port", "filterLabelValueCharacters")
#: Metrics are pushed to Prometheus' gateway.
PUSH_OPTIONS: Final = (
    "hostUrl",
    "jobName",
    "randomJobNameSuffix",
    "deleteOnShutdown",
    "groupingKey",
    "filterLabelValueCharacters",
    "username",
    "password",
)
OPEN_TELEMETRY_OPTIONS: Final = (
    "exporter.endpoint",
    "exporter.protocol",
    "exporter.timeout",
    "service.name",
    "service.version",
)
_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "prometheus": frozenset({*PAGE_OPTIONS, *PUSH_OPTIONS}),
    "OpenTelemetry": frozenset(OPEN_TELEMETRY_OPTIONS),
    "influxdb": frozenset(),
}
_REFUSALS: Final[Mapping[str, str]] = {
    "prometheus": "the reporters of Prometheus have no such option: an error when the program starts",
    "OpenTelemetry": "the reporters of OpenTelemetry have no such option: an error when the program starts",
    "influxdb": "headrace has no InfluxDB reporter: use OpenTelemetry, StatsD or Prometheus",
}
_NOTES: Final[Mapping[str, str]] = {
    "OpenTelemetry.exporter.protocol": "`http` only, which is also the default here",
    "<name>.<parameter>": "options that the reporter does not have are an error when the program starts",
}


def answer_of_reporter(key: str) -> tuple[str, str] | None:
    """Return what happens to a documented key of a reporter, and why; None if it is not one, or simply honoured.

    Example:
        >>> answer_of_reporter("metrics.reporter.influxdb.host")
        ('refused', 'headrace has no InfluxDB reporter: use OpenTelemetry, StatsD or Prometheus')
        >>> answer_of_reporter("metrics.reporter.prometheus.jobName")
    """
    for prefix in ("metrics.reporter.", "traces.reporter."):
        if key.startswith(prefix):
            rest = key.removeprefix(prefix)
            if rest in _NOTES:
                return "honoured", _NOTES[rest]
            name, _, option = rest.partition(".")
            if name in _OPTIONS and option not in _OPTIONS[name]:
                return "refused", _REFUSALS[name]
    return None
