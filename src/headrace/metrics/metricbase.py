"""The kinds of metric a function can register, as in `pyflink.metrics`, and the ones a task gives it.

Tasks keep them in memory:

    group = InMemoryMetricGroup()           {"seen": 3,
    group.counter("seen").inc(3)      ->     "table.orders.size": {"count": 1, "sum": 7, "min": 7, "max": 7}}
    group.values()

A worker keeps a task for some epochs, and then another worker may have it. So what a metric shows here, `get_count`
included, is what this worker has seen since it opened the function. Reports tell the epochs apart (`reports.py`).
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from headrace.errors import JobDefinitionError
from headrace.metrics.reports import (
    CounterReport,
    DistributionReport,
    GaugeReport,
    HistogramReport,
    MeterReport,
    MetricName,
    MetricReport,
)

__all__ = [
    "Counter",
    "Distribution",
    "InMemoryCounter",
    "InMemoryDistribution",
    "InMemoryHistogram",
    "InMemoryMeter",
    "InMemoryMetricGroup",
    "Meter",
    "Metric",
    "MetricGroup",
]

_LOG = logging.getLogger(__name__)

M = TypeVar("M", bound="Metric")


class Metric(ABC):  # noqa: B024  # a kind, without methods of its own
    """Something that is measured."""


class Counter(Metric, ABC):
    """A number that goes up and down."""

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Increase the counter by `n`."""

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Decrease the counter by `n`."""

    @abstractmethod
    def get_count(self) -> int:
        """Return the current count."""


class Meter(Metric, ABC):
    """How often something happens."""

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """Say that it happened, once or more often."""

    @abstractmethod
    def get_count(self) -> int:
        """Return how often it happened in all."""


class Distribution(Metric, ABC):
    """How large values are: their number, sum, least and greatest."""

    @abstractmethod
    def update(self, value: int) -> None:
        """Add a measured value."""


class MetricGroup(ABC):
    """A place for metrics, with a name within other groups. Functions get theirs from the runtime context."""

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return the group of a name within this one; with `extra`, of a name and a value such as a table."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """Register a counter in this group and return it."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Register a function that returns the value to show."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Register a meter whose rate looks back over a span of time."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """Register a distribution, which reports sum, count, min and max, and return it."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the values of all metrics in this group and the groups within. Not in PyFlink."""


class InMemoryCounter(Counter):
    """A number that goes up and down."""

    def __init__(self) -> None:
        self._count = 0
        #: The count when the epoch began.
        self._before = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def value(self) -> int:
        """Return what it shows."""
        return self._count

    def begin_epoch(self) -> None:
        """What comes now belongs to the next report."""
        self._before = self._count

    def report(self) -> CounterReport:
        """Return what the epoch added."""
        return CounterReport(self._count - self._before)


class InMemoryMeter(Meter):
    """How often something happens, in all and per second over the last span of time.

    Args:
        time_span_in_seconds: How far the rate looks back.
        clock: Seconds, from anywhere.
    """

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._before = 0
        #: (whole second, events in it), oldest first; never more than the span has seconds.
        self._recent: deque[tuple[int, int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        self._count += value
        second = int(self._clock())
        if self._recent and self._recent[-1][0] == second:
            value += self._recent.pop()[1]
        self._recent.append((second, value))
        self._forget(second)

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Return events per second over the last span of time."""
        self._forget(int(self._clock()))
        return sum(events for _, events in self._recent) / self._span

    def value(self) -> dict[str, float]:
        """Return what it shows."""
        return {"count": self._count, "rate": self.get_rate()}

    def begin_epoch(self) -> None:
        """What comes now belongs to the next report."""
        self._before = self._count

    def report(self) -> MeterReport:
        """Return what the epoch added, and the rate as it is."""
        return MeterReport(self._count - self._before, self.get_rate())

    def _forget(self, now: int) -> None:
        while self._recent and self._recent[0][0] <= now - self._span:
            self._recent.popleft()


class InMemoryDistribution(Distribution):
    """The number, sum, least and greatest of values."""

    _min: int | None
    _max: int | None

    def __init__(self) -> None:
        #: Of the epochs before.
        self._earlier = DistributionReport()
        self._start()

    def update(self, value: int) -> None:
        self._count += 1
        self._sum += value
        self._min = value if self._min is None else min(self._min, value)
        self._max = value if self._max is None else max(self._max, value)

    def value(self) -> dict[str, int | None]:
        """Return what it shows."""
        return asdict(self._earlier.then(self.report()))

    def begin_epoch(self) -> None:
        """What comes now belongs to the next report."""
        self._earlier = self._earlier.then(self.report())
        self._start()

    def report(self) -> DistributionReport:
        """Return the distribution of the epoch's values."""
        return DistributionReport(self._count, self._sum, self._min, self._max)

    def _start(self) -> None:
        self._count = 0
        self._sum = 0
        self._min = None
        self._max = None


class InMemoryHistogram(Metric):
    """The last values, of which quantiles are shown. Flink has it; PyFlink has not.

    Args:
        history_size: How many values are kept.
    """

    def __init__(self, history_size: int = 128) -> None:
        self._size = history_size
        self._earlier = 0
        self._count = 0
        self._values: deque[float] = deque(maxlen=history_size)

    def update(self, value: float) -> None:
        """Add a measured value."""
        self._count += 1
        self._values.append(value)

    def get_count(self) -> int:
        """Return how many values there were in all."""
        return self._earlier + self._count

    def value(self) -> dict[str, Any]:
        """Return what it shows."""
        return {"count": self.get_count(), "values": list(self._values)}

    def begin_epoch(self) -> None:
        """What comes now belongs to the next report."""
        self._earlier += self._count
        self._count = 0
        self._values.clear()

    def report(self) -> HistogramReport:
        """Return the last values of the epoch."""
        return HistogramReport(self._count, tuple(self._values), self._size)


class _Gauge(Metric):
    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def value(self) -> Any:
        try:
            return self._read()
        except Exception:  # noqa: BLE001  # a number to look at must not stop the job
            _LOG.warning("a gauge failed and is reported as None", exc_info=True)
            return None

    def begin_epoch(self) -> None:
        """It shows what is, whatever the epoch."""

    def report(self) -> GaugeReport:
        return GaugeReport(self.value())


class InMemoryMetricGroup(MetricGroup):
    """A group whose metrics are kept here.

    Args:
        scope: The names of the groups it is in, and its own.
        clock: Seconds, for meters.

    Example:
        >>> group = InMemoryMetricGroup()
        >>> group.add_group("table", "orders").counter("seen").inc(2)
        >>> group.values()
        {'table.orders.seen': 2}
    """

    def __init__(self, scope: tuple[str, ...] = (), *, clock: Callable[[], float] = time.monotonic) -> None:
        self.scope = scope
        self._clock = clock
        self._metrics: dict[str, Any] = {}
        self._groups: dict[tuple[str, ...], InMemoryMetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> InMemoryMetricGroup:
        names = (name,) if extra is None else (name, extra)
        if names not in self._groups:
            self._groups[names] = InMemoryMetricGroup(self.scope + names, clock=self._clock)
        return self._groups[names]

    def counter(self, name: str) -> InMemoryCounter:
        return self._register(name, InMemoryCounter, InMemoryCounter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        if not callable(obj):
            raise JobDefinitionError(f"gauge {name!r}: expected a function that returns a value; got {obj!r}")
        # The later one counts: a function that is opened again brings its own.
        self._metrics.pop(name, None)
        self._register(name, _Gauge, lambda: _Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> InMemoryMeter:
        return self._register(name, InMemoryMeter, lambda: InMemoryMeter(time_span_in_seconds, self._clock))

    def distribution(self, name: str) -> InMemoryDistribution:
        return self._register(name, InMemoryDistribution, InMemoryDistribution)

    def histogram(self, name: str, history_size: int = 128) -> InMemoryHistogram:
        """Register a histogram over the last values; PyFlink does not have this method."""
        return self._register(name, InMemoryHistogram, lambda: InMemoryHistogram(history_size))

    def values(self) -> dict[str, Any]:
        """Return the values of all metrics in this group and the groups within, by dotted name.

        Counters and gauges are numbers; meters have `count` and `rate`, distributions `count`, `sum`, `min`
        and `max`, histograms `count` and the last `values`. Names are relative to this group.
        """
        found = {name: metric.value() for name, metric in self._metrics.items()}
        for names, group in self._groups.items():
            prefix = ".".join(names)
            found |= {f"{prefix}.{name}": value for name, value in group.values().items()}
        return found

    def begin_epoch(self) -> None:
        """What comes now belongs to the next report."""
        for metric in self._metrics.values():
            metric.begin_epoch()
        for group in self._groups.values():
            group.begin_epoch()

    def reports(self) -> dict[MetricName, MetricReport]:
        """Return what the epoch has done to the metrics; names are relative to this group."""
        found = {MetricName(name): metric.report() for name, metric in self._metrics.items()}
        for names, group in self._groups.items():
            for (name, groups), report in group.reports().items():
                found[MetricName(name, (names, *groups))] = report
        return found

    def _register(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        """Return the metric of a name, the same one each time."""
        metric = self._metrics.get(name) or make()
        if not isinstance(metric, kind):
            there, wanted = (
                each.__name__.removeprefix("InMemory").strip("_") for each in (type(metric), kind)
            )
            raise JobDefinitionError(
                f"metric {'.'.join((*self.scope, name))!r} is a {there} already and cannot be a {wanted}, too"
            )
        self._metrics[name] = metric
        return metric
