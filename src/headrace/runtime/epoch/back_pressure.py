"""How subtasks spend an epoch: at work, held up by what follows them, or idle.

The levels of an epoch work one after the other, so each of them waits for the others whatever their speed. What counts
as back pressure is only the part that a faster consumer would take away: how much longer the slowest of the vertices
after it, or the publishing of their output, took than the vertex itself. Time in which sources had nothing to read is
taken off: with a faster consumer the job would have waited for input that much longer.

    level 0  source   ##..........          busy, then back-pressured by 'slow', which took 8 to its 2
    level 1  slow       ########            busy
    level 2  sink               ##          busy; idle before it
             publish              #
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from headrace.graph.job_graph import JobGraph
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport

#: From these shares of back-pressured time on it is low, and high: Flink's.
_LOW_FROM = 0.10
_HIGH_FROM = 0.50


class BackPressureLevel(Enum):
    """How much a subtask is held up; Flink's levels."""

    OK = "ok"
    LOW = "low"
    HIGH = "high"

    @classmethod
    def of(cls, share: float) -> BackPressureLevel:
        """Return the level for a share of back-pressured time."""
        if share <= _LOW_FROM:
            return cls.OK
        return cls.LOW if share <= _HIGH_FROM else cls.HIGH


@dataclass(frozen=True)
class TimeShares:
    """How a subtask spent an epoch, from the end of the one before to its own end; together 1."""

    #: Working: reading, processing, writing state and output.
    busy: float = 0.0
    #: Its results waited, because what follows took longer than itself.
    back_pressured: float = 0.0
    #: Without input: it was another level's turn, Spark's or the driver's, or sources had nothing.
    idle: float = 1.0

    @property
    def level(self) -> BackPressureLevel:
        """How much the subtask is held up."""
        return BackPressureLevel.of(self.back_pressured)


def time_shares(
    job: JobGraph,
    reports: Sequence[SubtaskReport],
    wall_s: float,
    publishing_s: Mapping[str, float] = MappingProxyType({}),
    waiting_s: float = 0.0,
) -> dict[SubtaskId, TimeShares]:
    """Return how each subtask spent an epoch.

    Args:
        job: The job.
        reports: What its subtasks said.
        wall_s: How long the epoch took, with all that the driver did and waited for since the one before.
        publishing_s: How long output was published in this time, by the operator id of the sink.
        waiting_s: How long sources had nothing to read in this time.
    """
    spans = _spans(reports)
    behind = _slowest_behind(job, spans, publishing_s)
    shares = {}
    for report in reports:
        vertex_id = report.subtask.vertex_id
        busy_s = report.busy_ns / 1e9
        whole_s = max(wall_s, busy_s)
        if not whole_s:
            shares[report.subtask] = TimeShares()
            continue
        if report.back_pressured_ns is not None:  # measured
            held_s = min(report.back_pressured_ns / 1e9, whole_s - busy_s)
            busy, held = busy_s / whole_s, held_s / whole_s
            shares[report.subtask] = TimeShares(busy, held, max(0.0, 1.0 - busy - held))
            continue
        excess_s = behind[vertex_id] - spans.get(vertex_id, 0.0) - waiting_s if busy_s else 0.0
        held_s = min(max(excess_s, 0.0), whole_s - busy_s)
        busy, held = busy_s / whole_s, held_s / whole_s
        shares[report.subtask] = TimeShares(busy, held, max(0.0, 1.0 - busy - held))
    return shares


def work_time(job: JobGraph, reports: Sequence[SubtaskReport]) -> float:
    """Return for how many seconds of an epoch some subtask was at work, level after level.

    What a barrier waits for answers from outside is not work: it takes as long with fewer records.
    """
    spans = _spans(reports)
    share = _share_of_work(reports)
    return sum(
        max(
            (spans.get(vertex.vertex_id, 0.0) * share.get(vertex.vertex_id, 1.0) for vertex in vertices),
            default=0.0,
        )
        for vertices in job.levels()
    )


def busiest_vertex_s(job: JobGraph, reports: Sequence[SubtaskReport]) -> float:
    """Return for how many seconds the subtasks of the busiest vertex of a live job were, on average, at work."""
    busy_s: dict[str, float] = dict.fromkeys((vertex.vertex_id for vertex in job.vertices), 0.0)
    for report in reports:
        busy_s[report.subtask.vertex_id] += report.busy_ns / 1e9
    return max((busy_s[vertex.vertex_id] / vertex.parallelism for vertex in job.vertices), default=0.0)


def _share_of_work(reports: Sequence[SubtaskReport]) -> dict[str, float]:
    """Return which part of their time the subtasks of a vertex did not wait, for those that waited."""
    waited: Counter[str] = Counter()
    busy: Counter[str] = Counter()
    for report in reports:
        waited[report.subtask.vertex_id] += report.waited_ns
        busy[report.subtask.vertex_id] += report.busy_ns
    return {vertex_id: max(0.0, 1 - ns / busy[vertex_id]) for vertex_id, ns in waited.items() if ns}


def _spans(reports: Sequence[SubtaskReport]) -> dict[str, float]:
    """Return for how long some subtask of each vertex was at work; with few slots they take turns."""
    by_vertex: dict[str, list[SubtaskReport]] = {}
    for report in reports:
        if report.busy_ns:
            by_vertex.setdefault(report.subtask.vertex_id, []).append(report)
    return {
        vertex_id: max(
            (max(each.ended_ms for each in own) - min(each.started_ms for each in own)) / 1e3,
            max(each.busy_ns for each in own) / 1e9,  # finer, and all there is if clocks of hosts disagree
        )
        for vertex_id, own in by_vertex.items()
    }


def _slowest_behind(
    job: JobGraph, spans: Mapping[str, float], publishing_s: Mapping[str, float]
) -> dict[str, float]:
    """Return for each vertex how long the slowest took of those that its records reach."""
    slowest: dict[str, float] = {}
    for vertices in reversed(job.levels()):
        for vertex in vertices:
            own = [publishing_s.get(node.operator_id, 0.0) for node in vertex.operators]
            for edge in job.outputs_of(vertex.vertex_id):
                own += [spans.get(edge.target_vertex, 0.0), slowest[edge.target_vertex]]
            slowest[vertex.vertex_id] = max(own, default=0.0)
    return slowest
