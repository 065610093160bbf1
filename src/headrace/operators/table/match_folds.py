"""Aggregate functions over the rows of a pattern variable, value by value, as conditions need them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = ["FOLDS", "FoldSteps", "as_number"]

_CONTEXT: Final = Context(prec=80, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class FoldSteps:
    """How values become a result. NULLs are left out before.

    Args:
        empty: What there is before the first value.
        add: Puts a value to what there is.
        result: Makes the result, of a type.
    """

    empty: Any
    add: Callable[[Any, Any, pa.DataType], Any]
    result: Callable[[Any, pa.DataType], Any]


def as_number(value: Any, kind: pa.DataType) -> Any:
    """Return a number as a type has it: whole numbers wrap around as Java's do, a decimal without room is NULL."""
    if value is None:
        return None
    if pa.types.is_integer(kind):
        half = 1 << (kind.bit_width - 1)
        return (math.trunc(value) + half) % (2 * half) - half
    if pa.types.is_float32(kind):
        with np.errstate(over="ignore"):
            return float(np.float32(float(value)))
    if pa.types.is_floating(kind):
        return float(value)
    assert pa.types.is_decimal(kind), kind
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-kind.scale), context=_CONTEXT)
    return rounded if abs(rounded) < Decimal(10) ** (kind.precision - kind.scale) else None


def _plus(total: Any, value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return _CONTEXT.add(Decimal(0 if total is None else total), Decimal(value))
    return as_number(value if total is None else total + value, kind)


def _average(held: tuple[Any, int], kind: pa.DataType) -> Any:
    total, count = held
    if not count:
        return None
    if pa.types.is_integer(kind):
        return as_number(abs(total) // count * (1 if total >= 0 else -1), kind)
    if pa.types.is_decimal(kind):
        return as_number(_CONTEXT.divide(Decimal(total), Decimal(count)), kind)
    return as_number(total / count, kind)


def _summed_for_average(held: tuple[Any, int], value: Any, kind: pa.DataType) -> tuple[Any, int]:
    # Flink adds up whole numbers as BIGINT, and the others as DOUBLE.
    wide = pa.int64() if pa.types.is_integer(kind) else kind if pa.types.is_decimal(kind) else pa.float64()
    return _plus(held[0], value, wide), held[1] + 1


def _squared(held: tuple[float, float, int], value: Any, kind: pa.DataType) -> tuple[float, float, int]:
    number = float(value)
    return held[0] + number, held[1] + number * number, held[2] + 1


def _spread(*, is_sample: bool, is_root: bool) -> Callable[[tuple[float, float, int], pa.DataType], Any]:
    def result(held: tuple[float, float, int], kind: pa.DataType) -> Any:
        total, squares, count = held
        if count < (2 if is_sample else 1):
            return None
        found = max(squares - total * total / count, 0.0) / (count - is_sample)
        return as_number(math.sqrt(found) if is_root else found, kind)

    return result


def _variance(*, is_sample: bool, is_root: bool) -> FoldSteps:
    return FoldSteps((0.0, 0.0, 0), _squared, _spread(is_sample=is_sample, is_root=is_root))


def _same(held: Any, kind: pa.DataType) -> Any:
    return held


#: What may stand in DEFINE and MEASURES.
FOLDS: Final[dict[str, FoldSteps]] = {
    "COUNT": FoldSteps(0, lambda held, value, kind: held + 1, _same),
    "SUM": FoldSteps(None, _plus, as_number),
    "SUM0": FoldSteps(0, _plus, as_number),
    "AVG": FoldSteps((None, 0), _summed_for_average, _average),
    "MIN": FoldSteps(None, lambda held, value, kind: value if held is None else min(held, value), _same),
    "MAX": FoldSteps(None, lambda held, value, kind: value if held is None else max(held, value), _same),
    "FIRST_VALUE": FoldSteps(None, lambda held, value, kind: value if held is None else held, _same),
    "LAST_VALUE": FoldSteps(None, lambda held, value, kind: value, _same),
    "LISTAGG": FoldSteps(None, lambda held, value, kind: (*(held or ()), value), _same),
    "VAR_POP": _variance(is_sample=False, is_root=False),
    "VAR_SAMP": _variance(is_sample=True, is_root=False),
    "VARIANCE": _variance(is_sample=True, is_root=False),
    "STDDEV_POP": _variance(is_sample=False, is_root=True),
    "STDDEV_SAMP": _variance(is_sample=True, is_root=True),
    "STDDEV": _variance(is_sample=True, is_root=True),
}
