"""Failover regions: the parts of a job between which no records pass. One that fails is started again alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from headrace.graph.job_graph import JobGraph


def failover_regions(job: JobGraph) -> tuple[frozenset[str], ...]:
    """Return the vertices of each region, in the order of their first vertices."""
    region_of = {vertex.vertex_id: {vertex.vertex_id} for vertex in job.vertices}
    for edge in job.edges:
        source, target = region_of[edge.source_vertex], region_of[edge.target_vertex]
        if source is not target:
            source |= target
            for vertex_id in target:
                region_of[vertex_id] = source
    return tuple(dict.fromkeys(frozenset(region_of[vertex.vertex_id]) for vertex in job.vertices))


def part_of_job(job: JobGraph, vertices: Collection[str]) -> JobGraph:
    """Return the job with nothing but these vertices, and the edges between them."""
    return replace(
        job,
        vertices=tuple(vertex for vertex in job.vertices if vertex.vertex_id in vertices),
        edges=tuple(edge for edge in job.edges if edge.source_vertex in vertices),
    )
