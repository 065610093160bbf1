"""A condition is looked at as early as it can be: rows that drop out there cost nothing above, and no state.

It never passes a watermark: rows that are filtered out still say how far time has advanced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.planner import expressions as e
from headrace.planner.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Project,
    Union,
    WindowTable,
)
from headrace.planner.rules.tree import filtered, over_inputs
from headrace.planner.windows import WindowKind

__all__ = ["push_filter", "push_join_condition"]

#: Joins whose result has every row of that side: a condition after the join may not become one before it.
_KEEPS_LEFT = (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)
_KEEPS_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)


def push_filter(node: LogicalNode) -> LogicalNode | None:
    """Move a filter below the node it stands on, in whole or in part."""
    if not isinstance(node, Filter):
        return None
    conditions = e.conjuncts(node.condition)
    match node.input:
        case Project(below, expressions, names) if all(map(e.is_deterministic, expressions)):
            mapping = dict(enumerate(expressions))
            moved = [e.substitute(each, mapping) for each in conditions]
            return Project(filtered(below, moved), expressions, names)
        case Union(branches):
            return Union(tuple(Filter(branch, node.condition) for branch in branches))
        case WindowTable() as window:
            # Sessions are made of all rows between two gaps: only whole partitions may be left out before.
            is_session = window.window.kind is WindowKind.SESSION
            allowed = set(window.partition_by if is_session else range(len(window.input.schema)))
            return _split(node, conditions, lambda each: e.references(each) <= allowed)
        case Aggregate(_, keys) as aggregate if keys and aggregate.grouping_sets is None:
            return _below_aggregate(node, aggregate, conditions)
        case Join() as join:
            return _below_join(node, join, conditions)
        case _:
            return None


def _split(
    node: Filter, conditions: Iterable[e.Expression], fits: Callable[[e.Expression], bool]
) -> LogicalNode | None:
    """Move what fits below a node that hands its input's columns on in their places."""
    conditions = list(conditions)
    below = [each for each in conditions if fits(each) and e.is_deterministic(each)]
    if not below:
        return None
    (under,) = node.input.inputs
    rest = [each for each in conditions if each not in below]
    return filtered(over_inputs(node.input, [filtered(under, below)]), rest)


def _below_aggregate(
    node: Filter, aggregate: Aggregate, conditions: list[e.Expression]
) -> LogicalNode | None:
    """A condition on keys alone drops whole groups."""
    width = len(aggregate.group_keys)
    below = [each for each in conditions if e.references(each) and max(e.references(each)) < width]
    below = [each for each in below if e.is_deterministic(each)]
    if not below:
        return None
    schema = aggregate.input.schema
    mapping: dict[int, e.Expression] = {
        place: e.InputRef(key, schema[key].type) for place, key in enumerate(aggregate.group_keys)
    }
    moved = filtered(aggregate.input, [e.substitute(each, mapping) for each in below])
    return filtered(over_inputs(aggregate, [moved]), [each for each in conditions if each not in below])


def _below_join(node: Filter, join: Join, conditions: list[e.Expression]) -> LogicalNode | None:
    width = len(join.left.schema)
    left, right, both = _sides(conditions, width)
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        left, both = [], [*both, *left]
    # Of a versioned table all versions count: one that is left out would leave its place to the one before.
    if join.kind in (JoinKind.LEFT, JoinKind.FULL) or join.as_of is not None:
        right, both = [], [*both, *right]
    into_condition = both if join.kind is JoinKind.INNER else []
    kept = [] if join.kind is JoinKind.INNER else both
    if not left and not right and not into_condition:
        return None
    condition = e.conjunction([*e.conjuncts(join.condition), *into_condition])
    moved = replace(
        join,
        left=filtered(join.left, left),
        right=filtered(join.right, [e.shift(each, -width) for each in right]),
        condition=condition,
    )
    return filtered(moved, kept)


def push_join_condition(node: LogicalNode) -> LogicalNode | None:
    """What a join asks of one side alone is asked of that side before, unless all its rows come through anyway."""
    if not isinstance(node, Join):
        return None
    width = len(node.left.schema)
    left, right, both = _sides(e.conjuncts(node.condition), width)
    if node.kind in _KEEPS_LEFT:
        left, both = [], [*both, *left]
    if node.kind in _KEEPS_RIGHT or node.as_of is not None:
        right, both = [], [*both, *right]
    if not left and not right:
        return None
    return replace(
        node,
        left=filtered(node.left, left),
        right=filtered(node.right, [e.shift(each, -width) for each in right]),
        condition=e.conjunction(both),
    )


def _sides(
    conditions: Iterable[e.Expression], width: int
) -> tuple[list[e.Expression], list[e.Expression], list[e.Expression]]:
    """Part conditions: on the left columns alone, on the right ones alone, on both."""
    left: list[e.Expression] = []
    right: list[e.Expression] = []
    both: list[e.Expression] = []
    for each in conditions:
        used = e.references(each)
        if not used or not e.is_deterministic(each):
            both.append(each)
        elif max(used) < width:
            left.append(each)
        elif min(used) >= width:
            right.append(each)
        else:
            both.append(each)
    return left, right, both
