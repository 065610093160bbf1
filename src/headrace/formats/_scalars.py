"""Numbers, truth values, dates and times as text, by their declared type: shared by formats that are text.

Reading follows Flink: text around numbers is trimmed, and everything but `true` is false. Numbers that do not
fit their type are refused. All readers raise ValueError, and nothing else.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from headrace.common.time import Instant
from headrace.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    DurationTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)
from headrace.errors import shorten

FromText = Callable[[str], Any]
ToText = Callable[[Any], str]

_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_LocalTime = LocalTimeTypeInfo.TimeType
#: Python reads more than Java does: `1_000`, digits of other scripts, `nan` in any case.
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
#: Digits of a whole number that is written with an exponent: `1e999999999` is short, and would fill the memory.
_MOST_DIGITS = 4300
#: Removes zeros at the end of a decimal, and no digit of a DECIMAL(38).
_EXACT = Context(prec=80)
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
        raise ValueError(f"{shorten(value)} does not fit {basic_type.name}")
    return value


def whole_number(value: float | Decimal, basic_type: BasicType) -> int:
    """Return a number without what is after its point, as Java does.

    Raises:
        ValueError: It does not fit the type, or is not finite.
    """
    try:
        if isinstance(value, Decimal) and value.adjusted() > _MOST_DIGITS:
            raise OverflowError
        return checked_int(int(value), basic_type)
    except OverflowError:
        raise ValueError(f"{value} does not fit {basic_type.name}") from None


def finite_float(value: float | Decimal, basic_type: BasicType) -> float:
    """Return a number as a float.

    Raises:
        ValueError: It is larger than any float.
    """
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found):
        raise ValueError(f"{shorten(value)} does not fit {basic_type.name}")
    return found


def read_integer(text: str) -> int:
    """Return a whole number."""
    text = text.strip()
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"{shorten(text)} is not a whole number")
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits is too long")
    return int(text)


def read_float(text: str) -> float:
    """Return a number, which may be `NaN` or `Infinity`; one that is larger than any float is refused."""
    text = text.strip()
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{shorten(text)} is not a number")
    return finite_float(float(text), BasicType.DOUBLE)


def temporal_kind(type_info: TypeInformation) -> str | None:
    """Return `date`, `time`, `timestamp` or `interval` for the types of these, else None."""
    if isinstance(type_info, DateTypeInfo):
        return "date"
    if isinstance(type_info, TimeTypeInfo):
        return "time"
    if isinstance(type_info, TimestampTypeInfo):
        return "timestamp"
    if isinstance(type_info, DurationTypeInfo):
        return "interval"
    if isinstance(type_info, LocalTimeTypeInfo):
        (time_type,) = type_info._parts()
        kinds = {_LocalTime.LOCAL_DATE: "date", _LocalTime.LOCAL_TIME: "time"}
        return kinds.get(time_type, "timestamp")  # type: ignore[call-overload, no-any-return]  # parts are objects
    return None


def reader_of(type_info: TypeInformation) -> FromText | None:
    """Return what turns text into a value of the type, raising ValueError; None if the type is not a scalar."""
    kind = temporal_kind(type_info)
    if kind is not None:
        return _TEMPORAL_READERS[kind]
    if not isinstance(type_info, BasicTypeInfo):
        return None
    basic = type_info.basic_type
    if basic in _BITS or basic is BasicType.BIG_INT:
        return lambda text: checked_int(read_integer(text), basic)
    return _BASIC_READERS[basic]


def read_decimal(text: str) -> Decimal:
    """Return a decimal number, which is finite."""
    text = text.strip()
    try:
        if _NUMBER.fullmatch(text) is not None:
            return Decimal(text)
    except InvalidOperation:  # the exponent is too large
        pass
    raise ValueError(f"{shorten(text)} is not a decimal number")


def read_timestamp(text: str) -> datetime.datetime:
    """Return a timestamp of no zone, from SQL's or ISO's form; with an offset it is taken to UTC."""
    found = datetime.datetime.fromisoformat(text.strip())
    try:
        return naive_utc(found)
    except OverflowError:
        raise ValueError(f"{text!r} is not a timestamp between the years 1 and 9999 (UTC)") from None


def _read_time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(text.strip()).replace(tzinfo=None)


def interval_of(milliseconds: int) -> datetime.timedelta:
    """Return an interval: formats have its milliseconds, as in Flink."""
    try:
        return datetime.timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise ValueError(f"{milliseconds} milliseconds are more than an INTERVAL can have") from None


def milliseconds_of(interval: datetime.timedelta) -> int:
    """Return what formats write for an interval."""
    return interval // datetime.timedelta(milliseconds=1)


def _read_instant(text: str) -> Instant:
    micros = (read_timestamp(text) - _EPOCH) // datetime.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)


_TEMPORAL_READERS: dict[str, FromText] = {
    "date": lambda text: datetime.date.fromisoformat(text.strip()),
    "time": _read_time,
    "timestamp": read_timestamp,
    "interval": lambda text: interval_of(read_integer(text)),
}
_BASIC_READERS: dict[BasicType, FromText] = {
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.BOOLEAN: lambda text: text.strip().lower() == "true",
    BasicType.FLOAT: read_float,
    BasicType.DOUBLE: read_float,
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


def without_zeros(value: Decimal) -> Decimal:
    """Remove zeros at the end of a number, which may give it an exponent, as Flink writes decimals.

    Example:
        >>> str(without_zeros(Decimal("12.50"))), str(without_zeros(Decimal("100.00")))
        ('12.5', '1E+2')
    """
    return value.normalize(_EXACT) if value else Decimal(0)


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
    if isinstance(value, datetime.timedelta):
        return str(milliseconds_of(value))
    return str(value)
