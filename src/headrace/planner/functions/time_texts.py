"""Dates and times in strings, as CAST and the functions read them that are given no format.

Flink reads a little more than Spark's casts do: days from 29 to 31 that a month does not have are its last day,
24:00:00 is the start of the next day, and years and times may have fewer digits. It reads no years of five digits.
"""

from __future__ import annotations

from typing import Final

from headrace.planner.functions.text import quoted

__all__ = ["date_in", "moment_in", "rolled_moment_in", "time_in"]

#: What a text is that Flink takes for a timestamp: Spark also takes a year, a time of today, and a T before the time.
_MOMENT: Final = quoted(r"^\s*\d{1,4}-\d{1,2}-\d{1,2}( .*)?$")
_LAST_DAYS: Final = quoted(r"^\s*(\d{1,4}-\d{1,2})-(29|30|31)(?!\d)(.*)$")
_MIDNIGHT: Final = quoted(r" 24:00:00([.]0*)?\s*$")
_YEAR: Final = quoted(r"^\s*\d{1,4}(?!\d)")
_SHORT_YEAR: Final = quoted(r"^\s*\d{1,3}(-|\s*$)")
_HOUR: Final = quoted(r"^\s*\d{1,2}\s*$")


def moment_in(text: str, kind: str) -> str:
    """The timestamp in a string; NULL if there is none.

    Args:
        text: The string in Spark SQL.
        kind: Spark's type of the timestamp.
    """
    first = f"TRY_CAST(concat(regexp_extract({text}, {_LAST_DAYS}, 1), '-01') AS date)"
    clipped = f"concat(CAST(last_day({first}) AS string), regexp_extract({text}, {_LAST_DAYS}, 3))"
    midnight = f"timestampadd(DAY, 1, TRY_CAST(replace({text}, ' 24:', ' 00:') AS {kind}))"
    return (
        f"CASE WHEN {text} RLIKE {_MOMENT} THEN coalesce(TRY_CAST({text} AS {kind}), "
        f"CASE WHEN {text} RLIKE {_MIDNIGHT} THEN {midnight} "
        f"WHEN {text} RLIKE {_LAST_DAYS} THEN TRY_CAST({clipped} AS {kind}) END) END"
    )


def rolled_moment_in(text: str) -> str:
    """The timestamp in a string as DATE_FORMAT and CONVERT_TZ read it: the 30th of February is a day in March.

    >>> rolled_moment_in("t").startswith("coalesce(TRY_CAST(t AS timestamp_ntz), timestampadd(DAY, ")
    True
    """
    first = f"concat(regexp_extract({text}, {_LAST_DAYS}, 1), '-01', regexp_extract({text}, {_LAST_DAYS}, 3))"
    days = f"CAST(regexp_extract({text}, {_LAST_DAYS}, 2) AS int) - 1"
    rolled = f"timestampadd(DAY, {days}, TRY_CAST({first} AS timestamp_ntz))"
    return f"coalesce(TRY_CAST({text} AS timestamp_ntz), {rolled})"


def date_in(text: str) -> str:
    """The date in a string in Spark SQL; NULL if there is none."""
    bare = f"trim({text})"
    padded = f"lpad({bare}, length({bare}) + 5 - instr(concat({bare}, '-'), '-'), '0')"
    return (
        f"CASE WHEN {text} RLIKE {_SHORT_YEAR} THEN TRY_CAST({padded} AS date) "
        f"WHEN {text} RLIKE {_YEAR} THEN TRY_CAST({text} AS date) END"
    )


def time_in(text: str, kind: str) -> str:
    """The time of day in a string; NULL if there is none.

    Args:
        text: The string in Spark SQL.
        kind: Spark's type of the time.
    """
    return f"TRY_CAST(IF({text} RLIKE {_HOUR}, concat(trim({text}), ':00'), {text}) AS {kind})"
