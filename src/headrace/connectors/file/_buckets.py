"""Which directory below the base path a record is written to."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.errors import JobDefinitionError, UserFunctionError

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class BucketAssigner(ABC):
    """Assigns records to buckets, which are directories below the sink's base path."""

    @abstractmethod
    def bucket_at(self, epoch_seconds: float) -> str:
        """Return the directory for what is written now, relative to the base path; empty for itself."""

    def buckets_of(self, values: Sequence[Any], epoch_seconds: float) -> Mapping[str, Sequence[Any]]:
        """Return the records that are written now by their directories. Those of one stay in order."""
        return {self.bucket_at(epoch_seconds): values}

    @staticmethod
    def element_bucket_assigner(bucket_of: Callable[[Any], str]) -> BucketAssigner:
        """Write to a directory that depends on the record. PyFlink does not have it.

        Args:
            bucket_of: Returns the directory of a record, for instance `day=2024-02-29/country=ch`.

        Raises:
            JobDefinitionError: It cannot be called.
        """
        if not callable(bucket_of):
            raise JobDefinitionError(
                f"BucketAssigner.element_bucket_assigner: expected a function of a record; got {bucket_of!r}"
            )
        return _ByElement(bucket_of)

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Write all files to the base path itself."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """Write to a directory named by the processing time. The default, one directory an hour.

        Args:
            format_str: A pattern of Java's `DateTimeFormatter`, of the letters `y u M d D E H h m s S a`.
            timezone_id: For instance `Europe/Berlin`; None means the time zone of the machine.

        Raises:
            JobDefinitionError: The pattern has a letter that is not known, or there is no such time zone.

        Example:
            >>> BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd", "UTC").bucket_at(0)
            '1970/01/01'
        """
        return _DateTime(format_str, timezone_id)


@dataclass(frozen=True)
class _BasePath(BucketAssigner):
    def bucket_at(self, epoch_seconds: float) -> str:
        return ""


@dataclass(frozen=True)
class _ByElement(BucketAssigner):
    bucket_of: Callable[[Any], str]

    def bucket_at(self, epoch_seconds: float) -> str:
        return ""

    def buckets_of(self, values: Sequence[Any], epoch_seconds: float) -> Mapping[str, Sequence[Any]]:
        found: dict[str, list[Any]] = {}
        value = None
        try:
            for value in values:
                found.setdefault(_checked(self.bucket_of(value)), []).append(value)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        return found


def _checked(bucket: Any) -> str:
    """A record must not lead out of the base path, nor hide what it is written to."""
    if not isinstance(bucket, str):
        raise TypeError(f"a bucket must be a string; got {bucket!r}")
    if any(name.startswith(".") for name in bucket.split("/")):
        raise ValueError(
            f"a bucket must not contain directories whose names begin with a dot; got {bucket!r}"
        )
    return bucket


@dataclass(frozen=True)
class _DateTime(BucketAssigner):
    format_str: str
    timezone_id: str | None

    def __post_init__(self) -> None:
        _zone(self.timezone_id)
        _compile(self.format_str)

    def bucket_at(self, epoch_seconds: float) -> str:
        zone = _zone(self.timezone_id)
        moment = datetime.fromtimestamp(epoch_seconds, zone) if zone else _local(epoch_seconds)
        return "".join(part if isinstance(part, str) else part(moment) for part in _compile(self.format_str))


def _local(epoch_seconds: float) -> datetime:
    return datetime.fromtimestamp(epoch_seconds).astimezone()


def _zone(timezone_id: str | None) -> tzinfo | None:
    if timezone_id is None:
        return None
    try:
        return ZoneInfo(timezone_id)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise JobDefinitionError(
            f"BucketAssigner.date_time_bucket_assigner: unknown time zone {timezone_id!r}",
            hint="for example UTC, Europe/Berlin, America/New_York",
        ) from error


_Field = Callable[[datetime, int], str]

_FIELDS: dict[str, _Field] = {
    "y": lambda t, n: f"{t.year % 100:02}" if n == 2 else f"{t.year:0{n}}",
    "u": lambda t, n: f"{t.year % 100:02}" if n == 2 else f"{t.year:0{n}}",
    "M": lambda t, n: f"{t.month:0{n}}" if n <= 2 else _named(_MONTHS[t.month - 1], n),
    "d": lambda t, n: f"{t.day:0{n}}",
    "D": lambda t, n: f"{t.timetuple().tm_yday:0{n}}",
    "E": lambda t, n: _named(_WEEKDAYS[t.weekday()], n),
    "H": lambda t, n: f"{t.hour:0{n}}",
    "h": lambda t, n: f"{(t.hour + 11) % 12 + 1:0{n}}",
    "m": lambda t, n: f"{t.minute:0{n}}",
    "s": lambda t, n: f"{t.second:0{n}}",
    "S": lambda t, n: f"{t.microsecond:06}".ljust(n, "0")[:n],
    "a": lambda t, n: "AM" if t.hour < 12 else "PM",
}


def _named(name: str, width: int) -> str:
    return name if width == 4 else name[:3]


#: A quoted text, a run of one letter, or any other character.
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([a-zA-Z])\2*|(.)", re.DOTALL)


@lru_cache(maxsize=16)
def _compile(pattern: str) -> tuple[str | Callable[[datetime], str], ...]:
    """Cut a pattern of Java's `DateTimeFormatter` into texts and fields."""
    parts: list[str | Callable[[datetime], str]] = []
    for token in _TOKEN.finditer(pattern):
        quoted, letter, other = token.groups()
        if letter is None:
            # Two quotes are a quote, within quotes and without.
            parts.append(other if quoted is None else quoted.replace("''", "'") or "'")
            continue
        field = _FIELDS.get(letter)
        if field is None:
            raise JobDefinitionError(
                f"BucketAssigner.date_time_bucket_assigner: unknown letter {letter!r} in {pattern!r}",
                hint=f"use {' '.join(_FIELDS)}; put literal text in single quotes",
            )
        parts.append(_bind(field, len(token.group())))
    return tuple(parts)


def _bind(field: _Field, width: int) -> Callable[[datetime], str]:
    return lambda moment: field(moment, width)
