"""Typed expressions as Spark SQL text that means what Flink means.

The text counts on a session with `SPARK_SETTINGS`. Names of columns come from the caller, already quoted.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from headrace import types as t
from headrace.errors import InvariantViolation
from headrace.planner.coercion import is_string
from headrace.planner.expressions import BUCKET, REPLICATE, Call, Expression, InputRef, Literal, UserCall
from headrace.planner.functions import FUNCTIONS
from headrace.planner.functions.temporal import truncated
from headrace.planner.functions.text import quoted
from headrace.planner.functions.time_texts import date_in, moment_in, time_in
from headrace.types.logical import MAX_LENGTH, quote_name

__all__ = ["SPARK_SETTINGS", "emit", "emit_literal"]

#: What the session that runs the text must have, beside `spark.sql.session.timeZone` = `table.local-time-zone`.
SPARK_SETTINGS: Final = {
    # Java's arithmetic and casts of numbers, as Flink has them; errors of Flink are raised by the text itself.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # The type TIME, which Spark keeps after a switch.
    "spark.sql.timeType.enabled": "true",
    # Of equal keys of a map the last one counts, and characters that a charset does not have are replaced.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.codingErrorAction": "true",
}


def emit(expression: Expression, columns: Sequence[str]) -> str:
    """The Spark SQL of an expression over columns with these (quoted) names."""
    match expression:
        case InputRef():
            return columns[expression.index]
        case Literal():
            return emit_literal(expression.value, expression.type)
        case Call(function="CAST" | "TRY_CAST"):
            operand = expression.operands[0]
            return _cast(
                emit(operand, columns), operand.type, expression.type, expression.function == "TRY_CAST"
            )
        case Call(function="FIELD"):
            name = expression.operands[1]
            assert isinstance(name, Literal)
            return f"{emit(expression.operands[0], columns)}.{quote_name(name.value)}"
        case Call() if expression.function == BUCKET:
            value, buckets = (emit(each, columns) for each in expression.operands)
            return f"pmod(hash({value}), {buckets})"
        case Call() if expression.function == REPLICATE:
            times = emit(expression.operands[0], columns)
            return f"CASE WHEN {times} > 0 THEN sequence(1L, {times}) END"
        case Call():
            function = FUNCTIONS.find(expression.function)
            if function is None:
                raise InvariantViolation(f"no SQL is known for {expression.function}")
            return function.emit(expression, [emit(one, columns) for one in expression.operands])
        case UserCall():
            raise InvariantViolation(
                f"{expression.function.name} is a Python function: it is not part of Spark SQL"
            )


# --- literals -------------------------------------------------------------------------------------


def emit_literal(value: Any, data_type: t.DataType) -> str:
    """A constant in Spark SQL.

    >>> from headrace.types import DataTypes
    >>> print(emit_literal(Decimal("0.908"), DataTypes.DECIMAL(4, 3)))
    CAST(0.908 AS decimal(4,3))
    """
    if value is None:
        return f"CAST(NULL AS {data_type.spark_name()})"
    match value:
        case bool():
            return "true" if value else "false"
        case int() if isinstance(data_type, t.YearMonthIntervalType):
            return str(value)
        case int() if isinstance(data_type, t.IntegralType) and data_type.BITS == 32:
            return str(value)
        case float():
            return f"CAST({quoted(repr(value))} AS {data_type.spark_name()})"
        case str():
            return quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case _:
            return _emit_temporal(value, data_type)


def _emit_temporal(value: Any, data_type: t.DataType) -> str:
    match value:
        case datetime.datetime() if isinstance(data_type, t.LocalZonedTimestampType):
            return f"TIMESTAMP'{value.isoformat(sep=' ')}'"
        case datetime.datetime():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE'{value.isoformat()}'"
        case datetime.time():
            return f"CAST(TIME'{value.isoformat()}' AS {data_type.spark_name()})"
        case datetime.timedelta():
            return f"INTERVAL '{_day_time(value)}' DAY TO SECOND"
        case int():
            return f"CAST({value} AS {data_type.spark_name()})"
        case Decimal():
            return f"CAST({value:f} AS {data_type.spark_name()})"
        case _:
            raise InvariantViolation(f"{value!r} cannot be written as a SQL constant")


def _day_time(value: datetime.timedelta) -> str:
    sign = "-" if value < datetime.timedelta() else ""
    value = abs(value)
    hours, rest = divmod(value.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{sign}{value.days} {hours:02}:{minutes:02}:{seconds:02}.{value.microseconds:06}"


# --- casts ----------------------------------------------------------------------------------------


def _cast(text: str, source: t.DataType, target: t.DataType, is_try: bool) -> str:
    if source.nullable() == target.nullable():
        return text
    if is_string(target):
        return _fit(_to_string(text, source), source, target)
    if is_string(source) and not is_try:
        made = _plain_cast(text, source, target)
        # Spark would give NULL for a string that says nothing of the type, where Flink's CAST fails.
        problem = quoted(f"cannot CAST a string to {target.summary_without_null()}: ")
        fail = f"CAST(raise_error(concat({problem}, {text})) AS {target.spark_name()})"
        return f"coalesce({made}, IF({text} IS NULL, NULL, {fail}))"
    return _plain_cast(text, source, target)


def _plain_cast(text: str, source: t.DataType, target: t.DataType) -> str:
    if isinstance(source, t.TimeType) and isinstance(target, t.TimestampType | t.LocalZonedTimestampType):
        text = f"make_timestamp_ntz(DATE'1970-01-01', {text})"
    made = f"CAST({text} AS {target.spark_name()})"
    if is_string(source):
        made = _read(text, target) or made
    if isinstance(target, t.BinaryType):
        return f"rpad({made}, {target.length}, X'00')"
    if isinstance(target, t.VarBinaryType) and target.length < MAX_LENGTH:
        return f"left({made}, {target.length})"
    if isinstance(target, t.TimestampType | t.LocalZonedTimestampType):
        known = source.precision if isinstance(source, t.TimestampType | t.LocalZonedTimestampType) else 0
        if is_string(source):
            known = 6
        if known > target.precision:
            return truncated(made, target.precision)
    return made


def _read(text: str, target: t.DataType) -> str | None:
    """The date or the time in a string."""
    match target:
        case t.DateType():
            return date_in(text)
        case t.TimeType():
            return time_in(text, target.spark_name())
        case t.TimestampType() | t.LocalZonedTimestampType():
            return moment_in(text, target.spark_name())
        case _:
            return None


def _fit(text: str, source: t.DataType, target: t.DataType) -> str:
    """Cut a string to the length of its type, and fill a CHAR with blanks."""
    assert isinstance(target, t.CharType | t.VarCharType)
    length = target.length
    if isinstance(target, t.CharType):
        return f"rpad({text}, {length}, ' ')"
    known = source.length if isinstance(source, t.CharType | t.VarCharType) else MAX_LENGTH
    return text if length == MAX_LENGTH or known <= length else f"left({text}, {length})"


def _to_string(text: str, source: t.DataType) -> str:
    match source:
        case t.CharType() | t.VarCharType() | t.VariantType():
            return text
        case t.BinaryType() | t.VarBinaryType():
            return f"make_valid_utf8(CAST({text} AS string))"
        case t.BooleanType():
            return f"upper(CAST({text} AS string))"
        case t.TimestampType():
            # Spark's own text has no zone, where date_format would go through the session's and its summer time.
            plain = f"CAST({text} AS string)"
            dot = f"IF(length({plain}) = 19, '.', '')"
            length = 20 + source.precision if source.precision else 19
            return f"left(concat({plain}, {dot}, '000000'), {length})"
        case t.LocalZonedTimestampType():
            digits = "." + "S" * source.precision if source.precision else ""
            return f"date_format({text}, 'yyyy-MM-dd HH:mm:ss{digits}')"
        case t.ArrayType():
            each = _to_string("one", source.element_type)
            return f"concat('[', array_join(transform({text}, one -> {each}), ', ', 'NULL'), ']')"
        case t.MapType() | t.MultisetType():
            return _map_to_string(text, source)
        case t.RowType():
            fields = (_to_string(f"{text}.{quote_name(field.name)}", field.data_type) for field in source)
            parts = ", ".join(f"coalesce({field}, 'NULL')" for field in fields)
            return f"IF({text} IS NULL, NULL, concat('(', concat_ws(', ', {parts}), ')'))"
        case t.YearMonthIntervalType():
            parts = f"abs({text}) div 12, abs({text}) % 12"
            shown = f"format_string('%s%d-%02d', IF({text} < 0, '-', '+'), {parts})"
            return f"IF({text} IS NULL, NULL, {shown})"
        case t.DayTimeIntervalType():
            return _span_text(text)
        case t.DecimalType() if source.scale > 6:
            # Spark shows a number close to zero with an exponent.
            return (
                f"IF(abs({text}) < 0.000001, format_number({text}, {source.scale}), CAST({text} AS string))"
            )
        case t.DateType() | t.TimeType() | t.FloatType() | t.DoubleType() | _:
            return f"CAST({text} AS string)"


def _span_text(text: str) -> str:
    """A span of time as Flink writes it: `+1 02:03:04.567`."""
    start = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
    ms = f"timestampdiff(MILLISECOND, {start}, {start} + {text})"
    size = f"abs({ms})"
    units = ((86_400_000, None), (3_600_000, 24), (60_000, 60), (1000, 60), (1, 1000))
    parts = ", ".join(
        f"{size} div {unit}" if wrap is None else f"({size} div {unit}) % {wrap}" for unit, wrap in units
    )
    sign = f"IF({ms} < 0, '-', '+')"
    return f"IF({text} IS NULL, NULL, format_string('%s%d %02d:%02d:%02d.%03d', {sign}, {parts}))"


def _map_to_string(text: str, source: t.MapType | t.MultisetType) -> str:
    key = source.key_type if isinstance(source, t.MapType) else source.element_type
    shown_key = f"coalesce({_to_string('one.key', key)}, 'NULL')"
    value = _to_string("one.value", source.value_type) if isinstance(source, t.MapType) else "one.value"
    pair = f"concat({shown_key}, '=', coalesce(CAST({value} AS string), 'NULL'))"
    return f"concat('{{', array_join(transform(map_entries({text}), one -> {pair}), ', '), '}}')"
