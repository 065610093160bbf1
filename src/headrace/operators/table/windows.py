"""Windows over slices: which slice a row belongs to, and which windows a slice.

    HOP, slide 2, size 4     windows   [0 ....... 4)
                                           [2 ....... 6)
                             slices    [0..2)[2..4)[4..6)        a slice: what all windows that contain it share

A row is added to exactly one slice; a window is merged from its slices when the watermark passes its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from headrace.operators.table.base import EpochTime, quote
from headrace.operators.table.declarations import TableWindowSpec, WindowKind
from headrace.operators.table.wall_clock import wall_clock_ms
from headrace.state.columns import Ints


def on_the_wall(time: EpochTime, window: TableWindowSpec | None) -> EpochTime:
    """Return the time of an epoch with the clock of the zone that windows of processing time go by."""
    zone = None if window is None else window.zone
    return time if zone is None else replace(time, now_ms=wall_clock_ms(time.now_ms, zone))


@dataclass(frozen=True)
class Slices:
    """The slices of TUMBLE, HOP or CUMULATE windows."""

    spec: TableWindowSpec

    @property
    def slice_ms(self) -> int:
        """How long a slice is."""
        if self.spec.kind is WindowKind.HOP:
            return gcd(self.spec.size_ms, self.spec.slide_ms)
        if self.spec.kind is WindowKind.CUMULATE:
            return self.spec.slide_ms
        return self.spec.size_ms

    def end_sql(self, time: str) -> str:
        """Return the Spark SQL of the end of a row's slice."""
        column, length, offset = quote(time), self.slice_ms, self.spec.offset_ms
        return f"({column} - pmod({column} - {offset}L, {length}L) + {length}L)"

    def end_of(self, times: Ints) -> Ints:
        """Return the end of the slice of times."""
        return times - (times - self.spec.offset_ms) % self.slice_ms + self.slice_ms

    def last_window(self, ends: Ints) -> Ints:
        """Return the end of the last window around slices."""
        starts = ends - self.slice_ms
        if self.spec.kind is WindowKind.HOP:
            step = self.spec.slide_ms
        else:
            step = self.spec.size_ms
        return starts - (starts - self.spec.offset_ms) % step + self.spec.size_ms

    def windows(self, ends: Ints) -> tuple[Ints, Ints]:
        """Return all windows around slices: positions in ``ends``, and ends of windows."""
        spec = self.spec
        if spec.kind is WindowKind.TUMBLE:
            return np.arange(len(ends)), ends
        last = self.last_window(ends)
        step = spec.slide_ms
        count = -(-spec.size_ms // step)
        steps = np.arange(count) * step
        windows = last[:, None] - steps[None, :]
        # A hop that is longer than the size may leave a slice out; cumulated ones begin with the slice itself.
        is_around = windows >= ends[:, None]
        positions, columns = np.nonzero(is_around)
        return positions, windows[positions, columns]

    def start_of(self, windows: Ints) -> Ints:
        """Return the starts of windows by their ends."""
        if self.spec.kind is WindowKind.CUMULATE:
            inside = windows - 1
            return inside - (inside - self.spec.offset_ms) % self.spec.size_ms
        return windows - self.spec.size_ms
