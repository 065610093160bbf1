"""What one subtask reports of its metrics at the end of an epoch, and how reports add up.

    epoch            1      2      3          in all
    counter         +3     +2     +4               9     what this epoch added
    gauge            7      5      6               6     as it is now
    meter           +3     +2     +4               9     what this epoch added, and the rate as it is now
    distribution   1-7    2-3    5-9             1-9     of the values of this epoch
    histogram      1-7    2-3    5-9             1-9     the last values of this epoch; in all, the last of all

A report says nothing of earlier epochs, so whoever adds up the reports of completed epochs counts everything once,
whichever worker had the subtask, and however often an epoch was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

__all__ = [
    "RECORDS_IN",
    "RECORDS_OUT",
    "CounterReport",
    "DistributionReport",
    "GaugeReport",
    "HistogramReport",
    "MeterReport",
    "MetricName",
    "MetricReport",
]


class MetricName(NamedTuple):
    """How a metric is called within its operator, task or job.

    Example:
        >>> name = MetricName("size", (("tables",), ("table", "orders")))
        >>> name.dotted, name.logical, name.variables
        ('tables.table.orders.size', 'tables.table.size', {'table': 'orders'})
    """

    name: str
    #: The groups it is in, outermost first: a name, or the name of a variable and its value.
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def dotted(self) -> str:
        """Groups, values and name, with dots between them."""
        return ".".join([*(part for group in self.groups for part in group), self.name])

    @property
    def logical(self) -> str:
        """The same without the values of variables: what all of them have in common."""
        return ".".join([*(group[0] for group in self.groups), self.name])

    @property
    def variables(self) -> dict[str, str]:
        """The values of variables, by name."""
        return {group[0]: group[1] for group in self.groups if len(group) > 1}


#: What every operator counts.
RECORDS_IN, RECORDS_OUT = MetricName("numRecordsIn"), MetricName("numRecordsOut")


@dataclass(frozen=True)
class CounterReport:
    """How much a counter went up (or down) in an epoch."""

    increment: int

    def then(self, later: Self) -> Self:
        """Return this and what the next epochs of the same subtask brought."""
        return type(self)(self.increment + later.increment)


@dataclass(frozen=True)
class GaugeReport:
    """What a gauge showed at the end of an epoch; None if it failed."""

    value: Any

    def then(self, later: Self) -> Self:
        """Return the later one."""
        return later


@dataclass(frozen=True)
class MeterReport:
    """How many events there were in an epoch, and how many per second lately."""

    increment: int
    #: Events per second over the meter's span, as the worker has seen them that ran the epoch.
    rate: float

    def then(self, later: Self) -> Self:
        """Return the events of both, at the later rate."""
        return type(self)(self.increment + later.increment, later.rate)


@dataclass(frozen=True)
class DistributionReport:
    """The number, sum, least and greatest of the values of an epoch."""

    count: int = 0
    sum: int = 0
    min: int | None = None
    max: int | None = None

    def then(self, later: Self) -> Self:
        """Return the distribution of the values of both."""
        least = [each for each in (self.min, later.min) if each is not None]
        greatest = [each for each in (self.max, later.max) if each is not None]
        return type(self)(
            self.count + later.count,
            self.sum + later.sum,
            min(least, default=None),
            max(greatest, default=None),
        )


@dataclass(frozen=True)
class HistogramReport:
    """The last values of an epoch, oldest first."""

    #: How many there were, also those that are not kept.
    count: int
    values: tuple[float, ...]
    #: How many values are kept.
    size: int

    def then(self, later: Self) -> Self:
        """Return the last values of both."""
        return type(self)(self.count + later.count, (self.values + later.values)[-later.size :], later.size)


MetricReport = CounterReport | GaugeReport | MeterReport | DistributionReport | HistogramReport
