"""Dates, times and timestamps."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import ClassVar, Final

from headrace.common.typeinfo.base import TypeInformation

_EPOCH: Final = datetime.datetime.fromtimestamp(0, datetime.UTC).replace(tzinfo=None)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


class SqlTimeTypeInfo(TypeInformation):
    """Where PyFlink keeps the types of SQL's dates and times."""

    @staticmethod
    def DATE() -> DateTypeInfo:
        """Return the type of `datetime.date`."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """Return the type of `datetime.time`."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of `datetime.datetime`."""
        return TimestampTypeInfo()


class DateTypeInfo(TypeInformation):
    """The type of `datetime.date`; internally days since 1970-01-01."""

    EPOCH_ORDINAL: ClassVar[int] = datetime.date(1970, 1, 1).toordinal()

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, d: datetime.date | None) -> int | None:
        """Return days since 1970-01-01."""
        return None if d is None else d.toordinal() - self.EPOCH_ORDINAL

    def from_internal_type(self, v: int | None) -> datetime.date | None:
        """Return the date so many days after 1970-01-01."""
        return None if v is None else datetime.date.fromordinal(v + self.EPOCH_ORDINAL)


class TimeTypeInfo(TypeInformation):
    """The type of `datetime.time`; internally microseconds since midnight."""

    EPOCH_ORDINAL: ClassVar[int] = DateTypeInfo.EPOCH_ORDINAL

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, t: datetime.time | None) -> int | None:
        """Return microseconds since midnight, in UTC if the time has an offset."""
        if t is None:
            return None
        offset = (t.utcoffset() or datetime.timedelta(0)) // _MICROSECOND
        seconds = (t.hour * 60 + t.minute) * 60 + t.second
        return (seconds * 1_000_000 + t.microsecond - offset) % 86_400_000_000

    def from_internal_type(self, t: int | None) -> datetime.time | None:
        """Return the time so many microseconds after midnight."""
        return None if t is None else (_EPOCH + t * _MICROSECOND).time()


class DurationTypeInfo(TypeInformation):
    """The type of `datetime.timedelta`, the intervals of tables; internally microseconds. PyFlink has none."""

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, obj: datetime.timedelta | None) -> int | None:
        """Return the microseconds of the span."""
        return None if obj is None else obj // _MICROSECOND

    def from_internal_type(self, obj: int | None) -> datetime.timedelta | None:
        """Return the span of so many microseconds."""
        return None if obj is None else obj * _MICROSECOND


class TimestampTypeInfo(TypeInformation):
    """The type of `datetime.datetime`; internally microseconds since the epoch. No zone means UTC."""

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, dt: datetime.datetime | None) -> int | None:
        """Return microseconds since the epoch."""
        if dt is None:
            return None
        if dt.tzinfo is not None:
            dt = dt.astimezone(datetime.UTC).replace(tzinfo=None)
        return (dt - _EPOCH) // _MICROSECOND

    def from_internal_type(self, ts: int | None) -> datetime.datetime | None:
        """Return the time so many microseconds after the epoch, without a zone."""
        return None if ts is None else _EPOCH + ts * _MICROSECOND


class LocalTimeTypeInfo(TypeInformation):
    """The type of a date, a time or both, of no particular zone.

    Args:
        time_type: Which of them.
    """

    class TimeType(Enum):
        """A date, a time, or both."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: LocalTimeTypeInfo.TimeType) -> None:
        self._time_type = time_type

    def _parts(self) -> tuple[object, ...]:
        return (self._time_type,)

    def summary(self) -> str:
        """Return the name that the type has in `Types`."""
        return self._time_type.name

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"
