"""Joins: pairs of equal columns become the key rows meet by, what is left is looked at for each pair.

A join whose condition says that both rows are in the same window is a window join: it is done when the window is
over, and keeps nothing beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import UnsupportedFeatureError
from headrace.planner import expressions as e
from headrace.planner.logical import Join, JoinKind, LogicalNode, Schema, WindowColumns, window_columns
from headrace.planner.physical import IntervalJoin, PhysicalNode, TemporalJoin, WindowJoin
from headrace.planner.physical import Join as PhysicalJoin
from headrace.planner.rules.intervals import TimeBounds, interval_of
from headrace.planner.rules.nodes import Convert, calc, columns_of, exchanged, with_columns

__all__ = ["convert_join", "is_window_join"]


@dataclass(frozen=True)
class _Pair:
    """An equality of the condition: an expression of each side, over that side's columns."""

    left: e.Expression
    right: e.Expression
    is_null_safe: bool


def convert_join(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn a join into an operator."""
    if not isinstance(node, Join):
        return None
    if node.as_of is not None:
        return convert_temporal_join(node, convert)
    width = len(node.left.schema)
    pairs, rest = _parted(node.condition, width)
    bounds = _same_window(node, pairs)
    interval = interval_of(node) if bounds is None else None
    if interval is not None:
        pairs, rest = _parted(e.conjunction(list(interval.rest)), width, keeps_null_safe=True)
    if bounds is not None:
        pairs = [pair for pair in pairs if not _is_bound(pair, bounds)]
    # Spark looks at pairs of rows without Python: what functions of one side say is computed there.
    calls = _calls_of_sides(rest, width)
    left, left_places = with_columns(convert(node.left), [*(pair.left for pair in pairs), *calls[0]])
    right, right_places = with_columns(
        convert(node.right), [*(pair.right for pair in pairs), *(e.shift(call, -width) for call in calls[1])]
    )
    left_keys, right_keys = left_places[: len(pairs)], right_places[: len(pairs)]
    # Columns that were computed stand after the left side's own, and move what the rest reads on the right.
    places = [*left_places[len(pairs) :], *(len(left.schema) + at for at in right_places[len(pairs) :])]
    results = {
        call: e.InputRef(at, call.type) for call, at in zip([*calls[0], *calls[1]], places, strict=True)
    }

    def placed(part: e.Expression) -> e.Expression | None:
        if isinstance(part, e.InputRef) and part.index >= width:
            at = part.index - width
            return e.InputRef(at + len(left.schema), node.right.schema[at].type)
        return results.get(part) if isinstance(part, e.UserCall) else None

    checked, behind = _without_python(node, [e.rewrite(each, placed) for each in rest])
    condition = e.conjunction(checked) if checked else None
    is_half = node.kind in (JoinKind.SEMI, JoinKind.ANTI)
    both = node.schema if is_half else _both(node, left, right)
    keyed = {
        "left": exchanged(left, left_keys),
        "right": exchanged(right, right_keys),
        "kind": node.kind,
        "left_keys": tuple(left_keys),
        "right_keys": tuple(right_keys),
        "condition": condition,
    }
    made = _operator(node, left.schema if is_half else both, keyed, bounds, interval, pairs)
    return _as_asked(node, made, len(left.schema), behind)


def convert_temporal_join(node: Join, convert: Convert) -> PhysicalNode:
    """Turn a join with the versions of a table into an operator; what else must hold is looked at after it."""
    assert node.as_of is not None
    width = len(node.left.schema)
    conditions = [each for each in e.conjuncts(node.condition) if not _is_temporal(each)]
    pairs, rest = _parted(e.conjunction(conditions), width, keeps_null_safe=True)
    left, left_keys = with_columns(convert(node.left), [pair.left for pair in pairs])
    right, right_keys = with_columns(convert(node.right), [pair.right for pair in pairs])
    made = TemporalJoin(
        schema=_both(node, left, right),
        left=exchanged(left, left_keys),
        right=exchanged(right, right_keys),
        kind=node.kind,
        left_keys=tuple(left_keys),
        right_keys=tuple(right_keys),
        left_time=node.as_of[0],
        right_time=node.as_of[1],
    )
    columns = columns_of(made, range(width))
    versions = columns_of(made, range(len(left.schema), len(left.schema) + len(node.right.schema)))
    both = dict(enumerate([*columns, *versions]))
    moved = [e.substitute(each, both) for each in rest]
    behind: e.Expression | None = e.conjunction(moved) if moved else None
    if behind is not None and node.kind is JoinKind.LEFT:
        # A row whose version does not fit is as one without a version.
        versions = [
            e.Call("CASE", (behind, each, e.Literal(None, each.type)), each.type) for each in versions
        ]
        behind = None
    names, times = [field.name for field in node.schema], [field.time for field in node.schema]
    return calc(made, [*columns, *versions], names, behind, times)


def _is_temporal(condition: e.Expression) -> bool:
    return isinstance(condition, e.Call) and condition.function == e.TEMPORAL


def _operator(
    node: Join,
    schema: Schema,
    keyed: Mapping[str, Any],
    windows: tuple[WindowColumns, WindowColumns] | None,
    interval: TimeBounds | None,
    pairs: Sequence[_Pair],
) -> PhysicalNode:
    """Return the operator of a join: of rows of the same window, of rows that are near each other, or of all."""
    if windows is not None:
        one, other = windows
        return WindowJoin(
            schema=schema,
            left_window=(min(one.start), min(one.end)),
            right_window=(min(other.start), min(other.end)),
            **keyed,
        )
    if interval is not None:
        return IntervalJoin(
            schema=schema,
            left_time=interval.left,
            right_time=interval.right,
            lower_ms=interval.lower_ms,
            upper_ms=interval.upper_ms,
            time=interval.time,
            **keyed,
        )
    return PhysicalJoin(
        schema=schema,
        null_safe=tuple(pair.is_null_safe for pair in pairs),
        left_ttl_ms=node.left_ttl_ms,
        right_ttl_ms=node.right_ttl_ms,
        **keyed,
    )


def _as_asked(
    node: Join, made: PhysicalNode, left_width: int, conditions: list[e.Expression]
) -> PhysicalNode:
    """Leave out the columns that were computed for the join, and the rows that the conditions refuse."""
    columns = list(range(len(node.left.schema)))
    if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        columns += range(left_width, left_width + len(node.right.schema))
    names = [field.name for field in node.schema]
    return calc(made, columns_of(made, columns), names, e.conjunction(conditions) if conditions else None)


def is_window_join(node: Join) -> bool:
    """Whether the condition says that both rows are in the same window."""
    pairs, _ = _parted(node.condition, len(node.left.schema))
    return _same_window(node, pairs) is not None


def _calls_of_sides(
    conditions: Sequence[e.Expression], width: int
) -> tuple[dict[e.UserCall, None], dict[e.UserCall, None]]:
    """Find the calls of Python functions with columns of the left side alone, and those of the right side."""
    sides: tuple[dict[e.UserCall, None], dict[e.UserCall, None]] = ({}, {})

    def note(part: e.Expression) -> e.Expression | None:
        if not isinstance(part, e.UserCall):
            return None
        are_right = {index >= width for index in e.references(part)}
        if len(are_right) > 1:
            return None
        sides[True in are_right][part] = None
        return part

    for each in conditions:
        e.rewrite(each, note)
    return sides


def _without_python(
    node: Join, conditions: Sequence[e.Expression]
) -> tuple[list[e.Expression], list[e.Expression]]:
    """Part conditions into those that the join looks at, and those that Python looks at after it."""
    behind = [each for each in conditions if any(isinstance(part, e.UserCall) for part in e.walk(each))]
    if behind and node.kind is not JoinKind.INNER:
        raise UnsupportedFeatureError(
            f"a Python function of columns of both sides in the condition of a {node.kind.value} join: "
            "as in Flink, only inner joins support it",
            feature=f"a Python function of both sides in the condition of a {node.kind.value} join",
            hint="call functions with columns of one side, or make it an inner join",
        )
    return [each for each in conditions if each not in behind], behind


def _both(node: Join, left: PhysicalNode, right: PhysicalNode) -> Schema:
    """Left columns, then right ones; as the join leaves some of them empty, they may be NULL."""
    left_width = len(node.left.schema)
    return (
        *node.schema[:left_width],
        *left.schema[left_width:],
        *node.schema[left_width:],
        *right.schema[len(node.right.schema) :],
    )


def _parted(
    condition: e.Expression, width: int, *, keeps_null_safe: bool = False
) -> tuple[list[_Pair], list[e.Expression]]:
    """Find the equalities between the two sides; return the other conditions, too.

    Args:
        condition: Of the join.
        width: How many columns the left side has.
        keeps_null_safe: Whether equalities in which NULL is a value are left among the others.
    """
    pairs: list[_Pair] = []
    rest: list[e.Expression] = []
    for each in e.conjuncts(condition):
        pair = _pair(each, width)
        if pair is None or (keeps_null_safe and pair.is_null_safe):
            rest.append(each)
        else:
            pairs.append(pair)
    return pairs, rest


def _pair(condition: e.Expression, width: int) -> _Pair | None:
    if not isinstance(condition, e.Call) or condition.function not in ("EQUALS", "IS_NOT_DISTINCT_FROM"):
        return None
    one, other = condition.operands
    if not e.references(one) or not e.references(other):
        return None
    if min(e.references(one)) >= width:
        one, other = other, one
    if max(e.references(one)) >= width or min(e.references(other)) < width:
        return None
    if one.type.nullable() != other.type.nullable():
        return None
    return _Pair(one, e.shift(other, -width), condition.function == "IS_NOT_DISTINCT_FROM")


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
    return left, right


def _joins(pair: _Pair, left: frozenset[int], right: frozenset[int]) -> bool:
    return (
        isinstance(pair.left, e.InputRef)
        and isinstance(pair.right, e.InputRef)
        and pair.left.index in left
        and pair.right.index in right
    )


def _is_bound(pair: _Pair, bounds: tuple[WindowColumns, WindowColumns]) -> bool:
    left, right = bounds
    return _joins(pair, left.start, right.start) or _joins(pair, left.end, right.end)
