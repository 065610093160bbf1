"""Where subtasks run: levels of vertices, and in each level one numbered partition per subtask.

    level 0   source#0  source#1                 partitions 0 1
    level 1   count#0   count#1   alerts#0       partitions 0 1 2

Both sides of the exchange derive the same layout from the job graph, so a buffer needs no more than two numbers.
"""

from __future__ import annotations

from headrace.graph.job_graph import JobEdge, JobGraph
from headrace.graph.partitioning import Forward, Rescale
from headrace.runtime.epoch.messages import SubtaskId


class Layout:
    """The partitions of a job's levels."""

    def __init__(self, job: JobGraph) -> None:
        self.levels: tuple[tuple[SubtaskId, ...], ...] = tuple(
            tuple(
                SubtaskId(vertex.vertex_id, index)
                for vertex in vertices
                for index in range(vertex.parallelism)
            )
            for vertices in job.levels()
        )
        self._places = {
            subtask: (level, partition)
            for level, subtasks in enumerate(self.levels)
            for partition, subtask in enumerate(subtasks)
        }

    @property
    def depth(self) -> int:
        """The number of levels; as the level of a buffer it means the driver."""
        return len(self.levels)

    def place(self, subtask: SubtaskId) -> tuple[int, int]:
        """Return the level and the partition of a subtask."""
        return self._places[subtask]

    def next_hop(self, level: int, partition: int, *, from_level: int) -> int:
        """Return the partition of the next level that a buffer for (level, partition) goes to.

        A buffer for a deeper level is passed on by one of the partitions in between.
        """
        if level == from_level + 1:
            return partition
        return partition % len(self.levels[from_level + 1])


def consumers_of(edge: JobEdge, producer: int, producers: int, consumers: int) -> range:
    """Return the subtasks that a producer's records on this edge may go to."""
    if isinstance(edge.partitioner, Forward):
        return range(producer, producer + 1)
    if isinstance(edge.partitioner, Rescale):
        if producers >= consumers:
            # Consumer i reads the producers from i * P / C up to, and without, (i + 1) * P / C.
            consumer = ((producer + 1) * consumers - 1) // producers
            return range(consumer, consumer + 1)
        first = -(-producer * consumers // producers)
        return range(first, -(-(producer + 1) * consumers // producers))
    return range(consumers)


def producers_of(edge: JobEdge, consumer: int, producers: int, consumers: int) -> list[int]:
    """Return the subtasks whose records on this edge may come to a consumer: its channels."""
    return [p for p in range(producers) if consumer in consumers_of(edge, p, producers, consumers)]
