"""The stream graph: operators and the edges between them, before chaining.

Made of the transformations. Union, partitioning and side outputs are not nodes here: they end up on the edges.

    map -- union -- key_by -- reduce              map ---HASH---> reduce
    filter --/                             =>     filter --HASH----^
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from headrace.common.typeinfo import TypeInformation
from headrace.config.options.execution import (
    DEFAULT_MAX_PARALLELISM,
    UPPER_BOUND_MAX_PARALLELISM,
    RuntimeExecutionMode,
)
from headrace.errors import InvalidTopologyError, InvariantViolation, TypeInferenceError
from headrace.graph.partitioning import EdgePartitioner, Forward, Rebalance
from headrace.graph.slot_resources import SlotResources
from headrace.graph.transformations import (
    CacheTransformation,
    ChainingStrategy,
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)
from headrace.operators.base import OperatorDeclaration
from headrace.util.call_sites import ProgramLine

#: The group of operators that name none and whose inputs do not agree on one.
DEFAULT_SLOT_SHARING_GROUP = "default"

NodeKind = Literal["source", "operator", "sink"]


@dataclass(frozen=True)
class GraphSettings:
    """What the job says for all operators that do not say it themselves."""

    parallelism: int = 1
    #: None derives it from the parallelism.
    max_parallelism: int | None = None
    runtime_mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING
    is_chaining_enabled: bool = True
    chains_different_max_parallelism: bool = True
    buffer_timeout_ms: int = 100
    #: Whether an operator without a uid gets its id from its place in the graph, or is refused.
    generates_uids: bool = True
    #: Whether records may have no declared type, and are pickled.
    allows_untyped: bool = True
    object_reuse: bool = False
    global_job_parameters: Mapping[str, str] = field(default_factory=dict)
    #: What the Spark session has set, if there are tables in the program.
    session_settings: Mapping[str, str] = field(default_factory=dict)
    #: What slot sharing groups ask for, by name.
    slot_resources: Mapping[str, SlotResources] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamNode:
    """One operator of the stream graph, before chaining."""

    id: int
    name: str
    kind: NodeKind
    declaration: OperatorDeclaration
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    chaining: ChainingStrategy
    buffer_timeout_ms: int
    description: str
    uid: str | None = None
    uid_hash: str | None = None
    output_type: TypeInformation | None = None
    #: The line of the program that added it.
    defined_at: ProgramLine | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class StreamEdge:
    """One output of an operator into one input of another."""

    #: Position in the graph; tells two edges between the same nodes apart.
    id: int
    source: int
    target: int
    #: 0 or 1. Several edges may go to the same input: a union.
    target_input: int
    partitioner: EdgePartitioner
    #: The side output it carries; None is the main output.
    side_tag: str | None = None


@dataclass(frozen=True)
class StreamGraph:
    """Nodes in the order they were defined, so inputs come before their consumers."""

    nodes: tuple[StreamNode, ...]
    edges: tuple[StreamEdge, ...]
    is_batch: bool
    settings: GraphSettings

    def node(self, node_id: int) -> StreamNode:
        """Find a node by its id."""
        return self._nodes_by_id[node_id]

    def in_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """Edges into a node, first input first."""
        return tuple(self._edges_by_target.get(node_id, ()))

    def out_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """Edges out of a node, in the order their consumers were defined."""
        return tuple(self._edges_by_source.get(node_id, ()))

    @cached_property
    def _nodes_by_id(self) -> dict[int, StreamNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def _edges_by_target(self) -> dict[int, list[StreamEdge]]:
        return _group(self.edges, lambda edge: edge.target)

    @cached_property
    def _edges_by_source(self) -> dict[int, list[StreamEdge]]:
        return _group(self.edges, lambda edge: edge.source)


def _group(edges: Iterable[StreamEdge], end: Callable[[StreamEdge], int]) -> dict[int, list[StreamEdge]]:
    groups: dict[int, list[StreamEdge]] = defaultdict(list)
    for edge in edges:
        groups[end(edge)].append(edge)
    return groups


def default_max_parallelism(parallelism: int) -> int:
    """Return the number of key groups of an operator that does not set one, by Flink's rule.

    Half as many again as the parallelism, up to a power of two, never below 128.

    >>> [default_max_parallelism(p) for p in (1, 85, 86, 200, 30000)]
    [128, 128, 256, 512, 32768]
    """
    wanted = parallelism + parallelism // 2
    power = 1 << (wanted - 1).bit_length() if wanted > 1 else 1
    return min(max(power, DEFAULT_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)


def build_stream_graph(transformations: Iterable[Transformation], settings: GraphSettings) -> StreamGraph:
    """Turn the program into a stream graph.

    Args:
        transformations: Every operator and sink of the program; their inputs are found from them.
        settings: What the job says for all operators.

    Raises:
        InvalidTopologyError: If there is nothing to run, the parallelisms do not fit, or the runtime mode is
            BATCH and a source never ends.
    """
    steps = _reachable(transformations)
    physical = [step for step in steps if isinstance(step, PhysicalTransformation)]
    if not any(not isinstance(step, SourceTransformation) for step in physical):
        raise InvalidTopologyError(
            "no operators defined in streaming topology, so there is nothing to execute",
            hint="add a sink, for instance stream.print() or stream.sink_to(...)",
        )
    is_batch = _is_batch(physical, settings.runtime_mode)
    origins = _origins_of_all(steps)
    nodes: dict[int, StreamNode] = {}
    edges: list[StreamEdge] = []
    for step in physical:
        if step.id in nodes:
            raise InvariantViolation(
                f"two transformations have the id {step.id}: {step.name!r} is one of them"
            )
        incoming = [(index, origin) for index, read in enumerate(step.inputs) for origin in origins[id(read)]]
        node = _make_node(
            step, [nodes[origin.node_id] for _, origin in incoming], settings, is_batch=is_batch
        )
        nodes[node.id] = node
        for index, origin in incoming:
            edges.append(_make_edge(len(edges), nodes[origin.node_id], node, index, origin))
    return StreamGraph(tuple(nodes.values()), tuple(edges), is_batch, settings)


@dataclass(frozen=True)
class _Origin:
    """An operator's output as a consumer sees it through union, partitioning and side output."""

    node_id: int
    partitioner: EdgePartitioner | None = None
    side_tag: str | None = None


def _reachable(transformations: Iterable[Transformation]) -> list[Transformation]:
    """Return the given steps and all they read, by id, and so inputs before consumers."""
    found: dict[int, Transformation] = {}
    pending = list(transformations)
    while pending:
        step = pending.pop()
        if id(step) in found:
            continue
        found[id(step)] = step
        for read in step.inputs:
            if read.id >= step.id:
                raise InvariantViolation(
                    f"transformation {step.id} reads transformation {read.id}, which was defined later"
                )
            pending.append(read)
    return sorted(found.values(), key=lambda step: step.id)


def _origins_of_all(steps: Iterable[Transformation]) -> dict[int, tuple[_Origin, ...]]:
    """Say for each step (by identity) which operators' outputs a consumer of it reads."""
    origins: dict[int, tuple[_Origin, ...]] = {}
    for step in steps:
        below = tuple(origin for read in step.inputs for origin in origins[id(read)])
        match step:
            case UnionTransformation() | CacheTransformation():
                origins[id(step)] = below
            case PartitionTransformation():
                # The later of two partitionings counts: it is nearer to the consumer.
                origins[id(step)] = tuple(replace(o, partitioner=step.partitioner) for o in below)
            case SideOutputTransformation():
                origins[id(step)] = tuple(replace(o, side_tag=step.tag_id) for o in below)
            case _:
                origins[id(step)] = (_Origin(step.id),)
    return origins


def _is_batch(physical: Iterable[PhysicalTransformation], mode: RuntimeExecutionMode) -> bool:
    sources = [step for step in physical if isinstance(step, SourceTransformation)]
    unbounded = [source.name for source in sources if not source.is_bounded]
    if mode is RuntimeExecutionMode.BATCH and unbounded:
        raise InvalidTopologyError(
            f"execution.runtime-mode is BATCH, but the source {unbounded[0]!r} is unbounded",
            hint="set the mode to STREAMING or AUTOMATIC, or give the source an end",
        )
    return mode is RuntimeExecutionMode.BATCH or (mode is RuntimeExecutionMode.AUTOMATIC and not unbounded)


def _make_node(
    step: PhysicalTransformation, inputs: list[StreamNode], settings: GraphSettings, *, is_batch: bool
) -> StreamNode:
    parallelism = step.parallelism or settings.parallelism
    maximum = step.max_parallelism or settings.max_parallelism or default_max_parallelism(parallelism)
    name, kind = _name_and_kind(step)
    if parallelism > maximum:
        raise InvalidTopologyError(
            f"operator {name!r} has parallelism {parallelism}, more than its max parallelism {maximum}",
            hint=f"lower the parallelism, or set_max_parallelism({parallelism}) or more",
        )
    if step.uid is None and step.uid_hash is None and not settings.generates_uids:
        raise InvalidTopologyError(
            f"operator {name!r} has no uid, and generated uids are disabled",
            hint="call uid(...) on it, or set pipeline.auto-generate-uids to true",
        )
    if step.output_type is None and kind != "sink" and not settings.allows_untyped:
        raise TypeInferenceError(
            f"operator {name!r} declares no type for its output, and generic types are disabled",
            hint="pass output_type=..., or set pipeline.generic-types to true",
        )
    return StreamNode(
        id=step.id,
        name=name,
        kind=kind,
        declaration=_final_results_only(step.declaration) if is_batch else step.declaration,
        parallelism=parallelism,
        max_parallelism=maximum,
        slot_sharing_group=step.slot_sharing_group or _common_group(inputs),
        chaining=step.chaining,
        buffer_timeout_ms=(
            settings.buffer_timeout_ms if step.buffer_timeout_ms is None else step.buffer_timeout_ms
        ),
        description=step.description or name,
        uid=step.uid,
        uid_hash=step.uid_hash,
        output_type=step.output_type,
        defined_at=step.defined_at,
    )


def _name_and_kind(step: PhysicalTransformation) -> tuple[str, NodeKind]:
    match step:
        case SourceTransformation():
            return f"Source: {step.name}", "source"
        case SinkTransformation():
            return f"Sink: {step.name}", "sink"
        case _:
            return step.name, "operator"


def _common_group(inputs: list[StreamNode]) -> str:
    groups = {node.slot_sharing_group for node in inputs}
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP


def _final_results_only(declaration: OperatorDeclaration) -> OperatorDeclaration:
    """In batch, a rolling aggregation emits once per key, when all input has been seen."""
    rolling: Any = declaration
    return replace(rolling, emits_final_only=True) if hasattr(rolling, "emits_final_only") else declaration


def _make_edge(
    edge_id: int, source: StreamNode, target: StreamNode, target_input: int, origin: _Origin
) -> StreamEdge:
    partitioner = origin.partitioner
    is_equal = source.parallelism == target.parallelism
    if partitioner is None:
        partitioner = Forward() if is_equal else Rebalance()
    elif isinstance(partitioner, Forward) and not is_equal:
        raise InvalidTopologyError(
            f"forward() from {source.name!r} (parallelism {source.parallelism}) to {target.name!r} "
            f"(parallelism {target.parallelism}): subtask i goes to subtask i, so both need the same number",
            hint="set the same parallelism on both, or use rebalance() or rescale()",
        )
    return StreamEdge(edge_id, source.id, target.id, target_input, partitioner, origin.side_tag)
