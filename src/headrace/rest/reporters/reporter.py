"""What every reporter is: something that takes what there is to report now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.config.configuration import Configuration
from headrace.rest.reporters.settings import ReporterSettings
from headrace.rest.resources.metric_sets import MetricSet

__all__ = ["MakeReporter", "MetricReporter", "ReporterKind"]


class MetricReporter(Protocol):
    """Sends the metrics of a process to a monitoring system."""

    def report(self, metrics: Sequence[MetricSet]) -> None:
        """Send them; what it raises is logged."""

    def close(self) -> None:
        """Close connections and files; called once, after the last report."""


MakeReporter = Callable[[ReporterSettings, Configuration], MetricReporter]


@dataclass(frozen=True)
class ReporterKind:
    """A kind of reporter."""

    make: MakeReporter
    #: Its own options.
    options: tuple[str, ...] = ()
