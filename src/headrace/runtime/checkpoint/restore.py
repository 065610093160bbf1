"""From a checkpoint back to a running job: which subtask continues with which part of the state.

Operators are found by their id, which follows from their uid. A job of the same shape continues exactly where it was.
In any other shape, keyed state moves by key group, lists are redistributed, splits are given to the subtasks that read
them now, and event time starts at the lowest watermark reached.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.connectors.base import Committable
from headrace.elements import MIN_WATERMARK
from headrace.errors import StateError
from headrace.graph.job_graph import JobGraph, JobVertex, OperatorNode
from headrace.operators.table.declarations import StatefulNode
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from headrace.runtime.epoch.in_flight import InFlight, all_files, edge_identities
from headrace.runtime.epoch.layout import producers_of
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.task.time_parts import GATE, gate_snapshot, lowest_gate_watermark, with_lowest_time
from headrace.state.handles import StateChain, rescaled_chain
from headrace.state.key_groups import key_group_range
from headrace.state.key_secret import KeySecret
from headrace.state.operator_state import own_part, redistribute, with_own_part


@dataclass(frozen=True)
class SinkStart:
    """Where a sink continues."""

    committer: bytes | None
    #: What must be published, unless it was already.
    committables: tuple[Committable, ...]


@dataclass(frozen=True)
class StartingPoint:
    """Everything a run of a job starts from."""

    #: The next epoch comes after it.
    epoch: int = 0
    keyed: Mapping[SubtaskId, Mapping[str, StateChain]] = field(default_factory=dict)
    operator_state: Mapping[SubtaskId, Mapping[str, bytes]] = field(default_factory=dict)
    #: What coordinators knew, by vertex id.
    sources: Mapping[str, bytes] = field(default_factory=dict)
    sinks: Mapping[str, SinkStart] = field(default_factory=dict)
    ended: frozenset[SubtaskId] = frozenset()
    #: Records that were on their way to subtasks.
    in_flight: Mapping[SubtaskId, InFlight] = field(default_factory=dict)
    #: What accumulators had come to; a job that takes over another's state counts from nothing.
    accumulators: bytes = b""
    #: What goes into the keys of SQL state: that of the state there is, or a new one.
    key_secret: KeySecret = field(default_factory=KeySecret.new)


@dataclass(frozen=True)
class RestoreReport:
    """What of a checkpoint found its operator, for people to read."""

    restored: tuple[str, ...]
    #: Operators that start empty.
    fresh: tuple[str, ...]
    #: Operators of the checkpoint whose state was left behind.
    left: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return one line for each kind there is."""
        kinds = (
            ("restored", self.restored),
            ("start empty", self.fresh),
            ("left behind", self.left),
        )
        return [f"{what}: {', '.join(names)}" for what, names in kinds if names]


def job_shape(job: JobGraph) -> str:
    """Return a digest of what subtasks there are and how they are connected."""
    vertices = [
        (vertex.vertex_id, vertex.parallelism, [node.operator_id for node in vertex.operators])
        for vertex in job.vertices
    ]
    edges = [
        (
            edge.edge_id,
            edge.source_vertex,
            edge.target_vertex,
            edge.target_input,
            repr(type(edge.partitioner)),
        )
        for edge in job.edges
    ]
    return hashlib.sha256(repr((vertices, edges)).encode()).hexdigest()[:16]


def starting_point(
    job: JobGraph, checkpoint: CheckpointMetadata, lineage: str, *, allow_non_restored: bool = False
) -> tuple[StartingPoint, RestoreReport]:
    """Assign a checkpoint's state to the subtasks of a job.

    Args:
        job: The job as it will run.
        checkpoint: What to continue from.
        lineage: Names the run.
        allow_non_restored: Whether state may be left behind whose operator the job does not have.

    Raises:
        StateError: If state would be lost, or cannot be cut as the job needs it; it says which operator and what to do.
    """
    return _Assignment(job, checkpoint, lineage).assign(allow_non_restored=allow_non_restored)


class _Assignment:
    """One checkpoint and the job it is given to."""

    def __init__(self, job: JobGraph, checkpoint: CheckpointMetadata, lineage: str) -> None:
        self._job = job
        self._checkpoint = checkpoint
        self._lineage = lineage
        self._is_same_shape = checkpoint.shape == job_shape(job)
        self._snapshots = {snapshot.operator_id: snapshot for snapshot in checkpoint.operators}
        self._ended_vertices = {
            vertex.vertex_id for vertex in job.vertices if self._has_ended_wholly(vertex.head)
        }
        self._keyed: dict[SubtaskId, dict[str, StateChain]] = {}
        self._operator: dict[SubtaskId, dict[str, bytes]] = {}

    def assign(self, *, allow_non_restored: bool) -> tuple[StartingPoint, RestoreReport]:
        report = self._report()
        if report.left and not allow_non_restored:
            raise _left_behind(report.left)
        for vertex in self._job.vertices:
            for node in vertex.operators:
                snapshot = self._snapshots.get(node.operator_id)
                if snapshot is not None:
                    _check_key_groups(snapshot, vertex)
                    self._check_keys(node, snapshot)
                    self._assign_keyed(vertex, node, snapshot)
                    self._assign_operator_state(vertex, node, snapshot)
            if vertex.head.operator_id not in self._snapshots:
                # Those in front of it may have ended, and will not say so again.
                self._put_operator_state(
                    vertex, vertex.head, self._with_gates(vertex, (), [None] * vertex.parallelism)
                )
        point = StartingPoint(
            # One more, because a chain for other key groups is one version higher than those it is made of.
            epoch=self._checkpoint.epoch + 1,
            keyed=self._keyed,
            operator_state=self._operator,
            sources=dict(self._sources()),
            sinks=dict(self._sinks()),
            ended=frozenset(self._ended()),
            in_flight=dict(self._in_flight()),
            accumulators=(
                self._checkpoint.accumulators if self._checkpoint.job_id == self._job.job_id else b""
            ),
            key_secret=self._checkpoint.key_secret or KeySecret.new(),
        )
        return point, report

    def _report(self) -> RestoreReport:
        nodes = {node.operator_id: node for vertex in self._job.vertices for node in vertex.operators}
        restored = [node.name for operator_id, node in nodes.items() if operator_id in self._snapshots]
        fresh = [node.name for operator_id, node in nodes.items() if operator_id not in self._snapshots]
        left = [
            _describe(snapshot)
            for operator_id, snapshot in self._snapshots.items()
            if operator_id not in nodes and _has_state(snapshot)
        ]
        return RestoreReport(tuple(restored), tuple(fresh), tuple(left))

    def _check_keys(self, node: OperatorNode, snapshot: OperatorSnapshot) -> None:
        """Refuse rows of SQL state that were stored under hashes of another kind: none of them would be found."""
        is_table = isinstance(node.declaration, StatefulNode)
        if is_table and snapshot.keyed and self._checkpoint.key_secret is None:
            raise StateError(
                f"operator '{snapshot.name}': its state was written by a version of headrace that could confuse two "
                "SQL keys, and this version cannot read it",
                hint="start the job without the checkpoint or savepoint, so that it reads its input again; or keep "
                "using the version of headrace that wrote it",
                retryable=False,
            )

    # -- state -------------------------------------------------------------------------------------------------

    def _assign_keyed(self, vertex: JobVertex, node: OperatorNode, snapshot: OperatorSnapshot) -> None:
        parts = {part.subtask: [file.to_state_file() for file in part.files] for part in snapshot.keyed}
        is_same = snapshot.parallelism == vertex.parallelism
        for subtask in range(vertex.parallelism):
            if is_same:
                chain = StateChain(self._lineage, tuple(parts.get(subtask, ())))
            else:
                chain = rescaled_chain(
                    self._lineage,
                    [
                        (key_group_range(old, snapshot.max_parallelism, snapshot.parallelism), files)
                        for old, files in sorted(parts.items())
                    ],
                    key_group_range(subtask, vertex.max_parallelism, vertex.parallelism),
                    self._checkpoint.epoch,
                )
            if chain.files:
                place = SubtaskId(vertex.vertex_id, subtask)
                self._keyed.setdefault(place, {})[node.operator_id] = chain

    def _assign_operator_state(
        self, vertex: JobVertex, node: OperatorNode, snapshot: OperatorSnapshot
    ) -> None:
        before = [snapshot.operator_state.get(subtask) for subtask in range(snapshot.parallelism)]
        after = redistribute(before, vertex.parallelism, keeps_own=self._is_same_shape)
        if not self._is_same_shape:
            after = with_lowest_time(before, after)
            if node is vertex.head:
                after = self._with_gates(vertex, before, after)
        self._put_operator_state(vertex, node, after)

    def _put_operator_state(
        self, vertex: JobVertex, node: OperatorNode, parts: Sequence[bytes | None]
    ) -> None:
        for subtask, part in enumerate(parts):
            if part is not None:
                place = SubtaskId(vertex.vertex_id, subtask)
                self._operator.setdefault(place, {})[node.operator_id] = part

    def _with_gates(
        self, vertex: JobVertex, before: Sequence[bytes | None], after: Sequence[bytes | None]
    ) -> list[bytes | None]:
        watermark = lowest_gate_watermark(before)
        gates: list[bytes | None] = []
        for subtask, part in enumerate(after):
            ended = list(self._ended_channels(vertex, subtask))
            if watermark == MIN_WATERMARK and not ended:
                gates.append(part)
            else:
                gates.append(with_own_part(part, GATE, gate_snapshot(watermark, ended)))
        return gates

    def _in_flight(self) -> Iterable[tuple[SubtaskId, InFlight]]:
        """Yield what subtasks process first: their own, or, in another shape, what is theirs of all."""
        heads = {vertex.head.operator_id: vertex for vertex in self._job.vertices}
        names = {node.operator_id for vertex in self._job.vertices for node in vertex.operators}
        for snapshot in self._checkpoint.operators:
            if not snapshot.in_flight:
                continue
            vertex = heads.get(snapshot.operator_id)
            if vertex is None:
                if snapshot.operator_id in names:
                    raise _not_connected(snapshot)
                continue  # it is left behind with its operator
            rerouted = None if self._is_same_shape else self._rerouted(vertex, snapshot)
            for subtask in range(vertex.parallelism):
                own = snapshot.in_flight.get(subtask) if rerouted is None else rerouted
                if own is not None:
                    yield SubtaskId(vertex.vertex_id, subtask), own

    def _rerouted(self, vertex: JobVertex, snapshot: OperatorSnapshot) -> InFlight:
        parts = snapshot.in_flight.values()
        then = {number: text for part in parts for number, text in part.edges.items()}
        now = {text: number for number, text in edge_identities(self._job, vertex.vertex_id).items()}
        if not set(then.values()) <= set(now):
            raise _not_connected(snapshot)
        others = [
            state
            for subtask, state in snapshot.operator_state.items()
            if subtask not in snapshot.in_flight and own_part(state, GATE) is not None
        ]
        watermarks = [part.watermark for part in parts]
        if others:
            watermarks.append(lowest_gate_watermark(others))
        return InFlight(
            all_files(parts),
            then,
            is_rerouted=True,
            edge_numbers={number: now[text] for number, text in then.items()},
            watermark=min(watermarks),
            ended_edges=tuple(
                edge.edge_id
                for edge in self._job.inputs_of(vertex.vertex_id)
                if edge.source_vertex in self._ended_vertices
            ),
        )

    def _ended_channels(self, vertex: JobVertex, subtask: int) -> Iterable[tuple[int, int]]:
        head = self._snapshots.get(vertex.head.operator_id)
        if head is not None and head.in_flight:
            return  # it is said after the records that are in flight
        for edge in self._job.inputs_of(vertex.vertex_id):
            if edge.source_vertex in self._ended_vertices:
                producers = self._job.vertex(edge.source_vertex).parallelism
                for producer in producers_of(edge, subtask, producers, vertex.parallelism):
                    yield edge.edge_id, producer

    # -- both ends ---------------------------------------------------------------------------------------------

    def _sources(self) -> Iterable[tuple[str, bytes]]:
        for vertex in self._job.vertices:
            snapshot = self._snapshots.get(vertex.head.operator_id)
            if snapshot is not None and snapshot.source is not None:
                yield vertex.vertex_id, snapshot.source.data

    def _sinks(self) -> Iterable[tuple[str, SinkStart]]:
        for snapshot in self._checkpoint.operators:
            if snapshot.committer is not None or snapshot.committables:
                committables = tuple(
                    Committable(each.subtask, each.epoch, pickle.loads(each.payload))
                    for each in snapshot.committables
                )
                yield snapshot.operator_id, SinkStart(snapshot.committer, committables)

    # -- the end of input --------------------------------------------------------------------------------------

    def _has_ended_wholly(self, head: OperatorNode) -> bool:
        snapshot = self._snapshots.get(head.operator_id)
        return snapshot is not None and len(snapshot.ended) == snapshot.parallelism

    def _ended(self) -> Iterable[SubtaskId]:
        """Yield the subtasks that do not run again.

        In another shape, a vertex that has ended in part starts again as a whole: those that have nothing to read end
        again.
        """
        for vertex in self._job.vertices:
            snapshot = self._snapshots.get(vertex.head.operator_id)
            if vertex.vertex_id in self._ended_vertices:
                ended: Iterable[int] = range(vertex.parallelism)
            else:
                ended = snapshot.ended if snapshot is not None and self._is_same_shape else ()
            yield from (SubtaskId(vertex.vertex_id, subtask) for subtask in ended)


def _check_key_groups(snapshot: OperatorSnapshot, vertex: JobVertex) -> None:
    if snapshot.keyed and snapshot.max_parallelism != vertex.max_parallelism:
        raise StateError(
            f"operator '{snapshot.name}': the state has max parallelism {snapshot.max_parallelism} and the job "
            f"{vertex.max_parallelism}; the number of key groups of keyed state cannot change",
            hint=f"call set_max_parallelism({snapshot.max_parallelism}) on the environment or the operator",
            retryable=False,
        )


def _not_connected(snapshot: OperatorSnapshot) -> StateError:
    return StateError(
        f"the checkpoint is unaligned and contains in-flight records for '{snapshot.name}', but the program no longer "
        "has the connections they were sent on",
        hint="start the program as it was when the checkpoint was taken, and take a savepoint, which has no records in "
        "flight; then start the changed program from the savepoint",
        retryable=False,
    )


def _left_behind(names: Sequence[str]) -> StateError:
    return StateError(
        f"the checkpoint contains state of operators that are not in the program: {', '.join(names)}",
        hint="give the operators the uids they had; or, to discard that state, start with "
        "--allow-non-restored-state (execution.state-recovery.ignore-unclaimed-state: true)",
        retryable=False,
    )


def _has_state(snapshot: OperatorSnapshot) -> bool:
    """Whether state would be lost without the operator; time and fields of functions do not count."""
    stored = snapshot.keyed or snapshot.source or snapshot.committables or snapshot.committer
    return bool(stored or snapshot.in_flight) or any(
        any(redistribute([part], 2)) for part in snapshot.operator_state.values()
    )


def _describe(snapshot: OperatorSnapshot) -> str:
    name = f"'{snapshot.name}'"
    return f"{name} (uid {snapshot.uid})" if snapshot.uid else f"{name} ({snapshot.operator_id}, no uid)"
