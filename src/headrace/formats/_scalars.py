"""Numbers, truth values, dates and times as text, by their declared type: shared by formats that are text.

Reading follows Flink: text around numbers is trimmed, and everything but `true` is false. Numbers that do not
fit their type are refused.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from headrace.common.time import Instant
from headrace.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)

FromText = Callable[[str], Any]
ToText = Callable[[Any], str]

_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_LocalTime = LocalTimeTypeInfo.TimeType
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of no zone, as all timestamps in rows


def limits(basic_type: BasicType) -> tuple[int, int] | None:
    """Return the least and the greatest value of a type of whole numbers; None if it has none, or is another."""
    bits = _BITS.get(basic_type)
    return None if bits is None else (-(1 << bits - 1), (1 << bits - 1) - 1)


def checked_int(value: int, basic_type: BasicType) -> int:
    """Return the number.

    Raises:
        ValueError: It does not fit the type.
    """
    bounds = limits(basic_type)
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise ValueError(f"{value} does not fit {basic_type.name}")
    return value


def temporal_kind(type_info: TypeInformation) -> str | None:
    """Return `date`, `time` or `timestamp` for the types of these, else None."""
    if isinstance(type_info, DateTypeInfo):
        return "date"
    if isinstance(type_info, TimeTypeInfo):
        return "time"
    if isinstance(type_info, TimestampTypeInfo):
        return "timestamp"
    if isinstance(type_info, LocalTimeTypeInfo):
        (time_type,) = type_info._parts()
        kinds = {_LocalTime.LOCAL_DATE: "date", _LocalTime.LOCAL_TIME: "time"}
        return kinds.get(time_type, "timestamp")  # type: ignore[call-overload, no-any-return]  # parts are objects
    return None


def reader_of(type_info: TypeInformation) -> FromText | None:
    """Return what turns text into a value of the type, raising ValueError; None if the type is no scalar."""
    kind = temporal_kind(type_info)
    if kind is not None:
        return _TEMPORAL_READERS[kind]
    if not isinstance(type_info, BasicTypeInfo):
        return None
    basic = type_info.basic_type
    if basic in _BITS or basic is BasicType.BIG_INT:
        return lambda text: checked_int(int(text.strip()), basic)
    return _BASIC_READERS[basic]


def read_decimal(text: str) -> Decimal:
    """Return the number; one that is none is a ValueError, as of all the others."""
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None


def read_timestamp(text: str) -> datetime.datetime:
    """Return a timestamp of no zone, from SQL's or ISO's form; with an offset it is taken to UTC."""
    found = datetime.datetime.fromisoformat(text.strip())
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


def _read_time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(text.strip()).replace(tzinfo=None)


def _read_instant(text: str) -> Instant:
    micros = (read_timestamp(text) - _EPOCH) // datetime.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)


_TEMPORAL_READERS: dict[str, FromText] = {
    "date": lambda text: datetime.date.fromisoformat(text.strip()),
    "time": _read_time,
    "timestamp": read_timestamp,
}
_BASIC_READERS: dict[BasicType, FromText] = {
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.BOOLEAN: lambda text: text.strip().lower() == "true",
    BasicType.FLOAT: lambda text: float(text.strip()),
    BasicType.DOUBLE: lambda text: float(text.strip()),
    BasicType.BIG_DEC: read_decimal,
    BasicType.INSTANT: _read_instant,
}


def instant_text(value: Instant) -> str:
    """Return a point in time as ISO has it, in UTC."""
    at = _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return f"{at.isoformat()}Z"


def naive_utc(value: datetime.datetime) -> datetime.datetime:
    """Return a timestamp of no zone; one with a zone is taken to UTC."""
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def write_scalar(value: Any) -> str:
    """Return a value as text that `reader_of` its type reads again."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return naive_utc(value).isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Instant):
        return instant_text(value)
    return str(value)
