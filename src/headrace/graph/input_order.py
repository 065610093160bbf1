"""Which inputs of a vertex are read first in an epoch.

Flink leaves the order between two inputs open, but a small one is usually there before the records that need it: rules
have been broadcast, a small table has been read. An epoch has both at once, so what comes first is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.connectors.base import Boundedness
from headrace.graph.job_graph import JobGraph
from headrace.graph.partitioning import Broadcast
from headrace.operators.io import SourceDeclaration


def early_edges(job: JobGraph, vertex_id: str) -> frozenset[int]:
    """Return the edges whose records come before those of the others: broadcasts, and what has an end.

    Args:
        job: The job.
        vertex_id: The vertex that reads them.
    """
    edges = job.inputs_of(vertex_id)
    endless = {edge.edge_id for edge in edges if not _is_bounded(job, edge.source_vertex)}
    bounded = {edge.edge_id for edge in edges} - endless if endless else set()
    return frozenset(bounded | {edge.edge_id for edge in edges if isinstance(edge.partitioner, Broadcast)})


def early_sources(job: JobGraph) -> frozenset[str]:
    """Return the sources whose records come before those of others, wherever they meet.

    Args:
        job: The job.
    """
    found: set[str] = set()
    for vertex in job.vertices:
        early = early_edges(job, vertex.vertex_id)
        edges = job.inputs_of(vertex.vertex_id)
        if len(edges) > len(early):
            found |= _sources_above(job, [edge.source_vertex for edge in edges if edge.edge_id in early])
    # If there are no others, nobody waits.
    others = {vertex.vertex_id for vertex in job.vertices if vertex.is_source} - found
    return frozenset(found) if others else frozenset()


def broadcast_sources(job: JobGraph) -> frozenset[str]:
    """Return the sources above a broadcast input of an operator with two; in BATCH mode the others wait for them.

    Args:
        job: The job.
    """
    broadcasts = [
        edge.source_vertex
        for edge in job.edges
        if isinstance(edge.partitioner, Broadcast)
        and job.vertex(edge.target_vertex).head.declaration.inputs == 2
    ]
    return frozenset(_sources_above(job, broadcasts))


def _sources_above(job: JobGraph, vertices: Iterable[str]) -> set[str]:
    """Return the sources among some vertices, and above them."""
    found: set[str] = set()
    waiting = list(vertices)
    while waiting:
        vertex_id = waiting.pop()
        if job.vertex(vertex_id).is_source:
            found.add(vertex_id)
        waiting += [edge.source_vertex for edge in job.inputs_of(vertex_id)]
    return found


def has_endless_source(job: JobGraph) -> bool:
    """Whether some input of a job has no end.

    Args:
        job: The job.
    """
    return any(vertex.is_source and not _is_bounded(job, vertex.vertex_id) for vertex in job.vertices)


def _is_bounded(job: JobGraph, vertex_id: str) -> bool:
    """Whether all sources above a vertex, or in it, have an end."""
    vertex = job.vertex(vertex_id)
    declaration = vertex.head.declaration
    if isinstance(declaration, SourceDeclaration):
        return declaration.source.boundedness is Boundedness.BOUNDED
    inputs = job.inputs_of(vertex_id)
    return bool(inputs) and all(_is_bounded(job, edge.source_vertex) for edge in inputs)
