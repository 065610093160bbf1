"""How a checkpoint describes the records that its barrier has overtaken: channel state, as files of subtasks.

    same shape      subtask 1  <-  the file of subtask 1, as it was: records and events by channel
    another shape   subtask 1  <-  the files of all subtasks; it takes the records that are its own now

Only unaligned checkpoints of live jobs have any. A savepoint never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from headrace.elements import MAX_WATERMARK
from headrace.graph.job_graph import JobEdge, JobGraph
from headrace.graph.partitioning import Broadcast, Forward, Rescale


class InFlightFile(msgspec.Struct, frozen=True):
    """Buffers that one subtask had not processed."""

    #: The subtask that they were for.
    subtask: int
    path: str
    size: int
    #: The epoch whose end overtook them.
    epoch: int


class InFlight(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a subtask processes before anything else."""

    files: tuple[InFlightFile, ...]
    #: The edges that records came on when the files were written: what they connect, by their number.
    edges: dict[int, str] = msgspec.field(default_factory=dict)
    #: Whether the files are of other subtasks, too, and records are taken by whoever they are for now.
    is_rerouted: bool = False
    #: For rerouted records: the number that an edge has now.
    edge_numbers: dict[int, int] = msgspec.field(default_factory=dict)
    #: For rerouted records: the lowest watermark of subtasks that nothing was overtaken at.
    watermark: int = MAX_WATERMARK
    #: For rerouted records: edges on which nothing comes any more.
    ended_edges: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def renamed(self, rename: Callable[[str], str]) -> InFlight:
        """Return the same with every path put through a function."""
        files = tuple(msgspec.structs.replace(file, path=rename(file.path)) for file in self.files)
        return msgspec.structs.replace(self, files=files)


def can_be_overtaken(edge: JobEdge) -> bool:
    """Whether a barrier may overtake records on an edge.

    As in Flink, not where a record must reach a certain subtask that nothing in the record names, nor where all
    subtasks must have seen the same records: after rescaling nobody could say who gets what was overtaken.
    """
    return not isinstance(edge.partitioner, (Forward, Rescale, Broadcast))


def edge_identities(job: JobGraph, vertex_id: str) -> dict[int, str]:
    """Return what the edges into a vertex connect, by their number: the same text means the same connection."""
    return {
        edge.edge_id: "/".join(
            (
                job.vertex(edge.source_vertex).operators[edge.source_operator].operator_id,
                str(edge.target_input),
                edge.side_tag or "",
                edge.partitioner.name,
            )
        )
        for edge in job.inputs_of(vertex_id)
    }


def all_files(parts: Iterable[InFlight]) -> tuple[InFlightFile, ...]:
    """Return the files of several subtasks, each once."""
    found: Mapping[str, InFlightFile] = {file.path: file for part in parts for file in part.files}
    return tuple(found.values())
