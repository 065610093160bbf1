"""Checks of what windows, triggers and evictors are made with, and of the records they get."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.common.constants import MIN_LONG_VALUE
from headrace.common.time import Duration, Time, as_millis
from headrace.errors import JobDefinitionError, UserFunctionError, shorten

#: An amount of time as users give it.
Amount = Time | Duration | timedelta


def amount_ms(owner: str, what: str, given: Any) -> int:
    """Return an amount of time in milliseconds. A plain number is refused: it has no unit.

    Args:
        owner: The class that is made, for messages.
        what: The parameter.
        given: What the user passed.

    Example:
        >>> amount_ms("TimeEvictor", "window_size", Time.seconds(2))
        2000
    """
    if isinstance(given, Amount):
        return as_millis(given)
    raise JobDefinitionError(
        f"{owner}: the {what} must be a Time, Duration or timedelta, got {type(given).__name__} {shorten(given)}",
        hint="for example Time.seconds(5)",
    )


def check_whole(owner: str, what: str, given: Any) -> int:
    """Accept a whole number."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    raise JobDefinitionError(
        f"{owner}: the {what} must be a whole number, got {type(given).__name__} {shorten(given)}"
    )


def check_positive_ms(owner: str, what: str, given: Any) -> int:
    """Accept milliseconds above 0."""
    if check_whole(owner, what, given) > 0:
        return int(given)
    raise JobDefinitionError(
        f"{owner}: the {what} must be positive, got {given} ms", hint="for example Time.seconds(5)"
    )


def check_count(owner: str, what: str, given: Any) -> int:
    """Accept a number of records, from 1."""
    if check_whole(owner, what, given) > 0:
        return int(given)
    raise JobDefinitionError(f"{owner}: the {what} must be 1 record or more, got {given}")


def check_offset(owner: str, offset: Any, limit: int, limit_name: str) -> int:
    """Accept an offset that is smaller than what it shifts, to either side."""
    if abs(check_whole(owner, "offset", offset)) < limit:
        return int(offset)
    raise JobDefinitionError(
        f"{owner}: the offset must be between -{limit_name} and {limit_name} (both {limit} ms, and both excluded), "
        f"got {offset} ms",
        hint=f"windows repeat every {limit} ms, so {int(offset) % limit} ms puts their starts at the same places",
    )


def check_call(owner: str, what: str, given: Any, method: str) -> None:
    """Accept an object with a method, or a callable."""
    if isinstance(given, type) and hasattr(given, method):
        raise JobDefinitionError(
            f"{owner}: the {what} must be an object, got the class {given.__name__}",
            hint=f"pass an instance: {given.__name__}()",
        )
    if not callable(getattr(given, method, given)):
        raise JobDefinitionError(
            f"{owner}: the {what} must be a callable or an object with {method}(), "
            f"got {type(given).__name__} {shorten(given)}"
        )


def check_number(owner: str, what: str, given: Any) -> float:
    """Raise an error unless the value is a number."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given
    raise JobDefinitionError(
        f"{owner}: the {what} must be a number, got {type(given).__name__} {shorten(given)}"
    )


def require_timestamp(timestamp: int | None, element: Any) -> int:
    """Return the timestamp of a record that must have one.

    Raises:
        JobDefinitionError: It has none. None and Flink's marker, the smallest number, both say so.
    """
    if timestamp is not None and timestamp > MIN_LONG_VALUE:
        return timestamp
    raise no_timestamp(element)


def beyond_time(element: Any, timestamp: int) -> UserFunctionError:
    """Make the error for a record whose window would end after the last watermark, and so never."""
    return UserFunctionError(
        f"a record has the timestamp {timestamp}: its window would go beyond the 64 bits that time has",
        record=element,
        hint="correct the timestamp assigner or the source",
    )


def no_timestamp(element: Any) -> JobDefinitionError:
    """Make the error for a record that has no timestamp where one is needed."""
    return JobDefinitionError(
        f"record has no timestamp: {shorten(element)}",
        hint="call assign_timestamps_and_watermarks(...) before, or give the source a WatermarkStrategy with a "
        "timestamp assigner; to go by the machine's clock, use processing time",
    )
