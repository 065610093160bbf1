"""Casts that the binder puts in."""

from __future__ import annotations

from headrace.planner import expressions as e
from headrace.types import DataType

__all__ = ["cast_to"]


def cast_to(expression: e.Expression, data_type: DataType) -> e.Expression:
    """The expression as another type, if it has another; NULL is the caller's to judge."""
    target = data_type.with_nullability(expression.type.is_nullable)
    if expression.type == target:
        return expression
    if isinstance(expression, e.Literal) and expression.value is None:
        return e.Literal(None, data_type.nullable())
    return e.Call("CAST", (expression,), target)
