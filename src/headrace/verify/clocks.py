"""Time during a verified run: the engine's clock is the same in all runs, and the clock on the wall is off by days.

Processing time cannot make two runs differ then (`passing_time.py`). A function that reads the clock itself, with
`time.time()` or `datetime.now()`, gets another time in every run, and shows.
"""

from __future__ import annotations

import datetime as datetime_module
import itertools
import os
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from typing import Any, cast
from unittest import mock

from headrace.util import clock

#: Noon of 2024-03-10, UTC.
FROZEN_MS = 1_710_072_000_000
_STEP_MS = 100
#: What programs read the time with, by module and name.
_REAL: dict[tuple[ModuleType, str], Any] = {
    (module, name): getattr(module, name)
    for module, names in (
        (time, ("time", "time_ns", "localtime", "gmtime", "strftime", "ctime", "asctime")),
        (datetime_module, ("datetime", "date")),
    )
    for name in names
}
_STANDS_FOR = "_headrace_stands_for"
_DATETIME, _DATE = datetime_module.datetime, datetime_module.date


def stepping_clock() -> Callable[[], int]:
    """Return a clock for a job master that moves on with every reading, so that checkpoints fall due."""
    readings = itertools.count(FROZEN_MS, _STEP_MS)
    return lambda: next(readings)


@contextmanager
def engine_clock(now_ms: Callable[[], int]) -> Iterator[None]:
    """Have processing time follow a clock."""
    with mock.patch.object(clock, "now_ms", now_ms):
        yield


@contextmanager
def real_wall_clock() -> Iterator[None]:
    """Set the clock right for a moment: functions are pickled with the real one."""
    with _replaced(_REAL):
        yield


@contextmanager
def shifted_wall_clock(seconds: int) -> Iterator[None]:
    """Set the clock that programs read forward.

    Functions that are unpickled meanwhile get it, and modules of users that have imported it by name.
    """
    if not seconds:
        yield
        return
    shifted = _shifted(seconds)
    by_real = {id(real): shifted[place] for place, real in _REAL.items()}
    imported = {
        (module, name): by_real[id(value)]
        for module in _modules_of_users()
        for name, value in list(vars(module).items())
        if id(value) in by_real
    }
    with _replaced(shifted | imported):
        yield


@contextmanager
def time_zone(name: str | None) -> Iterator[None]:
    """Have the machine be in another time zone, unless it is None."""
    if name is None:
        yield
        return
    try:
        with mock.patch.dict(os.environ, {"TZ": name}):
            time.tzset()
            yield
    finally:
        time.tzset()


@contextmanager
def _replaced(values: Mapping[tuple[ModuleType, str], Any]) -> Iterator[None]:
    with ExitStack() as patches:
        for (module, name), value in values.items():
            patches.enter_context(mock.patch.object(module, name, value))
        yield


def _modules_of_users() -> list[ModuleType]:
    """Return imported modules that are neither Python's, nor those of installed packages, nor our own.

    The program itself is not one of them, since its functions are unpickled in each run.
    """
    paths = sysconfig.get_paths()
    installed = tuple({paths[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    return [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] not in {"headrace", "__main__"}
        and (path := getattr(module, "__file__", None))
        and not os.path.abspath(path).startswith(installed)
    ]


def place_of(value: Any) -> tuple[ModuleType, str] | None:
    """Return which clock a shifted one stands for, by its module and name; None for anything else.

    Unpickling a class of the program changes the class that is here, so functions of later runs hold shifted clocks.
    """
    found = vars(value).get(_STANDS_FOR) if isinstance(value, FunctionType | type) else None
    return cast("tuple[ModuleType, str] | None", found)


def _shifted(seconds: int) -> dict[tuple[ModuleType, str], Any]:
    real = {name: _REAL[time, name] for name in ("time", "time_ns", "localtime", "gmtime", "strftime")}

    def now() -> float:
        return float(real["time"]()) + seconds

    def strftime(pattern: str, *parts: Any) -> str:
        return str(real["strftime"](pattern, *(parts or [real["localtime"](now())])))

    def asctime(*parts: Any) -> str:
        return str(_REAL[time, "asctime"](*(parts or [real["localtime"](now())])))

    def at_given(name: str) -> Callable[..., Any]:
        """Return a function that takes the time now if it is given none."""
        return lambda moment=None: _REAL[time, name](now() if moment is None else moment)

    made: dict[tuple[ModuleType, str], Any] = {
        (time, "time"): now,
        (time, "time_ns"): lambda: int(real["time_ns"]()) + seconds * 1_000_000_000,
        (time, "localtime"): at_given("localtime"),
        (time, "gmtime"): at_given("gmtime"),
        (time, "ctime"): at_given("ctime"),
        (time, "strftime"): strftime,
        (time, "asctime"): asctime,
        (datetime_module, "datetime"): _shifted_datetime(seconds),
        (datetime_module, "date"): _shifted_date(seconds),
    }
    for place, clock_of_place in made.items():
        setattr(clock_of_place, _STANDS_FOR, place)
    return made


def _shifted_datetime(seconds: int) -> Any:
    real = _DATETIME
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
    real, real_datetime = _DATE, _DATETIME
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
