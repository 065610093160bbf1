"""Constants: what a literal's value and type are."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Final

from headrace import types as t
from headrace.planner.binder.context import Context
from headrace.planner.dialect.syntax import Constant, Interval
from headrace.planner.expressions import Literal

__all__ = ["bind_constant", "bind_interval", "interval_ms"]

_DAY_TIME: Final = t.DataTypes.INTERVAL(t.DataTypes.SECOND(3)).not_null()
_MONTHS: Final = t.DataTypes.INTERVAL(t.DataTypes.MONTH()).not_null()


def bind_constant(context: Context, node: Constant) -> Literal:
    """A literal with its type; strings of dates and times are read."""
    value = node.value
    match node.kind:
        case "integer":
            assert isinstance(value, int)
            fits = -(2**31) <= value < 2**31
            return Literal(value, t.IntType(False) if fits else t.BigIntType(False))
        case "decimal":
            assert isinstance(value, Decimal)
            return _decimal(context, node, value)
        case "double":
            return Literal(value, t.DoubleType(False))
        case "boolean":
            return Literal(value, t.BooleanType(False))
        case "null":
            return Literal(None, t.NullType())
        case "bytes":
            assert isinstance(value, bytes)
            return Literal(value, t.BinaryType(len(value), False))
        case "string":
            assert isinstance(value, str)
            # As Java counts: a character beyond U+FFFF is two.
            return Literal(value, t.CharType(len(value.encode("utf-16-le")) // 2, False))
        case _:
            assert isinstance(value, str)
            return _temporal(context, node, value)


def _decimal(context: Context, node: Constant, value: Decimal) -> Literal:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = -exponent
    # Flink counts the digit before the point also where it is zero.
    precision = max(len(value.as_tuple().digits), scale + 1)
    if precision > 38:
        raise context.error("a DECIMAL has at most 38 digits", node.span)
    return Literal(value, t.DecimalType(precision, scale, False))


#: How many digits of a second a value has at most.
_DIGITS: Final = 6


def _temporal(context: Context, node: Constant, text: str) -> Literal:
    shapes = {
        "date": (r"\d{4}-\d{1,2}-\d{1,2}", "DATE 'yyyy-MM-dd'"),
        "time": (r"\d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,6})?", "TIME 'HH:mm:ss'"),
        "timestamp": (
            r"\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,6})?",
            "TIMESTAMP 'yyyy-MM-dd HH:mm:ss'",
        ),
    }
    pattern, shown = shapes[node.kind]
    if re.fullmatch(pattern + r"\d+", text, re.ASCII) and len(text.partition(".")[2]) > _DIGITS:
        raise context.unsupported(
            f"a {node.kind.upper()} with more than {_DIGITS} digits of a second",
            node.span,
            hint=f"leave out the digits after the {_DIGITS}th: Spark keeps microseconds",
        )
    if not re.fullmatch(pattern, text, re.ASCII):
        raise context.error(f"not a valid {node.kind.upper()}", node.span, hint=f"write {shown}")
    numbers = [int(digits) for digits in re.split(r"[-: ]", text.partition(".")[0])]
    fraction = text.partition(".")[2]
    micros = int(fraction.ljust(6, "0")) if fraction else 0
    try:
        if node.kind == "time":
            hour, minute, second = numbers
            return Literal(datetime.time(hour, minute, second, micros), t.TimeType(len(fraction), False))
        day = datetime.date(numbers[0], numbers[1], numbers[2])
        if node.kind == "date":
            return Literal(day, t.DateType(False))
        clock = datetime.time(numbers[3], numbers[4], numbers[5], micros)
        moment = datetime.datetime.combine(day, clock)
    except ValueError as wrong:
        raise context.error(
            f"not a valid {node.kind.upper()}: {wrong}",
            node.span,
            hint="CAST('...' AS TIMESTAMP(3)) takes the last day of the month for days that do not exist"
            if node.kind == "timestamp"
            else "write a date of the calendar",
        ) from wrong
    return Literal(moment, t.TimestampType(len(fraction), False))


# --- intervals ------------------------------------------------------------------------------------

_ORDER: Final = ("DAY", "HOUR", "MINUTE", "SECOND")
_SECONDS: Final = {"WEEK": 604800, "DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}


def bind_interval(context: Context, node: Interval) -> Literal:
    """An interval: a number of months, or a span of time."""
    text, sign = node.text.strip(), -1 if node.negative else 1
    if text.startswith("-"):
        text, sign = text[1:].strip(), -sign
    try:
        months = _as_months(node, text)
        if months is not None:
            return Literal(sign * months, _MONTHS)
        span = _as_time(node, text)
    except (ValueError, OverflowError) as wrong:
        unit = node.unit + (f" TO {node.to_unit}" if node.to_unit else "")
        raise context.error(
            f"{node.text!r} is not a valid INTERVAL {unit}", node.span, hint=_example(node)
        ) from wrong
    return Literal(sign * span, _DAY_TIME)


def _example(node: Interval) -> str:
    shapes = {
        ("YEAR", "MONTH"): "'1-2' YEAR TO MONTH",
        ("DAY", "SECOND"): "'1 02:03:04.5' DAY TO SECOND",
        ("HOUR", "SECOND"): "'02:03:04' HOUR TO SECOND",
    }
    return "write INTERVAL " + shapes.get((node.unit, node.to_unit or ""), f"'5' {node.unit}")


def _as_months(node: Interval, text: str) -> int | None:
    single = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
    if node.unit == "YEAR" and node.to_unit == "MONTH":
        match = re.fullmatch(r"(\d{1,4})-(\d{1,2})", text, re.ASCII)
        if match is None or int(match[2]) > 11:
            raise ValueError(text)
        return int(match[1]) * 12 + int(match[2])
    if node.unit not in single:
        return None
    if node.to_unit is not None:
        raise ValueError(text)
    return _number(text) * single[node.unit]


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError(text)
    return int(text)


def _as_time(node: Interval, text: str) -> datetime.timedelta:
    if node.to_unit is None:
        if node.unit == "SECOND":
            whole, _, fraction = text.partition(".")
            if fraction and not re.fullmatch(r"\d{1,9}", fraction, re.ASCII):
                raise ValueError(text)
            micros = int(fraction.ljust(6, "0")[:6]) if fraction else 0
            return datetime.timedelta(seconds=_number(whole), microseconds=micros)
        return datetime.timedelta(seconds=_number(text) * _SECONDS[node.unit])
    if (
        node.unit not in _ORDER
        or node.to_unit not in _ORDER
        or _ORDER.index(node.unit) >= _ORDER.index(node.to_unit)
    ):
        raise ValueError(text)
    units = _ORDER[_ORDER.index(node.unit) : _ORDER.index(node.to_unit) + 1]
    whole, _, fraction = text.partition(".")
    if fraction and (units[-1] != "SECOND" or not re.fullmatch(r"\d{1,9}", fraction, re.ASCII)):
        raise ValueError(text)
    pieces = re.split(r"[ :]", whole)
    if len(pieces) != len(units):
        raise ValueError(text)
    seconds = sum(_number(piece) * _SECONDS[unit] for piece, unit in zip(pieces, units, strict=True))
    micros = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    return datetime.timedelta(seconds=seconds, microseconds=micros)


def interval_ms(literal: Literal) -> int | None:
    """The milliseconds of a span of time; None for months and other constants."""
    if not isinstance(literal.value, datetime.timedelta):
        return None
    return round(literal.value / datetime.timedelta(milliseconds=1))
