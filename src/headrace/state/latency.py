"""State access latency: how long reads and writes of keyed state take, under Flink's names.

    state_name.visits.valueStateGetLatency        nanoseconds of `value()`, of one access in a hundred
    state_name.visits.valueStateUpdateLatency     ... of `update()`

Only accesses that are measured cost more than a count. What is measured is what a function waits for: reading from the
host's copy and decoding, or finding the value decoded; writing goes to memory, and to files at the end of the epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from headrace.config.configuration import Configuration
from headrace.config.options import metrics as options
from headrace.metrics.metricbase import InMemoryHistogram, InMemoryMetricGroup

#: By the kind of state: method -> metric.
MEASURED: Final[dict[str, dict[str, str]]] = {
    "value": {
        "value": "valueStateGetLatency",
        "update": "valueStateUpdateLatency",
        "clear": "stateClearLatency",
    },
    "list": {
        "get": "listStateGetLatency",
        "add": "listStateAddLatency",
        "add_all": "listStateAddAllLatency",
        "update": "listStateUpdateLatency",
        "clear": "stateClearLatency",
    },
    "map": {
        "get": "mapStateGetLatency",
        "put": "mapStatePutLatency",
        "put_all": "mapStatePutAllLatency",
        "remove": "mapStateRemoveLatency",
        "contains": "mapStateContainsLatency",
        "items": "mapStateEntriesInitLatency",
        "keys": "mapStateKeysInitLatency",
        "values": "mapStateValuesInitLatency",
        "is_empty": "mapStateIsEmptyLatency",
        "clear": "stateClearLatency",
    },
    "reducing": {
        "get": "reducingStateGetLatency",
        "add": "reducingStateAddLatency",
        "clear": "stateClearLatency",
    },
    "aggregating": {
        "get": "aggregatingStateGetLatency",
        "add": "aggregatingStateAddLatency",
        "clear": "stateClearLatency",
    },
}


@dataclass(frozen=True)
class StateLatencySettings:
    """The options of state access latency."""

    sample_interval: int = 100
    history_size: int = 128
    name_as_variable: bool = True

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> StateLatencySettings | None:
        """Read the options; None if nothing is measured."""
        if not configuration.get(options.STATE_LATENCY_ENABLED):
            return None
        return cls(
            configuration.get(options.STATE_LATENCY_SAMPLE_INTERVAL),
            configuration.get(options.STATE_LATENCY_HISTORY_SIZE),
            configuration.get(options.STATE_NAME_AS_VARIABLE),
        )


class StateLatency:
    """Measures the states of one operator subtask.

    Args:
        group: Where the metrics of the operator are.
        settings: The options.
        clock: Nanoseconds.
    """

    def __init__(
        self,
        group: InMemoryMetricGroup,
        settings: StateLatencySettings,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._group = group
        self._settings = settings
        self._clock = clock

    def measure(self, kind: str, name: str, state: Any) -> None:
        """Have the methods of a state handle measured from now on."""
        if self._settings.name_as_variable:
            group = self._group.add_group("state_name", name)
        else:
            group = self._group.add_group(name)
        for method, metric in MEASURED[kind].items():
            histogram = group.histogram(metric, self._settings.history_size)
            # An instance attribute shadows the method.
            setattr(state, method, self._measured(getattr(state, method), histogram))

    def _measured(self, call: Callable[..., Any], histogram: InMemoryHistogram) -> Callable[..., Any]:
        interval, clock = self._settings.sample_interval, self._clock
        left = 1

        def measured(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left:
                return call(*arguments)
            left = interval
            started = clock()
            result = call(*arguments)
            histogram.update(clock() - started)
            return result

        return measured
