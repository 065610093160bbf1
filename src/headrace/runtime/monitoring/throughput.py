"""Throughput over the last minutes, in steps of equal length, however long epochs are."""

from __future__ import annotations

from collections import deque

STEP_MS = 5_000
STEPS_KEPT = 120


class ThroughputHistory:
    """Records per step; bounded.

    Args:
        step_ms: The length of a step.
        steps: How many are kept.

    Example:
        >>> history = ThroughputHistory(step_ms=1000, steps=3)
        >>> history.add(500, 2500, 2000)  # two seconds, a thousand records each
        >>> history.rates(now_ms=3000)
        [500.0, 1000.0, 500.0]
    """

    def __init__(self, step_ms: int = STEP_MS, steps: int = STEPS_KEPT) -> None:
        self.step_ms = step_ms
        self._kept = steps
        #: Records of the steps from `_first` on.
        self._steps: deque[float] = deque(maxlen=steps)
        self._first = 0

    def add(self, started_ms: int, ended_ms: int, records: int) -> None:
        """Spread the records of an epoch over the time it took."""
        ended_ms = max(ended_ms, started_ms + 1)
        first, last = started_ms // self.step_ms, (ended_ms - 1) // self.step_ms
        if not self._steps:
            self._first = max(first, last - self._kept + 1)
        self._reach(last)
        for step in range(max(self._first, first), last + 1):
            begin = max(started_ms, step * self.step_ms)
            end = min(ended_ms, (step + 1) * self.step_ms)
            self._steps[step - self._first] += records * (end - begin) / (ended_ms - started_ms)

    def rates(self, now_ms: int) -> list[float]:
        """Return records per second of the steps that are over, oldest first, up to now."""
        current = now_ms // self.step_ms
        steps = list(self._steps)[: max(0, current - self._first)]
        # Nothing has been added since: the steps from there on are empty.
        idle = min(self._kept, max(0, current - self._first - len(steps))) if steps else 0
        rates = [records * 1000 / self.step_ms for records in steps] + [0.0] * idle
        return rates[-self._kept :]

    def _reach(self, step: int) -> None:
        """Have steps up to this one; the oldest make room."""
        missing = step - (self._first + len(self._steps)) + 1
        if missing >= self._kept:
            self._steps.clear()
            self._first, missing = step - self._kept + 1, self._kept
        for _ in range(missing):
            if len(self._steps) == self._kept:
                self._first += 1
            self._steps.append(0.0)
