"""Keys of a plan's rows: sets of columns that tell them apart, at any moment.

They decide whether an update may travel as the new row alone (it takes the place of the row with the same key),
whether a sink's primary key fits what comes, and how a top-N keeps its rows. A key is a set of column numbers; the
empty set is the key of a table that has at most one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.common.changelog import UPSERT
from headrace.planner.expressions import Expression, InputRef
from headrace.planner.logical import JoinKind
from headrace.planner.physical import (
    Calc,
    ChangelogNormalize,
    Deduplicate,
    Exchange,
    GroupAggregate,
    Join,
    OverAggregate,
    PhysicalNode,
    ProcessTable,
    Rank,
    Sink,
    TableScan,
    TemporalJoin,
    TemporalSort,
    WatermarkAssigner,
    WindowAggregate,
    WindowRank,
    walk,
)
from headrace.planner.windows import WindowProperty

__all__ = ["Key", "Keys", "fits", "infer_keys"]

Key = frozenset[int]
Keys = frozenset[Key]

_NONE: Keys = frozenset()
#: More are not followed: joins of many tables would multiply them.
_MOST = 8


def infer_keys(roots: Iterable[PhysicalNode]) -> dict[PhysicalNode, Keys]:
    """Return the keys of every node: none of a node's keys holds another one."""
    keys: dict[PhysicalNode, Keys] = {}
    for node in walk(roots):
        keys[node] = _least(_keys_of(node, keys))
    return keys


def _keys_of(node: PhysicalNode, known: Mapping[PhysicalNode, Keys]) -> Iterable[Key]:
    below = known[node.inputs[0]] if node.inputs else _NONE
    match node:
        case TableScan() if node.keys:
            return [frozenset(node.keys)]
        case Calc():
            return _through(below, node.expressions)
        case Exchange():
            # Rows with the same key but other columns to go by would take different ways, and lose their order.
            return [key for key in below if key >= set(node.columns)]
        case WatermarkAssigner() | Sink() | TemporalSort() | OverAggregate() | TemporalJoin():
            return below
        case GroupAggregate():
            return [frozenset(range(len(node.keys)))]
        case ProcessTable():
            # Of a function that emits updates without the row before: its keys say which row is meant.
            return [frozenset(range(len(node.call.tables[0].partition_by)))] if _is_upsert(node) else _NONE
        case WindowAggregate():
            return _window_aggregate_keys(node)
        case Join():
            return _join_keys(node, below, known[node.right])
        case Rank():
            return _rank_keys(node, below)
        case Deduplicate() | ChangelogNormalize():
            return [frozenset(node.keys)]
        case WindowRank():
            number = [frozenset((*node.window, *node.partition, len(node.schema) - 1))]
            return [*below, *(number if node.has_number else ())]
        case _:
            return _NONE


def _is_upsert(node: ProcessTable) -> bool:
    mode = node.call.mode_of([UPSERT] * len(node.tables), UPSERT)
    return mode.has_updates and not mode.has_update_before


def _through(below: Keys, expressions: Iterable[Expression]) -> list[Key]:
    """Keys whose columns are all passed on."""
    place: dict[int, int] = {}
    for position, expression in enumerate(expressions):
        if isinstance(expression, InputRef):
            place.setdefault(expression.index, position)
    return [frozenset(place[column] for column in key) for key in below if key <= place.keys()]


def _window_aggregate_keys(node: WindowAggregate) -> list[Key]:
    first = len(node.keys) + len(node.calls)
    bounds = [first + at for at, what in enumerate(node.properties) if what is not WindowProperty.PROCTIME]
    groups = range(len(node.keys))
    return [frozenset((*groups, bound)) for bound in bounds]


def _join_keys(node: Join, left: Keys, right: Keys) -> list[Key]:
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return list(left)
    width = len(node.left.schema)
    shifted = [frozenset(column + width for column in key) for key in right]
    found: list[Key] = []
    # A side whose key is in the join condition gives each row of the other side one partner at most.
    if any(key <= set(node.right_keys) for key in right) and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        found += left
    if any(key <= set(node.left_keys) for key in left) and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        found += shifted
    found += [one | other for one in left for other in shifted]
    return found


def _rank_keys(node: Rank, below: Keys) -> list[Key]:
    found = list(below)
    if node.has_number:
        found.append(frozenset((*node.partition, len(node.schema) - 1)))
    if node.first == node.last:
        found.append(frozenset(node.partition))
    return found


def _least(keys: Iterable[Key]) -> Keys:
    """Leave out keys that hold another one."""
    kept: list[Key] = []
    for key in sorted(set(keys), key=lambda each: (len(each), sorted(each))):
        if not any(other <= key for other in kept):
            kept.append(key)
    return frozenset(kept[:_MOST])


def fits(keys: Keys, primary: Iterable[int]) -> bool:
    """Whether a primary key is one of the plan's own.

    One with more columns is none: an update that changes them would leave the row of the old ones behind.
    """
    return frozenset(primary) in keys
