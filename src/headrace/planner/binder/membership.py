"""IN, SOME, ANY and ALL over a query: what its columns are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder, cast_to
from headrace.planner.binder.scope import Scope
from headrace.planner.binder.trees import joined_condition
from headrace.planner.coercion import comparison_type
from headrace.planner.dialect.syntax import FunctionCall, In
from headrace.types import BooleanType

__all__ = ["membership"]


def membership(
    context: Context, scope: Scope, part: In, found: Sequence[e.Expression], width: int, negated: bool
) -> e.Expression:
    """Whether a row of the query is the one that is looked for.

    Args:
        context: Where it is bound.
        scope: The columns of the row beside the query.
        part: IN, = SOME and their like.
        found: The columns of the query, over its rows.
        width: How many columns the row has, after which those of the query stand.
        negated: Whether rows without a partner are asked for.
    """
    binder = ExpressionBinder(context, scope, None, "WHERE")
    operands = [part.operand]
    if isinstance(part.operand, FunctionCall) and part.operand.name.path == ("ROW",):
        operands = list(part.operand.arguments)
    if len(operands) != len(found):
        raise context.error(
            f"IN compares {len(operands)} value{'s' * (len(operands) > 1)} with a query of "
            f"{len(found)} column{'s' * (len(found) > 1)}",
            part.span,
            hint="select as many columns as there are values; several are written ROW(a, b) IN (SELECT ...)",
        )
    if len(operands) > 1 and part.comparison != "EQUALS":
        raise context.error("only = SOME and <> ALL compare rows with a query", part.span)
    equalities: list[e.Expression] = []
    for operand, column in zip(operands, found, strict=True):
        left, right = binder.typed(operand), joined_condition(column, width)
        common = comparison_type(left.type, right.type)
        if common is None:
            raise context.error(
                f"IN cannot compare {left.type.summary_without_null()} with "
                f"{right.type.summary_without_null()}",
                part.span,
            )
        equal: e.Expression = e.Call(
            part.comparison,
            (cast_to(left, common), cast_to(right, common)),
            BooleanType(left.type.is_nullable or right.type.is_nullable),
        )
        if negated:
            # x NOT IN (..., NULL) is never TRUE: a NULL on either side counts as a partner.
            unknown = [
                e.Call("IS_NULL", (one,), BooleanType(False)) for one in (left, right) if one.type.is_nullable
            ]
            equal = e.Call("OR", (equal, *unknown), BooleanType()) if unknown else equal
        equalities.append(equal)
    return e.conjunction(equalities)
