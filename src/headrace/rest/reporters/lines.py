"""Reporters that write a line for each metric: StatsD, the log, and files of JSON lines."""

from __future__ import annotations

import json
import logging
import math
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from headrace.config.configuration import Configuration
from headrace.rest.reporters.samples import Sample, Sampler
from headrace.rest.reporters.settings import ReporterSettings
from headrace.rest.resources.metric_sets import MetricSet

__all__ = ["JsonLinesReporter", "LogReporter", "StatsDReporter"]

#: What a datagram may hold without being cut on its way.
_DATAGRAM = 1_400
#: Signs with a meaning in StatsD's lines, and white space.
_RESERVED = re.compile(r"[:|@#\s]+")
_log = logging.getLogger(__name__)


class _Sampling:
    """What these reporters have in common."""

    def __init__(self, settings: ReporterSettings, configuration: Configuration) -> None:
        self._sampler = Sampler(configuration, settings)

    def _samples(self, metrics: Sequence[MetricSet]) -> Iterator[Sample]:
        return chain.from_iterable(map(self._sampler.samples, metrics))

    def close(self) -> None:
        """Close the file or socket."""


class StatsDReporter(_Sampling):
    """Sends gauges to a StatsD server, over UDP.

    Args:
        settings: `host` and `port`.
        configuration: Of the process.
    """

    def __init__(self, settings: ReporterSettings, configuration: Configuration) -> None:
        super().__init__(settings, configuration)
        self._address = (settings.text("host"), settings.number("port", 8125))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def report(self, metrics: Sequence[MetricSet]) -> None:
        """Send as few datagrams as hold all lines."""
        packet: list[str] = []
        size = 0
        for line in chain.from_iterable(map(statsd_lines, self._samples(metrics))):
            if packet and size + len(line) + 1 > _DATAGRAM:
                self._send(packet)
                packet, size = [], 0
            packet.append(line)
            size += len(line) + 1
        if packet:
            self._send(packet)

    def close(self) -> None:
        self._socket.close()

    def _send(self, lines: list[str]) -> None:
        self._socket.sendto("\n".join(lines).encode(), self._address)


def statsd_lines(sample: Sample) -> Iterator[str]:
    """Yield the lines that set a gauge.

    A sign in front of a number means a change to StatsD, so a gauge goes through 0 to get below it.

    Example:
        >>> list(statsd_lines(Sample("a: b.lag", "lag", {}, -2)))
        ['a-b.lag:0|g', 'a-b.lag:-2|g']
    """
    if not math.isfinite(sample.value):
        return
    name = _RESERVED.sub("-", sample.identifier)
    if sample.value < 0:
        yield f"{name}:0|g"
    yield f"{name}:{sample.value}|g"


class LogReporter(_Sampling):
    """Writes all metrics to the driver's log."""

    def report(self, metrics: Sequence[MetricSet]) -> None:
        lines = [f"{each.identifier}: {each.value}" for each in self._samples(metrics)]
        _log.info("metrics:\n%s", "\n".join(lines))


class JsonLinesReporter(_Sampling):
    """Appends a JSON object for each metric to a file.

    Args:
        settings: `file`.
        configuration: Of the process.
        clock: The time, in seconds since the Unix epoch.
    """

    def __init__(
        self,
        settings: ReporterSettings,
        configuration: Configuration,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(settings, configuration)
        self._clock = clock
        self._file = open(settings.text("file"), "a", encoding="utf-8")  # close() does

    def report(self, metrics: Sequence[MetricSet]) -> None:
        """Append a line for each number."""
        at = int(self._clock() * 1000)
        for each in self._samples(metrics):
            value = each.value if math.isfinite(each.value) else None
            line = {"time": at, "name": each.name, "labels": dict(each.labels), "value": value}
            self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
