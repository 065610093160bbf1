"""What consecutive sliding windows have in common, kept in memory while one fires after the other.

    slices      | f f f f f | m m m m m m m m m m | b b b
    window 1    |---------------------------------|
    window 2      |---------------------------------|
    window 3        |---------------------------------|

The middle is merged once; before it, every suffix is; after it, slices are added as windows reach them. So a
window costs a few steps per key, however many slices it has. All of it is derived: it is dropped when a record changes
a slice that went into it, and at the end of the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.state.isolation import isolated
from headrace.windowing.windows import TimeWindow

Accumulators = dict[Any, Any]
#: Yields the accumulators of all slices in a span of time.
ReadSpan = Callable[[int, int], Iterable[tuple[Any, Any]]]

#: Windows that one middle serves, and accumulators that may be held for them.
_MOST_STEPS = 64
_MOST_HELD = 2_000_000


class RunningWindow:
    """Puts windows together one after the other."""

    def __init__(self, combine: Callable[[Any, Any], Any], read: ReadSpan, slide: int) -> None:
        self._combine = combine
        self._read = read
        self._slide = slide
        self.forget()

    def forget(self) -> None:
        """Drop what was merged."""
        #: Suffixes of the front, by where they start.
        self._front: dict[int, Accumulators] = {}
        self._middle: Accumulators = {}
        self._back: Accumulators = {}
        #: Up to where slices have gone in.
        self.end: int | None = None

    def window(self, window: TimeWindow) -> Accumulators:
        """Return the accumulators of a window by key, for the caller to keep."""
        if window.end - window.start <= self._slide:  # windows that do not overlap have nothing in common
            alone: Accumulators = {}
            self._add_to(alone, self._read(window.start, window.end))
            return alone
        if self.end is None or window.start not in self._front or window.end < self.end:
            self._start_over(window)
        assert self.end is not None
        self._add_to(self._back, self._read(self.end, window.end))
        self.end = window.end
        merged = {key: isolated(value) for key, value in self._front[window.start].items()}
        self._add_to(merged, self._middle.items())
        self._add_to(merged, self._back.items())
        return merged

    def _start_over(self, window: TimeWindow) -> None:
        self.forget()
        steps = (window.end - window.start) // self._slide
        held = 1 + sum(1 for _ in self._read(window.start, window.start + self._slide))
        steps = min(steps, _MOST_STEPS, 1 + _MOST_HELD // held)
        middle_start = window.start + steps * self._slide
        self._add_to(self._middle, self._read(middle_start, window.end))
        suffix: Accumulators = {}
        self._front[middle_start] = suffix
        for start in range(middle_start - self._slide, window.start - 1, -self._slide):
            own: Accumulators = {}
            self._add_to(own, self._read(start, start + self._slide))
            self._add_to(own, suffix.items())
            self._front[start] = suffix = own
        self.end = window.end

    def _add_to(self, target: Accumulators, items: Iterable[tuple[Any, Any]]) -> None:
        combine = self._combine
        for key, value in items:
            current = target.get(key)
            # A function may change what it is given first; the slice is still needed.
            target[key] = isolated(value) if current is None else combine(current, value)
