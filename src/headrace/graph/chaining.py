"""Which operators share a task.

An edge whose two ends are chained is a function call instead of an exchange. The rules are Flink's
(``StreamingJobGraphGenerator.isChainable``), written as a list so that one can ask which was in the way.
"""

from __future__ import annotations

from headrace.graph.partitioning import Forward
from headrace.graph.stream_graph import StreamEdge, StreamGraph
from headrace.graph.transformations import ChainingStrategy


def chained_edges(graph: StreamGraph) -> frozenset[int]:
    """Return the ids of the edges inside chains."""
    return frozenset(edge.id for edge in graph.edges if why_not_chained(edge, graph) is None)


def why_not_chained(edge: StreamEdge, graph: StreamGraph) -> str | None:
    """Say which rule keeps the ends of an edge apart; None when they are chained."""
    up, down = graph.node(edge.source), graph.node(edge.target)
    settings = graph.settings
    rules = (
        (not settings.is_chaining_enabled, "chaining is disabled for the job"),
        (len(graph.in_edges(down.id)) != 1, "it has more than one input"),
        (not isinstance(edge.partitioner, Forward), f"the edge is {edge.partitioner.name}"),
        (up.parallelism != down.parallelism, "the parallelisms differ"),
        (up.slot_sharing_group != down.slot_sharing_group, "the slot sharing groups differ"),
        (up.chaining is ChainingStrategy.NEVER, "chaining is disabled for the operator before it"),
        (down.chaining is ChainingStrategy.NEVER, "chaining is disabled for it"),
        (down.chaining is ChainingStrategy.HEAD, "it starts a new chain"),
        (
            up.max_parallelism != down.max_parallelism and not settings.chains_different_max_parallelism,
            "the max parallelisms differ",
        ),
    )
    return next((reason for is_broken, reason in rules if is_broken), None)
