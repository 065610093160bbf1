"""From the physical plan to the nodes of a table job: Spark SQL on the edges, state in the nodes.

Nodes of the plan without state become steps on the way to the node that reads them (`planner.fragments`); a scan, a
node with state and a sink become vertices.

    Sink <- Calc <- GroupAggregate <- Exchange <- Calc <- TableScan
    [sink] <--Select-- [aggregate] <--Where, Select-- [scan]
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import InvariantViolation
from headrace.graph.table_job import TableNode
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.fragments import Stream
from headrace.planner.optimize import Plan
from headrace.planner.translate import (
    aggregates,
    borders,
    interval_joins,
    joins,
    matches,
    over,
    process_tables,
    ranks,
    sessions,
    temporal_joins,
)
from headrace.planner.translate.context import (
    Connectors,
    SinkChoice,
    Translation,
    TranslationSettings,
    renamed,
)
from headrace.planner.translate.first_pairs import with_first_pairs

__all__ = ["Connectors", "SinkChoice", "TranslationSettings", "translate"]


def translate(plan: Plan, connectors: Connectors, settings: TranslationSettings) -> list[TableNode]:
    """Return the nodes of the job, producers before consumers.

    Args:
        plan: The physical plan.
        connectors: Finds sources and sinks.
        settings: What holds for all operators.

    Raises:
        UnsupportedFeatureError: If something of the plan cannot run yet.
    """
    to = Translation(plan, connectors, settings)
    for node in plan.nodes:
        to.streams[node] = tuple(_translated(to, node))
    # Pairs that a later row of the epoch outdoes were emitted before it came.
    return to.nodes if settings.row_by_row else with_first_pairs(to.nodes)


def _translated(to: Translation, node: p.PhysicalNode) -> Iterable[Stream]:
    match node:
        case p.TableScan():
            return [borders.scan(to, node)]
        case p.Values():
            return [borders.values(to, node)]
        case p.WatermarkAssigner():
            return [borders.watermark(to, node)]
        case p.Exchange():
            return to.streams[node.input]
        case (
            p.Calc() | p.Expand() | p.Unnest() | p.WindowTableFunction() | p.ToChangelog() | p.FromChangelog()
        ):
            return [_stepped(to, node, stream) for stream in to.streams[node.input]]
        case p.Union():
            columns = f.columns_of(node.schema)
            return [renamed(stream, columns) for each in node.inputs for stream in to.streams[each]]
        case p.GroupAggregate():
            return [aggregates.group_aggregate(to, node)]
        case p.WindowAggregate():
            return [aggregates.window_aggregate(to, node)]
        case p.Join() | p.WindowJoin() | p.IntervalJoin() | p.TemporalJoin():
            return [_joined(to, node)]
        case p.SessionRows():
            return [sessions.session_rows(to, node)]
        case p.TemporalSort() if node.is_proctime:
            # All rows of an epoch have one time, and come in its order.
            return [ranks.epoch_sort(to, node)] if len(node.order) > 1 else to.streams[node.input]
        case p.TemporalSort():
            return [ranks.temporal_sort(to, node)]
        case p.OverAggregate():
            return [over.over_aggregate(to, node)]
        case p.Match():
            return [matches.match_recognize(to, node)]
        case p.Rank() | p.WindowRank() | p.Deduplicate() | p.ChangelogNormalize():
            return [_chosen(to, node)]
        case p.ProcessTable():
            return [process_tables.process_table(to, node)]
        case p.Sink():
            borders.sink(to, node)
            return []
        case _:
            raise InvariantViolation(f"no translation is known for {node.label}")


def _chosen(to: Translation, node: p.Rank | p.WindowRank | p.Deduplicate | p.ChangelogNormalize) -> Stream:
    match node:
        case p.Rank():
            return ranks.rank(to, node)
        case p.WindowRank():
            return ranks.window_rank(to, node)
        case p.Deduplicate():
            return ranks.deduplicate(to, node)
        case p.ChangelogNormalize():
            return ranks.normalize(to, node)


def _joined(to: Translation, node: p.Join | p.WindowJoin | p.IntervalJoin | p.TemporalJoin) -> Stream:
    match node:
        case p.Join():
            return joins.join(to, node)
        case p.WindowJoin():
            return joins.window_join(to, node)
        case p.IntervalJoin():
            return interval_joins.interval_join(to, node)
        case p.TemporalJoin():
            return temporal_joins.temporal_join(to, node)


def _stepped(
    to: Translation,
    node: p.Calc | p.Expand | p.Unnest | p.WindowTableFunction | p.ToChangelog | p.FromChangelog,
    stream: Stream,
) -> Stream:
    """Return a stream with one more step on its way: what a node without state does."""
    match node:
        case p.Calc():
            return f.calc(stream, node)
        case p.Expand():
            return f.expand(stream, node)
        case p.Unnest():
            return f.unnest(stream, node)
        case p.ToChangelog():
            return process_tables.to_changelog(stream, node)
        case p.FromChangelog():
            return process_tables.from_changelog(stream, node)
        case p.WindowTableFunction():
            return f.windows(stream, node, is_utc=to.settings.is_utc)
