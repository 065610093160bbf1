"""The clock of a task: the machine's, one that records what it showed, or one that shows what was recorded.

A task reads the clock between buffers and pieces, for timers, time to live and pace. These readings, with the size
of the first piece, are all of an epoch that follows from neither its plan nor its input (`runtime/epoch/recording.py`).
"""

from __future__ import annotations

import time
import zlib
from array import array

from headrace.util import clock


class TaskClock:
    """The machine's clock, as a task reads it."""

    def now_ms(self) -> int:
        """Return what time it is, in milliseconds since 1970."""
        return clock.now_ms()

    def seconds(self) -> float:
        """Return seconds, from any point in time on; they never go back."""
        return time.monotonic()

    def begin_epoch(self, piece_size: int) -> int:
        """Begin an epoch; return the size of its first piece.

        Args:
            piece_size: What the task would choose.
        """
        return piece_size


class RecordingClock(TaskClock):
    """The machine's clock; notes every reading of the epoch."""

    def __init__(self) -> None:
        self._readings = array("q")
        #: Whether there is any use in noting more in this epoch.
        self.is_noted = True

    def now_ms(self) -> int:
        return self._noted(clock.now_ms())

    def seconds(self) -> float:
        return self._noted(time.monotonic_ns()) / 1e9

    def _noted(self, reading: int) -> int:
        if self.is_noted:
            self._readings.append(reading)
        elif self._readings:
            self._readings = array("q")
        return reading

    def begin_epoch(self, piece_size: int) -> int:
        self.is_noted = True
        self._readings = array("q", [piece_size])
        return piece_size

    def readings(self) -> bytes:
        """Return what the clock has shown in this epoch, packed."""
        return pack_readings(self._readings)


class RecordedClock(TaskClock):
    """Shows what another clock has shown, in the same order.

    Args:
        readings: What `RecordingClock` has packed.
    """

    def __init__(self, readings: bytes) -> None:
        self._readings = unpack_readings(readings)
        self._next = 1
        #: Whether it was read more often than it has readings: the task did something else than before.
        self.is_exhausted = False

    def now_ms(self) -> int:
        return self._read()

    def seconds(self) -> float:
        return self._read() / 1e9

    def begin_epoch(self, piece_size: int) -> int:
        # What was read before was not recorded either.
        self._next, self.is_exhausted = 1, False
        return self._readings[0] if self._readings else piece_size

    def _read(self) -> int:
        if self._next >= len(self._readings):
            self.is_exhausted = True
            return self._readings[-1] if self._readings else 0
        reading = self._readings[self._next]
        self._next += 1
        return reading


class FixedClock(TaskClock):
    """Stands still, for an epoch whose readings were lost with its worker.

    Args:
        at_ms: What it shows.
    """

    def __init__(self, at_ms: int) -> None:
        self._at_ms = at_ms

    def now_ms(self) -> int:
        return self._at_ms

    def seconds(self) -> float:
        return 0.0


def pack_readings(readings: array[int]) -> bytes:
    """Pack numbers: mostly small differences, which compress well."""
    return zlib.compress(readings.tobytes(), 1)


def unpack_readings(packed: bytes) -> array[int]:
    """Read what `pack_readings` wrote."""
    readings = array("q")
    readings.frombytes(zlib.decompress(packed))
    return readings
