"""Time during a verified run: the engine's clock stands still, and the clock on the wall is off by hours or days.

Processing time then decides nothing, so it cannot make two runs differ. A function that reads the clock itself, with
`time.time()` or `datetime.now()`, gets another time in every run, and shows.
"""

from __future__ import annotations

import datetime as datetime_module
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from headrace.util import clock

#: Noon of 2024-03-10, UTC.
FROZEN_MS = 1_710_072_000_000
_STEP_MS = 100
_REAL: dict[str, Any] = {
    "time": time.time,
    "time_ns": time.time_ns,
    "datetime": datetime_module.datetime,
    "date": datetime_module.date,
}


def stepping_clock() -> Callable[[], int]:
    """Return a clock for a job master that moves on with every reading, so that checkpoints fall due."""
    readings = itertools.count(FROZEN_MS, _STEP_MS)
    return lambda: next(readings)


@contextmanager
def frozen_engine_clock() -> Iterator[None]:
    """Let processing time stand still."""
    with mock.patch.object(clock, "now_ms", return_value=FROZEN_MS):
        yield


@contextmanager
def real_wall_clock() -> Iterator[None]:
    """Set the clock right for a moment: functions are pickled with the real one."""
    with (
        mock.patch.object(time, "time", _REAL["time"]),
        mock.patch.object(time, "time_ns", _REAL["time_ns"]),
        mock.patch.object(datetime_module, "datetime", _REAL["datetime"]),
        mock.patch.object(datetime_module, "date", _REAL["date"]),
    ):
        yield


@contextmanager
def shifted_wall_clock(seconds: int) -> Iterator[None]:
    """Set the clock that programs read forward; functions that are unpickled meanwhile get it."""
    if not seconds:
        yield
        return

    def shifted_time() -> float:
        return float(_REAL["time"]()) + seconds

    def shifted_ns() -> int:
        return int(_REAL["time_ns"]()) + seconds * 1_000_000_000

    with (
        mock.patch.object(time, "time", shifted_time),
        mock.patch.object(time, "time_ns", shifted_ns),
        mock.patch.object(datetime_module, "datetime", _shifted_datetime(seconds)),
        mock.patch.object(datetime_module, "date", _shifted_date(seconds)),
    ):
        yield


def _shifted_datetime(seconds: int) -> Any:
    real = _REAL["datetime"]
    shift = datetime_module.timedelta(seconds=seconds)

    class Shifted(real, metaclass=_looks_like(real)):  # type: ignore[metaclass, misc, valid-type]  # made at run time
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real.now(tz) + shift

        @classmethod
        def utcnow(cls) -> Any:
            return real.now(datetime_module.UTC).replace(tzinfo=None) + shift

        @classmethod
        def today(cls) -> Any:
            return real.now() + shift

    return Shifted


def _shifted_date(seconds: int) -> Any:
    real, real_datetime = _REAL["date"], _REAL["datetime"]
    shift = datetime_module.timedelta(seconds=seconds)

    class Shifted(real, metaclass=_looks_like(real)):  # type: ignore[metaclass, misc, valid-type]  # made at run time
        @classmethod
        def today(cls) -> Any:
            return (real_datetime.now() + shift).date()

    return Shifted


def _looks_like(real: type) -> type:
    """Return a metaclass whose classes take instances of another class for their own."""

    class LooksLike(type(real)):  # type: ignore[misc]  # the metaclass of whatever it is
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __call__(cls, *args: Any, **named: Any) -> Any:
            return real(*args, **named)

    return LooksLike
