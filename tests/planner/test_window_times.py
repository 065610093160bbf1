"""The time that windows go by is in the same windows as the timestamp it was made of, in every zone and before 1970."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from headrace.planner.emit import SPARK_SETTINGS
from headrace.planner.fragments import millis, window_millis
from headrace.planner.windows import WindowFunctionSpec, WindowKind
from headrace.types.logical import LocalZonedTimestampType, TimestampType

if TYPE_CHECKING:
    from pyspark import SparkContext

ZONES = ("UTC", "America/New_York")
TEXTS = (
    "2024-01-01 00:00:09.999",
    "2024-01-01 00:00:10.000",
    "2024-03-10 02:30:00.500",  # no such hour in New York
    "2024-11-03 01:30:00.250",  # twice there
    "1970-01-01 00:00:00.000",
    "1969-12-31 23:59:59.500",
    "1969-12-31 23:59:50.000",
    "1901-02-03 04:05:06.789",
)
SECONDS = WindowFunctionSpec(WindowKind.TUMBLE, 10_000, 10_000, offset_ms=3_000)
FRACTIONS = WindowFunctionSpec(WindowKind.TUMBLE, 1_500, 1_500)


def wall_ms(text: str) -> int:
    since = dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the clock on the wall
    return since // dt.timedelta(milliseconds=1)


def number(time_ms: int, window: WindowFunctionSpec) -> int:
    """Return which of the windows a time is in."""
    return (time_ms - window.offset_ms) // window.size_ms


@pytest.mark.spark
@pytest.mark.parametrize("zone", ZONES)
def test_times_of_windows_are_in_the_windows_of_their_timestamps(
    spark_session: SparkContext, zone: str
) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession(spark_session).newSession()
    for key, value in {**SPARK_SETTINGS, "spark.sql.session.timeZone": zone}.items():
        session.conf.set(key, value)
    is_utc = zone == "UTC"
    items = []
    for text in TEXTS:
        plain, local = f"TIMESTAMP_NTZ '{text}'", f"TIMESTAMP '{text}'"
        for window in (SECONDS, FRACTIONS):
            items.append(window_millis(plain, TimestampType(3), window, is_utc=is_utc))
            items.append(window_millis(local, LocalZonedTimestampType(3), window, is_utc=is_utc))
    row = session.sql("SELECT " + ", ".join(items)).first()
    assert row is not None
    given = iter(row)
    for text in TEXTS:
        there = dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC)
        shown = there.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat(" ")
        for window in (SECONDS, FRACTIONS):
            assert number(next(given), window) == number(wall_ms(text), window), text
            # An hour that is left out in spring is read as the one after it.
            assert number(next(given), window) == number(wall_ms(shown), window), text


def test_windows_with_fractions_of_a_second_and_sessions_want_the_exact_time() -> None:
    exact = millis("`ts`", TimestampType(3), is_utc=True)
    session = WindowFunctionSpec(WindowKind.SESSION, 10_000, 10_000)
    for window in (FRACTIONS, session):
        assert window_millis("`ts`", TimestampType(3), window, is_utc=True) == exact
    assert window_millis("`ts`", TimestampType(3), SECONDS, is_utc=True) != exact
