"""Metrics: numbers that functions and tasks count, under PyFlink's names.

Functions get a `MetricGroup` from their runtime context; what each epoch does to them goes into the
report of the task.
"""

from __future__ import annotations

from headrace.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
