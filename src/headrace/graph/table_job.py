"""The job graph of a Table or SQL job: its nodes become vertices, and what is done on the way lies on the edges.

    nodes       scan --fragment--> aggregate --fragment--> sink
    job graph   [scan]  --HASH-->  [aggregate]  --FORWARD-->  [sink]

It is an ordinary job graph: checkpoints, savepoints, rescaling and REST go by vertices and operator ids, whoever runs
them. What runs is one DataFrame per epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connectors.base import SparkSource
from headrace.errors import InvalidTopologyError
from headrace.graph.job_graph import DistributionPattern, JobEdge, JobGraph, JobVertex, OperatorNode
from headrace.graph.meanings import meanings
from headrace.graph.operator_ids import hash_of_uid, murmur3_128
from headrace.graph.partitioning import EdgePartitioner
from headrace.graph.transformations import Transformation
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.operators.table.declarations import (
    OnlyInEpochs,
    StatefulNode,
    TableDeclaration,
    TableScanDeclaration,
    TableSinkDeclaration,
)
from headrace.operators.table.steps import Fragment, PythonCalls


@dataclass(frozen=True)
class TableForward(EdgePartitioner):
    """Rows stay where they are, and go through a fragment."""

    name = "FORWARD"
    fragment: Fragment


@dataclass(frozen=True)
class TableHash(EdgePartitioner):
    """Rows go through a fragment, then to the subtask that owns the key group of their key."""

    name = "HASH"
    fragment: Fragment


@dataclass(frozen=True)
class TableInput:
    """Where a node's rows come from.

    Args:
        node: The producer's position among the nodes.
        fragment: What is done to its rows on the way.
        target_input: 0, or 1 for the right side of a join. Several with the same one are a union (all).
    """

    node: int
    fragment: Fragment
    target_input: int = 0


@dataclass(frozen=True)
class TableNode:
    """A node of a table job.

    Args:
        declaration: What it does.
        name: For people, such as ``GroupAggregate[3]``.
        inputs: Where its rows come from; producers stand before their consumers.
        uid: Names its state across versions of the program; None: by what it means (`graph.meanings`).
        operator_id: Its id as a compiled plan has it, 32 hex digits; None: by its uid.
        description: The longer form, with expressions.
        parallelism: None: the job's.
        stream: For a table made of a data stream: the step of the program whose records it reads.
    """

    declaration: TableDeclaration | StreamToTable | TableToStream
    name: str
    inputs: tuple[TableInput, ...] = ()
    uid: str | None = None
    description: str = ""
    parallelism: int | None = None
    stream: Transformation | None = None
    operator_id: str | None = None
    #: The table of the catalog that a scan reads or a sink writes, as the planner knows it.
    origin: Any = None


def build_table_job(
    nodes: Sequence[TableNode],
    *,
    job_id: str,
    name: str,
    parallelism: int,
    max_parallelism: int = 128,
    is_batch: bool = False,
    global_job_parameters: Mapping[str, str] | None = None,
    session_settings: Mapping[str, str] | None = None,
) -> JobGraph:
    """Make the job graph of a table job.

    Args:
        nodes: Producers before consumers.
        job_id: 32 hex digits.
        name: The job's name, for people.
        parallelism: Subtasks of every node that does not say otherwise.
        max_parallelism: Key groups.
        is_batch: Whether all input is one epoch.
        global_job_parameters: For people and REST.
        session_settings: What the Spark session that runs the job has set.

    Raises:
        InvalidTopologyError: If two nodes share a uid, or one reads a node after it.
    """
    ids = node_ids(nodes)
    places = _place_ids(nodes)
    vertices = []
    edges: list[JobEdge] = []
    for position, node in enumerate(nodes):
        subtasks = node.parallelism or parallelism_of(node.declaration, parallelism)
        vertices.append(_vertex(node, ids[position], places[position], subtasks, max_parallelism))
        for read in sorted(node.inputs, key=lambda each: each.target_input):
            edges.append(_edge(len(edges), ids, nodes, position, read))
    return JobGraph(
        job_id=job_id,
        name=name,
        vertices=tuple(vertices),
        edges=tuple(edges),
        is_batch=is_batch,
        global_job_parameters=dict(global_job_parameters or {}),
        session_settings=dict(session_settings or {}),
    )


def _vertex(
    node: TableNode, operator_id: str, place_id: str, parallelism: int, max_parallelism: int
) -> JobVertex:
    operator = OperatorNode(
        operator_id=operator_id,
        name=node.name,
        uid=node.uid,
        description=node.description or node.name,
        declaration=node.declaration,
        place_id=place_id,
    )
    return JobVertex(
        vertex_id=operator_id,
        name=node.name,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        slot_sharing_group="default",
        operators=(operator,),
    )


def is_table_vertex(vertex: JobVertex) -> bool:
    """Whether a vertex is run as a part of a DataFrame; others are run by tasks, record by record."""
    return isinstance(vertex.head.declaration, OnlyInEpochs)


def producer_of(job: JobGraph, edge: JobEdge) -> OperatorNode:
    """Return the operator whose output an edge carries."""
    return job.vertex(edge.source_vertex).operators[edge.source_operator]


#: Rows that a subtask is expected to do in a second. One core was seen to aggregate 2 to 5 million, and to join a third
#: of one.
_SPARK_ROWS_PER_S = 1_000_000
#: The same where rows go through Python one by one, in functions of the user or to a sink's writer.
_PYTHON_ROWS_PER_S = 100_000


def expected_rate(job: JobGraph) -> int | None:
    """Return about how many rows a second a subtask does of a job whose sources Spark reads; None for others."""
    declarations = [operator.declaration for vertex in job.vertices for operator in vertex.operators]
    scans = [each for each in declarations if isinstance(each, TableScanDeclaration)]
    is_of_tables = all(is_table_vertex(vertex) for vertex in job.vertices)
    if not is_of_tables or not all(isinstance(scan.source, SparkSource) for scan in scans):
        return None
    writes = any(isinstance(each, TableSinkDeclaration) and not each.sink.discards for each in declarations)
    return _PYTHON_ROWS_PER_S if writes or _calls_functions(job) else _SPARK_ROWS_PER_S


def may_be_slow(job: JobGraph) -> bool:
    """Whether functions of the user are called on records, one after the other, before the input has ended."""
    return not job.is_batch and (not all(map(is_table_vertex, job.vertices)) or _calls_functions(job))


def _calls_functions(job: JobGraph) -> bool:
    """Whether tables call functions of the user."""
    declarations = [operator.declaration for vertex in job.vertices for operator in vertex.operators]
    scans = [each for each in declarations if isinstance(each, TableScanDeclaration)]
    fragments = [
        edge.partitioner.fragment
        for edge in job.edges
        if isinstance(edge.partitioner, TableForward | TableHash)
    ]
    fragments += [scan.fragment for scan in scans if scan.fragment is not None]
    return any(isinstance(step, PythonCalls) for each in fragments for step in each.steps)


def fragment_of(edge: JobEdge) -> Fragment:
    """Return what is done to rows on an edge of a table job."""
    assert isinstance(edge.partitioner, TableForward | TableHash)
    return edge.partitioner.fragment


def _edge(
    edge_id: int, ids: Sequence[str], nodes: Sequence[TableNode], position: int, read: TableInput
) -> JobEdge:
    if read.node >= position:
        raise InvalidTopologyError(f"node '{nodes[position].name}' reads a node that comes after it")
    return JobEdge(
        edge_id=edge_id,
        source_vertex=ids[read.node],
        source_operator=0,
        side_tag=None,
        target_vertex=ids[position],
        target_input=read.target_input,
        partitioner=way_to(nodes[position].declaration, read.fragment),
        pattern=DistributionPattern.ALL_TO_ALL,
        data_set_id=murmur3_128(f"{ids[read.node]}/main".encode()).hex(),
    )


def way_to(declaration: Any, fragment: Fragment) -> EdgePartitioner:
    """Return how rows get to a node."""
    return TableHash(fragment) if isinstance(declaration, StatefulNode) else TableForward(fragment)


def parallelism_of(declaration: Any, parallelism: int) -> int:
    """One subtask is enough where all rows have the same key."""
    is_single = isinstance(declaration, StatefulNode) and getattr(declaration, "keys", None) == ()
    return 1 if is_single else parallelism


def node_ids(nodes: Sequence[TableNode]) -> list[str]:
    """Return the id of each node: as it is given, of its uid, or of what it means.

    Raises:
        InvalidTopologyError: If two nodes share a uid.
    """
    ids: list[str] = []
    for node, meaning in zip(nodes, meanings(nodes), strict=True):
        operator_id = node.operator_id or hash_of_uid(meaning if node.uid is None else node.uid)
        if operator_id in ids:
            raise InvalidTopologyError(
                f"uid {node.uid!r} is set on two nodes",
                hint="give each node its own uid: state is restored by uid",
            )
        ids.append(operator_id)
    return ids


def _place_ids(nodes: Sequence[TableNode]) -> list[str]:
    """Return the ids that nodes had by their places: what they are and what they read."""
    ids: list[str] = []
    for position, node in enumerate(nodes):
        inputs = [(ids[read.node], read.target_input) for read in node.inputs if read.node < position]
        place = f"{position}/{type(node.declaration).__name__.removesuffix('Declaration')}/{inputs}"
        ids.append(murmur3_128(place.encode()).hex() if node.uid is None else hash_of_uid(node.uid))
    return ids
