"""What Python functions of a query return, held against the type they declare.

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
from headrace.operators.table.steps import PythonCall
from headrace.types.arrow import from_arrow_type

__all__ = ["checked"]

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
    """Have a function's results checked, one by one."""
    taken = next((types for is_of, types in _TAKEN if is_of(call.result.arrow)), None)
    if taken is None:
        return function
    name = getattr(call.function, "__name__", "a function")
    declared = from_arrow_type(call.result.arrow).summary()

    @wraps(function)
    def called(*arguments: Any) -> Any:
        result = function(*arguments)
        if result is not None and not isinstance(result, taken):
            raise UserFunctionError(
                f"{name} returned {shorten(result)}, which is not {declared}",
                record=arguments,
                hint="return a value of the declared type, or declare another result_type",
            )
        return result

    return called
