"""Which channels a live subtask sends barriers on, and on which channels barriers reach it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.graph.job_graph import JobEdge, JobGraph
from headrace.runtime.epoch.in_flight import can_be_overtaken
from headrace.runtime.epoch.layout import Layout, consumers_of
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.task.mailbox import BarrierPath


def barrier_targets(job: JobGraph, layout: Layout, subtask: SubtaskId) -> list[tuple[int, int, int]]:
    """Return where the barriers of a subtask go: edge, level and partition of every channel."""
    return [
        (edge.edge_id, *place)
        for edge in job.outputs_of(subtask.vertex_id)
        for place in _places(job, layout, edge, subtask.subtask)
    ]


def barrier_paths(job: JobGraph, layout: Layout, level: int, partition: int) -> Iterator[BarrierPath]:
    """Yield the channels that end at a place, or on which it passes on what is for a deeper level."""
    for edge in job.edges:
        source_level = layout.place(SubtaskId(edge.source_vertex, 0))[0]
        for producer in range(job.vertex(edge.source_vertex).parallelism):
            for target in _places(job, layout, edge, producer):
                is_between = source_level < level < target[0] and partition == layout.next_hop(
                    *target, from_level=level - 1
                )
                if is_between or target == (level, partition):
                    yield (edge.edge_id, producer, *target)


def channels_in_order(
    job: JobGraph, subtask: SubtaskId, channels: Iterable[tuple[int, int]]
) -> frozenset[tuple[int, int]]:
    """Return those of a subtask's channels, as (edge, producer), on which no barrier may overtake records."""
    edges = {edge.edge_id for edge in job.inputs_of(subtask.vertex_id) if not can_be_overtaken(edge)}
    return frozenset(channel for channel in channels if channel[0] in edges)


def _places(job: JobGraph, layout: Layout, edge: JobEdge, producer: int) -> Iterator[tuple[int, int]]:
    width = job.vertex(edge.source_vertex).parallelism
    consumers = job.vertex(edge.target_vertex).parallelism
    for index in consumers_of(edge, producer, width, consumers):
        yield layout.place(SubtaskId(edge.target_vertex, index))
