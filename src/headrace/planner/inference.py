"""Finds out the changelog of every node of a plan: see `headrace.common.changelog` for what it is about.

1. From the scans up: which changes a node may make: inserts, updates, deletes.
2. From the sinks down: who needs the row as it was before an update.
3. From the scans up again: what each node emits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.catalog.process_functions import ArgumentTrait
from headrace.common.changelog import ALL, INSERT_ONLY, UPSERT, ChangelogMode, merged
from headrace.common.types import RowKind
from headrace.errors import SqlValidationError
from headrace.planner.expressions import references
from headrace.planner.keys import Keys
from headrace.planner.logical import JoinKind
from headrace.planner.physical import (
    Calc,
    ChangelogNormalize,
    Deduplicate,
    Exchange,
    Expand,
    FromChangelog,
    GroupAggregate,
    IntervalJoin,
    Join,
    Match,
    OverAggregate,
    PhysicalNode,
    ProcessTable,
    Rank,
    RankStrategy,
    SessionRows,
    Sink,
    StreamTarget,
    TableScan,
    TemporalJoin,
    TemporalSort,
    Union,
    Unnest,
    WatermarkAssigner,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
    walk,
)
from headrace.planner.rules.nodes import placed_error

__all__ = ["infer_changelogs"]

#: Nodes that hand rows on with the kind they came with.
_PASSING = (Calc, Exchange, Expand, Unnest, WatermarkAssigner, WindowTableFunction, Union)
#: Nodes that cannot take back what they were given.
_INSERTS_ONLY = (IntervalJoin, WindowJoin, WindowRank, TemporalSort, SessionRows, Match)

_UPDATING = ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER)


def infer_changelogs(
    roots: Sequence[PhysicalNode], keys: Mapping[PhysicalNode, Keys]
) -> dict[PhysicalNode, ChangelogMode]:
    """Return what each node of a plan emits.

    Args:
        roots: The sinks.
        keys: What `infer_keys` says about the plan.

    Raises:
        SqlValidationError: If a node or a sink cannot take the changes that come.
    """
    nodes = walk(roots)
    changes: dict[PhysicalNode, ChangelogMode] = {}
    for node in nodes:
        below = [changes[each] for each in node.inputs]
        _check(node, below)
        changes[node] = _changes(node, below)
    demanded = _demands(nodes, keys)
    emitted: dict[PhysicalNode, ChangelogMode] = {}
    for node in nodes:
        emitted[node] = _emitted(node, changes[node], [emitted[each] for each in node.inputs], demanded)
    return emitted


def _changes(node: PhysicalNode, below: Sequence[ChangelogMode]) -> ChangelogMode:
    """Which changes a node makes, with updates as the new row alone."""
    match node:
        case TableScan():
            return node.mode.without_update_before()
        case GroupAggregate():
            return _UPDATING if below[0].is_insert_only else UPSERT
        case Join():
            return merged(below) if node.kind in (JoinKind.INNER, JoinKind.SEMI) else UPSERT
        case Rank():
            return INSERT_ONLY if node.written_as == "Limit" and below[0].is_insert_only else UPSERT
        case Deduplicate():
            is_final = not node.keep_last and (node.waits or not node.is_rowtime) and below[0].is_insert_only
            return INSERT_ONLY if is_final else UPSERT
        case ChangelogNormalize():
            return UPSERT
        case OverAggregate() if node.time is None:
            return UPSERT
        case TemporalJoin():
            return below[0]
        case ProcessTable():
            return node.call.mode_of(below, UPSERT).without_update_before()
        case FromChangelog():
            return UPSERT
        case Sink():
            return ChangelogMode.of()
        case _ if isinstance(node, _PASSING):
            return merged(below)
        case _:
            return INSERT_ONLY


def _demands(nodes: Sequence[PhysicalNode], keys: Mapping[PhysicalNode, Keys]) -> set[PhysicalNode]:
    """Find the nodes whose updates must come with the row as it was before."""
    demanded: set[PhysicalNode] = set()
    for node in reversed(nodes):
        for each in node.inputs:
            if isinstance(node, TemporalJoin) and each is node.right:
                continue  # the row before an update holds until the update does
            if isinstance(node, ProcessTable):
                if _wants_whole_updates(node, each, keys[each]):
                    demanded.add(each)
            elif _wants_update_before(node, keys[each], is_asked=node in demanded):
                demanded.add(each)
    return demanded


def _wants_update_before(node: PhysicalNode, keys: Keys, *, is_asked: bool) -> bool:
    match node:
        case Sink():
            return node.accepts.has_update_before or node.materializes
        case Calc():
            return is_asked or not _keeps_keys(node, keys)
        case Join():
            # Where Flink's join finds the old row by its key, ours finds it by its values: it wants the −U.
            return True
        case Rank():
            return node.strategy is not RankStrategy.UPDATE_FAST
        case ChangelogNormalize():
            return False
        case TemporalJoin():
            return is_asked
        case _ if isinstance(node, _PASSING):
            return is_asked
        case _:
            return True


def _wants_whole_updates(node: ProcessTable, source: PhysicalNode, keys: Keys) -> bool:
    """Whether a function needs the row before an update: if it says so, or is not called by the rows' own key."""
    table = node.call.tables[[each is source for each in node.tables].index(True)]
    if table.spec.has(ArgumentTrait.REQUIRE_UPDATE_BEFORE) or not table.spec.is_set:
        return True
    return frozenset(table.partition_by) not in keys


def _keeps_keys(node: Calc, keys: Keys) -> bool:
    """Whether all rows of a key pass the condition, or none does: else an update may leave an old row behind."""
    if node.condition is None:
        return True
    used = references(node.condition)
    return any(used <= key for key in keys)


def _emitted(
    node: PhysicalNode,
    changes: ChangelogMode,
    below: Sequence[ChangelogMode],
    demanded: Iterable[PhysicalNode],
) -> ChangelogMode:
    if isinstance(node, TableScan):
        return node.mode
    if isinstance(node, _PASSING):
        return merged(below)
    if isinstance(node, TemporalJoin):
        return below[0]
    if isinstance(node, FromChangelog):
        return ALL
    if isinstance(node, ProcessTable):
        return _processed(node, below, is_asked=node in demanded)
    return changes.with_update_before() if node in demanded else changes


def _processed(node: ProcessTable, below: Sequence[ChangelogMode], *, is_asked: bool) -> ChangelogMode:
    """Return what a function emits, which it says itself."""
    mode = node.call.mode_of(below, ALL if is_asked else UPSERT)
    if is_asked and mode.has_updates and not mode.has_update_before:
        raise placed_error(
            node.call.place,
            f"{node.call.function.name} emits updates without UPDATE_BEFORE, which the next operator requires",
            "have get_changelog_mode() return ChangelogMode.all(), or write to a sink with a PRIMARY KEY that is the "
            "function's PARTITION BY",
        )
    return mode


def _check_process(node: ProcessTable, below: Sequence[ChangelogMode], emitted: ChangelogMode) -> None:
    call = node.call
    for table, mode in zip(call.tables, below, strict=True):
        if not mode.is_insert_only and not table.spec.has(ArgumentTrait.SUPPORT_UPDATES):
            raise placed_error(
                table.place,
                f"{call.function.name} does not support {_kinds(mode)} changes, which its table "
                f"{table.spec.name!r} has",
                "declare the argument with ArgumentTrait.SUPPORT_UPDATES, or call TO_CHANGELOG first",
            )
    if call.has_time and not all(mode.is_insert_only for mode in (*below, emitted)):
        raise placed_error(
            call.place,
            f"{call.function.name}: on_time is not supported for functions that take or emit updates",
            "leave on_time out, or call the function with insert-only tables",
        )
    passes = any(table.spec.has(ArgumentTrait.PASS_COLUMNS_THROUGH) for table in call.tables)
    if passes and not emitted.is_insert_only:
        raise placed_error(
            call.place,
            f"{call.function.name} emits updates, so columns cannot pass through",
            "leave ArgumentTrait.PASS_COLUMNS_THROUGH out, and emit the columns",
        )


def _check(node: PhysicalNode, below: Sequence[ChangelogMode]) -> None:
    is_final = isinstance(node, OverAggregate) and node.time is not None
    if is_final or isinstance(node, _INSERTS_ONLY):
        for source, mode in zip(node.inputs, below, strict=True):
            if not mode.is_insert_only:
                raise SqlValidationError(
                    f"{node.label} does not support {_kinds(mode)} changes, which its input {source.label} produces",
                    hint="group the rows by window first, or take the rows before they are aggregated",
                )
    if isinstance(node, ProcessTable):
        _check_process(node, below, node.call.mode_of(below, UPSERT))
    if isinstance(node, FromChangelog) and not below[0].is_insert_only:
        raise placed_error(
            node.place,
            f"FROM_CHANGELOG takes insert-only tables, and this one has {_kinds(below[0])} changes",
            "call TO_CHANGELOG first, or take the rows before they are aggregated",
        )
    if isinstance(node, Sink):
        (mode,) = below
        if not mode.kinds <= node.accepts.kinds:
            culprit = _maker(node.input)
            if isinstance(node.target, StreamTarget):
                raise SqlValidationError(
                    f"{node.target.call}: {culprit.label} makes {_kinds(mode)} changes, but the stream accepts only "
                    f"{node.accepts}",
                    hint="use to_changelog_stream(), whose rows say by their kind what they do to the table; "
                    "or windows, whose results are final",
                )
            raise placed_error(
                node.place,
                f"table sink {node.name!r} does not support {_kinds(mode)} changes, which {culprit.label} produces",
                "declare PRIMARY KEY (...) NOT ENFORCED on a sink that can update, "
                "or use windows, whose results are final",
            )


def _kinds(mode: ChangelogMode) -> str:
    words = [
        *(["update"] if mode.has_updates else []),
        *(["delete"] if mode.has_deletes else []),
    ]
    return " and ".join(words)


def _maker(node: PhysicalNode) -> PhysicalNode:
    """Find the node that makes the changes another one only passes on."""
    while isinstance(node, _PASSING) and node.inputs:
        node = node.inputs[0]
    return node
