"""A changed SQL job and a checkpoint of the job it was: which operators go on, and what happens to the others.

Operators of table jobs have ids by what they mean (`graph.meanings`), so what means the same finds its state. An
operator that finds none, and whose sources go on where they were, would see the rest of its input only: it has
*changed*.

    REFUSE      the job does not start; the message names what has changed
    EMPTY       changed operators start without state, and their results are of the rows that come from now on
    BOOTSTRAP   the sources that they read start from the beginning, and with these everything that is connected
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from headrace.config.options.checkpointing import ChangedOperators
from headrace.errors import StateError
from headrace.graph.job_graph import JobGraph
from headrace.operators.table.declarations import StatefulNode
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot

__all__ = ["evolved"]


def evolved(job: JobGraph, checkpoint: CheckpointMetadata, policy: ChangedOperators) -> CheckpointMetadata:
    """Return what of a checkpoint a job continues with.

    Args:
        job: The job as it will run.
        checkpoint: What it is restored from.
        policy: What happens to operators of a query that have changed.

    Raises:
        StateError: If some have, and the policy is to refuse them.
    """
    checkpoint = _by_place(job, checkpoint)
    known = {snapshot.operator_id for snapshot in checkpoint.operators}
    changed = _changed(job, checkpoint)
    if not changed:
        return checkpoint
    if policy is ChangedOperators.REFUSE:
        raise _refused(job, checkpoint, changed)
    wanted = {node.operator_id for vertex in job.vertices for node in vertex.operators}
    dropped = (known - wanted) | (
        _connected(job, changed) if policy is ChangedOperators.BOOTSTRAP else frozenset()
    )
    kept = [
        _without_state(snapshot) if snapshot.operator_id in dropped else snapshot
        for snapshot in checkpoint.operators
        if snapshot.operator_id not in dropped or snapshot.committables or snapshot.committer is not None
    ]
    return replace(checkpoint, operators=tuple(kept))


def _by_place(job: JobGraph, checkpoint: CheckpointMetadata) -> CheckpointMetadata:
    """Give snapshots of a table job the ids of today, if they have those that followed from places in the plan."""
    nodes = [node for vertex in job.vertices for node in vertex.operators]
    known = {snapshot.operator_id for snapshot in checkpoint.operators}
    by_place = {node.place_id: node.operator_id for node in nodes if node.place_id is not None}
    if any(node.operator_id in known for node in nodes) or not known & by_place.keys():
        return checkpoint
    renamed = [
        replace(snapshot, operator_id=by_place.get(snapshot.operator_id, snapshot.operator_id))
        for snapshot in checkpoint.operators
    ]
    return replace(checkpoint, operators=tuple(renamed))


def _changed(job: JobGraph, checkpoint: CheckpointMetadata) -> list[str]:
    """Return the vertices with state of tables that find none, though a source before them continues."""
    snapshots = {snapshot.operator_id: snapshot for snapshot in checkpoint.operators}
    going_on: set[str] = set()
    changed = []
    for vertex in job.vertices:
        snapshot = snapshots.get(vertex.head.operator_id)
        reads = {edge.source_vertex for edge in job.inputs_of(vertex.vertex_id)}
        is_source = snapshot is not None and snapshot.source is not None
        if is_source or reads & going_on:
            going_on.add(vertex.vertex_id)
            if snapshot is None and isinstance(vertex.head.declaration, StatefulNode):
                changed.append(vertex.vertex_id)
    return changed


def _connected(job: JobGraph, vertices: Sequence[str]) -> AbstractSet[str]:
    """Return the operators of everything that has rows in common with some vertices."""
    found, pending = set(vertices), list(vertices)
    while pending:
        vertex = pending.pop()
        for edge in job.edges:
            ends = {edge.source_vertex, edge.target_vertex}
            if vertex in ends and ends - found:
                pending += ends - found
                found |= ends
    return {node.operator_id for name in found for node in job.vertex(name).operators}


def _without_state(snapshot: OperatorSnapshot) -> OperatorSnapshot:
    """Return what has to be published of an operator that starts again."""
    return replace(snapshot, keyed=(), operator_state={}, source=None, ended=())


def _refused(job: JobGraph, checkpoint: CheckpointMetadata, changed: Sequence[str]) -> StateError:
    ours = {node.operator_id for vertex in job.vertices for node in vertex.operators}
    new = ", ".join(job.vertex(name).head.description for name in changed)
    left = [each.name for each in checkpoint.operators if each.operator_id not in ours and each.keyed]
    lost = (
        f"; the checkpoint has state of {', '.join(left)}, which the query no longer contains" if left else ""
    )
    return StateError(
        f"the query has changed, and the checkpoint has no state for: {new}{lost}",
        hint="restart with the query as it was; or set headrace.sql.changed-operators to BOOTSTRAP, to read the "
        "sources of these operators from the beginning, or to EMPTY, to start them without state",
        retryable=False,
    )
