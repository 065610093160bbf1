"""All metrics under their identifiers, whose beginnings are chosen by Flink's options `metrics.scope.*`.

    <host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>    +    numRecordsIn
    node-7.taskmanager.2.clicks.parse.0.numRecordsIn

That is what Flink's reporters write that know no labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.config.configuration import Configuration
from headrace.config.options import metrics as options
from headrace.rest.context import RestContext
from headrace.rest.http import Request
from headrace.rest.resources.metric_sets import MetricSet, Scope, metric_sets
from headrace.rest.resources.metrics import MetricBody, metric_text, report_values
from headrace.rest.routing import Endpoint

_VARIABLE = re.compile(r"<([^<>]*)>")
#: In front of a format: that of the scope around it.
_AROUND = "*"
#: Each after the one that it can stand on.
_FORMATS: tuple[tuple[Scope, Scope | None, Any], ...] = (
    ("jm", None, options.SCOPE_JM),
    ("jm-job", "jm", options.SCOPE_JM_JOB),
    ("tm", None, options.SCOPE_TM),
    ("tm-job", "tm", options.SCOPE_TM_JOB),
    ("task", "tm-job", options.SCOPE_TASK),
    ("operator", "task", options.SCOPE_OPERATOR),
)


class Identifiers:
    """Writes the identifiers of metrics.

    Args:
        configuration: Has the formats.

    Example:
        >>> chosen = Configuration({"metrics.scope.tm": "<tm_id>", "metrics.scope.tm-job": "*.<job_name>"})
        >>> Identifiers(chosen).write("tm-job", {"tm_id": "2", "job_name": "clicks"}, "latency")
        '2.clicks.latency'
    """

    def __init__(self, configuration: Configuration) -> None:
        self._delimiter = configuration.get(options.SCOPE_DELIMITER)
        self._formats: dict[str, tuple[str, ...]] = {}
        for scope, around, chosen in _FORMATS:
            parts = tuple(configuration.get(chosen).split("."))
            if parts[0] == _AROUND:
                parts = (*(self._formats[around] if around else ()), *parts[1:])
            self._formats[scope] = parts

    def write(self, scope: Scope, variables: Mapping[str, str], *names: str) -> str:
        """Write the identifier of a metric; names of groups come before its own."""
        filled = (_VARIABLE.sub(lambda found: variables[found[1]], part) for part in self._formats[scope])
        return self._delimiter.join([*filled, *names])

    def of(self, metrics: MetricSet) -> Iterator[tuple[str, Any]]:
        """Yield identifiers and values of a set of metrics."""
        for name, value in metrics.values.items():
            yield self.write(metrics.scope, metrics.variables, *name.split(".")), value
        for reported, report in metrics.reports.items():
            groups = [part for group in reported.groups for part in group]
            for suffix, value in report_values(report):
                yield self.write(metrics.scope, metrics.variables, *groups, reported.name + suffix), value


def identified_metrics(context: RestContext, request: Request) -> list[MetricBody]:
    identifiers = Identifiers(context.configuration)
    # A subtask that has not reported yet has no place.
    sets = (each for each in metric_sets(context) if all(each.variables.values()))
    return [MetricBody(name, metric_text(value)) for each in sets for name, value in identifiers.of(each)]


ENDPOINTS = (
    Endpoint(
        "GET",
        "/headrace/metrics",
        "All metrics under their identifiers (`metrics.scope.*`). Not in Flink.",
        identified_metrics,
        list[MetricBody],
    ),
)
