"""Latency markers where they are timed: how long they took from the source to each operator.

    source ---- marker (planned at 12.000) ----> map: 35 ms ----> count: 80 ms ----> sink: 81 ms

The epoch's plan says whether sources send a marker, and when it was planned. So what goes through the job is the same
when an epoch runs again; the measured times alone are not. They include what a record that was waiting when the epoch
was planned sees: Spark's scheduling, reading, the levels before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.config.configuration import Configuration
from headrace.config.options import metrics as options
from headrace.elements import LatencyMarker
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.util import clock


@dataclass(frozen=True)
class LatencySettings:
    """The options of latency markers."""

    granularity: str = "operator"
    history_size: int = 128

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> LatencySettings:
        return cls(
            configuration.get(options.LATENCY_GRANULARITY), configuration.get(options.LATENCY_HISTORY_SIZE)
        )


class LatencyMeasure:
    """Times markers at one operator of one subtask, under Flink's names.

    Args:
        job_metrics: The group of the job: latencies belong to no operator.
        settings: The options.
        operator_id: The operator.
        subtask: Which of its subtasks.
        now_ms: The clock, ms since the Unix epoch.
    """

    def __init__(
        self,
        job_metrics: InMemoryMetricGroup,
        settings: LatencySettings,
        operator_id: str,
        subtask: int,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._group = job_metrics.add_group("latency")
        self._settings = settings
        self._operator_id = operator_id
        self._subtask = subtask
        self._now_ms = now_ms

    def __call__(self, marker: LatencyMarker) -> None:
        """Take a marker that has come to the operator."""
        group = self._group
        if self._settings.granularity != "single":
            group = group.add_group("source_id", marker.source_id)
        if self._settings.granularity == "subtask":
            group = group.add_group("source_subtask_index", str(marker.source_subtask))
        group = group.add_group("operator_id", self._operator_id)
        group = group.add_group("operator_subtask_index", str(self._subtask))
        histogram = group.histogram("latency", self._settings.history_size)
        histogram.update(self._now_ms() - marker.marked_ms)
