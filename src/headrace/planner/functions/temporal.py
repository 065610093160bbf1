"""Functions of dates, times and timestamps."""

from __future__ import annotations

from typing import Final
from zoneinfo import available_timezones

from headrace import types as t
from headrace.operators.table.steps import CURRENT_WATERMARK
from headrace.planner.coercion import is_interval, is_string
from headrace.planner.expressions import Call, Literal
from headrace.planner.functions.registry import FunctionRegistry, same_as
from headrace.planner.functions.signature import Nulls, WrongArguments
from headrace.planner.functions.text import (
    constant,
    is_null,
    quoted,
    string_constant,
    whole_months,
    without_cast,
)
from headrace.planner.functions.time_formats import formatted, read_attempts
from headrace.planner.functions.time_texts import date_in, moment_in, rolled_moment_in

__all__ = ["TEMPORAL", "truncated"]

TEMPORAL: Final = FunctionRegistry("temporal")
_STRING: Final = t.DataTypes.STRING()
_BIGINT: Final = t.BigIntType()
_NEVER: Final = Nulls.NEVER
_ALWAYS: Final = Nulls.ALWAYS
_FORMAT: Final = quoted("yyyy-MM-dd HH:mm:ss")

# --- now ------------------------------------------------------------------------------------------

# Spark's moments have six digits of a second, those of Flink three.
_NOW: Final = "timestamp_millis(unix_millis(current_timestamp()))"

for _name, _type, _text, _what in (
    ("CURRENT_DATE", t.DateType(), "current_date()", "Today, in the session's time zone."),
    ("CURRENT_TIME", t.TimeType(0), "current_time(0)", "The time of the day, in the session's time zone."),
    ("LOCALTIME", t.TimeType(0), "current_time(0)", "The time of the day, in the session's time zone."),
    (
        "CURRENT_TIMESTAMP",
        t.LocalZonedTimestampType(3),
        _NOW,
        "The time at which the epoch was planned.",
    ),
    ("NOW", t.LocalZonedTimestampType(3), _NOW, "The time at which the epoch was planned."),
    (
        "CURRENT_ROW_TIMESTAMP",
        t.LocalZonedTimestampType(3),
        _NOW,
        "The time at which the epoch was planned.",
    ),
    (
        "LOCALTIMESTAMP",
        t.TimestampType(3),
        f"CAST({_NOW} AS TIMESTAMP_NTZ)",
        "Date and time in the session's time zone.",
    ),
    (
        "PROCTIME",
        t.LocalZonedTimestampType(3),
        _NOW,
        "Processing time, as a time attribute.",
    ),
    (
        "SOURCE_WATERMARK",
        t.LocalZonedTimestampType(3),
        "raise_error('SOURCE_WATERMARK() is only allowed in a WATERMARK declaration')",
        "The watermarks of the data stream; only for WATERMARK FOR.",
    ),
):
    TEMPORAL.add(f"{_name}()", _type, _text, _what, nulls=_NEVER)


def _emit_watermark(call: Call, operands: list[str]) -> str:
    # Event time is on the clock on the wall; where it has a zone, the session's gives the moment back.
    time = f"timestampadd(MILLISECOND, {CURRENT_WATERMARK}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    return f"CAST({time} AS TIMESTAMP)" if isinstance(call.type, t.LocalZonedTimestampType) else time


TEMPORAL.add(
    "CURRENT_WATERMARK(rowtime TIME POINT)",
    same_as(),
    _emit_watermark,
    "How far event time has come where the row is, of the type of a rowtime attribute; NULL if there is no watermark "
    "yet. An epoch has one watermark: that of the rows before it. In streaming mode.",
    nulls=_ALWAYS,
    exact=True,
)

# --- parts ----------------------------------------------------------------------------------------

_PARTS: Final = {
    "YEAR": "year({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "dayofmonth({0})",
    "HOUR": "hour({0})",
    "MINUTE": "minute({0})",
    "SECOND": "second({0})",
    "DOY": "dayofyear({0})",
    "DOW": "dayofweek({0})",
    "ISODOW": "(weekday({0}) + 1)",
    "ISOYEAR": "extract(YEAROFWEEK FROM {0})",
    "DECADE": "floor(year({0}) / 10)",
    "CENTURY": "floor((year({0}) + 99) / 100)",
    "MILLENNIUM": "floor((year({0}) + 999) / 1000)",
    "MILLISECOND": "(CAST(extract(SECOND FROM {0}) * 1000 AS bigint) % 1000)",
    "MICROSECOND": "(CAST(extract(SECOND FROM {0}) * 1000000 AS bigint) % 1000000)",
    "NANOSECOND": "(CAST(extract(SECOND FROM {0}) * 1000000000 AS bigint) % 1000000000)",
}


#: Parts of a span of time, whose sign they share.
_SPAN_PARTS: Final = {
    "DAY": "extract(DAY FROM {0})",
    "HOUR": "extract(HOUR FROM {0})",
    "MINUTE": "extract(MINUTE FROM {0})",
    "SECOND": "CAST(extract(SECOND FROM {0}) AS bigint)",
    "MILLISECOND": "(CAST(extract(SECOND FROM {0}) * 1000 AS bigint) % 1000)",
}
_MONTH_PARTS: Final = {"YEAR": "({0} div 12)", "MONTH": "({0} % 12)"}


def _part_of_interval(unit: str, operand: str, kind: t.DataType) -> str:
    parts = _SPAN_PARTS if isinstance(kind, t.DayTimeIntervalType) else _MONTH_PARTS
    if unit not in parts:
        raise WrongArguments(f"an {kind.summary_without_null()} has no {unit}", f"it has {', '.join(parts)}")
    return parts[unit].format(operand)


def _emit_extract(call: Call, operands: list[str]) -> str:
    unit = str(constant(call.operands[0]))
    operand, kind = operands[1], call.operands[1].type
    if is_null(call.operands[1]) and not is_interval(kind):
        return "CAST(NULL AS bigint)"
    if is_interval(kind):
        return _part_of_interval(unit, operand, kind)
    if unit == "EPOCH":
        if isinstance(kind, t.LocalZonedTimestampType):
            return f"unix_seconds({operand})"
        return f"timestampdiff(SECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', CAST({operand} AS timestamp_ntz))"
    if isinstance(kind, t.TimeType):
        if unit not in {"HOUR", "MINUTE", "SECOND", "MILLISECOND"}:
            raise WrongArguments(f"a TIME has no {unit}")
        if unit not in {"HOUR", "MINUTE", "SECOND"}:
            operand = f"make_timestamp_ntz(DATE'2000-01-01', {operand})"
    if isinstance(kind, t.DateType) and unit in {"MICROSECOND", "NANOSECOND"}:
        raise WrongArguments(f"a DATE has no {unit}")
    if isinstance(kind, t.DateType) and unit in {"HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}:
        operand = f"CAST({operand} AS timestamp_ntz)"
    return _PARTS[unit].format(operand)


TEMPORAL.add(
    "EXTRACT(unit ANY, time TIME POINT OR INTERVAL)",
    _BIGINT,
    _emit_extract,
    "`EXTRACT(unit FROM time)`: a part of a time: YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, "
    "MILLISECOND, DOW, DOY, EPOCH, ...; of an interval YEAR and MONTH, or DAY to MILLISECOND.",
)


def _emit_part(call: Call, operands: list[str]) -> str:
    operand = operands[0]
    if isinstance(call.operands[0].type, t.DateType) and call.function in {"HOUR", "MINUTE", "SECOND"}:
        operand = f"CAST({operand} AS timestamp_ntz)"
    if isinstance(call.operands[0].type, t.TimeType) and call.function not in {"HOUR", "MINUTE", "SECOND"}:
        raise WrongArguments(f"a TIME has no {call.function}")
    unit = {"DAYOFYEAR": "DOY", "DAYOFMONTH": "DAY", "DAYOFWEEK": "DOW"}.get(call.function, call.function)
    return _PARTS[unit].format(operand)


for _name, _what in (
    ("YEAR", "The year."),
    ("QUARTER", "The quarter, from 1."),
    ("MONTH", "The month, from 1."),
    ("WEEK", "The week of ISO 8601."),
    ("DAYOFYEAR", "The day of the year, from 1."),
    ("DAYOFMONTH", "The day of the month, from 1."),
    ("DAYOFWEEK", "The day of the week; Sunday is 1."),
    ("HOUR", "The hour."),
    ("MINUTE", "The minute."),
    ("SECOND", "The second."),
):
    TEMPORAL.add(f"{_name}(time TIME POINT)", _BIGINT, _emit_part, _what)

# --- arithmetic -----------------------------------------------------------------------------------

_CALENDAR: Final = frozenset({"YEAR", "QUARTER", "MONTH"})
_OF_DAYS: Final = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY"})


def _emit_add(call: Call, operands: list[str]) -> str:
    unit, time = str(constant(call.operands[0])), operands[2]
    if isinstance(call.operands[2].type, t.DateType):
        time = f"CAST({time} AS timestamp_ntz)"
    return f"timestampadd({unit}, CAST({operands[1]} AS int), {time})"


def add_type(unit: str, time: t.DataType) -> t.DataType:
    """The type of TIMESTAMPADD: hours make a timestamp of a day."""
    if isinstance(time, t.DateType) and unit not in _OF_DAYS:
        return t.TimestampType(6, time.is_nullable)
    return time


TEMPORAL.add(
    "TIMESTAMPADD(unit ANY, amount INTEGER, time TIME POINT)",
    same_as(2),
    _emit_add,
    "The time some units later: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR.",
)


def _emit_difference(call: Call, operands: list[str]) -> str:
    unit = str(constant(call.operands[0]))
    if any(is_null(one) for one in call.operands[1:]):
        return "CAST(NULL AS int)"
    zoned = [isinstance(one.type, t.LocalZonedTimestampType) for one in call.operands[1:]]
    if zoned[0] != zoned[1]:
        raise WrongArguments(
            "TIMESTAMPDIFF takes two times with a time zone, or two without", "CAST one of them"
        )
    first, second = (
        f"CAST({text} AS timestamp_ntz)" if isinstance(one.type, t.DateType) else text
        for text, one in zip(operands[1:], call.operands[1:], strict=True)
    )
    if unit in _CALENDAR:
        return whole_months(unit, first, second)
    return f"timestampdiff({unit}, {first}, {second})"


TEMPORAL.add(
    "TIMESTAMPDIFF(unit ANY, first TIME POINT, second TIME POINT)",
    t.IntType(),
    _emit_difference,
    "How many whole units lie between two times.",
)


#: Units of several years: a century starts with the year 1901, a decade with 1900.
_YEARS: Final = {"DECADE": (10, 0), "CENTURY": (100, 1), "MILLENNIUM": (1000, 1)}


def _floor(unit: str, operand: str, kind: t.DataType) -> str:
    if unit == "WEEK":
        # Flink's weeks start on Sunday.
        text = f"(date_trunc('DAY', {operand}) - make_dt_interval(dayofweek({operand}) - 1))"
    elif unit in _YEARS:
        length, first = _YEARS[unit]
        back = f"make_ym_interval(CAST(pmod(year({operand}) - {first}, {length}) AS int))"
        text = f"(date_trunc('YEAR', {operand}) - {back})"
    else:
        text = f"date_trunc('{unit}', {operand})"
    return f"CAST({text} AS {kind.spark_name()})"


def _timestamp(call: Call, operand: str) -> tuple[str, t.DataType]:
    """A time of day as one of a day, which Spark can round; its type, too."""
    if isinstance(call.type, t.TimeType):
        return f"make_timestamp_ntz(DATE'2000-01-01', {operand})", t.TimestampType(6)
    return operand, call.type


def _emit_floor(call: Call, operands: list[str]) -> str:
    return _floor(str(constant(call.operands[1])), *_timestamp(call, operands[0]))


def _emit_ceil(call: Call, operands: list[str]) -> str:
    unit = str(constant(call.operands[1]))
    time, kind = _timestamp(call, operands[0])
    floor = _floor(unit, time, kind)
    length, _ = _YEARS.get(unit, (1, 0))
    following = f"timestampadd({'YEAR' if unit in _YEARS else unit}, {length}, {floor})"
    if unit == "DAY" and isinstance(kind, t.DateType):
        return following  # Flink 2.3 takes a date for a moment within its day
    return f"IF({floor} = {time}, {floor}, {following})"


TEMPORAL.add(
    "FLOOR_TIME(time TIME POINT, unit ANY)",
    same_as(),
    _emit_floor,
    "`FLOOR(time TO unit)`: the start of the unit.",
)
TEMPORAL.add(
    "CEIL_TIME(time TIME POINT, unit ANY)",
    same_as(),
    _emit_ceil,
    "`CEIL(time TO unit)`: the end of the unit.",
)

# --- text -----------------------------------------------------------------------------------------


#: What a text is that Flink reads as a date and a time to write it in another way.
_DAY_AND_TIME: Final = r"^\d{1,4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2}"


def _emit_format(call: Call, operands: list[str]) -> str:
    time = operands[0]
    if is_string(call.operands[0].type):
        time = f"IF({time} RLIKE {quoted(_DAY_AND_TIME)}, {rolled_moment_in(time)}, NULL)"
    return formatted(time, operands[1], string_constant(call, 1))


TEMPORAL.add(
    "DATE_FORMAT(time TIMESTAMP OR STRING, format STRING)",
    _STRING,
    _emit_format,
    "The time in a format of Java's DateTimeFormatter.",
    nulls=_ALWAYS,
)


def _attempts(call: Call, operands: list[str]) -> list[tuple[str, str]]:
    if len(operands) == 1:
        return read_attempts(operands[0], _FORMAT, _FORMAT.strip("'"))
    return read_attempts(operands[0], operands[1], string_constant(call, 1))


def _emit_to_date(call: Call, operands: list[str]) -> str:
    if len(operands) == 1:
        return date_in(operands[0])
    made = ", ".join(f"try_to_date({text}, {pattern})" for text, pattern in _attempts(call, operands))
    return f"coalesce({made})"


TEMPORAL.add(
    "TO_DATE(text STRING [, format STRING])",
    t.DateType(),
    _emit_to_date,
    "The date in a string, by default `yyyy-MM-dd`; NULL if it is not valid.",
    nulls=_ALWAYS,
)


def truncated(operand: str, precision: int) -> str:
    """A timestamp without the digits of a second after some."""
    if precision >= 6:
        return operand
    unit = 10 ** (6 - precision)
    rest = f"CAST(CAST(extract(SECOND FROM {operand}) * 1000000 AS bigint) % {unit} AS int)"
    return f"timestampadd(MICROSECOND, - {rest}, {operand})"


#: What Flink also takes where a text does not have the format: a date, or a date and a time.
_PLAIN_MOMENT: Final = r"^\s*\d{4}-\d{1,2}-\d{1,2}( \d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,9})?)?\s*$"


def _emit_to_timestamp(call: Call, operands: list[str]) -> str:
    text = operands[0]
    if len(operands) == 1:
        return truncated(moment_in(text, "timestamp_ntz"), 3)
    plain = f"IF({text} RLIKE {quoted(_PLAIN_MOMENT)}, {moment_in(text, 'timestamp_ntz')}, NULL)"
    # Not by way of the session's time zone, which has no time between two and three on one day of the year.
    made = f"to_timestamp_ntz({text}, {operands[1]})"
    return truncated(f"IF({operands[1]} IS NULL, NULL, coalesce({made}, {plain}))", 3)


TEMPORAL.add(
    "TO_TIMESTAMP(text STRING [, format STRING])",
    t.TimestampType(3),
    _emit_to_timestamp,
    "The timestamp in a string, by default `yyyy-MM-dd HH:mm:ss`; NULL if it is not valid.",
    nulls=_ALWAYS,
)


def _emit_to_ltz(call: Call, operands: list[str]) -> str:
    if is_string(call.operands[0].type):
        return _emit_text_to_ltz(operands)
    digits = constant(call.operands[1]) if len(operands) > 1 else 3
    if len(operands) > 1 and isinstance(without_cast(call.operands[1]), Literal) and digits is None:
        return "CAST(NULL AS timestamp)"
    if not isinstance(digits, int) or not 0 <= digits <= 6:
        raise WrongArguments(
            "TO_TIMESTAMP_LTZ takes a constant precision from 0 (seconds) to 6 (microseconds)",
        )
    number = operands[0]
    if not isinstance(call.operands[0].type, t.FloatType | t.DoubleType):
        number = f"CAST({number} AS bigint)"
    if digits > 3:
        return f"timestamp_micros(CAST({number} * {10 ** (6 - digits)} AS bigint))"
    # Flink's moments go from the year 1 to 9999.
    millis = f"CAST({number} * {10 ** (3 - digits)} AS bigint)"
    return f"IF({millis} BETWEEN -62135596800000 AND 253402300799999, timestamp_millis({millis}), NULL)"


def _emit_text_to_ltz(operands: list[str]) -> str:
    text, zone = operands[0], operands[2] if len(operands) > 2 else "'UTC'"
    if len(operands) > 1:
        made = f"try_to_timestamp(concat({text}, ' ', {zone}), concat({operands[1]}, ' VV'))"
    else:
        clock = moment_in(text, "timestamp_ntz")
        made = f"TRY_CAST(concat(CAST({clock} AS string), ' ', {zone}) AS timestamp)"
    fail = f"CAST(raise_error(concat('TO_TIMESTAMP_LTZ: there is no time in ', {text})) AS timestamp)"
    return truncated(f"coalesce({made}, IF({text} IS NULL, NULL, {fail}))", 3)


TEMPORAL.add(
    [
        "TO_TIMESTAMP_LTZ(number NUMBER [, precision INT])",
        "TO_TIMESTAMP_LTZ(text STRING [, format STRING, zone STRING])",
    ],
    t.LocalZonedTimestampType(3),
    _emit_to_ltz,
    "The time this many milliseconds (precision 3) or seconds (0) after 1970 in UTC; or the time in a string, "
    "by default in UTC and as `yyyy-MM-dd HH:mm:ss`. It fails if the string is not valid.",
    nulls=_ALWAYS,
)
TEMPORAL.add(
    "FROM_UNIXTIME(seconds INTEGER [, format STRING])",
    _STRING,
    lambda call, each: (
        f"from_unixtime({each[0]}, {_FORMAT})"
        if len(each) == 1
        else formatted(f"timestamp_seconds({each[0]})", each[1], string_constant(call, 1))
    ),
    "Formats a time given in seconds after 1970, in the session's time zone.",
    nulls=_ALWAYS,
)


def _emit_unix_timestamp(call: Call, operands: list[str]) -> str:
    if not operands:
        return "unix_timestamp()"
    made = ", ".join(f"unix_timestamp({text}, {pattern})" for text, pattern in _attempts(call, operands))
    return f"coalesce({made}, IF({operands[0]} IS NULL, NULL, -9223372036854775807L - 1))"


TEMPORAL.add(
    "UNIX_TIMESTAMP([text STRING, format STRING])",
    _BIGINT,
    _emit_unix_timestamp,
    "Seconds after 1970: now, or of the time in a string, in the session's time zone.",
)


def _zone(call: Call, operands: list[str], place: int) -> str:
    name = string_constant(call, place)
    # Java's TimeZone takes what it does not know for UTC.
    return operands[place] if name is None or name in available_timezones() else quoted("UTC")


def _emit_convert(call: Call, operands: list[str]) -> str:
    text, source, target = operands[0], _zone(call, operands, 1), _zone(call, operands, 2)
    time = f"IF({text} RLIKE {quoted(_DAY_AND_TIME)}, {rolled_moment_in(text)}, NULL)"
    return f"date_format(convert_timezone({source}, {target}, {time}), {_FORMAT})"


TEMPORAL.add(
    "CONVERT_TZ(text STRING, from STRING, to STRING)",
    _STRING,
    _emit_convert,
    "Converts the time in a string from one time zone to another.",
    nulls=_ALWAYS,
)
