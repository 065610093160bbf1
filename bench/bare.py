"""Contender (a): the bare Python loop, on one core, without any system around it."""

from __future__ import annotations

import time
from typing import Any

from bench.workloads import enrich, is_wanted, key_of, record_maker, shorten


class BareState:
    """A state object like Flink's, over one dictionary."""

    def __init__(self) -> None:
        self.key: Any = None
        self._values: dict[Any, Any] = {}

    def value(self) -> Any:
        """Return the current key's value."""
        return self._values.get(self.key)

    def update(self, value: Any) -> None:
        """Set the current key's value."""
        self._values[self.key] = value


def stateless(records: int, keys: int) -> float:
    """Return records per second of map, filter, map."""
    make = record_maker(keys)
    started = time.perf_counter()
    count = 0
    for index in range(records):
        record = enrich(make(index))
        if is_wanted(record):
            shorten(record)
            count += 1
    return records / (time.perf_counter() - started)


def keyed_count(records: int, keys: int) -> float:
    """Return records per second of a running count per key."""
    make = record_maker(keys)
    state = BareState()
    started = time.perf_counter()
    for index in range(records):
        record = make(index)
        state.key = key_of(record)
        count = (state.value() or 0) + 1
        state.update(count)
    return records / (time.perf_counter() - started)
