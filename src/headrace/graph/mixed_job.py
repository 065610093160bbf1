"""A program of streams and tables: table nodes as steps of the stream program, and the parts of an epoch.

    steps     source -> map -> StreamToTable --fragment--> aggregate --fragment--> TableToStream -> sink
    parts     |--------- stream, 0 --------|             |- table, 1 -|          |---- stream, 2 ----|

A part is what runs at one go: a run of levels, or one DataFrame. Parts run one after the other in every epoch, and
what crosses from one to the next is kept by Spark until the epoch is over. It is one job: one plan, one report of each
subtask, one commit. A job of tables alone has one part, as has a job of streams alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.connectors.base import Boundedness
from headrace.errors import InvariantViolation
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.table_job import TableInput, TableNode, is_table_vertex, parallelism_of, way_to
from headrace.graph.transformations import (
    ChainingStrategy,
    MultipleInputTransformation,
    OneInputTransformation,
    PartitionTransformation,
    PhysicalTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.operators.table.declarations import TableScanDeclaration, TableSinkDeclaration

# -- from table nodes to steps ---------------------------------------------------------------------------------


def table_steps(
    nodes: Sequence[TableNode], *, next_id: Callable[[], int], parallelism: int
) -> list[PhysicalTransformation]:
    """Return table nodes as steps of a stream program, in the same order.

    Args:
        nodes: Producers before consumers.
        next_id: Gives ids to steps.
        parallelism: Subtasks of every node that does not say otherwise.
    """
    steps: list[PhysicalTransformation] = []
    for node in nodes:
        steps.append(_step(node, steps, next_id, parallelism))
    return steps


def _step(
    node: TableNode, steps: Sequence[PhysicalTransformation], next_id: Callable[[], int], parallelism: int
) -> PhysicalTransformation:
    declaration = node.declaration
    inputs = [_input(node, side, steps, next_id) for side in sorted({e.target_input for e in node.inputs})]
    if node.stream is not None:
        inputs = [node.stream]
    is_border = isinstance(declaration, StreamToTable | TableToStream)
    known: dict[str, Any] = {
        "id": next_id(),
        "name": node.name,
        "declaration": declaration,
        # Records go to the table where they are: as many subtasks as the stream has.
        "parallelism": node.parallelism or parallelism_of(declaration, parallelism),
        "uid": node.uid,
        "description": node.description or node.name,
        "chaining": ChainingStrategy.ALWAYS if is_border else ChainingStrategy.NEVER,
    }
    if isinstance(declaration, TableScanDeclaration):
        known["name"] = node.name.removeprefix("Source: ")
        return SourceTransformation(**known, is_bounded=declaration.source.boundedness is Boundedness.BOUNDED)
    if isinstance(declaration, TableSinkDeclaration):
        known["name"] = node.name.removeprefix("Sink: ")
        return SinkTransformation(**known, input=inputs[0])
    if isinstance(declaration, StreamToTable):
        known["parallelism"] = _parallelism_before(inputs[0])
    if len(inputs) == 1:
        return OneInputTransformation(**known, input=inputs[0])
    return MultipleInputTransformation(**known, sides=tuple(inputs))


def _parallelism_before(step: Transformation) -> int | None:
    """Return the parallelism of the operator a step passes on the records of, if it says one."""
    while not isinstance(step, PhysicalTransformation):
        if len(step.inputs) != 1 or isinstance(step, PartitionTransformation):
            return None
        (step,) = step.inputs
    return step.parallelism


def _input(
    node: TableNode, side: int, steps: Sequence[PhysicalTransformation], next_id: Callable[[], int]
) -> Transformation:
    """Return one input of a node: its producers' rows, each by its own way; several are a union."""
    ways = [_way(node, read, steps, next_id) for read in node.inputs if read.target_input == side]
    return ways[0] if len(ways) == 1 else UnionTransformation(id=next_id(), streams=tuple(ways))


def _way(
    node: TableNode,
    read: TableInput,
    steps: Sequence[PhysicalTransformation],
    next_id: Callable[[], int],
) -> Transformation:
    return PartitionTransformation(
        id=next_id(), input=steps[read.node], partitioner=way_to(node.declaration, read.fragment)
    )


# -- from the job to parts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Vertices of a job that run at one go."""

    is_table: bool
    vertices: tuple[JobVertex, ...]


def parts_of(job: JobGraph) -> tuple[Part, ...]:
    """Cut a job into parts, in the order in which they run.

    A vertex is in the first part of its kind in which all it reads is there: parts of streams have even numbers, those
    of tables odd ones.
    """
    number_of: dict[str, int] = {}
    numbered: dict[int, list[JobVertex]] = defaultdict(list)
    for vertex in job.vertices:
        number = max((number_of[edge.source_vertex] for edge in job.inputs_of(vertex.vertex_id)), default=0)
        # Rows are handed over between parts, also if they are of a stream and nothing is done but a projection.
        number += isinstance(vertex.head.declaration, TableToStream)
        if number % 2 != is_table_vertex(vertex):
            number += 1
        number_of[vertex.vertex_id] = number
        numbered[number].append(vertex)
    return tuple(Part(number % 2 == 1, tuple(numbered[number])) for number in sorted(numbered))


def is_one_stream(job: JobGraph) -> bool:
    """Whether a job has nothing to do with tables: it is one part, of streams."""
    return [part.is_table for part in parts_of(job)] == [False]


def is_one_part(job: JobGraph) -> bool:
    """Whether a job is of streams alone, or of tables alone."""
    return len(parts_of(job)) == 1


def part_job(job: JobGraph, part: Part) -> JobGraph:
    """Return a part of streams as a job of its own: its vertices, and the edges between them."""
    if part.is_table:
        raise InvariantViolation("a part of tables is not run by levels")
    own = {vertex.vertex_id for vertex in part.vertices}
    inside = tuple(edge for edge in job.edges if edge.source_vertex in own and edge.target_vertex in own)
    return replace(job, vertices=part.vertices, edges=inside)
