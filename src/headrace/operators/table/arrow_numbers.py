"""Comparisons, and arithmetic of BIGINT and DECIMAL, with the results of Spark without ANSI mode."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import (
    ColumnExpression,
    Columns,
    NotComputedError,
    NotUnderstoodError,
    constant,
)
from headrace.state.columns import Ints

__all__ = [
    "arithmetic",
    "as_decimal",
    "boolean",
    "both",
    "comparison",
    "number",
    "numbers",
    "of_numbers",
    "remainder",
    "shortened",
]

#: Digits of a BIGINT, and the most that a DECIMAL has.
_BIGINT_DIGITS = 19
_MOST_DIGITS = 38


def number(token: str) -> ColumnExpression:
    """Read a number: INT, BIGINT with an L, or DECIMAL with a point."""
    if "." in token:
        value = Decimal(token)
        scale = len(token.partition(".")[2])
        digits = max(len(value.as_tuple().digits), scale)
        if digits > _MOST_DIGITS:
            raise NotUnderstoodError(token)
        return constant(value, pa.decimal128(digits, scale))
    is_long = token[-1] in "lL"
    whole = int(token[:-1] if is_long else token)
    if whole >= 1 << (63 if is_long else 31):
        raise NotUnderstoodError(token)
    return constant(whole, pa.int64() if is_long else pa.int32())


def comparison(
    compare: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression
) -> ColumnExpression:
    """Compare whole numbers, texts, or times."""
    are_numbers = all(pa.types.is_signed_integer(each.kind) for each in (left, right))
    are_alike = left.kind == right.kind and (left.kind == pa.string() or pa.types.is_timestamp(left.kind))
    if not are_numbers and not are_alike:
        raise NotUnderstoodError("a comparison of other types")
    return _both_of(compare, left, right, pa.bool_())


def boolean(each: ColumnExpression) -> ColumnExpression:
    """Return a condition.

    Raises:
        NotUnderstoodError: It is not valid.
    """
    if each.kind != pa.bool_():
        raise NotUnderstoodError("a condition that is no BOOLEAN")
    return each


def both(
    join: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression
) -> ColumnExpression:
    """Combine two conditions with AND or OR, by row."""
    one, other = boolean(left), boolean(right)
    return ColumnExpression(
        pa.bool_(), lambda columns, rows: join(one.of(columns, rows), other.of(columns, rows))
    )


def arithmetic(
    compute: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression
) -> ColumnExpression:
    """Compute with BIGINTs, which start again from the lowest beyond the highest, as in Spark; multiply DECIMALs."""
    if left.kind == right.kind == pa.int64():
        return _both_of(compute, left, right, pa.int64())
    if compute is pc.multiply and all(pa.types.is_decimal128(each.kind) for each in (left, right)):
        digits = left.kind.precision + right.kind.precision + 1
        if digits <= _MOST_DIGITS:  # beyond, Spark rounds
            kind = pa.decimal128(digits, left.kind.scale + right.kind.scale)
            return _both_of(compute, left, right, kind)
    raise NotUnderstoodError("arithmetic with other types")


def _both_of(
    compute: Callable[[Any, Any], Any], left: ColumnExpression, right: ColumnExpression, kind: pa.DataType
) -> ColumnExpression:
    if right.constant is not None:
        scalar = pa.scalar(right.constant, right.kind)
        return ColumnExpression(kind, lambda columns, rows: compute(left.of(columns, rows), scalar))
    if left.constant is not None:
        first = pa.scalar(left.constant, left.kind)
        return ColumnExpression(kind, lambda columns, rows: compute(first, right.of(columns, rows)))
    return ColumnExpression(
        kind, lambda columns, rows: compute(left.of(columns, rows), right.of(columns, rows))
    )


def remainder(left: ColumnExpression, right: ColumnExpression) -> ColumnExpression:
    """Divide by a constant; what is left has the sign of the dividend, as in Java."""
    are_whole = left.kind == pa.int64() and pa.types.is_signed_integer(right.kind)
    if not are_whole or not (right.constant or 0) > 0:
        raise NotUnderstoodError("%")
    return of_numbers(left, pa.int64(), lambda values: np.fmod(values, right.constant))


def shortened(inner: ColumnExpression, kind: pa.DataType) -> ColumnExpression:
    """Make fewer bits of whole numbers: those at the front are lost, as in Java."""
    return of_numbers(inner, kind, lambda values: values.astype(kind.to_pandas_dtype()))


def as_decimal(inner: ColumnExpression, precision: int, scale: int) -> ColumnExpression:
    """Convert a BIGINT that fits in any case, or a DECIMAL whose places stay."""
    if not 0 < precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        raise NotUnderstoodError("DECIMAL")
    kind = pa.decimal128(precision, scale)
    is_decimal = pa.types.is_decimal128(inner.kind)
    if is_decimal and inner.kind.scale == scale:
        is_larger = precision >= inner.kind.precision
        if inner.constant is not None and is_larger:
            return constant(inner.constant, kind)
        if inner.kind == kind:
            return inner
        return ColumnExpression(kind, lambda columns, rows: _fitting(inner.of(columns, rows), kind))
    if inner.kind == pa.int64() and precision - scale >= _BIGINT_DIGITS:
        return ColumnExpression(kind, lambda columns, rows: inner.of(columns, rows).cast(kind))
    raise NotUnderstoodError("DECIMAL of other types")


def _fitting(values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:  # Spark makes NULL of it
        raise NotComputedError("a DECIMAL has too many digits") from error


def of_numbers(
    inner: ColumnExpression, kind: pa.DataType, compute: Callable[[Ints], Ints]
) -> ColumnExpression:
    """Compute with the numbers that values are; NULL stays NULL."""

    def run(columns: Columns, rows: int) -> pa.Array:
        values, is_null = numbers(inner.of(columns, rows))
        return pa.array(compute(values), kind, mask=is_null)

    return ColumnExpression(kind, run)


def numbers(array: pa.Array) -> tuple[Ints, Any]:
    """Return values as whole numbers, and which are NULL, if any."""
    whole = array.cast(pa.int64())
    if not whole.null_count:
        return whole.to_numpy(), None
    return whole.fill_null(0).to_numpy(), whole.is_null().to_numpy(zero_copy_only=False)
