"""Joins: pairs of equal columns become the key rows meet by, what is left is looked at for each pair.

A join whose condition says that both rows are in the same window is a window join: it is done when the window is
over, and keeps nothing beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import UnsupportedFeatureError
from headrace.planner.expressions import (
    Call,
    Expression,
    InputRef,
    conjunction,
    conjuncts,
    references,
    shift,
    substitute,
)
from headrace.planner.logical import (
    Join,
    JoinKind,
    LogicalNode,
    Schema,
    WindowColumns,
    WindowKind,
    window_columns,
)
from headrace.planner.physical import Join as PhysicalJoin
from headrace.planner.physical import PhysicalNode, WindowJoin
from headrace.planner.rules.nodes import Convert, calc, columns_of, exchanged, with_columns

__all__ = ["convert_join"]


@dataclass(frozen=True)
class _Pair:
    """An equality of the condition: an expression of each side, over that side's columns."""

    left: Expression
    right: Expression
    is_null_safe: bool


def convert_join(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn a join into an operator."""
    if not isinstance(node, Join):
        return None
    width = len(node.left.schema)
    pairs, rest = _parted(node.condition, width)
    bounds = _same_window(node, pairs)
    if bounds is not None:
        pairs = [pair for pair in pairs if not _is_bound(pair, bounds)]
    left, left_keys = with_columns(convert(node.left), [pair.left for pair in pairs])
    right, right_keys = with_columns(convert(node.right), [pair.right for pair in pairs])
    # Key columns that were computed stand behind the left side's own, and move what the rest reads on the right.
    moved = {
        index: InputRef(index - width + len(left.schema), node.right.schema[index - width].type)
        for each in rest
        for index in references(each)
        if index >= width
    }
    condition = conjunction([substitute(each, moved) for each in rest]) if rest else None
    is_half = node.kind in (JoinKind.SEMI, JoinKind.ANTI)
    both = node.schema if is_half else _both(node, left, right)
    made: PhysicalNode
    if bounds is not None:
        one, other = bounds
        made = WindowJoin(
            schema=left.schema if is_half else both,
            left=exchanged(left, left_keys),
            right=exchanged(right, right_keys),
            kind=node.kind,
            left_keys=tuple(left_keys),
            right_keys=tuple(right_keys),
            left_window=(min(one.start), min(one.end)),
            right_window=(min(other.start), min(other.end)),
            condition=condition,
        )
    else:
        made = PhysicalJoin(
            schema=left.schema if is_half else both,
            left=exchanged(left, left_keys),
            right=exchanged(right, right_keys),
            kind=node.kind,
            left_keys=tuple(left_keys),
            right_keys=tuple(right_keys),
            condition=condition,
            null_safe=tuple(pair.is_null_safe for pair in pairs),
            left_ttl_ms=node.left_ttl_ms,
            right_ttl_ms=node.right_ttl_ms,
        )
    columns = list(range(width))
    if not is_half:
        columns += range(len(left.schema), len(left.schema) + len(node.right.schema))
    return calc(made, columns_of(made, columns), [field.name for field in node.schema])


def _both(node: Join, left: PhysicalNode, right: PhysicalNode) -> Schema:
    """Left columns, then right ones; as the join leaves some of them empty, they may be NULL."""
    left_width = len(node.left.schema)
    return (
        *node.schema[:left_width],
        *left.schema[left_width:],
        *node.schema[left_width:],
        *right.schema[len(node.right.schema) :],
    )


def _parted(condition: Expression, width: int) -> tuple[list[_Pair], list[Expression]]:
    """Find the equalities between the two sides; return the other conditions, too."""
    pairs: list[_Pair] = []
    rest: list[Expression] = []
    for each in conjuncts(condition):
        pair = _pair(each, width)
        if pair is None:
            rest.append(each)
        else:
            pairs.append(pair)
    return pairs, rest


def _pair(condition: Expression, width: int) -> _Pair | None:
    if not isinstance(condition, Call) or condition.function not in ("EQUALS", "IS_NOT_DISTINCT_FROM"):
        return None
    one, other = condition.operands
    if not references(one) or not references(other):
        return None
    if min(references(one)) >= width:
        one, other = other, one
    if max(references(one)) >= width or min(references(other)) < width:
        return None
    if one.type.nullable() != other.type.nullable():
        return None
    return _Pair(one, shift(other, -width), condition.function == "IS_NOT_DISTINCT_FROM")


def _same_window(node: Join, pairs: list[_Pair]) -> tuple[WindowColumns, WindowColumns] | None:
    left, right = window_columns(node.left), window_columns(node.right)
    if left is None or right is None:
        return None
    has_start = any(_joins(pair, left.start, right.start) for pair in pairs)
    has_end = any(_joins(pair, left.end, right.end) for pair in pairs)
    if not has_start or not has_end:
        return None
    if left.window != right.window or left.time_kind is not right.time_kind:
        raise UnsupportedFeatureError(
            f"a window join of {left.window} and {right.window}: both sides need the same windows",
            feature="a window join of different windows",
            hint="use the same window function with the same sizes on both sides",
        )
    if left.window.kind is WindowKind.SESSION:
        raise UnsupportedFeatureError.not_yet(
            "a window join of SESSION windows", "use TUMBLE, HOP or CUMULATE"
        )
    return left, right


def _joins(pair: _Pair, left: frozenset[int], right: frozenset[int]) -> bool:
    return (
        isinstance(pair.left, InputRef)
        and isinstance(pair.right, InputRef)
        and pair.left.index in left
        and pair.right.index in right
    )


def _is_bound(pair: _Pair, bounds: tuple[WindowColumns, WindowColumns]) -> bool:
    left, right = bounds
    return _joins(pair, left.start, right.start) or _joins(pair, left.end, right.end)
