"""LATERAL TABLE(f(...)): the rows that a table function gives for each row.

To the planner a table function is a Python function that returns an array of rows, and the join an UNNEST of it: so it
runs wherever both do.
"""

from __future__ import annotations

from typing import Final

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.catalog.manager import nearest
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder
from headrace.planner.binder.scope import Relation, Scope
from headrace.planner.binder.user_calls import checked_operands, find_user_function
from headrace.planner.binder.windows import WINDOWS
from headrace.planner.dialect.syntax import JoinTable, TableFunctionSyntax
from headrace.planner.expressions import TRUE, Literal, UserCall
from headrace.planner.logical import Field, Filter, JoinKind, LogicalNode, Unnest, Values
from headrace.types.logical import ArrayType, IntType, RowType

__all__ = ["ONE_ROW", "bind_lateral", "is_window", "join_lateral"]

#: What a function or collection stands beside that stands in FROM alone; nobody can name its column.
ONE_ROW: Final = Values(((Literal(0, IntType(False)),),), (Field("ZERO", IntType(False)),))


def join_lateral(
    context: Context, left: LogicalNode, scope: Scope, node: JoinTable, outer: Scope | None
) -> tuple[LogicalNode, Scope]:
    """Join each row with those that a table function gives for it."""
    assert isinstance(node.right, TableFunctionSyntax)
    kind = JoinKind.INNER if node.kind == "CROSS" else JoinKind[node.kind]
    if kind not in {JoinKind.INNER, JoinKind.LEFT}:
        raise context.error(
            f"{kind.value} JOIN LATERAL is not valid: the function needs the row on its left",
            node.span,
            hint="use JOIN LATERAL or LEFT JOIN LATERAL",
        )
    if node.natural or node.using:
        raise context.error("join LATERAL with ON TRUE or CROSS JOIN", node.span)
    plan, both = bind_lateral(context, left, scope, node.right, kind, outer)
    if node.on is None:
        return plan, both
    condition = ExpressionBinder(context, both, None, "ON").condition(node.on, "ON")
    if condition == TRUE:
        return plan, both
    if kind is JoinKind.LEFT:
        raise context.unsupported(
            "LEFT JOIN LATERAL with a condition", node.on.span, hint="ON TRUE; or let the function filter"
        )
    return Filter(plan, condition), both


def bind_lateral(
    context: Context,
    left: LogicalNode,
    scope: Scope,
    node: TableFunctionSyntax,
    kind: JoinKind,
    outer: Scope | None,
) -> tuple[LogicalNode, Scope]:
    """Give each row once for every row that a table function makes of it."""
    function = _table_function(context, node)
    binder = ExpressionBinder(context, scope, None, "LATERAL TABLE")
    operands = [binder.typed(one) for one in node.call.arguments]
    checked = checked_operands(context, node.call, function, operands)
    row = function.result_type
    assert isinstance(row, RowType)
    names = list(row.field_names())
    if node.alias is not None and node.alias.columns:
        if len(node.alias.columns) != len(names):
            raise context.error(
                f"{function.name} returns {len(names)} columns, but {len(node.alias.columns)} column names are given",
                node.span,
            )
        names = [column.name for column in node.alias.columns]
    rows = UserCall(function, checked, ArrayType(row.not_null()))
    plan = Unnest(left, rows, kind, tuple(names))
    width = len(left.schema)
    path = () if node.alias is None else (node.alias.name.name,)
    added = Relation(path, width, plan.schema[width:])
    return plan, Scope(context, (*scope.relations, added), scope.merged, outer)


def is_window(node: TableFunctionSyntax) -> bool:
    """Whether a function in FROM is a windowing one."""
    return node.call.name.dotted().upper() in WINDOWS


def _table_function(context: Context, node: TableFunctionSyntax) -> UserFunction:
    name = node.call.name
    found = find_user_function(context, node.call)
    if found is None:
        raise context.error(
            f"table function {name.dotted()!r} does not exist",
            name.span,
            hint=nearest(name.path[-1], [*context.manager.user_functions(), *WINDOWS]),
        )
    if found.kind is not FunctionKind.TABLE:
        raise context.error(
            f"{found.name} is a {found.kind.value} function, not a table function",
            node.span,
            hint="create it with udtf()",
        )
    return found
