"""What a reporter sends: the metrics of the process as single numbers, filtered by its options.

A filter is Flink's: `<scope>[:<name>,<name>][:<type>,<type>]`, several with semicolons between them, `*` for anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from headrace.config.configuration import Configuration
from headrace.config.parsing import parse_map
from headrace.errors import ConfigurationError
from headrace.metrics import reports
from headrace.rest.reporters.settings import ReporterSettings
from headrace.rest.resources.identifiers import Identifiers
from headrace.rest.resources.metric_sets import MetricSet, Scope
from headrace.rest.resources.metrics import report_values

__all__ = ["Sample", "Sampler"]

_LOGICAL: Mapping[Scope, str] = {
    "jm": "jobmanager",
    "jm-job": "jobmanager.job",
    "tm": "taskmanager",
    "tm-job": "taskmanager.job",
    "task": "taskmanager.job.task",
    "operator": "taskmanager.job.task.operator",
}
_TYPES: Mapping[type, str] = {
    reports.CounterReport: "counter",
    reports.GaugeReport: "gauge",
    reports.MeterReport: "meter",
    reports.DistributionReport: "histogram",
    reports.HistogramReport: "histogram",
}


@dataclass(frozen=True)
class Sample:
    """One number of a metric."""

    #: Scope, variables and name in one: for systems without labels.
    identifier: str
    #: Scope and name without variables: `taskmanager.job.task.numRecordsIn`.
    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class _Filter:
    scope: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def read(cls, text: str, key: str) -> _Filter:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) > 3:
            raise ConfigurationError(f"{key}: expected scope:names:types; got {text!r}")
        scope, names, types = [*parts, "*", "*"][:3]
        lists = (tuple(each.strip() for each in part.split(",")) for part in (names, types))
        return cls(scope, *lists)

    def matches(self, scope: str, name: str, kind: str) -> bool:
        return (
            fnmatchcase(scope, self.scope)
            and any(fnmatchcase(name, each) for each in self.names)
            and any(each in ("*", kind) for each in self.types)
        )


class Sampler:
    """Turns sets of metrics into what one reporter sends.

    Args:
        configuration: Has the formats of identifiers.
        settings: Has filters and labels.

    Raises:
        ConfigurationError: If a filter cannot be read.
    """

    def __init__(self, configuration: Configuration, settings: ReporterSettings) -> None:
        delimiter = settings.options.get("scope.delimiter")
        if delimiter is not None:
            configuration = configuration.with_values({"metrics.scope.delimiter": delimiter})
        self._identifiers = Identifiers(configuration)
        self._includes = _filters(settings, "filter.includes") or [_Filter("*", ("*",), ("*",))]
        self._excludes = _filters(settings, "filter.excludes")
        additional = settings.options.get("scope.variables.additional", "")
        self._more = {
            **(parse_map(additional) if additional else {}),
            **settings.entries("scope.variables.additional"),
        }
        excluded = settings.options.get("scope.variables.excludes", "")
        self._less = frozenset(each.strip().strip("<>") for each in excluded.split(";") if each.strip())

    def wants(self, metrics: MetricSet) -> MetricSet:
        """Return a set without what the filters leave out, with the labels asked for."""
        scope = _LOGICAL[metrics.scope]
        values = {name: each for name, each in metrics.values.items() if self._is_in(scope, name, "gauge")}
        reported = {
            name: each
            for name, each in metrics.reports.items()
            if self._is_in(scope, name.name, _TYPES[type(each)])
        }
        return MetricSet(metrics.scope, metrics.variables, values, reported)

    def labels(self, metrics: MetricSet) -> dict[str, str]:
        """Return the labels of a set."""
        kept = {key: value for key, value in metrics.variables.items() if key not in self._less}
        return {**kept, **self._more}

    def samples(self, metrics: MetricSet) -> Iterator[Sample]:
        """Yield the numbers of a set; texts are left out."""
        chosen = self.wants(metrics)
        scope, labels = _LOGICAL[metrics.scope], self.labels(metrics)
        named = [
            *((name, {}, value) for name, value in chosen.values.items()),
            *(
                (name.logical + suffix, name.variables, value)
                for name, report in chosen.reports.items()
                for suffix, value in report_values(report)
            ),
        ]
        for (identifier, _), (name, variables, value) in zip(
            self._identifiers.of(chosen), named, strict=True
        ):
            number = _number(value)
            if number is not None:
                yield Sample(identifier, f"{scope}.{name}", {**labels, **variables}, number)

    def _is_in(self, scope: str, name: str, kind: str) -> bool:
        return any(each.matches(scope, name, kind) for each in self._includes) and not any(
            each.matches(scope, name, kind) for each in self._excludes
        )


def _filters(settings: ReporterSettings, name: str) -> list[_Filter]:
    text = settings.options.get(name, "")
    return [_Filter.read(each, f"{settings.prefix}.{name}") for each in re.split(";", text) if each.strip()]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value
