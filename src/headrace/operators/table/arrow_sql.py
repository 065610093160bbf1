"""The Spark SQL that workers can compute by themselves, in columns: names, comparisons, CASE, a few functions.

Where rows go from one python stage to the next, a projection or a filter between them is not worth the way through
Spark's rows. What is not understood here is left to Spark: `expression` and `aggregate` return None. What is
understood means the same as in Spark without ANSI mode, over columns of the types that Spark has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.state.columns import Ints

__all__ = ["Aggregate", "Columns", "ColumnExpression", "aggregate", "expression"]

Columns = Mapping[str, pa.Array]

Read = TypeVar("Read")

_TIME: Final = pa.timestamp("us")
_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|'[^'\\]*'|\d+[lL]?|[A-Za-z_]\w*|<=|>=|<>|!=|[-+*(),<>=])")
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
    "STRING": pa.string(),
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
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
#: Microseconds of the first and behind the last time that has a year of four digits.
_FIRST_TIME: Final = -62_135_596_800_000_000
_LAST_TIME: Final = 253_402_300_800_000_000


class NotComputedError(ValueError):
    """A value that Spark has to deal with, though the expression is understood."""


class _NotUnderstoodError(ValueError):
    """Something that is left to Spark."""


@dataclass(frozen=True)
class ColumnExpression:
    """What is computed of columns."""

    kind: pa.DataType
    #: Computes it of columns, and the number of rows.
    of: Callable[[Columns, int], pa.Array]
    #: The value, if it is always the same.
    constant: Any = None


@dataclass(frozen=True)
class Aggregate:
    """What is computed of the rows of a group.

    Args:
        function: Of Arrow: ``sum``, ``min``, ``max``; counts are sums.
        argument: What of; NULLs do not count.
        is_zero: Whether it is 0, not NULL, of no values.
    """

    function: str
    argument: ColumnExpression
    is_zero: bool

    @property
    def kind(self) -> pa.DataType:
        """The type of the result."""
        return self.argument.kind


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
    try:
        reader = _Reader(sql, types, is_utc=is_utc)
        return reader.whole(reader.condition)
    except _NotUnderstoodError:
        return None


def aggregate(sql: str, types: Mapping[str, pa.DataType], *, is_utc: bool) -> Aggregate | None:
    """Understand an aggregate of Spark SQL; None: Spark has to compute it.

    >>> aggregate("CAST(coalesce(sum(`a`), 0L) AS BIGINT)", {"a": pa.int64()}, is_utc=True).is_zero
    True
    """
    try:
        reader = _Reader(sql, types, is_utc=is_utc)
        return reader.whole(reader.aggregate)
    except _NotUnderstoodError:
        return None


class _Reader:
    """Reads an expression from left to right, by the precedence of its operators."""

    def __init__(self, sql: str, types: Mapping[str, pa.DataType], *, is_utc: bool) -> None:
        self._types, self._is_utc = types, is_utc
        self._tokens: list[str] = []
        place, sql = 0, sql.rstrip()
        while place < len(sql):
            found = _TOKEN.match(sql, place)
            if found is None:
                raise _NotUnderstoodError(sql)
            self._tokens.append(found[1])
            place = found.end()
        self._at = 0

    def whole(self, read: Callable[[], Read]) -> Read:
        """Read something behind which nothing may come."""
        found = read()
        if self._at < len(self._tokens):
            raise _NotUnderstoodError(self._tokens[self._at])
        return found

    # -- conditions --------------------------------------------------------------------------------------------

    def condition(self) -> ColumnExpression:
        """Read conditions joined by OR, or any other expression."""
        found = self._all()
        while self._takes("OR"):
            found = _both(pc.or_kleene, found, self._all())
        return found

    def _all(self) -> ColumnExpression:
        found = self._negated()
        while self._takes("AND"):
            found = _both(pc.and_kleene, found, self._negated())
        return found

    def _negated(self) -> ColumnExpression:
        if not self._takes("NOT"):
            return self._compared()
        inner = _boolean(self._negated())
        return ColumnExpression(pa.bool_(), lambda columns, rows: pc.invert(inner.of(columns, rows)))

    def _compared(self) -> ColumnExpression:
        left = self._sum()
        word = self._word()
        if word in _COMPARED:
            self._at += 1
            return _comparison(_COMPARED[word], left, self._sum())
        if self._takes("IS"):
            is_valid = self._takes("NOT")
            self._expect("NULL")
            check = pc.is_valid if is_valid else pc.is_null
            return ColumnExpression(pa.bool_(), lambda columns, rows: check(left.of(columns, rows)))
        if self._takes("IN"):
            return self._among(left)
        return left

    def _among(self, left: ColumnExpression) -> ColumnExpression:
        self._expect("(")
        values = [self._sum()]
        while self._takes(","):
            values.append(self._sum())
        self._expect(")")
        if any(each.constant is None for each in values):
            raise _NotUnderstoodError("IN of what is no constant")
        found = _comparison(pc.equal, left, values[0])
        for each in values[1:]:
            found = _both(pc.or_kleene, found, _comparison(pc.equal, left, each))
        return found

    # -- numbers -----------------------------------------------------------------------------------------------

    def _sum(self) -> ColumnExpression:
        found = self._product()
        while self._word() in ("+", "-"):
            compute = pc.add if self._next() == "+" else pc.subtract
            found = _arithmetic(compute, found, self._product())
        return found

    def _product(self) -> ColumnExpression:
        found = self._signed()
        while self._takes("*"):
            found = _arithmetic(pc.multiply, found, self._signed())
        return found

    def _signed(self) -> ColumnExpression:
        if not self._takes("-"):
            return self._value()
        inner = self._signed()
        if inner.kind != pa.int64():
            raise _NotUnderstoodError("a sign of what is no BIGINT")
        return ColumnExpression(pa.int64(), lambda columns, rows: pc.negate(inner.of(columns, rows)))

    # -- values ------------------------------------------------------------------------------------------------

    def _value(self) -> ColumnExpression:
        text = self._next()
        if text == "(":
            found = self.condition()
            self._expect(")")
            return found
        if text[0] == "`":
            return self._column(text[1:-1].replace("``", "`"))
        if text[0] == "'":
            return _constant(text[1:-1], pa.string())
        if text[0].isdigit():
            return _number(text)
        read: Callable[[], ColumnExpression] | None = {
            "CASE": self._case,
            "CAST": self._cast,
            "COALESCE": self._coalesce,
            "PMOD": self._pmod,
            "UNIX_MILLIS": self._unix_millis,
            "UNIX_TIMESTAMP": self._unix_timestamp,
            "DATE_FORMAT": self._date_format,
            "TIMESTAMP_NTZ": self._time,
            "TRUE": lambda: _constant(True, pa.bool_()),
            "FALSE": lambda: _constant(False, pa.bool_()),
        }.get(text.upper())
        if read is None:
            raise _NotUnderstoodError(text)
        return read()

    def _column(self, name: str) -> ColumnExpression:
        if name not in self._types:
            raise _NotUnderstoodError(name)
        return ColumnExpression(self._types[name], lambda columns, rows: columns[name])

    def _case(self) -> ColumnExpression:
        branches = []
        while self._takes("WHEN"):
            when = _boolean(self.condition())
            self._expect("THEN")
            branches.append((when, self.condition()))
        last = self.condition() if self._takes("ELSE") else None
        self._expect("END")
        kinds = {each.kind for _, each in branches} | ({last.kind} if last is not None else set())
        if len(kinds) != 1:
            raise _NotUnderstoodError("CASE of several types")
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
        self._expect(")")
        if name == "TIMESTAMP" and inner.kind == _TIME and self._is_utc:
            return inner
        kind = _TYPES.get(name)
        if kind is None:
            raise _NotUnderstoodError(name)
        if inner.kind == kind:
            return inner
        are_numbers = pa.types.is_signed_integer(inner.kind) and pa.types.is_signed_integer(kind)
        if not are_numbers or inner.kind.bit_width > kind.bit_width:
            raise _NotUnderstoodError(name)
        if inner.constant is not None:
            return _constant(inner.constant, kind)
        return ColumnExpression(kind, lambda columns, rows: inner.of(columns, rows).cast(kind))

    def _coalesce(self) -> ColumnExpression:
        first, other = self._arguments(2)
        if other.constant is None or first.kind != other.kind:
            raise _NotUnderstoodError("coalesce")
        return ColumnExpression(
            first.kind, lambda columns, rows: pc.fill_null(first.of(columns, rows), other.constant)
        )

    def _pmod(self) -> ColumnExpression:
        number, modulus = self._arguments(2)
        if number.kind != pa.int64() or modulus.kind != pa.int64() or not (modulus.constant or 0) > 0:
            raise _NotUnderstoodError("pmod")
        return _of_numbers(number, pa.int64(), lambda values: values % modulus.constant)

    def _unix_millis(self) -> ColumnExpression:
        (time,) = self._arguments(1)
        if time.kind != _TIME or not self._is_utc:
            raise _NotUnderstoodError("unix_millis")
        return _of_numbers(time, pa.int64(), lambda values: values // 1000)

    def _unix_timestamp(self) -> ColumnExpression:
        (time,) = self._arguments(1)
        if time.kind != _TIME or not self._is_utc:
            raise _NotUnderstoodError("unix_timestamp")
        return _of_numbers(time, pa.int64(), lambda values: values // 1_000_000)

    def _date_format(self) -> ColumnExpression:
        time, pattern = self._arguments(2)
        if time.kind != _TIME or not self._is_utc or not isinstance(pattern.constant, str):
            raise _NotUnderstoodError("date_format")
        written, unit = _as_python(pattern.constant)
        return ColumnExpression(
            pa.string(), lambda columns, rows: _formatted(time.of(columns, rows), written, unit)
        )

    def _time(self) -> ColumnExpression:
        text = self._next()
        try:
            moment = datetime.fromisoformat(text.strip("'"))
        except ValueError:
            raise _NotUnderstoodError(text) from None
        return _constant(moment, _TIME)

    # -- aggregates --------------------------------------------------------------------------------------------

    def aggregate(self) -> Aggregate:
        """Read an aggregate, maybe with a type or a value for no rows around it."""
        word = self._next().upper()
        self._expect("(")
        if word == "CAST":
            inner = self.aggregate()
            self._expect("AS")
            if _TYPES.get(self._next().upper()) != inner.kind:
                raise _NotUnderstoodError("an aggregate of another type")
            self._expect(")")
            return inner
        if word == "COALESCE":
            inner = self.aggregate()
            self._expect(",")
            if inner.function != "sum" or self.condition().constant != 0:
                raise _NotUnderstoodError("coalesce")
            self._expect(")")
            return Aggregate("sum", inner.argument, is_zero=True)
        argument = self.condition()
        self._expect(")")
        if self._takes("FILTER"):
            self._expect("(")
            self._expect("WHERE")
            argument = _filtered(argument, _boolean(self.condition()))
            self._expect(")")
        return _aggregated(word, argument)

    # -- tokens ------------------------------------------------------------------------------------------------

    def _arguments(self, count: int) -> list[ColumnExpression]:
        self._expect("(")
        found = [self.condition()]
        for _ in range(count - 1):
            self._expect(",")
            found.append(self.condition())
        self._expect(")")
        return found

    def _word(self) -> str:
        return self._tokens[self._at].upper() if self._at < len(self._tokens) else ""

    def _takes(self, word: str) -> bool:
        takes = self._word() == word
        self._at += takes
        return takes

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise _NotUnderstoodError(word)

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise _NotUnderstoodError("the text ends too early")
        self._at += 1
        return self._tokens[self._at - 1]


def _constant(value: Any, kind: pa.DataType) -> ColumnExpression:
    scalar = pa.scalar(value, kind)
    return ColumnExpression(kind, lambda columns, rows: pa.repeat(scalar, rows), value)


def _number(token: str) -> ColumnExpression:
    is_long = token[-1] in "lL"
    value = int(token[:-1] if is_long else token)
    if value >= 1 << (63 if is_long else 31):
        raise _NotUnderstoodError(token)
    return _constant(value, pa.int64() if is_long else pa.int32())


def _boolean(each: ColumnExpression) -> ColumnExpression:
    if each.kind != pa.bool_():
        raise _NotUnderstoodError("a condition that is no BOOLEAN")
    return each


def _both(
    join: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression
) -> ColumnExpression:
    one, other = _boolean(left), _boolean(right)
    return ColumnExpression(
        pa.bool_(), lambda columns, rows: join(one.of(columns, rows), other.of(columns, rows))
    )


def _comparison(
    compare: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression
) -> ColumnExpression:
    are_numbers = all(pa.types.is_signed_integer(each.kind) for each in (left, right))
    are_alike = left.kind == right.kind and left.kind in (pa.string(), _TIME)
    if not are_numbers and not are_alike:
        raise _NotUnderstoodError("a comparison of other types")
    if right.constant is not None:
        scalar = pa.scalar(right.constant, right.kind)
        return ColumnExpression(pa.bool_(), lambda columns, rows: compare(left.of(columns, rows), scalar))
    return ColumnExpression(
        pa.bool_(), lambda columns, rows: compare(left.of(columns, rows), right.of(columns, rows))
    )


def _arithmetic(
    compute: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression
) -> ColumnExpression:
    """Compute with BIGINTs, which start again from the lowest beyond the highest, as in Spark."""
    if left.kind != pa.int64() or right.kind != pa.int64():
        raise _NotUnderstoodError("arithmetic with other types than BIGINT")
    if right.constant is not None:
        scalar = pa.scalar(right.constant, pa.int64())
        return ColumnExpression(pa.int64(), lambda columns, rows: compute(left.of(columns, rows), scalar))
    return ColumnExpression(
        pa.int64(), lambda columns, rows: compute(left.of(columns, rows), right.of(columns, rows))
    )


def _of_numbers(
    inner: ColumnExpression, kind: pa.DataType, compute: Callable[[Ints], Ints]
) -> ColumnExpression:
    """Compute with the numbers that values are; NULL stays NULL."""

    def run(columns: Columns, rows: int) -> pa.Array:
        values, is_null = _numbers(inner.of(columns, rows))
        return pa.array(compute(values), kind, mask=is_null)

    return ColumnExpression(kind, run)


def _numbers(array: pa.Array) -> tuple[Ints, Any]:
    """Return values as whole numbers, and which are NULL, if any."""
    whole = array.cast(pa.int64())
    if not whole.null_count:
        return whole.to_numpy(), None
    return whole.fill_null(0).to_numpy(), whole.is_null().to_numpy(zero_copy_only=False)


def _as_python(pattern: str) -> tuple[str, int]:
    """Return how Python writes a time like a pattern of Spark, and the length of its smallest part."""
    written, units, place = "", [], 0
    while place < len(pattern):
        found = _PATTERN.match(pattern, place)
        if found is None or found[0] * 2 == pattern[place : place + 2 * len(found[0])] != "":
            raise _NotUnderstoodError(pattern)
        if found[1]:
            text, unit = _LETTERS[found[1]]
            written += text
            units.append(unit)
        else:
            written += found[2]
        place = found.end()
    if not units:
        raise _NotUnderstoodError(pattern)
    return written, min(units)


def _formatted(times: pa.Array, written: str, unit: int) -> pa.Array:
    """Write times; there are few different ones up to what is written of them."""
    values, is_null = _numbers(times)
    parts, codes = np.unique(values // unit, return_inverse=True)
    if len(parts) and not (
        _FIRST_TIME <= int(parts[0]) * unit and int(parts[-1]) * unit + unit <= _LAST_TIME
    ):
        raise NotComputedError("a year has not four digits")
    texts = pa.array(
        [written.format(_EPOCH + timedelta(microseconds=int(part) * unit)) for part in parts], pa.string()
    )
    return texts.take(pa.array(codes, mask=is_null))


def _filtered(argument: ColumnExpression, holds: ColumnExpression) -> ColumnExpression:
    nothing = pa.scalar(None, argument.kind)
    return ColumnExpression(
        argument.kind,
        lambda columns, rows: pc.if_else(
            pc.fill_null(holds.of(columns, rows), False), argument.of(columns, rows), nothing
        ),
    )


def _aggregated(word: str, argument: ColumnExpression) -> Aggregate:
    if word == "COUNT":
        counted = ColumnExpression(
            pa.int64(), lambda columns, rows: pc.is_valid(argument.of(columns, rows)).cast(pa.int64())
        )
        return Aggregate("sum", counted, is_zero=True)
    if word == "SUM" and argument.kind == pa.int64():
        return Aggregate("sum", argument, is_zero=False)
    is_ordered = pa.types.is_signed_integer(argument.kind) or argument.kind in (pa.string(), _TIME)
    if word in ("MIN", "MAX") and is_ordered:
        return Aggregate(word.lower(), argument, is_zero=False)
    raise _NotUnderstoodError(word)


def understood(
    items: Sequence[tuple[str, str]], types: Mapping[str, pa.DataType], *, is_utc: bool
) -> dict[str, ColumnExpression] | None:
    """Understand several expressions, by the names of their columns; None if one is not understood."""
    found = {name: expression(sql, types, is_utc=is_utc) for sql, name in items}
    made = {name: each for name, each in found.items() if each is not None}
    return made if len(made) == len(items) else None
