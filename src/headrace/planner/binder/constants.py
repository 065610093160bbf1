"""Arguments that must be constants, as values of Python."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder
from headrace.planner.binder.scope import Scope
from headrace.planner.coercion import can_cast_implicitly
from headrace.planner.dialect.syntax import Node
from headrace.types.logical import DataType, DecimalType, DoubleType, FloatType

__all__ = ["constant_of"]


class _NotConstantError(Exception):
    """An expression that is more than constants."""


def constant_of(context: Context, node: Node, wanted: DataType, what: str) -> Any:
    """Return the value of a constant, as a type.

    Args:
        context: Where binding happens.
        node: The argument.
        wanted: What it must be.
        what: How messages name it.

    Raises:
        SqlValidationError: If it is not a constant, or not of the type.
    """
    bound = ExpressionBinder(context, Scope(context, ()), None, what).typed(node)
    try:
        value = _value(bound)
    except _NotConstantError:
        raise context.error(
            f"{what} must be a constant", node.span, hint="write the value, or compute it in the program"
        ) from None
    if value is not None and not can_cast_implicitly(bound.type, wanted):
        raise context.error(
            f"{what} is {wanted.summary_without_null()}, not {bound.type.summary_without_null()}",
            node.span,
            hint="CAST it",
        )
    return _as_type(value, wanted)


def _value(expression: e.Expression) -> Any:
    match expression:
        case e.Literal(value):
            return value
        case e.Call(function="CAST" | "UNARY_MINUS" | "MINUS", operands=(one,)):
            value = _value(one)
            return -value if expression.function != "CAST" and value is not None else value
        case e.Call(function="ARRAY", operands=operands):
            return [_value(each) for each in operands]
        case e.Call(function="MAP", operands=operands):
            values = [_value(each) for each in operands]
            return dict(zip(values[::2], values[1::2], strict=True))
        case _:
            raise _NotConstantError


def _as_type(value: Any, wanted: DataType) -> Any:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        if isinstance(wanted, DoubleType | FloatType):
            return float(value)
        if isinstance(wanted, DecimalType):
            return Decimal(value)
    return value
