"""Set operations and DISTINCT, as aggregations and joins.

SELECT DISTINCT, UNION    group by every column
a INTERSECT b             the distinct rows of a that are in b: a semi join
a EXCEPT b                the distinct rows of a that are not in b: an anti join
"""

from __future__ import annotations

from headrace.errors import UnsupportedFeatureError
from headrace.planner.expressions import Call, Expression, InputRef, conjunction
from headrace.planner.logical import (
    Aggregate,
    Distinct,
    Join,
    JoinKind,
    LogicalNode,
    SetKind,
    SetOperation,
    Union,
)
from headrace.types.logical import BooleanType

__all__ = ["replace_distinct", "replace_set_operation"]


def replace_distinct(node: LogicalNode) -> LogicalNode | None:
    """Group by every column, and aggregate nothing."""
    if not isinstance(node, Distinct):
        return None
    columns = tuple(range(len(node.schema)))
    return Aggregate(node.input, columns, (), tuple(field.name for field in node.schema))


def replace_set_operation(node: LogicalNode) -> LogicalNode | None:
    """Turn UNION, INTERSECT and EXCEPT into nodes that there are operators for."""
    if not isinstance(node, SetOperation):
        return None
    if node.kind is SetKind.UNION:
        return Distinct(Union((node.left, node.right)))
    if node.all:
        raise UnsupportedFeatureError.not_yet(
            f"{node.kind.value} ALL in streaming mode", f"use {node.kind.value}, or BATCH mode"
        )
    kind = JoinKind.SEMI if node.kind is SetKind.INTERSECT else JoinKind.ANTI
    return Distinct(Join(node.left, node.right, kind, _same_row(node.left, node.right)))


def _same_row(left: LogicalNode, right: LogicalNode) -> Expression:
    """Rows are the same if every column is, NULLs included."""
    width = len(left.schema)
    return conjunction(
        [
            Call(
                "IS_NOT_DISTINCT_FROM",
                (InputRef(index, one.type), InputRef(width + index, other.type)),
                BooleanType(False),
            )
            for index, (one, other) in enumerate(zip(left.schema, right.schema, strict=True))
        ]
    )
