"""Questions about syntax trees and logical trees, and small changes of them, that binding a query needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import cast_to
from headrace.planner.binder.scope import Scope
from headrace.planner.binder.user_calls import calls_user_aggregate
from headrace.planner.dialect.syntax import (
    FunctionCall,
    Name,
    Node,
    OperatorSyntax,
    Query,
    SelectItem,
)
from headrace.planner.functions import find_aggregate
from headrace.planner.logical import LogicalNode, Project
from headrace.types import DataType

__all__ = [
    "as_types",
    "calls_aggregate",
    "conditions",
    "item_name",
    "joined_condition",
    "names_outer",
    "stripped",
    "unique",
    "with_aliases",
]


def as_types(node: LogicalNode, types: Sequence[DataType]) -> LogicalNode:
    """The node with its columns cast, where they are not of these types."""
    expressions: list[e.Expression] = []
    for place, (one, wanted) in enumerate(zip(node.schema, types, strict=True)):
        expressions.append(cast_to(e.InputRef(place, one.type), wanted))
    if all(isinstance(one, e.InputRef) for one in expressions):
        return node
    return Project(node, tuple(expressions), tuple(one.name for one in node.schema))


def calls_aggregate(parts: object, context: Context) -> bool:
    """Whether there is an aggregate that is not OVER a window."""
    if isinstance(parts, Query):
        return False
    if isinstance(parts, FunctionCall):
        if parts.over is None and _is_aggregate(parts, context):
            return True
        return calls_aggregate((*parts.arguments, parts.over), context)
    if isinstance(parts, tuple):
        return any(calls_aggregate(one, context) for one in parts)
    if is_dataclass(parts):
        return any(calls_aggregate(getattr(parts, one.name), context) for one in fields(parts))
    return False


def _is_aggregate(call: FunctionCall, context: Context) -> bool:
    found = find_aggregate(call.name.path[-1])
    return not found.only_over if found is not None else calls_user_aggregate(context, call)


def with_aliases(part: Any, aliases: Mapping[str, Node], scope: Scope) -> Any:
    """A tree with the expressions of SELECT in place of their names, where those are not columns."""
    if isinstance(part, Query):
        return part
    if isinstance(part, Name):
        is_alias = len(part.parts) == 1 and part.path[0] in aliases and not scope.has(part)
        return aliases[part.path[0]] if is_alias else part
    if isinstance(part, tuple):
        return tuple(with_aliases(one, aliases, scope) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        changes = {
            one.name: with_aliases(getattr(part, one.name), aliases, scope)
            for one in fields(part)
            if one.init
        }
        return replace(part, **changes)
    return part


def names_outer(part: object) -> bool:
    """Whether a column of the query around is still in a tree."""
    if isinstance(part, e.Call) and part.function == "OUTER":
        return True
    if isinstance(part, tuple):
        return any(map(names_outer, part))
    if isinstance(part, LogicalNode | e.Call | e.SortKey | e.AggregateCall | e.WindowCall):
        assert is_dataclass(part)
        return any(names_outer(getattr(part, one.name)) for one in fields(part))
    return False


def conditions(node: Node) -> list[Node]:
    """The conditions that AND puts together."""
    if isinstance(node, OperatorSyntax) and node.function == "AND":
        return [part for operand in node.operands for part in conditions(operand)]
    return [node]


def stripped(node: Node) -> tuple[Node, bool]:
    """What stands after NOTs, and whether their number is odd."""
    negated = False
    while isinstance(node, OperatorSyntax) and node.function == "NOT":
        node, negated = node.operands[0], not negated
    return node, negated


def joined_condition(expression: e.Expression, width: int) -> e.Expression:
    """A correlated condition over the left row, then the right one."""

    def change(part: e.Expression) -> e.Expression | None:
        if isinstance(part, e.Call) and part.function == "OUTER":
            place = part.operands[0]
            assert isinstance(place, e.Literal)
            return e.InputRef(place.value, part.type)
        if isinstance(part, e.InputRef):
            return e.InputRef(part.index + width, part.type)
        return None

    return e.rewrite(expression, change)


def item_name(item: SelectItem, place: int) -> str:
    """The name that an expression of SELECT gives its column."""
    if item.alias is not None:
        return item.alias.name
    # As in Flink a field of anything but a column, such as CAST(...).x, gives no name.
    return item.expression.path[-1] if isinstance(item.expression, Name) else f"EXPR${place}"


def unique(names: Sequence[str]) -> list[str]:
    """Names with a number after those that came before.

    >>> unique(["a", "a", "b"])
    ['a', 'a0', 'b']
    """
    taken, found = set(names), []
    seen: set[str] = set()
    for name in names:
        made, number = name, 0
        while made in seen or (made != name and made in taken):
            made, number = f"{name}{number}", number + 1
        seen.add(made)
        found.append(made)
    return found
