"""Conditions of MATCH_RECOGNIZE over several rows, as data, and as functions that Python can call.

Spark has computed the parts of a condition that depend on a single row, as columns. The rest compares rows with each
other: their `Cell`s, aggregates, and functions of both. NULL is None, with SQL's three-valued logic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from headrace.errors import JobExecutionError
from headrace.operators.table.match_folds import FOLDS, as_number

__all__ = [
    "FUNCTIONS",
    "NULL_SAFE",
    "Apply",
    "Cell",
    "FixedValue",
    "Fold",
    "Formula",
    "RowValues",
    "function_of",
]


@dataclass(frozen=True)
class Cell:
    """A value of a row.

    Args:
        column: Which column of the input.
        variable: Whose row; None: any variable's.
        offset: How many rows from the last one back, or from the first one on.
        is_first: Whether it is counted from the first one.
        otherwise: The column of the current row that has the value if there is no such row; None: it is NULL.
    """

    column: int
    variable: int | None = None
    offset: int = 0
    is_first: bool = False
    otherwise: int | None = None


@dataclass(frozen=True)
class Fold:
    """An aggregate function over rows.

    Args:
        function: One of `FOLDS`.
        column: What of the rows; None: the rows themselves.
        variable: Whose rows; None: all of the match.
        kind: The type of the result.
        separator: What LISTAGG puts between texts.
    """

    function: str
    column: int | None
    variable: int | None
    kind: pa.DataType
    separator: str = ","


@dataclass(frozen=True)
class FixedValue:
    """A value that is always the same."""

    value: Any


@dataclass(frozen=True)
class Apply:
    """A function of other values.

    Args:
        function: One of `FUNCTIONS` or `NULL_SAFE`.
        operands: What it is applied to.
        kind: The type of the result.
    """

    function: str
    operands: tuple[Formula, ...]
    kind: pa.DataType


Formula = Cell | Fold | FixedValue | Apply
#: A value for the row at a place, which a partial match with these bounds may continue with.
Value = Callable[[int, tuple[int, ...]], Any]


class RowValues:
    """The rows that places count, as columns of Python's values.

    Args:
        columns: The columns that formulas read, by their number.
    """

    def __init__(self, columns: Mapping[int, Sequence[Any]]) -> None:
        self._columns = columns
        #: What aggregates have come to: up to where, by the aggregate and the first row.
        self._folded: dict[tuple[Fold, int], tuple[int, Any]] = {}

    def value(self, formula: Formula, own: int | None) -> Value:
        """Return a formula as a function.

        Args:
            formula: The formula.
            own: The variable whose condition it is, which the current row counts among; None: the match is complete.
        """
        match formula:
            case Cell():
                return self._cell(formula, own)
            case Fold():
                return self._fold(formula, own)
            case FixedValue():
                value = formula.value
                return lambda at, bounds: value
            case Apply():
                return self._apply(formula, own)

    def place(self, cell: Cell, own: int | None) -> Callable[[int, tuple[int, ...]], int]:
        """Return the place of a row as a function; -1 if there is none."""
        span, offset, is_first = _span(cell.variable, own), cell.offset, cell.is_first

        def found(at: int, bounds: tuple[int, ...]) -> int:
            begin, end = span(at, bounds)
            place = begin + offset if is_first else end - 1 - offset
            return place if begin <= place < end else -1

        return found

    def _cell(self, cell: Cell, own: int | None) -> Value:
        column = self._columns[cell.column]
        is_current = (
            own is not None and cell.variable in (None, own) and not cell.is_first and not cell.offset
        )
        if is_current:
            return lambda at, bounds: column[at]
        place = self.place(cell, own)
        missing = None if cell.otherwise is None else self._columns[cell.otherwise]

        def value(at: int, bounds: tuple[int, ...]) -> Any:
            found = place(at, bounds)
            if found >= 0:
                return column[found]
            return None if missing is None else missing[at]

        return value

    def _fold(self, fold: Fold, own: int | None) -> Value:
        steps, span = FOLDS[fold.function], _span(fold.variable, own)
        values = None if fold.column is None else self._columns[fold.column]

        def value(at: int, bounds: tuple[int, ...]) -> Any:
            begin, end = span(at, bounds)
            done, held = self._folded.get((fold, begin), (begin, steps.empty))
            if done > end:  # a shorter one of the same beginning
                done, held = begin, steps.empty
            for place in range(done, end):
                each = True if values is None else values[place]
                if each is not None:
                    held = steps.add(held, each, fold.kind)
            self._folded[fold, begin] = end, held
            found = steps.result(held, fold.kind)
            return fold.separator.join(found) if isinstance(found, tuple) else found

        return value

    def _apply(self, formula: Apply, own: int | None) -> Value:
        operands = [self.value(each, own) for each in formula.operands]
        null_safe = NULL_SAFE.get(formula.function)
        if null_safe is not None:
            return null_safe(operands)
        function, kind = FUNCTIONS[formula.function], formula.kind

        def value(at: int, bounds: tuple[int, ...]) -> Any:
            given = [each(at, bounds) for each in operands]
            return None if None in given else function(kind, *given)

        return value


def function_of(formula: Formula, rows: RowValues, own: int) -> Callable[[int, tuple[int, ...]], bool]:
    """Return a condition as a function: whether it is TRUE."""
    value = rows.value(formula, own)
    return lambda at, bounds: value(at, bounds) is True


def _span(variable: int | None, own: int | None) -> Callable[[int, tuple[int, ...]], tuple[int, int]]:
    """Return where the rows of a variable begin and end; the current row is one of its own variable's."""
    if variable is None:
        if own is None:
            return lambda at, bounds: (bounds[0], bounds[-1])
        return lambda at, bounds: (bounds[0], at + 1)
    if variable == own:
        return lambda at, bounds: (bounds[variable], at + 1)
    return lambda at, bounds: (bounds[variable], bounds[variable + 1])


# -- functions that know what to do with NULL ------------------------------------------------------------------


def _connective(*, decides: bool) -> Callable[[Sequence[Value]], Value]:
    """Return AND or OR of three-valued logic: an operand that is ``decides`` decides the result."""

    def connected(operands: Sequence[Value]) -> Value:
        def value(at: int, bounds: tuple[int, ...]) -> Any:
            result: bool | None = not decides
            for each in operands:
                found = each(at, bounds)
                if found is decides:
                    return decides
                if found is None:
                    result = None
            return result

        return value

    return connected


def _is(wanted: Any, *, negated: bool = False) -> Callable[[Sequence[Value]], Value]:
    def made(operands: Sequence[Value]) -> Value:
        (operand,) = operands
        return lambda at, bounds: (operand(at, bounds) is wanted) is not negated

    return made


def _is_same(*, negated: bool) -> Callable[[Sequence[Value]], Value]:
    def made(operands: Sequence[Value]) -> Value:
        one, other = operands

        def value(at: int, bounds: tuple[int, ...]) -> bool:
            left, right = one(at, bounds), other(at, bounds)
            is_same = left is right if left is None or right is None else _compare(left, right) == 0
            return is_same is not negated

        return value

    return made


def _case(operands: Sequence[Value]) -> Value:
    *branches, default = operands
    pairs = list(zip(branches[::2], branches[1::2], strict=True))

    def value(at: int, bounds: tuple[int, ...]) -> Any:
        for condition, result in pairs:
            if condition(at, bounds) is True:
                return result(at, bounds)
        return default(at, bounds)

    return value


def _coalesce(operands: Sequence[Value]) -> Value:
    def value(at: int, bounds: tuple[int, ...]) -> Any:
        for each in operands:
            found = each(at, bounds)
            if found is not None:
                return found
        return None

    return value


def _null_if(operands: Sequence[Value]) -> Value:
    one, other = operands

    def value(at: int, bounds: tuple[int, ...]) -> Any:
        left, right = one(at, bounds), other(at, bounds)
        is_same = left is not None and right is not None and _compare(left, right) == 0
        return None if is_same else left

    return value


def _in(operands: Sequence[Value]) -> Value:
    sought, *choices = operands

    def value(at: int, bounds: tuple[int, ...]) -> Any:
        wanted = sought(at, bounds)
        if wanted is None:
            return None
        has_null = False
        for each in choices:
            found = each(at, bounds)
            if found is None:
                has_null = True
            elif _compare(wanted, found) == 0:
                return True
        return None if has_null else False

    return value


def _if(operands: Sequence[Value]) -> Value:
    return _case(operands)


#: Functions that are not NULL wherever an operand is.
NULL_SAFE: Final[dict[str, Callable[[Sequence[Value]], Value]]] = {
    "AND": _connective(decides=False),
    "OR": _connective(decides=True),
    "IS_NULL": _is(None),
    "IS_NOT_NULL": _is(None, negated=True),
    "IS_UNKNOWN": _is(None),
    "IS_NOT_UNKNOWN": _is(None, negated=True),
    "IS_TRUE": _is(True),
    "IS_NOT_TRUE": _is(True, negated=True),
    "IS_FALSE": _is(False),
    "IS_NOT_FALSE": _is(False, negated=True),
    "IS_DISTINCT_FROM": _is_same(negated=True),
    "IS_NOT_DISTINCT_FROM": _is_same(negated=False),
    "CASE": _case,
    "IF": _if,
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "NULLIF": _null_if,
    "IN": _in,
}


# -- the others ------------------------------------------------------------------------------------------------


def _compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1; NaN is the largest number, and equal to itself."""
    if left == right:
        return 0
    if isinstance(left, float) and math.isnan(left):
        return 0 if isinstance(right, float) and math.isnan(right) else 1
    if isinstance(right, float) and math.isnan(right):
        return -1
    return -1 if left < right else 1


def _comparison(holds: Callable[[int, int], bool]) -> Callable[..., Any]:
    return lambda kind, left, right: holds(_compare(left, right), 0)


def _divide(kind: pa.DataType, left: Any, right: Any) -> Any:
    if pa.types.is_floating(kind):
        if right == 0:
            is_nan = left == 0 or math.isnan(left)
            return math.nan if is_nan else math.copysign(math.inf, left) * math.copysign(1.0, right)
        return as_number(left / right, kind)
    if right == 0:
        raise JobExecutionError(
            "division by zero in a condition of MATCH_RECOGNIZE", hint="compare with 0 first"
        )
    if pa.types.is_integer(kind):
        return as_number(_truncated(left, right), kind)
    return as_number(Decimal(left) / Decimal(right), kind)


def _modulo(kind: pa.DataType, left: Any, right: Any) -> Any:
    if right == 0:
        raise JobExecutionError(
            "division by zero in a condition of MATCH_RECOGNIZE", hint="compare with 0 first"
        )
    if isinstance(left, int) and isinstance(right, int):
        return as_number(left - _truncated(left, right) * right, kind)
    return as_number(Decimal(left) % Decimal(right), kind)


def _truncated(left: int, right: int) -> int:
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _times(kind: pa.DataType, left: Any, right: Any) -> Any:
    return as_number(left * right, kind)


_UNITS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}


def _time_between(kind: pa.DataType, unit: str, begin: datetime, end: datetime) -> int:
    # By microseconds of whole units, and towards 0, as in Java.
    between = (end - begin) // timedelta(microseconds=1)
    return _truncated(between, _UNITS[unit] * 1_000_000)


def _cast(kind: pa.DataType, value: Any) -> Any:
    if isinstance(value, float) and pa.types.is_integer(kind):
        if math.isnan(value):
            return 0
        # Java's cast: to the nearest that there is, by way of INT for short ones.
        half = 1 << (max(kind.bit_width, 32) - 1)
        return as_number(int(max(min(value, half - 1), -half)), kind)
    return as_number(value, kind)


#: Functions that are NULL if an operand is: of the type of the result, and the operands.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "EQUALS": _comparison(operator.eq),
    "NOT_EQUALS": _comparison(operator.ne),
    "LESS_THAN": _comparison(operator.lt),
    "LESS_THAN_OR_EQUAL": _comparison(operator.le),
    "GREATER_THAN": _comparison(operator.gt),
    "GREATER_THAN_OR_EQUAL": _comparison(operator.ge),
    "BETWEEN": lambda kind, value, low, high: _compare(value, low) >= 0 and _compare(value, high) <= 0,
    "NOT": lambda kind, value: not value,
    "PLUS": lambda kind, left, right: as_number(left + right, kind),
    "MINUS": lambda kind, left, right: as_number(left - right, kind),
    "TIMES": _times,
    "DIVIDE": _divide,
    "MOD": _modulo,
    "NEGATE": lambda kind, value: as_number(-value, kind),
    "POSITIVE": lambda kind, value: value,
    "ABS": lambda kind, value: as_number(abs(value), kind),
    "CAST": _cast,
    "CONCAT_OPERATOR": lambda kind, left, right: left + right,
    "CONCAT": lambda kind, *texts: "".join(texts),
    "TIMESTAMPDIFF": _time_between,
}
