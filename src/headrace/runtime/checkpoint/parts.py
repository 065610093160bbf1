"""The sizes of a checkpoint by vertex and subtask, from its metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from headrace.runtime.checkpoint.statistics import SubtaskStatistics, TaskStatistics
from headrace.runtime.checkpoint.subject import BarrierTimes
from headrace.runtime.epoch.messages import SubtaskId


def task_statistics(
    job: JobGraph,
    metadata: CheckpointMetadata,
    *,
    started_ms: int,
    now_ms: int,
    barriers: Mapping[SubtaskId, BarrierTimes] | None = None,
) -> tuple[TaskStatistics, ...]:
    """Return what each vertex has put into a checkpoint that took from one moment to another.

    Args:
        job: The job.
        metadata: The checkpoint.
        started_ms: When it began.
        now_ms: When it was complete.
        barriers: Of a live job, what its barrier took.
    """
    operators = {operator.operator_id: operator for operator in metadata.operators}
    duration = max(0, now_ms - started_ms)
    return tuple(
        _vertex_statistics(vertex, operators, metadata.epoch, duration, now_ms, barriers or {})
        for vertex in job.vertices
    )


def _vertex_statistics(
    vertex: JobVertex,
    operators: dict[str, OperatorSnapshot],
    epoch: int,
    duration: int,
    now_ms: int,
    barriers: Mapping[SubtaskId, BarrierTimes],
) -> TaskStatistics:
    times = [
        barriers.get(SubtaskId(vertex.vertex_id, index), BarrierTimes())
        for index in range(vertex.parallelism)
    ]
    sizes: Counter[int] = Counter()
    new: Counter[int] = Counter()
    for node in vertex.operators:
        operator = operators.get(node.operator_id)
        if operator is None:
            continue
        for subtask, state in operator.operator_state.items():
            sizes[subtask] += len(state)
            new[subtask] += len(state)
        for part in operator.keyed:
            sizes[part.subtask] += sum(file.size for file in part.files)
            new[part.subtask] += sum(f.size for f in part.files if f.to_version == epoch and not f.is_base)
        for subtask, in_flight in operator.in_flight.items():
            sizes[subtask] += in_flight.size
            new[subtask] += sum(file.size for file in in_flight.files if file.epoch == epoch)
    return TaskStatistics(
        vertex.vertex_id,
        tuple(
            SubtaskStatistics(
                index,
                now_ms,
                checkpointed_size=new[index],
                state_size=sizes[index],
                sync_duration=each.sync,
                # The task has written its state before the epoch ended; what follows runs beside the next one.
                async_duration=max(0, duration - each.start_delay - each.alignment - each.sync),
                start_delay=each.start_delay,
                alignment_duration=each.alignment,
                processed_data=each.processed,
                persisted_data=each.persisted,
                is_unaligned=each.is_unaligned,
            )
            for index, each in enumerate(times)
        ),
    )
