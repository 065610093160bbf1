"""The Spark SQL that workers can compute by themselves, in columns: names, comparisons, CASE, a few functions.

Between two Python stages, converting rows to Spark's format for a projection or filter costs more than the work
itself. SQL that is not supported here is left to Spark: `expression` and `aggregate` return None. Supported SQL has
the same results as in Spark without ANSI mode, over columns of Spark's types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_aggregates import Aggregate, aggregated, filtered
from headrace.operators.table.arrow_expression import (
    ColumnExpression,
    Columns,
    NotUnderstoodError,
    computed_once,
    constant,
)
from headrace.operators.table.arrow_numbers import (
    arithmetic,
    as_decimal,
    boolean,
    both,
    comparison,
    number,
    of_numbers,
    remainder,
    shortened,
)
from headrace.operators.table.arrow_planned import planned
from headrace.operators.table.arrow_rows import field_of, renamed_row, row_of, unquoted
from headrace.operators.table.arrow_texts import is_plain_pattern, lower, matched, part, parts
from headrace.operators.table.arrow_times import INTERVAL, formatted, interval_us, moved
from headrace.operators.table.arrow_tokens import Tokens

__all__ = ["Aggregate", "aggregate", "expression", "understood"]

#: TIMESTAMP, and TIMESTAMP_LTZ.
_TIME: Final = pa.timestamp("us")
_MOMENT: Final = pa.timestamp("us", "UTC")
_COMPARED: Final = {
    "<": pc.less,
    "<=": pc.less_equal,
    "=": pc.equal,
    ">=": pc.greater_equal,
    ">": pc.greater,
    "<>": pc.not_equal,
    "!=": pc.not_equal,
}
_TYPES: Final = {
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "SMALLINT": pa.int16(),
    "TINYINT": pa.int8(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
}
_TIMES: Final = {"TIMESTAMP": _MOMENT, "TIMESTAMP_NTZ": _TIME}
_SECOND: Final = 1_000_000
#: Microseconds of the last digit that is kept of a second.
_PARTS_OF_A_SECOND: Final = tuple(10**digits for digits in range(1, 7))
_UNKNOWN: Final = pa.scalar(None, pa.bool_())


def expression(sql: str, types: Mapping[str, pa.DataType], *, is_utc: bool) -> ColumnExpression | None:
    """Understand a text of Spark SQL; None: Spark has to compute it.

    Args:
        sql: The text.
        types: The columns that there are.
        is_utc: Whether the session's time zone is UTC, so that local times are moments.

    >>> made = expression("(`a` >= CAST(3 AS bigint)) AND `b` IS NULL", {"a": pa.int64(), "b": pa.int64()}, is_utc=True)
    >>> made.of({"a": pa.array([3, 4, None]), "b": pa.array([None, 1, None], pa.int64())}, 3).to_pylist()
    [True, False, None]
    """
    made = planned(sql, types)
    if made is not None:
        return made
    try:
        reader = _Reader(sql, types, is_utc=is_utc)
        return reader.whole(reader.condition)
    except NotUnderstoodError:
        return None


def aggregate(sql: str, types: Mapping[str, pa.DataType], *, is_utc: bool) -> Aggregate | None:
    """Understand an aggregate of Spark SQL; None: Spark has to compute it.

    >>> aggregate("CAST(coalesce(sum(`a`), 0L) AS BIGINT)", {"a": pa.int64()}, is_utc=True).is_zero
    True
    """
    try:
        reader = _Reader(sql, types, is_utc=is_utc)
        return reader.whole(reader.aggregate)
    except NotUnderstoodError:
        return None


class _Reader(Tokens):
    """Reads an expression from left to right, by the precedence of its operators."""

    def __init__(self, sql: str, types: Mapping[str, pa.DataType], *, is_utc: bool) -> None:
        super().__init__(sql)
        self._types, self._is_utc = types, is_utc

    # -- conditions --------------------------------------------------------------------------------------------

    def condition(self) -> ColumnExpression:
        """Read conditions joined by OR, or any other expression."""
        found = self._all()
        while self._takes("OR"):
            found = both(pc.or_kleene, found, self._all())
        return found

    def _all(self) -> ColumnExpression:
        found = self._negated()
        while self._takes("AND"):
            found = both(pc.and_kleene, found, self._negated())
        return found

    def _negated(self) -> ColumnExpression:
        if not self._takes("NOT"):
            return self._compared()
        inner = boolean(self._negated())
        return ColumnExpression(pa.bool_(), lambda columns, rows: pc.invert(inner.of(columns, rows)))

    def _compared(self) -> ColumnExpression:
        start = self._at
        left = self._sum()
        text, word = self._since(start), self._word()
        if word in _COMPARED:
            self._at += 1
            return comparison(_COMPARED[word], left, self._sum())
        if self._takes("IS"):
            is_valid = self._takes("NOT")
            self._expect("NULL")
            check = pc.is_valid if is_valid else pc.is_null
            return ColumnExpression(pa.bool_(), lambda columns, rows: check(left.of(columns, rows)))
        if self._takes("IN"):
            return self._among(left)
        if self._takes("BETWEEN"):
            low = comparison(pc.greater_equal, left, self._sum())
            self._expect("AND")
            return both(pc.and_kleene, low, comparison(pc.less_equal, left, self._sum()))
        if self._takes("RLIKE"):
            found = _matches(left, text, self._value())
            return ColumnExpression(
                pa.bool_(),
                lambda columns, rows: pc.if_else(
                    pc.is_null(left.of(columns, rows)), _UNKNOWN, pc.is_valid(found(columns, rows))
                ),
            )
        return left

    def _among(self, left: ColumnExpression) -> ColumnExpression:
        self._expect("(")
        values = [self._sum()]
        while self._takes(","):
            values.append(self._sum())
        self._expect(")")
        if any(each.constant is None for each in values):
            raise NotUnderstoodError("IN of what is no constant")
        found = comparison(pc.equal, left, values[0])
        for each in values[1:]:
            found = both(pc.or_kleene, found, comparison(pc.equal, left, each))
        return found

    # -- numbers -----------------------------------------------------------------------------------------------

    def _sum(self) -> ColumnExpression:
        found = self._product()
        while self._word() in ("+", "-"):
            is_sum, other = self._next() == "+", self._product()
            if other.kind == INTERVAL and self._is_wall_clock(found):
                found = moved(found, other.constant if is_sum else -other.constant)
            else:
                found = arithmetic(pc.add if is_sum else pc.subtract, found, other)
        return found

    def _product(self) -> ColumnExpression:
        found = self._signed()
        while self._word() in ("*", "%"):
            if self._next() == "*":
                found = arithmetic(pc.multiply, found, self._signed())
            else:
                found = remainder(found, self._signed())
        return found

    def _signed(self) -> ColumnExpression:
        if not self._takes("-"):
            return self._value()
        inner = self._signed()
        if inner.kind != pa.int64():
            raise NotUnderstoodError("a sign of what is no BIGINT")
        return ColumnExpression(pa.int64(), lambda columns, rows: pc.negate(inner.of(columns, rows)))

    # -- values ------------------------------------------------------------------------------------------------

    def _value(self) -> ColumnExpression:
        text = self._next()
        if text == "(":
            found = self.condition()
            self._expect(")")
            return found
        if text[0] == "`":
            return self._part_of_row(self._column(unquoted(text)))
        if text[0] == "'":
            return constant(text[1:-1], pa.string())
        if text[0].isdigit():
            return number(text)
        read: Callable[[], ColumnExpression] | None = {
            "CASE": self._case,
            "CAST": self._cast,
            "COALESCE": self._coalesce,
            "IF": self._if,
            "LOWER": self._lower,
            "REGEXP_EXTRACT": self._regexp_extract,
            "GET": self._part,
            "NAMED_STRUCT": self._row,
            "PMOD": self._pmod,
            "TIMESTAMPADD": self._truncated,
            "UNIX_MILLIS": self._unix_millis,
            "UNIX_TIMESTAMP": self._unix_timestamp,
            "DATE_FORMAT": self._date_format,
            "DATEDIFF": self._wall_millis,
            "TIMESTAMP_NTZ": self._time,
            "INTERVAL": self._interval,
            "TRUE": lambda: constant(True, pa.bool_()),
            "FALSE": lambda: constant(False, pa.bool_()),
        }.get(text.upper())
        if read is None:
            raise NotUnderstoodError(text)
        return read()

    def _column(self, name: str) -> ColumnExpression:
        if name not in self._types:
            raise NotUnderstoodError(name)
        return ColumnExpression(self._types[name], lambda columns, rows: columns[name])

    def _case(self) -> ColumnExpression:
        branches = []
        while self._takes("WHEN"):
            when = boolean(self.condition())
            self._expect("THEN")
            branches.append((when, self.condition()))
        last = self.condition() if self._takes("ELSE") else None
        self._expect("END")
        kinds = {each.kind for _, each in branches} | ({last.kind} if last is not None else set())
        if len(kinds) != 1:
            raise NotUnderstoodError("CASE of several types")
        (kind,) = kinds

        def compute(columns: Columns, rows: int) -> pa.Array:
            found = pa.nulls(rows, kind) if last is None else last.of(columns, rows)
            for when, then in reversed(branches):
                holds = pc.fill_null(when.of(columns, rows), False)
                found = pc.if_else(holds, then.of(columns, rows), found)
            return found

        return ColumnExpression(kind, compute)

    def _cast(self) -> ColumnExpression:
        self._expect("(")
        inner = self.condition()
        self._expect("AS")
        name = self._next().upper()
        if name == "STRUCT":
            made = renamed_row(inner, self._row_names())
            self._expect(")")
            return made
        if name == "DECIMAL":
            precision, scale = (each.constant for each in self._arguments(2))
            self._expect(")")
            return as_decimal(inner, precision, scale)
        self._expect(")")
        if name in _TIMES:
            return self._as_time(inner, _TIMES[name])
        kind = _TYPES.get(name)
        if kind is None:
            raise NotUnderstoodError(name)
        if inner.kind == kind:
            return inner
        if kind == pa.float64() and inner.kind == pa.float32():
            return ColumnExpression(kind, lambda columns, rows: inner.of(columns, rows).cast(kind))
        are_numbers = pa.types.is_signed_integer(inner.kind) and pa.types.is_signed_integer(kind)
        if not are_numbers:
            raise NotUnderstoodError(name)
        if inner.kind.bit_width > kind.bit_width:
            return shortened(inner, kind)
        if inner.constant is not None:
            return constant(inner.constant, kind)
        return ColumnExpression(kind, lambda columns, rows: inner.of(columns, rows).cast(kind))

    def _coalesce(self) -> ColumnExpression:
        first, other = self._arguments(2)
        if other.constant is None or first.kind != other.kind:
            raise NotUnderstoodError("coalesce")
        return ColumnExpression(
            first.kind, lambda columns, rows: pc.fill_null(first.of(columns, rows), other.constant)
        )

    def _if(self) -> ColumnExpression:
        self._expect("(")
        holds = boolean(self.condition())
        branches: list[ColumnExpression | None] = []
        for _ in range(2):
            self._expect(",")
            branches.append(None if self._takes("NULL") else self.condition())
        self._expect(")")
        kinds = {each.kind for each in branches if each is not None}
        if len(kinds) != 1:
            raise NotUnderstoodError("IF of several types")
        (kind,) = kinds
        nothing = pa.scalar(None, kind)

        def compute(columns: Columns, rows: int) -> pa.Array:
            then, other = (nothing if each is None else each.of(columns, rows) for each in branches)
            return pc.if_else(pc.fill_null(holds.of(columns, rows), False), then, other)

        return ColumnExpression(kind, compute)

    # -- rows --------------------------------------------------------------------------------------------------

    def _part_of_row(self, row: ColumnExpression) -> ColumnExpression:
        while self._takes("."):
            row = field_of(row, unquoted(self._next()))
        return row

    def _row(self) -> ColumnExpression:
        self._expect("(")
        fields: list[tuple[Any, ColumnExpression]] = []
        while not fields or self._takes(","):
            name = self.condition().constant
            self._expect(",")
            fields.append((name, self.condition()))
        self._expect(")")
        return row_of(fields)

    def _row_names(self) -> list[tuple[str, pa.DataType | None]]:
        """Read what stands after STRUCT: names of fields and their types."""
        self._expect("<")
        fields: list[tuple[str, pa.DataType | None]] = []
        while not fields or self._takes(","):
            name = unquoted(self._next())
            self._expect(":")
            fields.append((name, _TYPES.get(self._next().upper())))
        self._expect(">")
        return fields

    # -- texts -------------------------------------------------------------------------------------------------

    def _lower(self) -> ColumnExpression:
        start = self._at
        (text,) = self._arguments(1)
        if text.kind != pa.string():
            raise NotUnderstoodError("lower")
        compute = computed_once(
            f"lower {self._since(start)}", lambda columns, rows: lower(text.of(columns, rows))
        )
        return ColumnExpression(pa.string(), compute)

    def _regexp_extract(self) -> ColumnExpression:
        self._expect("(")
        start = self._at
        text = self.condition()
        written = self._since(start)
        self._expect(",")
        pattern = self.condition()
        self._expect(",")
        group = self.condition().constant
        self._expect(")")
        found = _matches(text, written, pattern)
        if not isinstance(group, int) or not 0 < group <= re.compile(pattern.constant).groups:
            raise NotUnderstoodError("regexp_extract")

        def compute(columns: Columns, rows: int) -> pa.Array:
            matches = found(columns, rows)
            # The values of a row that is NULL are anything.
            taken = pc.if_else(pc.is_valid(matches), pc.struct_field(matches, f"g{group}"), "")
            return pc.if_else(pc.is_null(text.of(columns, rows)), pa.scalar(None, pa.string()), taken)

        return ColumnExpression(pa.string(), compute)

    def _part(self) -> ColumnExpression:
        """Read ``get(split(text, separator), place)``; nothing else has lists."""
        self._expect_all("( SPLIT")
        start = self._at
        text, separator = self._arguments(2)
        made = computed_once(
            f"split {self._since(start)}",
            lambda columns, rows: parts(text.of(columns, rows), separator.constant),
        )
        self._expect(",")
        place = self.condition().constant
        self._expect(")")
        is_known = isinstance(separator.constant, str) and re.fullmatch("[/,;:=&_ -]", separator.constant)
        if not is_known or text.kind != pa.string() or not isinstance(place, int):
            raise NotUnderstoodError("split")
        return ColumnExpression(pa.string(), lambda columns, rows: part(made(columns, rows), place))

    def _pmod(self) -> ColumnExpression:
        value, modulus = self._arguments(2)
        if value.kind != pa.int64() or modulus.kind != pa.int64() or not (modulus.constant or 0) > 0:
            raise NotUnderstoodError("pmod")
        return of_numbers(value, pa.int64(), lambda values: values % modulus.constant)

    def _unix_millis(self) -> ColumnExpression:
        (time,) = self._arguments(1)
        if time.kind != _MOMENT and not (time.kind == _TIME and self._is_utc):
            raise NotUnderstoodError("unix_millis")
        return of_numbers(time, pa.int64(), lambda values: values // 1000)

    def _unix_timestamp(self) -> ColumnExpression:
        (time,) = self._arguments(1)
        if time.kind not in (_TIME, _MOMENT):
            raise NotUnderstoodError("unix_timestamp")
        # Spark cuts off towards 1970.
        return of_numbers(time, pa.int64(), lambda values: (values - np.fmod(values, _SECOND)) // _SECOND)

    def _is_wall_clock(self, time: ColumnExpression) -> bool:
        """Whether a time says what a clock on the wall shows."""
        return time.kind == _TIME or (time.kind == _MOMENT and self._is_utc)

    def _as_time(self, inner: ColumnExpression, kind: pa.DataType) -> ColumnExpression:
        """Convert times: where clocks show UTC, both kinds have the same numbers."""
        if inner.kind == kind:
            return inner
        if not self._is_utc or inner.kind not in (_TIME, _MOMENT):
            raise NotUnderstoodError("a time of what is none")
        return ColumnExpression(kind, lambda columns, rows: inner.of(columns, rows).cast(kind))

    def _truncated(self) -> ColumnExpression:
        """Read what the planner writes for a time without the last digits of its seconds; see `truncated`."""
        self._expect_all("( MICROSECOND , - CAST ( CAST ( EXTRACT ( SECOND FROM")
        time, written = self._written()
        self._expect_all(") * 1000000 AS BIGINT ) %")
        unit = self._value().constant
        self._expect_all("AS INT ) ,")
        self._expect_same(written)
        self._expect(")")
        if not self._is_wall_clock(time) or unit not in _PARTS_OF_A_SECOND:
            raise NotUnderstoodError("timestampadd")
        return of_numbers(time, time.kind, lambda values: values // unit * unit)

    def _wall_millis(self) -> ColumnExpression:
        """Read what the planner writes for the milliseconds of a TIMESTAMP in other zones than UTC; see `millis`."""
        self._expect_all("( CAST (")
        time, written = self._written()
        self._expect_all("AS DATE ) , DATE '1970-01-01' ) * 86400000L")
        for read in ("+ HOUR (", ") * 3600000L + MINUTE (", ") * 60000L + CAST ( EXTRACT ( SECOND FROM"):
            self._expect_all(read)
            self._expect_same(written)
        self._expect_all(") * 1000 AS BIGINT )")
        if time.kind != _TIME:
            raise NotUnderstoodError("datediff")
        return of_numbers(time, pa.int64(), lambda values: values // 1000)

    def _written(self) -> tuple[ColumnExpression, str]:
        """Read an expression, and return it with its text."""
        start = self._at
        return self.condition(), self._since(start)

    def _expect_same(self, written: str) -> None:
        if self._written()[1] != written:
            raise NotUnderstoodError(written)

    def _date_format(self) -> ColumnExpression:
        time, pattern = self._arguments(2)
        if time.kind != _TIME or not self._is_utc or not isinstance(pattern.constant, str):
            raise NotUnderstoodError("date_format")
        return formatted(time, pattern.constant)

    def _interval(self) -> ColumnExpression:
        text = self._next()
        self._expect_all("DAY TO SECOND")
        return constant(interval_us(text.strip("'")), INTERVAL)

    def _time(self) -> ColumnExpression:
        text = self._next()
        try:
            moment = datetime.fromisoformat(text.strip("'"))
        except ValueError:
            raise NotUnderstoodError(text) from None
        return constant(moment, _TIME)

    # -- aggregates --------------------------------------------------------------------------------------------

    def aggregate(self) -> Aggregate:
        """Read an aggregate, maybe with a type or a value for no rows around it."""
        word = self._next().upper()
        self._expect("(")
        if word == "CAST":
            inner = self.aggregate()
            self._expect("AS")
            if _TYPES.get(self._next().upper()) != inner.kind:
                raise NotUnderstoodError("an aggregate of another type")
            self._expect(")")
            return inner
        if word == "COALESCE":
            inner = self.aggregate()
            self._expect(",")
            if inner.function != "sum" or self.condition().constant != 0:
                raise NotUnderstoodError("coalesce")
            self._expect(")")
            return Aggregate("sum", inner.argument, is_zero=True)
        if word == "NAMED_STRUCT":
            return self._list_in_row()
        argument = self.condition()
        self._expect(")")
        if self._takes("FILTER"):
            self._expect("(")
            self._expect("WHERE")
            argument = filtered(argument, boolean(self.condition()))
            self._expect(")")
        return aggregated(word, argument)

    def _list_in_row(self) -> Aggregate:
        """Read what state has for a function of the user's: an accumulator, none yet, and the rows for it."""
        field = self.condition().constant
        self._expect_all(", CAST ( NULL AS BINARY ) ,")
        name = self.condition().constant
        self._expect(",")
        inner = self.aggregate()
        self._expect(")")
        if not inner.is_listed or not isinstance(field, str) or not isinstance(name, str):
            raise NotUnderstoodError("named_struct")
        return replace(inner, before=(pa.field(field, pa.binary()),), name=name)

    # -- tokens ------------------------------------------------------------------------------------------------

    def _arguments(self, count: int) -> list[ColumnExpression]:
        self._expect("(")
        found = [self.condition()]
        for _ in range(count - 1):
            self._expect(",")
            found.append(self.condition())
        self._expect(")")
        return found


def _matches(
    text: ColumnExpression, written: str, pattern: ColumnExpression
) -> Callable[[Columns, int], pa.Array]:
    """Return what finds a pattern in texts: once, whether it is asked for the match or for a group of it."""
    if (
        text.kind != pa.string()
        or not isinstance(pattern.constant, str)
        or not is_plain_pattern(pattern.constant)
    ):
        raise NotUnderstoodError("a regular expression")
    return computed_once(
        f"match {written} {pattern.constant}",
        lambda columns, rows: matched(text.of(columns, rows), pattern.constant),
    )


def understood(
    items: Sequence[tuple[str, str]], types: Mapping[str, pa.DataType], *, is_utc: bool
) -> dict[str, ColumnExpression] | None:
    """Understand several expressions, by the names of their columns; None if one is not understood."""
    found = {name: expression(sql, types, is_utc=is_utc) for sql, name in items}
    made = {name: each for name, each in found.items() if each is not None}
    return made if len(made) == len(items) else None
