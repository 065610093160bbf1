"""All metrics at once, in Prometheus' text format, under the names and labels of Flink's reporter.

    flink_taskmanager_job_task_operator_seen{job_id="...",task_name="...",operator_name="count",subtask_index="0"} 7
          scope: whose metric it is         labels: which of them

A group with a value, `add_group("table", "orders")`, is a label. Histograms are summaries, everything else is a gauge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.metrics.reports import HistogramReport, MetricName, MetricReport
from headrace.rest.context import RestContext
from headrace.rest.http import Request, Response
from headrace.rest.resources.metric_sets import MetricSet, Scope, metric_sets
from headrace.rest.resources.metrics import report_values
from headrace.rest.routing import Endpoint
from headrace.runtime.checkpoint.statistics import percentile

#: What names begin with: the scope without its variables, which are labels.
_LOGICAL_SCOPES: Mapping[Scope, str] = {
    "jm": "jobmanager",
    "jm-job": "jobmanager_job",
    "tm": "taskmanager",
    "tm-job": "taskmanager_job",
    "task": "taskmanager_job_task",
    "operator": "taskmanager_job_task_operator",
}
#: Those of Flink's reporter.
_QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_INVALID = re.compile(r"[^a-zA-Z0-9_]")


class Exposition:
    """A page for Prometheus, which wants all lines of a name together."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}

    def add(self, scope: str, values: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        """Add numbers by name; what is none is left out."""
        for name, value in values.items():
            self._add_line(_full_name(scope, name), "gauge", value, labels)

    def add_report(
        self, scope: str, name: MetricName, report: MetricReport, labels: Mapping[str, str]
    ) -> None:
        """Add a metric of a function."""
        labels = {**labels, **{_INVALID.sub("_", key): value for key, value in name.variables.items()}}
        if not isinstance(report, HistogramReport):
            self.add(scope, {name.logical + suffix: value for suffix, value in report_values(report)}, labels)
            return
        full = _full_name(scope, name.logical)
        self._add_line(full, "summary", report.count, labels, suffix="_count")
        ordered = sorted(report.values)
        for point in _QUANTILES if ordered else ():
            self._add_line(full, "summary", percentile(ordered, point), {**labels, "quantile": str(point)})

    def text(self) -> str:
        return "".join(
            f"# TYPE {name} {self._types[name]}\n" + "".join(f"{line}\n" for line in lines)
            for name, lines in self._lines.items()
        )

    def _add_line(
        self, name: str, kind: str, value: Any, labels: Mapping[str, str], *, suffix: str = ""
    ) -> None:
        number = _as_number(value)
        # A name has one type: what a user calls as something else is called is left out.
        if number is None or self._types.setdefault(name, kind) != kind:
            return
        shown = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        line = f"{name}{suffix}{{{shown}}} {number}" if shown else f"{name}{suffix} {number}"
        self._lines.setdefault(name, []).append(line)


def prometheus(context: RestContext, request: Request) -> Response:
    """All metrics in Prometheus' text format, with the names of Flink's reporter."""
    text = expose((each, each.variables) for each in metric_sets(context))
    return Response(text.encode(), content_type="text/plain; version=0.0.4; charset=utf-8")


def expose(sets: Iterable[tuple[MetricSet, Mapping[str, str]]]) -> str:
    """Write sets of metrics, each with its labels, as a page."""
    page = Exposition()
    for metrics, labels in sets:
        scope = _LOGICAL_SCOPES[metrics.scope]
        page.add(scope, metrics.values, labels)
        for name, report in metrics.reports.items():
            page.add_report(scope, name, report, labels)
    return page.text()


def _full_name(scope: str, name: str) -> str:
    return "flink_" + _INVALID.sub("_", f"{scope}_{name}")


def _as_number(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int | float) else None


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        "All metrics in Prometheus format. Not in Flink, whose reporter has its own port.",
        prometheus,
        None,
    ),
)
