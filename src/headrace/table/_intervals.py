"""Intervals of time, as properties of a number: ``lit(5).seconds``."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SqlValidationError

if TYPE_CHECKING:
    from headrace.table.expression import Expression

__all__ = ["Intervals", "interval_sql", "interval_text"]

#: Flink shows an interval as a number of months, or of milliseconds.
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MILLISECONDS: Final = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}


def _unit(unit: str) -> Any:
    return property(
        lambda self: self._interval(unit), doc=f"An interval of so many {unit.lower()}s: ``lit(5).seconds``."
    )


class Intervals:
    """The units that a number can be an interval of."""

    def _interval(self, unit: str) -> Expression[Any]:
        """Make an interval of so many units; the expression overrides this."""
        raise NotImplementedError

    year = _unit("YEAR")

    years = _unit("YEAR")

    quarter = _unit("QUARTER")

    quarters = _unit("QUARTER")

    month = _unit("MONTH")

    months = _unit("MONTH")

    week = _unit("WEEK")

    weeks = _unit("WEEK")

    day = _unit("DAY")

    days = _unit("DAY")

    hour = _unit("HOUR")

    hours = _unit("HOUR")

    minute = _unit("MINUTE")

    minutes = _unit("MINUTE")

    second = _unit("SECOND")

    seconds = _unit("SECOND")

    milli = _unit("MILLISECOND")

    millis = _unit("MILLISECOND")


def interval_sql(number: Any, unit: str, shown: str) -> str:
    """Write an interval of so many units; ``shown`` is the expression that the number comes from, for messages."""
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        raise SqlValidationError(f"an interval needs a number, such as lit(5).{unit.lower()}s; got {shown}")
    if unit == "MILLISECOND":
        number, unit = Decimal(number) / 1000, "SECOND"
        number = f"{number:f}"
    elif unit in ("WEEK", "QUARTER"):
        # SQL's intervals have no such unit.
        number, unit = (number * 7, "DAY") if unit == "WEEK" else (number * 3, "MONTH")
    digits = len(str(number).partition(".")[0].lstrip("-"))
    # Two digits are what a unit has that says nothing.
    precision = f"({digits})" if digits > 2 else ""
    return f"INTERVAL '{number}' {unit}{precision}"


def interval_text(number: Any, unit: str) -> str:
    """Return an interval as Flink shows it.

    Example:
        >>> interval_text(5, "SECOND"), interval_text(2, "YEAR")
        ('5000', '24')
    """
    return str(int(number * (_MONTHS.get(unit) or _MILLISECONDS[unit])))
