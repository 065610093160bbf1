"""Set operations and DISTINCT, as aggregations and joins.

SELECT DISTINCT, UNION    group by every column
a INTERSECT b             the distinct rows of a that are in b: a semi join
a EXCEPT b                the distinct rows of a that are not in b: an anti join
a INTERSECT ALL b         group by every column, count the rows of a and of b, and give as many as there are in both
a EXCEPT ALL b            the same, as many as there are more of in a
"""

from __future__ import annotations

from typing import Final

from headrace.planner import expressions as e
from headrace.planner.logical import (
    Aggregate,
    Distinct,
    Join,
    JoinKind,
    LogicalNode,
    Project,
    SetKind,
    SetOperation,
    Union,
    Unnest,
)
from headrace.planner.rules.tree import identity
from headrace.types.logical import ArrayType, BigIntType, BooleanType

__all__ = ["replace_distinct", "replace_set_operation"]

_COUNT: Final = BigIntType(False)


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
        return _by_counts(node)
    kind = JoinKind.SEMI if node.kind is SetKind.INTERSECT else JoinKind.ANTI
    return Distinct(Join(node.left, node.right, kind, _same_row(node.left, node.right)))


def _by_counts(node: SetOperation) -> LogicalNode:
    """Count each row on both sides, and give it as often as the operation says."""
    names = tuple(field.name for field in node.schema)
    width = len(names)
    both = Union((_marked(node.left, 1, 0, names), _marked(node.right, 0, 1, names)))
    sums = [e.AggregateCall("SUM", (e.InputRef(width + at, _COUNT),), _COUNT) for at in range(2)]
    counted = Aggregate(both, tuple(range(width)), tuple(sums), (*names, "$left", "$right"))
    function = "LEAST" if node.kind is SetKind.INTERSECT else "MINUS"
    times = e.Call(function, (e.InputRef(width, _COUNT), e.InputRef(width + 1, _COUNT)), _COUNT)
    copies = e.Call(e.REPLICATE, (times,), ArrayType(_COUNT, True))
    return Project(Unnest(counted, copies, JoinKind.INNER, ("$copy",)), identity(node.schema), names)


def _marked(side: LogicalNode, left: int, right: int, names: tuple[str, ...]) -> LogicalNode:
    marks = (e.Literal(left, _COUNT), e.Literal(right, _COUNT))
    return Project(side, (*identity(side.schema), *marks), (*names, "$left", "$right"))


def _same_row(left: LogicalNode, right: LogicalNode) -> e.Expression:
    """Rows are the same if every column is, NULLs included."""
    width = len(left.schema)
    return e.conjunction(
        [
            e.Call(
                "IS_NOT_DISTINCT_FROM",
                (e.InputRef(index, one.type), e.InputRef(width + index, other.type)),
                BooleanType(False),
            )
            for index, (one, other) in enumerate(zip(left.schema, right.schema, strict=True))
        ]
    )
