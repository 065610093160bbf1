"""The job graph: chains of operators (job vertices) and the exchanges between them. What is submitted.

    stream graph    source -FORWARD-> map -HASH-> reduce -FORWARD-> sink
    job graph       [source -> map]  --HASH, ALL_TO_ALL-->  [reduce -> sink]

It is frozen, carries the operators' declarations, and knows nothing of subtasks: see `execution_graph`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from headrace.common.typeinfo import TypeInformation
from headrace.graph.chaining import chained_edges
from headrace.graph.operator_ids import murmur3_128, operator_ids
from headrace.graph.partitioning import EdgePartitioner
from headrace.graph.slot_resources import SlotResources
from headrace.graph.stream_graph import StreamGraph, StreamNode
from headrace.operators.base import OperatorDeclaration
from headrace.util.call_sites import ProgramLine


class DistributionPattern(Enum):
    """Which consumers a producer is connected to."""

    #: Some, chosen by position.
    POINTWISE = "POINTWISE"
    #: All of them.
    ALL_TO_ALL = "ALL_TO_ALL"


@dataclass(frozen=True)
class OperatorNode:
    """One operator of a vertex."""

    #: 32 hex digits; state is kept under it.
    operator_id: str
    name: str
    uid: str | None
    description: str
    declaration: OperatorDeclaration
    output_type: TypeInformation | None = None
    uid_hash: str | None = None
    #: The id that its place in the plan gave it in earlier versions, for a table node; state may be found by it.
    place_id: str | None = None
    #: The line of the program that added it; None if it was not made by calls.
    defined_at: ProgramLine | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ChainEdge:
    """A call from one operator of a vertex to another; both are positions in `JobVertex.operators`."""

    source: int
    target: int
    side_tag: str | None = None


@dataclass(frozen=True)
class JobVertex:
    """A chain, or a tree, of operators that run in one task."""

    #: The id of its head operator.
    vertex_id: str
    name: str
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    #: The head comes first; only it has inputs from outside, and only it may have two.
    operators: tuple[OperatorNode, ...]
    chain_edges: tuple[ChainEdge, ...] = ()
    #: How long a record of a live job may wait for others that fill its buffer; negative: until it is full or there
    #: is nothing else to do; None: as the job's options say.
    buffer_timeout_ms: int | None = None
    #: Whether it was planned with one subtask while others got more: it keeps one when the job is rescaled, also from
    #: one subtask each.
    stays_single: bool = False

    @property
    def head(self) -> OperatorNode:
        """The operator that reads what the vertex receives; the source, in a source vertex."""
        return self.operators[0]

    @property
    def is_source(self) -> bool:
        """Whether the vertex reads from outside the job."""
        return self.head.declaration.inputs == 0


@dataclass(frozen=True)
class JobEdge:
    """An exchange: one output of one operator into one input of another vertex."""

    edge_id: int
    source_vertex: str
    #: Position in the source vertex's operators.
    source_operator: int
    #: The side output it carries; None is the main output.
    side_tag: str | None
    target_vertex: str
    #: 0 or 1. Several edges with the same one are a union.
    target_input: int
    partitioner: EdgePartitioner
    pattern: DistributionPattern
    #: The intermediate data set it reads. Edges that carry the same output share it.
    data_set_id: str


@dataclass(frozen=True)
class JobGraph:
    """A job as it is submitted."""

    job_id: str
    name: str
    #: Sources first, every vertex after those it reads.
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]
    is_batch: bool = False
    object_reuse: bool = False
    global_job_parameters: Mapping[str, str] = field(default_factory=dict)
    #: The classes of the program's main script, by name, where the job has come from another process.
    main_classes: Mapping[str, type] | None = field(default=None, compare=False, repr=False)
    #: What the Spark session of a table job has set: its text means what it should only there.
    session_settings: Mapping[str, str] = field(default_factory=dict)
    #: What slots of a sharing group need, by its name; groups that ask for nothing are not there.
    slot_resources: Mapping[str, SlotResources] = field(default_factory=dict)

    def vertex(self, vertex_id: str) -> JobVertex:
        """Find a vertex by its id."""
        for vertex in self.vertices:
            if vertex.vertex_id == vertex_id:
                return vertex
        raise KeyError(vertex_id)

    def inputs_of(self, vertex_id: str) -> tuple[JobEdge, ...]:
        """Edges into a vertex, first input first."""
        return tuple(edge for edge in self.edges if edge.target_vertex == vertex_id)

    def outputs_of(self, vertex_id: str) -> tuple[JobEdge, ...]:
        """Edges out of a vertex."""
        return tuple(edge for edge in self.edges if edge.source_vertex == vertex_id)

    def levels(self) -> tuple[tuple[JobVertex, ...], ...]:
        """Lay the vertices out so that every edge goes to a later level.

        A vertex stands on the level of its longest path from a source: sources on the first.
        """
        level_of: dict[str, int] = {}
        rows: dict[int, list[JobVertex]] = defaultdict(list)
        for vertex in self.vertices:
            above = [level_of[edge.source_vertex] for edge in self.inputs_of(vertex.vertex_id)]
            level = level_of[vertex.vertex_id] = 1 + max(above, default=-1)
            rows[level].append(vertex)
        return tuple(tuple(rows[level]) for level in sorted(rows))

    def slots_by_group(self) -> dict[str, int]:
        """Slots each slot sharing group takes: the highest parallelism in it."""
        slots: dict[str, int] = {}
        for vertex in self.vertices:
            group = vertex.slot_sharing_group
            slots[group] = max(slots.get(group, 0), vertex.parallelism)
        return slots

    def slots_needed(self) -> int:
        """Slots that must be there for all subtasks to run at the same time."""
        return sum(self.slots_by_group().values())


def build_job_graph(graph: StreamGraph, *, job_id: str, name: str) -> JobGraph:
    """Chain the operators of a stream graph into job vertices.

    Args:
        graph: The operators.
        job_id: 32 hex digits.
        name: The job's name, for people.

    Raises:
        InvalidTopologyError: If two operators share a uid or a uid hash.
    """
    chained = chained_edges(graph)
    ids = operator_ids(graph, chained)
    chains = _collect_chains(graph, chained)
    place = {node.id: (head, index) for head, chain in chains.items() for index, node in enumerate(chain)}
    level_of = _levels(graph, place)
    names = _chain_names(graph, chained)
    vertices = tuple(
        _make_vertex(chain, names[head], graph, chained, ids)
        # By level, so that sources come first; within one, as the program defined them.
        for head, chain in sorted(chains.items(), key=lambda item: (level_of[item[0]], item[0]))
    )
    edges: list[JobEdge] = []
    for edge in graph.edges:
        if edge.id in chained:
            continue
        source_head, source_operator = place[edge.source]
        edges.append(
            JobEdge(
                edge_id=len(edges),
                source_vertex=ids[source_head],
                source_operator=source_operator,
                side_tag=edge.side_tag,
                target_vertex=ids[place[edge.target][0]],
                target_input=edge.target_input,
                partitioner=edge.partitioner,
                pattern=(
                    DistributionPattern.POINTWISE
                    if edge.partitioner.is_pointwise
                    else DistributionPattern.ALL_TO_ALL
                ),
                data_set_id=_data_set_id(ids[edge.source], edge.side_tag),
            )
        )
    return JobGraph(
        job_id=job_id,
        name=name,
        vertices=vertices,
        edges=tuple(edges),
        is_batch=graph.is_batch,
        object_reuse=graph.settings.object_reuse,
        global_job_parameters=dict(graph.settings.global_job_parameters),
        session_settings=dict(graph.settings.session_settings),
        slot_resources={
            name: needed
            for name, needed in graph.settings.slot_resources.items()
            if any(vertex.slot_sharing_group == name for vertex in vertices)
        },
    )


def _collect_chains(graph: StreamGraph, chained: frozenset[int]) -> dict[int, list[StreamNode]]:
    """Group nodes by the head of their chain; inputs come before consumers, so the head is the first."""
    head_of: dict[int, int] = {}
    chains: dict[int, list[StreamNode]] = defaultdict(list)
    for node in graph.nodes:
        inside = [edge for edge in graph.in_edges(node.id) if edge.id in chained]
        head = head_of[node.id] = head_of[inside[0].source] if inside else node.id
        chains[head].append(node)
    return chains


def _levels(graph: StreamGraph, place: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Say for each chain, by its head, how many exchanges lie before it on the longest way."""
    level_of: dict[int, int] = {}
    for node in graph.nodes:
        head, index = place[node.id]
        if index == 0:
            above = [level_of[place[edge.source][0]] for edge in graph.in_edges(node.id)]
            level_of[head] = 1 + max(above, default=-1)
    return level_of


def _make_vertex(
    chain: list[StreamNode],
    name: str,
    graph: StreamGraph,
    chained: frozenset[int],
    ids: Mapping[int, str],
) -> JobVertex:
    head = chain[0]
    index = {node.id: position for position, node in enumerate(chain)}
    inside = [edge for node in chain for edge in graph.out_edges(node.id) if edge.id in chained]
    return JobVertex(
        vertex_id=ids[head.id],
        name=name,
        parallelism=head.parallelism,
        max_parallelism=head.max_parallelism,
        slot_sharing_group=head.slot_sharing_group,
        operators=tuple(
            OperatorNode(
                operator_id=ids[node.id],
                name=node.name,
                uid=node.uid,
                description=node.description,
                declaration=node.declaration,
                output_type=node.output_type,
                uid_hash=node.uid_hash,
                defined_at=node.defined_at,
            )
            for node in chain
        ),
        chain_edges=tuple(ChainEdge(index[e.source], index[e.target], e.side_tag) for e in inside),
        buffer_timeout_ms=_buffer_timeout(graph, chain, chained),
    )


def _buffer_timeout(graph: StreamGraph, chain: Sequence[StreamNode], chained: frozenset[int]) -> int | None:
    """Return the shortest timeout of the operators that send to others, if it is not that of the job."""
    sending = [node for node in chain if any(edge.id not in chained for edge in graph.out_edges(node.id))]
    timeouts = [node.buffer_timeout_ms for node in sending]
    shortest = min((each for each in timeouts if each >= 0), default=-1 if timeouts else None)
    return None if shortest == graph.settings.buffer_timeout_ms >= 0 else shortest


def _chain_names(graph: StreamGraph, chained: frozenset[int]) -> dict[int, str]:
    """Name chains after their operators, by head: ``A -> B``, and ``A -> (B, C -> D)`` where one branches."""
    names: dict[int, str] = {}
    # From the end, so that what follows an operator has its name already; no recursion, chains may be long.
    for node in reversed(graph.nodes):
        rest = [names[edge.target] for edge in graph.out_edges(node.id) if edge.id in chained]
        if not rest:
            names[node.id] = node.name
        elif len(rest) == 1:
            names[node.id] = f"{node.name} -> {rest[0]}"
        else:
            names[node.id] = f"{node.name} -> ({', '.join(rest)})"
    return names


def _data_set_id(operator_id: str, side_tag: str | None) -> str:
    output = "main" if side_tag is None else f"side:{side_tag}"
    return murmur3_128(f"{operator_id}/{output}".encode()).hex()
