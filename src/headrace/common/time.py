"""Amounts of time and points in time, under PyFlink's names.

Wherever an amount of time is asked for, `as_millis` takes any of the usual forms, `timedelta` included.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

__all__ = ["Duration", "Instant", "Time", "as_millis"]

_NANOS_PER_MILLI: Final = 1_000_000
_NANOS_PER_SECOND: Final = 1_000_000_000


@dataclass(init=False, repr=False, order=True, unsafe_hash=True)
class Duration:
    """An amount of time, exact to the nanosecond. Make one with `of_...`.

    Example:
        >>> Duration.of_seconds(5).to_millis()
        5000
        >>> Duration.of_minutes(1) == Duration.of_seconds(60)
        True
    """

    __slots__ = ("_nanos",)

    _nanos: int

    def __init__(self, nanos: int) -> None:
        self._nanos = nanos

    @staticmethod
    def of_days(days: int) -> Duration:
        """Make a duration of this many days of 24 hours."""
        return Duration(_whole(days) * 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Make a duration of this many hours."""
        return Duration(_whole(hours) * 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Make a duration of this many minutes."""
        return Duration(_whole(minutes) * 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Make a duration of this many seconds."""
        return Duration(_whole(seconds) * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Make a duration of this many milliseconds."""
        return Duration(_whole(millis) * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Make a duration of this many nanoseconds."""
        return Duration(_whole(nanos))

    @staticmethod
    def of(amount: timedelta) -> Duration:
        """Make a duration of a `timedelta`."""
        return Duration(amount // timedelta(microseconds=1) * 1000)

    def to_millis(self) -> int:
        """Return the whole milliseconds."""
        return self._nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """Return the duration in nanoseconds."""
        return self._nanos

    def to_timedelta(self) -> timedelta:
        """Return the duration as a `timedelta`, which is exact to the microsecond."""
        return timedelta(microseconds=self._nanos // 1000)

    def __repr__(self) -> str:
        if self._nanos % _NANOS_PER_MILLI:
            return f"Duration.of_nanos({self._nanos})"
        return f"Duration.of_millis({self.to_millis()})"


@dataclass(init=False, repr=False, order=True, unsafe_hash=True)
class Instant:
    """A point in time: seconds since 1970-01-01T00:00:00Z, and nanoseconds on top of them.

    Args:
        seconds: Seconds since the epoch; may be negative.
        nanos: Nanoseconds after that; what is more than a second is carried over.

    Example:
        >>> Instant.of_epoch_milli(1500)
        Instant<1, 500000000>
    """

    __slots__ = ("nanos", "seconds")

    seconds: int
    nanos: int

    def __init__(self, seconds: int, nanos: int) -> None:
        carry, self.nanos = divmod(nanos, _NANOS_PER_SECOND)
        self.seconds = seconds + carry

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Make the instant this many milliseconds after the epoch."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def to_epoch_milli(self) -> int:
        """Return the whole milliseconds since the epoch."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@dataclass(init=False, repr=False, order=True, unsafe_hash=True)
class Time:
    """The size of a window, or another amount of time in milliseconds.

    Example:
        >>> Time.seconds(5).to_milliseconds()
        5000
    """

    __slots__ = ("_milliseconds",)

    _milliseconds: int

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole(milliseconds)

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Make a time of this many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Make a time of this many seconds."""
        return Time(_whole(seconds) * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Make a time of this many minutes."""
        return Time(_whole(minutes) * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Make a time of this many hours."""
        return Time(_whole(hours) * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """Make a time of this many days of 24 hours."""
        return Time(_whole(days) * 86_400_000)

    def to_milliseconds(self) -> int:
        """Return the duration in milliseconds."""
        return self._milliseconds

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


def as_millis(amount: Duration | Time | timedelta | int) -> int:
    """Return any form of an amount of time in milliseconds; a number is milliseconds already.

    Raises:
        TypeError: If it is not an amount of time.

    Example:
        >>> as_millis(timedelta(seconds=1)), as_millis(Time.seconds(1)), as_millis(1000)
        (1000, 1000, 1000)
    """
    if isinstance(amount, Duration):
        return amount.to_millis()
    if isinstance(amount, Time):
        return amount.to_milliseconds()
    if isinstance(amount, timedelta):
        return amount // timedelta(milliseconds=1)
    return _whole(amount)


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"expected a whole number, or a duration; got {number!r}")
    return number
