"""Compares what Python functions of a query return with the type that they declare.

Spark would take some values of another type for what they look like, and fail on others without a word about the
function.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.errors import UserFunctionError, shorten
from headrace.operators.table.opened_functions import OpenedTableFunction
from headrace.operators.table.steps import PythonCall
from headrace.types.arrow import from_arrow_type

__all__ = ["checked", "checked_series"]

_WHOLE: Final = (int, np.integer)
#: Which values a type takes. Those that hold others are Spark's to judge.
_TAKEN: Final[tuple[tuple[Callable[[pa.DataType], bool], tuple[type, ...]], ...]] = (
    (pa.types.is_boolean, (bool, np.bool_)),
    (pa.types.is_integer, _WHOLE),
    (pa.types.is_floating, (float, np.floating, *_WHOLE)),
    (pa.types.is_string, (str,)),
    (pa.types.is_binary, (bytes, bytearray)),
    (pa.types.is_decimal, (Decimal, *_WHOLE)),
    (pa.types.is_timestamp, (datetime.datetime,)),
    (pa.types.is_date, (datetime.date,)),
    (pa.types.is_time, (datetime.time,)),
)


def checked(function: Callable[..., Any], call: PythonCall) -> Callable[..., Any]:
    """Have a function's results checked, one by one; of a table function the values of its rows."""
    name = getattr(call.function, "__name__", "a function")
    if isinstance(call.function, OpenedTableFunction):
        return _checked_rows(function, name, [field.type for field in call.result.arrow.value_type])
    taken = _taken(call.result.arrow)
    if taken is None:
        return function

    @wraps(function)
    def called(*arguments: Any) -> Any:
        result = function(*arguments)
        if result is not None and not isinstance(result, taken):
            raise _wrong_type(name, result, call.result.arrow, arguments)
        return result

    return called


def checked_series(function: Callable[..., Any], call: PythonCall) -> Callable[..., Any]:
    """Have it checked that a function of Series returns a value for each row."""
    name = getattr(call.function, "__name__", "a function")

    @wraps(function)
    def called(*series: Any) -> Any:
        results = function(*series)
        count = len(results) if hasattr(results, "__len__") and not isinstance(results, str) else None
        if series and count != len(series[0]):
            returned = shorten(results) if count is None else f"{count} values"
            raise UserFunctionError(
                f"{name} returned {returned} for {len(series[0])} rows; a function with func_type='pandas' must return "
                "one value for each row",
                hint="return a Series as long as the arguments, or remove func_type='pandas'",
            )
        return results

    return called


def _checked_rows(function: Callable[..., Any], name: str, kinds: list[pa.DataType]) -> Callable[..., Any]:
    judged = [(at, kind, taken) for at, kind in enumerate(kinds) if (taken := _taken(kind)) is not None]

    @wraps(function)
    def called(*arguments: Any) -> Any:
        rows = function(*arguments)
        for row in rows:
            for at, kind, taken in judged:
                if row[at] is not None and not isinstance(row[at], taken):
                    raise _wrong_type(name, row[at], kind, arguments)
        return rows

    return called


def _taken(kind: pa.DataType) -> tuple[type, ...] | None:
    return next((types for is_of, types in _TAKEN if is_of(kind)), None)


def _wrong_type(name: str, result: Any, kind: pa.DataType, arguments: tuple[Any, ...]) -> UserFunctionError:
    return UserFunctionError(
        f"{name} returned {shorten(result)}, which is not {from_arrow_type(kind).summary()}",
        record=arguments,
        hint="return a value of the declared type, or declare another result_type",
    )
