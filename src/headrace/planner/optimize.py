"""From the logical trees of a job to its physical plan: rewrites, conversion, shared sub-plans, changelogs.

plan_job([Insert ...]) -> Plan: sinks over physical nodes, and of each node its keys and its changelog
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.errors import InvariantViolation
from headrace.planner.conflicts import ConflictRules, with_conflicts
from headrace.planner.expressions import Place
from headrace.planner.inference import infer_changelogs
from headrace.planner.keys import Keys, infer_keys
from headrace.planner.logical import Field, LogicalNode, OnConflict, Scan, Schema
from headrace.planner.physical import (
    ChangelogNormalize,
    Deduplicate,
    PhysicalNode,
    Rank,
    RankStrategy,
    Sink,
    SinkTarget,
    TableScan,
    share,
    walk,
)
from headrace.planner.rules import CONVERSIONS, REWRITES
from headrace.planner.rules.nodes import exchanged
from headrace.planner.rules.process_tables import check_uids
from headrace.planner.rules.prune_columns import prune_columns
from headrace.planner.rules.split_distinct import NOT_SPLIT, SplitAggregation, split_distinct
from headrace.planner.rules.time_attributes import settle_time_attributes
from headrace.planner.rules.tree import rewritten
from headrace.types.logical import DataType

__all__ = ["Plan", "SinkRequest", "SourceModes", "optimize_logical", "plan_batch", "plan_job", "to_physical"]


class SourceModes(Protocol):
    """What is known of tables that are read."""

    def mode_of(self, scan: Scan) -> ChangelogMode:
        """Return which kinds of rows a table's connector gives."""


class InsertOnlySources:
    """Tables whose rows are only ever added."""

    def mode_of(self, scan: Scan) -> ChangelogMode:
        return INSERT_ONLY


@dataclass(frozen=True)
class SinkRequest:
    """A query, and where its rows go."""

    query: LogicalNode
    name: str
    target: SinkTarget
    accepts: ChangelogMode
    #: Columns of the primary key; empty if there is none.
    keys: tuple[int, ...] = ()
    #: Names and types of the target's columns; those of the query if empty.
    names: tuple[str, ...] = ()
    types: tuple[DataType, ...] = ()
    on_conflict: OnConflict | None = None
    #: The query in the statement, for errors.
    place: Place | None = None

    @property
    def schema(self) -> Schema:
        """The columns that are written."""
        if not self.names:
            return self.query.schema
        return tuple(Field(name, each) for name, each in zip(self.names, self.types, strict=True))


@dataclass(frozen=True)
class Plan:
    """A job before it is translated."""

    #: The queries as they were bound.
    requests: tuple[SinkRequest, ...]
    sinks: tuple[PhysicalNode, ...]
    keys: dict[PhysicalNode, Keys]
    changelogs: dict[PhysicalNode, ChangelogMode]

    @property
    def nodes(self) -> list[PhysicalNode]:
        """Every node once, inputs before those that read them."""
        return walk(self.sinks)


def optimize_logical(node: LogicalNode) -> LogicalNode:
    """Rewrite a query into one that asks for the same with less work.

    Raises:
        SqlValidationError: If it needs a time attribute where there is none any more, or an interval join.
    """
    node = rewritten(node, REWRITES)
    return settle_time_attributes(rewritten(prune_columns(node), REWRITES))


def to_physical(node: LogicalNode) -> PhysicalNode:
    """Choose the operators of a query.

    Raises:
        UnsupportedFeatureError: If there is no operator for something it asks for.
        SqlValidationError: If it asks for something that has no end in a stream.
    """
    for conversion in CONVERSIONS:
        made = conversion(node, to_physical)
        if made is not None:
            return made
    raise InvariantViolation(f"no operator is known for {type(node).__name__}")


def plan_job(
    requests: Sequence[SinkRequest],
    sources: SourceModes | None = None,
    *,
    conflicts: ConflictRules = ConflictRules(),  # noqa: B008 - frozen
    is_sharing: bool = True,
    splitting: SplitAggregation = NOT_SPLIT,
    has_mini_batches: bool = False,
) -> Plan:
    """Plan queries that run as one job.

    Args:
        requests: The queries, each with its sink.
        sources: What is known of the tables that are read.
        conflicts: What holds where the primary key of a sink is not the query's own key.
        is_sharing: Whether equal parts of the queries run once.
        splitting: How aggregations with DISTINCT are split.
        has_mini_batches: Whether somebody has asked for them: then the first row by event time may change, as in Flink.

    Raises:
        UnsupportedFeatureError: If there is no operator for something they ask for.
        SqlValidationError: If a sink cannot take the changes of its query.
    """
    sources = sources or InsertOnlySources()
    made: list[PhysicalNode] = []
    for request in requests:
        rows = _with_modes(to_physical(optimize_logical(request.query)), sources)
        made.append(
            Sink(
                schema=request.schema,
                input=rows,
                name=request.name,
                target=request.target,
                accepts=request.accepts,
                keys=request.keys,
                on_conflict=request.on_conflict,
                place=request.place,
            )
        )
    sinks = made if has_mini_batches else _rebuilt(made, _waiting)
    roots = _with_strategies(split_distinct(sinks, splitting))
    if is_sharing:
        roots = share(roots)
    check_uids(roots)
    keys = infer_keys(roots)
    roots = tuple(with_conflicts(root, keys, conflicts) for root in roots)
    keys = infer_keys(roots)
    return Plan(tuple(requests), roots, keys, infer_changelogs(roots, keys))


def _waiting(node: PhysicalNode) -> PhysicalNode:
    """Let deduplications that keep the first row by event time wait for the watermark."""
    if isinstance(node, Deduplicate) and node.is_rowtime and not node.keep_last:
        return replace(node, waits=True)
    return node


def _with_modes(root: PhysicalNode, sources: SourceModes) -> PhysicalNode:
    """Say of every scan what its rows are; make a full changelog of one that only has keys."""

    def change(node: PhysicalNode) -> PhysicalNode:
        if not isinstance(node, TableScan):
            return node
        table = node.scan.table
        names = [column.name for column in table.source_columns]
        primary = table.primary_key.columns if table.primary_key is not None else ()
        keys = tuple(names.index(name) for name in primary if name in names)
        mode = sources.mode_of(node.scan)
        scan: PhysicalNode = replace(node, mode=mode, keys=keys if not mode.is_insert_only else ())
        if mode.has_updates and not mode.has_update_before:
            scan = ChangelogNormalize(schema=scan.schema, input=exchanged(scan, keys), keys=keys)
        return scan

    return _rebuilt([root], change)[0]


def _with_strategies(roots: Sequence[PhysicalNode]) -> tuple[PhysicalNode, ...]:
    """Say of every top-N how it keeps its rows."""
    keys = infer_keys(roots)
    changelogs = infer_changelogs([root.inputs[0] for root in roots], keys)

    def change(node: PhysicalNode) -> PhysicalNode:
        if isinstance(node, Rank) and changelogs[node.input].is_insert_only:
            return replace(node, strategy=RankStrategy.APPEND_FAST)
        return node

    return _rebuilt(roots, change)


def plan_batch(requests: Sequence[SinkRequest]) -> Plan:
    """Plan queries that run over bounded input, as one statement of Spark SQL each: there is nothing to choose."""
    return Plan(tuple(requests), (), {}, {})


def _rebuilt(
    roots: Sequence[PhysicalNode], change: Callable[[PhysicalNode], PhysicalNode]
) -> tuple[PhysicalNode, ...]:
    """Change nodes one by one; each is shown as it was, and then gets the changed inputs."""
    renewed: dict[int, PhysicalNode] = {}
    for node in walk(roots):
        changed = change(node)
        inputs = [renewed[id(each)] for each in node.inputs]
        renewed[id(node)] = changed.with_inputs(inputs) if node.inputs else changed
    return tuple(renewed[id(root)] for root in roots)
