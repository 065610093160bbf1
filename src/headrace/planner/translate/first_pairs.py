"""A top-N after an inner join: the join need not make pairs that others of the same epoch and partition outrank.

A pair costs all its columns a copy and the way to the next node, and a top-N keeps few of them. It must be the only
reader, and nothing may happen to pairs on the way that the join does not know of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table.declarations import FirstPairs, JoinDeclaration, JoinKind, RankDeclaration
from headrace.operators.table.pair_conditions import PairCondition
from headrace.operators.table.steps import Select
from headrace.types.logical import quote_name

__all__ = ["with_first_pairs"]


def with_first_pairs(nodes: Sequence[TableNode]) -> list[TableNode]:
    """Tell joins which of their pairs are wanted."""
    made = list(nodes)
    readers = [each.node for node in nodes for each in node.inputs]
    for node in nodes:
        if isinstance(node.declaration, RankDeclaration) and len(node.inputs) == 1:
            (edge,) = node.inputs
            join = nodes[edge.node].declaration
            if isinstance(join, JoinDeclaration) and readers.count(edge.node) == 1:
                informed = replace(join, first_pairs=_first_pairs(node.declaration, edge, join))
                made[edge.node] = replace(nodes[edge.node], declaration=informed)
    return made


def _first_pairs(rank: RankDeclaration, edge: TableInput, join: JoinDeclaration) -> FirstPairs | None:
    if join.kind is not JoinKind.INNER or not join.is_insert_only:
        return None
    if rank.row_by_row or join.row_by_row:
        return None
    if rank.last is None or rank.window_end is not None or rank.ttl_ms or not rank.order:
        return None
    types = [[column.arrow for column in side] for side in (join.left, join.right)]
    if not PairCondition.of(join.condition, *types).is_all_of(join.condition):
        return None
    positions = {column.name: at for at, column in enumerate(join.output)}
    for step in edge.fragment.steps:
        if not isinstance(step, Select):
            return None
        by_sql = {quote_name(name): at for name, at in positions.items()}
        positions = {name: by_sql[sql] for sql, name in step.items if sql in by_sql}
    wanted = [*rank.partition, *(order.column for order in rank.order)]
    if not all(name in positions for name in wanted):
        return None
    return FirstPairs(
        tuple(positions[name] for name in rank.partition),
        tuple((positions[order.column], order.ascending) for order in rank.order),
        rank.last,
    )
