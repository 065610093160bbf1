"""Removes unused columns as early as possible, so that they are neither exchanged nor kept in state.

Goes from the sink down with the set of columns that are needed, and puts a projection under every node that keeps
state wherever its input has more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headrace.planner import expressions as e
from headrace.planner import logical as n
from headrace.planner.logical_match import MatchRecognize
from headrace.planner.rules.tree import over_inputs, projected

__all__ = ["prune_columns"]


def prune_columns(node: n.LogicalNode) -> n.LogicalNode:
    """Return the same columns of the same rows, from as few columns below as they need."""
    return _all_of(node)


def _all_of(node: n.LogicalNode) -> n.LogicalNode:
    pruned, places = _prune(node, set(range(len(node.schema))))
    return _narrowed(pruned, [places[index] for index in range(len(node.schema))])


def _prune(node: n.LogicalNode, needed: set[int]) -> tuple[n.LogicalNode, dict[int, int]]:
    """Return a node with at least the needed columns, and where each of them is."""
    match node:
        case n.Project():
            kept = sorted(needed) or [0]
            chosen = [node.expressions[index] for index in kept]
            below, places = _prune(node.input, _used(chosen))
            names = tuple(node.names[index] for index in kept)
            return n.Project(below, tuple(_moved(chosen, places)), names), _order(kept)
        case n.Filter():
            below, places = _prune(node.input, needed | e.references(node.condition))
            return n.Filter(below, e.substitute(node.condition, _references(node.input, places))), places
        case n.Aggregate():
            return _prune_aggregate(node, needed)
        case n.Join():
            return _prune_join(node, needed)
        case n.Over():
            return _prune_over(node, needed)
        case MatchRecognize():
            return _prune_match(node)
        case n.Sort() | n.Limit():
            keys = node.keys if isinstance(node, n.Sort) else ()
            below, places = _prune(node.input, needed | _used(key.expression for key in keys))
            if isinstance(node, n.Sort):
                return n.Sort(below, _moved_keys(keys, _references(node.input, places)), node.place), places
            return over_inputs(node, [below]), places
        case _:
            # Window functions, watermarks, unions and the like hand every column on.
            inputs = [_all_of(each) for each in node.inputs]
            return over_inputs(node, inputs), _order(range(len(node.schema)))


def _prune_aggregate(node: n.Aggregate, needed: set[int]) -> tuple[n.LogicalNode, dict[int, int]]:
    width = len(node.group_keys)
    calls = [at for at in range(len(node.calls)) if width + at in needed]
    # A group without results is still a group: it may come and go.
    chosen = [node.calls[at] for at in calls]
    used = set(node.group_keys) | _used(_parts(chosen))
    windows = n.window_columns(node.input)
    if windows is not None:
        used |= windows.start | windows.end | windows.time
    below, places = _prune(node.input, used)
    below, places = _exactly(below, places, used)
    mapping = _references(node.input, places)
    renewed = replace(
        node,
        input=below,
        group_keys=tuple(places[key] for key in node.group_keys),
        calls=tuple(_moved_call(each, mapping) for each in chosen),
        names=(*node.names[:width], *(node.names[width + at] for at in calls)),
        grouping_sets=node.grouping_sets
        and tuple(tuple(places[key] for key in one) for one in node.grouping_sets),
    )
    return renewed, _order([*range(width), *(width + at for at in calls)])


def _prune_join(node: n.Join, needed: set[int]) -> tuple[n.LogicalNode, dict[int, int]]:
    width = len(node.left.schema)
    used = needed | e.references(node.condition)
    for side, start in ((node.left, 0), (node.right, width)):
        # A window join is told by the windows of both sides.
        windows = n.window_columns(side)
        if windows is not None:
            used = used | {start + each for each in windows.start | windows.end}
    left_used = {index for index in used if index < width}
    right_used = {index - width for index in used if index >= width}
    left, left_places = _exactly(*_prune(node.left, left_used), left_used)
    right, right_places = _exactly(*_prune(node.right, right_used), right_used)
    shifted = len(left.schema)
    places = dict(left_places) | {width + old: shifted + new for old, new in right_places.items()}
    both = [*node.left.schema, *node.right.schema]
    mapping = {old: e.InputRef(new, both[old].type) for old, new in places.items()}
    condition = e.substitute(node.condition, mapping)
    if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
        places = dict(left_places)
    return replace(node, left=left, right=right, condition=condition), places


def _prune_over(node: n.Over, needed: set[int]) -> tuple[n.LogicalNode, dict[int, int]]:
    width = len(node.input.schema)
    below_needed = {index for index in needed if index < width} | _used(_window_parts(node.calls))
    windows = n.window_columns(node.input)
    if windows is not None:
        below_needed |= windows.start | windows.end
    below, places = _exactly(*_prune(node.input, below_needed), below_needed)
    mapping = _references(node.input, places)
    calls = tuple(
        replace(
            call,
            arguments=tuple(e.substitute(each, mapping) for each in call.arguments),
            partition_by=tuple(e.substitute(each, mapping) for each in call.partition_by),
            order_by=_moved_keys(call.order_by, mapping),
        )
        for call in node.calls
    )
    narrow = len(below.schema)
    added = {width + at: narrow + at for at in range(len(node.calls))}
    return n.Over(below, calls, node.names), places | added


def _prune_match(node: MatchRecognize) -> tuple[n.LogicalNode, dict[int, int]]:
    said = [*node.measures, *(each for each in node.conditions if each is not None)]
    used = set(node.partition_by) | _used([*said, *(key.expression for key in node.order_by)])
    below, places = _exactly(*_prune(node.input, used), used)
    renewed = replace(
        node,
        input=below,
        partition_by=tuple(places[key] for key in node.partition_by),
        order_by=_moved_keys(node.order_by, _references(node.input, places)),
        conditions=tuple(each and _moved([each], places)[0] for each in node.conditions),
        measures=tuple(_moved(node.measures, places)),
    )
    return renewed, _order(range(len(node.schema)))


def _exactly(
    node: n.LogicalNode, places: Mapping[int, int], needed: set[int]
) -> tuple[n.LogicalNode, dict[int, int]]:
    """Leave out what came along without being needed."""
    kept = sorted(needed)
    wanted = [places[index] for index in kept] or [0]
    if len(wanted) == len(node.schema) and wanted == sorted(wanted):
        return node, {index: places[index] for index in kept}
    return _narrowed(node, wanted), _order(kept)


def _narrowed(node: n.LogicalNode, columns: Sequence[int]) -> n.LogicalNode:
    return node if list(columns) == list(range(len(node.schema))) else projected(node, columns)


def _order(columns: Iterable[int]) -> dict[int, int]:
    return {old: new for new, old in enumerate(columns)}


def _references(node: n.LogicalNode, places: Mapping[int, int]) -> dict[int, e.Expression]:
    schema = node.schema
    return {old: e.InputRef(new, schema[old].type) for old, new in places.items()}


def _used(expressions: Iterable[e.Expression]) -> set[int]:
    return {index for each in expressions for index in e.references(each)}


def _moved(expressions: Iterable[e.Expression], places: Mapping[int, int]) -> list[e.Expression]:
    def move(part: e.Expression) -> e.Expression | None:
        return e.InputRef(places[part.index], part.type) if isinstance(part, e.InputRef) else None

    return [e.rewrite(each, move) for each in expressions]


def _moved_keys(keys: Iterable[e.SortKey], mapping: Mapping[int, e.Expression]) -> tuple[e.SortKey, ...]:
    return tuple(replace(key, expression=e.substitute(key.expression, mapping)) for key in keys)


def _moved_call(call: e.AggregateCall, mapping: Mapping[int, e.Expression]) -> e.AggregateCall:
    return replace(
        call,
        arguments=tuple(e.substitute(each, mapping) for each in call.arguments),
        filter=None if call.filter is None else e.substitute(call.filter, mapping),
        order_by=_moved_keys(call.order_by, mapping),
    )


def _parts(calls: Iterable[e.AggregateCall]) -> list[e.Expression]:
    found: list[e.Expression] = []
    for call in calls:
        found += [*call.arguments, *e.conjuncts(call.filter), *(key.expression for key in call.order_by)]
    return found


def _window_parts(calls: Iterable[e.WindowCall]) -> list[e.Expression]:
    found: list[e.Expression] = []
    for call in calls:
        found += [*call.arguments, *call.partition_by, *(key.expression for key in call.order_by)]
    return found
