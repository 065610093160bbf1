"""Which part of a checkpoint is whose: sizes by vertex and subtask, from the checkpoint's metadata."""

from __future__ import annotations

from collections import Counter

from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from headrace.runtime.checkpoint.statistics import SubtaskStatistics, TaskStatistics


def task_statistics(
    job: JobGraph, metadata: CheckpointMetadata, *, started_ms: int, now_ms: int
) -> tuple[TaskStatistics, ...]:
    """Return what each vertex has put into a checkpoint that took from one moment to another."""
    operators = {operator.operator_id: operator for operator in metadata.operators}
    duration = max(0, now_ms - started_ms)
    return tuple(
        _vertex_statistics(vertex, operators, metadata.epoch, duration, now_ms) for vertex in job.vertices
    )


def _vertex_statistics(
    vertex: JobVertex, operators: dict[str, OperatorSnapshot], epoch: int, duration: int, now_ms: int
) -> TaskStatistics:
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
    return TaskStatistics(
        vertex.vertex_id,
        tuple(
            SubtaskStatistics(
                index,
                now_ms,
                checkpointed_size=new[index],
                state_size=sizes[index],
                # The task has written its state before the epoch ended; what follows runs beside the next one.
                async_duration=duration,
            )
            for index in range(vertex.parallelism)
        ),
    )
