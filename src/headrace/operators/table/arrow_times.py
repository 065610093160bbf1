"""Time functions that workers compute: formatting, parsing, and intervals of fixed length."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import (
    ColumnExpression,
    Columns,
    NotComputedError,
    NotUnderstoodError,
)
from headrace.operators.table.arrow_numbers import numbers

__all__ = ["INTERVAL", "formatted", "interval_us", "moved"]

#: The type of intervals; as constants only, in microseconds.
INTERVAL: Final = pa.duration("us")
_INTERVAL: Final = re.compile(r"(-?)(\d+) (\d\d):(\d\d):(\d\d)\.(\d{6})")
#: No time beyond it is moved: whether that is beyond the last one is for Spark to say.
_FAR_US: Final = 1 << 62
#: Letters of a time's pattern that are understood: how Python writes them, and their length in microseconds.
_LETTERS: Final = {
    "yyyy": ("{0.year:04}", 86_400_000_000),
    "MM": ("{0.month:02}", 86_400_000_000),
    "dd": ("{0.day:02}", 86_400_000_000),
    "HH": ("{0.hour:02}", 3_600_000_000),
    "mm": ("{0.minute:02}", 60_000_000),
    "ss": ("{0.second:02}", 1_000_000),
}
_PATTERN: Final = re.compile(r"(yyyy|MM|dd|HH|mm|ss)|([-:/ .])")
#: Microseconds of the first and after the last time that has a year of four digits.
_FIRST_TIME: Final = -62_135_596_800_000_000
_LAST_TIME: Final = 253_402_300_800_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def interval_us(text: str) -> int:
    """Return the microseconds of an interval from days to seconds.

    >>> interval_us("0 00:00:10.000000"), interval_us("-1 00:00:00.000001")
    (10000000, -86400000001)
    """
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise NotUnderstoodError(text)
    days, hours, minutes, seconds, micros = (int(each) for each in found.groups()[1:])
    length = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000 + micros
    if length >= _FAR_US:
        raise NotUnderstoodError(text)
    return -length if found[1] else length


def moved(time: ColumnExpression, length_us: int) -> ColumnExpression:
    """Add an interval to times."""
    length = pa.scalar(length_us, INTERVAL)

    def compute(columns: Columns, rows: int) -> pa.Array:
        times = time.of(columns, rows)
        ends = pc.min_max(times.cast(pa.int64()))
        if ends["min"].is_valid and not -_FAR_US < ends["min"].as_py() <= ends["max"].as_py() < _FAR_US:
            raise NotComputedError("a time is too far away")
        return pc.add(times, length)

    return ColumnExpression(time.kind, compute)


def formatted(time: ColumnExpression, pattern: str) -> ColumnExpression:
    """Write times like a pattern of Spark."""
    written, unit = _as_python(pattern)
    return ColumnExpression(
        pa.string(), lambda columns, rows: _formatted(time.of(columns, rows), written, unit)
    )


def _as_python(pattern: str) -> tuple[str, int]:
    """Return how Python writes a time like a pattern of Spark, and the length of its smallest part."""
    written, units, place = "", [], 0
    while place < len(pattern):
        found = _PATTERN.match(pattern, place)
        if found is None or found[0] * 2 == pattern[place : place + 2 * len(found[0])] != "":
            raise NotUnderstoodError(pattern)
        if found[1]:
            text, unit = _LETTERS[found[1]]
            written += text
            units.append(unit)
        else:
            written += found[2]
        place = found.end()
    if not units:
        raise NotUnderstoodError(pattern)
    return written, min(units)


def _formatted(times: pa.Array, written: str, unit: int) -> pa.Array:
    """Write times; there are few different ones up to what is written of them."""
    values, is_null = numbers(times)
    found = pa.array(values // unit).dictionary_encode()
    ends = pc.min_max(found.dictionary)
    if len(values) and not (
        _FIRST_TIME <= ends["min"].as_py() * unit and ends["max"].as_py() * unit + unit <= _LAST_TIME
    ):
        raise NotComputedError("a year has not four digits")
    texts = pa.array(
        [
            written.format(_EPOCH + timedelta(microseconds=part * unit))
            for part in found.dictionary.to_pylist()
        ],
        pa.string(),
    )
    return texts.take(pa.array(found.indices.to_numpy(), mask=is_null))
