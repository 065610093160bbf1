"""Results of the user's functions, as columns of their declared types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headrace.common.arrow_values import arrow_form
from headrace.errors import UserFunctionError, shorten
from headrace.types.arrow import from_arrow_type

__all__ = ["result_column"]

_WRONG = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


def result_column(function: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as a column.

    Raises:
        UserFunctionError: If one of them is not of the type.
    """
    convert = arrow_form(kind)
    try:
        return pa.array(values if convert is None else map(convert, values), kind)
    except _WRONG as error:
        wrong = next(each for each in values if not _fits(each, kind, convert))
        raise UserFunctionError(
            f"{function} returned {shorten(wrong)}, which is not {from_arrow_type(kind).summary()}",
            hint="return a value of the declared type, or declare another result_type",
        ) from error


def _fits(value: Any, kind: pa.DataType, convert: Callable[[Any], Any] | None) -> bool:
    try:
        pa.array([value if convert is None else convert(value)], kind)
    except _WRONG:
        return False
    return True
