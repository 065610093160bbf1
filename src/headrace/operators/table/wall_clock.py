"""Time zones of tables: conversion between instants and local time."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK

_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC).replace(tzinfo=None)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def moment_of(instant: int) -> datetime.datetime:
    """Return a moment, given in ms, as Python has it."""
    return (_EPOCH + instant * _MILLISECOND).replace(tzinfo=datetime.UTC)


def wall_clock_ms(instant: int, zone: str | None) -> int:
    """Return what the clock on the wall says at a moment, in ms: tables count event time so where it has a zone.

    >>> wall_clock_ms(0, "Europe/Berlin"), wall_clock_ms(0, None)
    (3600000, 0)
    """
    if zone is None or instant in (MIN_WATERMARK, MAX_WATERMARK):
        return instant
    return (moment_of(instant).astimezone(ZoneInfo(zone)).replace(tzinfo=None) - _EPOCH) // _MILLISECOND


def instant_ms(wall_clock: int, zone: str | None) -> int:
    """Return the moment at which the clock on the wall shows this, in ms.

    >>> instant_ms(3600000, "Europe/Berlin")
    0
    """
    if zone is None or wall_clock in (MIN_WATERMARK, MAX_WATERMARK):
        return wall_clock
    local = (_EPOCH + wall_clock * _MILLISECOND).replace(tzinfo=ZoneInfo(zone))
    return (local.astimezone(datetime.UTC).replace(tzinfo=None) - _EPOCH) // _MILLISECOND
