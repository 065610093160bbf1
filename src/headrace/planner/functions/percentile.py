"""PERCENTILE of the list of a group's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.planner.expressions import Call, Expression, Literal
from headrace.planner.functions.registry import FunctionRegistry
from headrace.planner.functions.signature import Resolved, WrongArguments
from headrace.planner.functions.text import let
from headrace.types import ArrayType, DataType, DoubleType, IntegralType, NumericType, RowType
from headrace.types.logical import quote_name

__all__ = ["LISTED_NUMBERS"]

LISTED_NUMBERS: Final = FunctionRegistry("internal")


def _resolve(types: Sequence[DataType]) -> Resolved:
    """Operands: the part or parts, the list of values or of rows of a value and how often it is there."""
    part, listed = types
    assert isinstance(listed, ArrayType)
    value, *frequency = (
        [field.data_type for field in listed.element_type]
        if isinstance(listed.element_type, RowType)
        else [listed.element_type]
    )
    if not isinstance(value, NumericType):
        raise WrongArguments(f"PERCENTILE takes numbers, not {value.summary_without_null()}")
    if frequency and not isinstance(frequency[0], IntegralType):
        raise WrongArguments(
            f"the frequency of PERCENTILE must be a whole number, not {frequency[0].summary_without_null()}"
        )
    double = DoubleType()
    if isinstance(part, ArrayType) and isinstance(part.element_type, NumericType):
        return (ArrayType(double), listed), ArrayType(DoubleType(False))
    if not isinstance(part, NumericType):
        raise WrongArguments(
            f"the percentage of PERCENTILE must be a number or an array, not {part.summary_without_null()}"
        )
    return (double, listed), double


def _check(part: Expression) -> None:
    """Refuse a constant that is not a part of one."""
    for one in (part, *getattr(part, "operands", ())):
        value = one.value if isinstance(one, Literal) else 0
        if value is None or not 0 <= value <= 1:
            raise WrongArguments(f"the percentage of PERCENTILE must be between 0 and 1, not {value}")
        if isinstance(one, Call) and one is not part:
            _check(one)


def _emit(call: Call, operands: list[str]) -> str:
    part, listed = operands
    _check(call.operands[0])
    kind = call.operands[1].type
    assert isinstance(kind, ArrayType)
    if isinstance(kind.element_type, RowType):
        value, frequency = (f"one.{quote_name(field.name)}" for field in kind.element_type)
        times = f"CAST(greatest(coalesce({frequency}, 0), 0) AS int)"
        listed = f"flatten(transform({listed}, one -> array_repeat({value}, {times})))"
    numbers = f"array_sort(transform(filter({listed}, one -> one IS NOT NULL), one -> CAST(one AS double)))"
    # Between the two values that the place lies between, nearer to the nearer one.
    low, high = "__numbers[CAST(floor(__place) AS int)]", "__numbers[CAST(ceil(__place) AS int)]"
    between = (
        f"IF(floor(__place) = ceil(__place), {low}, "
        f"(ceil(__place) - __place) * {low} + (__place - floor(__place)) * {high})"
    )
    one = let("__place", "__part * (size(__numbers) - 1)", between)
    if isinstance(call.type, ArrayType):
        made = f"transform({part}, __part -> {one})"
    else:
        made = let("__part", part, one)
    return let("__numbers", numbers, f"IF(size(__numbers) > 0, {made}, NULL)")


LISTED_NUMBERS.add_shape(
    "PERCENTILE_OF",
    "PERCENTILE(value, part [, frequency])",
    "The percentile of a list.",
    _resolve,
    _emit,
    is_form=True,
)
