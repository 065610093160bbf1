"""COUNT(DISTINCT user) GROUP BY city, where a few cities have most of the users: in two steps.

    GroupAggregate(city, bucket of user)    the distinct users of a city are kept in as many places as there are buckets
    GroupAggregate(city)                    adds the counts up

Calls with DISTINCT have to have the same argument, whose hash is the bucket: so equal values meet in one bucket, and
what the buckets say can be combined. COUNT, SUM, MIN and MAX can; others are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.planner import expressions as e
from headrace.planner.logical import Field
from headrace.planner.physical import Exchange, GroupAggregate, PhysicalNode, walk
from headrace.planner.rules.nodes import calc, columns_of, exchanged
from headrace.types.logical import DataType, IntType, MapType, MultisetType

__all__ = ["BUCKET_COLUMN", "NOT_SPLIT", "SplitAggregation", "not_split", "split_distinct"]

#: What puts together what the buckets say.
_MERGED = {"COUNT": "SUM0", "SUM": "SUM", "SUM0": "SUM0", "MIN": "MIN", "MAX": "MAX"}
#: The column that rows of an aggregation are split by.
BUCKET_COLUMN = "$bucket"


@dataclass(frozen=True)
class SplitAggregation:
    """How aggregations with DISTINCT are split.

    Args:
        buckets: How many there are; 0: none is split.
    """

    buckets: int = 0


NOT_SPLIT: Final = SplitAggregation()


def split_distinct(roots: Sequence[PhysicalNode], how: SplitAggregation) -> tuple[PhysicalNode, ...]:
    """Split the aggregations of a job that can be."""
    if not how.buckets:
        return tuple(roots)
    renewed: dict[int, PhysicalNode] = {}
    for node in walk(roots):
        made = node.with_inputs([renewed[id(each)] for each in node.inputs]) if node.inputs else node
        if isinstance(made, GroupAggregate) and _has_distinct(made) and not_split(made) is None:
            made = _split(made, how.buckets)
        renewed[id(node)] = made
    return tuple(renewed[id(root)] for root in roots)


def _has_distinct(node: GroupAggregate) -> bool:
    return any(call.distinct for call in node.calls)


def not_split(node: GroupAggregate) -> str | None:
    """Return why an aggregation is not split; None if it can be."""
    if not _has_distinct(node):
        return "it has no DISTINCT"
    for call in node.calls:
        if call.user_function is not None or call.function not in _MERGED:
            name = call.function if call.user_function is None else call.user_function.name
            return f"partial results of {name} cannot be combined"
    arguments = {call.arguments for call in node.calls if call.distinct}
    if len(arguments) > 1:
        return "its calls with DISTINCT have several arguments"
    if any(_is_unhashed(each.type) for each in next(iter(arguments))):
        return "a MAP has no hash"
    return None


def _is_unhashed(kind: DataType) -> bool:
    return isinstance(kind, MapType | MultisetType)


def _split(node: GroupAggregate, buckets: int) -> GroupAggregate:
    assert isinstance(node.input, Exchange)
    rows = node.input.input
    argument = next(call.arguments[0] for call in node.calls if call.distinct)
    count = e.Literal(buckets, IntType(False))
    bucket = e.Call(e.BUCKET, (argument, count), IntType(False))
    width = len(rows.schema)
    columns = [*columns_of(rows, range(width)), bucket]
    below = calc(rows, columns, [*(each.name for each in rows.schema), BUCKET_COLUMN])
    keys = (*node.keys, width)
    own = len(node.keys)
    parts = GroupAggregate(
        schema=(*node.schema[:own], Field(BUCKET_COLUMN, bucket.type), *node.schema[own:]),
        input=exchanged(below, keys),
        keys=keys,
        calls=node.calls,
        ttl_ms=node.ttl_ms,
    )
    calls = tuple(
        e.AggregateCall(_MERGED[call.function], (e.InputRef(own + 1 + at, call.type),), call.type)
        for at, call in enumerate(node.calls)
    )
    return replace(node, input=exchanged(parts, range(own)), keys=tuple(range(own)), calls=calls)
