"""A job with another parallelism: the same operators and chains, other numbers of subtasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.errors import JobDefinitionError
from headrace.graph.job_graph import DistributionPattern, JobEdge, JobGraph, JobVertex
from headrace.graph.partitioning import Forward, Rebalance


def with_parallelism(job: JobGraph, parallelism: Mapping[str, int]) -> JobGraph:
    """Return the job with other parallelism of some vertices, by vertex id.

    A forward edge between vertices whose parallelism is no longer equal deals records out in turn instead.

    Raises:
        JobDefinitionError: If there is no such vertex, or it cannot have as many subtasks.
    """
    unknown = sorted(set(parallelism) - {vertex.vertex_id for vertex in job.vertices})
    if unknown:
        raise JobDefinitionError(f"job '{job.name}' has no vertex {', '.join(unknown)}")
    noted = (replace(vertex, stays_single=is_single(vertex, job)) for vertex in job.vertices)
    vertices = tuple(_rescaled(vertex, parallelism.get(vertex.vertex_id)) for vertex in noted)
    counts = {vertex.vertex_id: vertex.parallelism for vertex in vertices}
    return replace(job, vertices=vertices, edges=tuple(_reconnected(edge, counts) for edge in job.edges))


def uniform_parallelism(job: JobGraph, parallelism: int) -> dict[str, int]:
    """Return the parallelism of each vertex when the whole job is set to one.

    Vertices that can only have one subtask stay as they are, and so do those that were given one while others had
    more.

    Raises:
        JobDefinitionError: If it is not a number of subtasks, or no vertex can have as many.
    """
    able = [vertex for vertex in job.vertices if vertex.max_parallelism > 1 and not is_single(vertex, job)]
    most = max((vertex.max_parallelism for vertex in able), default=1)
    if not 1 <= parallelism <= most:
        raise JobDefinitionError(
            f"job '{job.name}' cannot have parallelism {parallelism}: it must be from 1 to {most}, its max parallelism"
        )
    return {vertex.vertex_id: min(parallelism, vertex.max_parallelism) for vertex in able}


def is_single(vertex: JobVertex, job: JobGraph) -> bool:
    """Whether a vertex was made for one subtask while others were not, such as a source that cannot be split."""
    if vertex.parallelism != 1:
        return False
    return vertex.stays_single or any(other.parallelism > 1 for other in job.vertices)


def _rescaled(vertex: JobVertex, parallelism: int | None) -> JobVertex:
    if parallelism is None:
        return vertex
    if not 1 <= parallelism <= vertex.max_parallelism:
        raise JobDefinitionError(
            f"vertex '{vertex.name}' cannot have parallelism {parallelism}: it must be from 1 to "
            f"{vertex.max_parallelism}, its max parallelism",
            hint="the max parallelism is fixed when a job first starts: set_max_parallelism()",
        )
    return replace(vertex, parallelism=parallelism)


def _reconnected(edge: JobEdge, counts: Mapping[str, int]) -> JobEdge:
    is_even = counts[edge.source_vertex] == counts[edge.target_vertex]
    if is_even or not isinstance(edge.partitioner, Forward):
        return edge
    return replace(edge, partitioner=Rebalance(), pattern=DistributionPattern.ALL_TO_ALL)
