"""Pace: passes a batch on in pieces while its records take long, so that the clock is read in between.

    fast functions    [r] [r r r r r r r r] [r r r ... the rest]           nothing happens between the pieces
    slow functions    [r] . [r] . [r] . [r]                                . timers fire, generators give watermarks

Flink looks at the clock between two records. Here an operator gets a list, so lists of slow records are cut: a piece
takes at most about one watermark interval. What is between two pieces is decided by the clock, as in Flink: an epoch
that runs again may cut elsewhere, which is no more than what any function that looks at the clock does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headrace.elements import Batch, part_of

#: How much longer the next piece is if this one took little time.
_GROWTH = 8
_LARGEST = 1 << 20


class Pace:
    """Cuts the batches of one subtask.

    Args:
        interval_ms: How long a piece should take at most; 0 leaves batches whole.
        pause: Called between two pieces, when that time has passed since it was last called.
        now: The clock, in seconds.
    """

    def __init__(
        self, interval_ms: int, pause: Callable[[], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_s = interval_ms / 1000
        self._pause = pause
        self._now = now
        self._size = 1
        self._paused_at = now()

    @property
    def piece_size(self) -> int:
        """How many records the next piece has; it follows from how long others took."""
        return self._size

    @piece_size.setter
    def piece_size(self, size: int) -> None:
        self._size = size

    def begin(self) -> None:
        """Count the time from here: input begins."""
        self._paused_at = self._now()

    def pieces(self, batch: Batch) -> Iterator[Batch]:
        """Yield the batch, cut; columns that were not accessed stay whole."""
        count = len(batch)
        if not self._interval_s or count == 1 or type(batch) is not Batch:
            yield batch
            return
        start = 0
        while start < count:
            end = min(start + self._size, count)
            started = self._now()
            yield batch if end - start == count else part_of(batch, start, end)
            self._adapt(end - start, self._now() - started)
            start = end
            if start < count:
                self.pause_if_due()

    def pause_if_due(self) -> None:
        """Look after timers and watermarks, if it is time to."""
        if self._interval_s and self._now() - self._paused_at >= self._interval_s:
            self._paused_at = self._now()
            self._pause()

    def _adapt(self, records: int, took_s: float) -> None:
        if took_s > self._interval_s:
            self._size = max(1, int(records * self._interval_s / took_s))
        elif records == self._size and took_s * _GROWTH < self._interval_s:
            self._size = min(self._size * _GROWTH, _LARGEST)
