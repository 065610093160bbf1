"""Event time in an epoch of a table job: known to the driver before the epoch runs, and given to operators in the plan.

    epoch n      scan reads rows up to 12:07      operators: rows of n, then the watermark of n - 1
    epoch n + 1  scan reads rows up to 12:09      operators: rows of n + 1, then 12:07 minus the delay

Where a scan's end is known when the epoch is planned, its rows are followed by the end of time in the same epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.table_job import fragment_of, producer_of
from headrace.operators.io import SinkDeclaration, SourceDeclaration
from headrace.operators.table.bridge import TableToStream
from headrace.operators.table.declarations import StatefulNode, TableWatermarkDeclaration
from headrace.operators.table.steps import reads_watermark
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, TableTime
from headrace.runtime.task.time_parts import NO_TIME, SPLIT_TIMES, TIME
from headrace.state.operator_state import own_part, with_own_part


@dataclass(frozen=True)
class VertexTime:
    """Where event time stands at a vertex."""

    #: Before the epoch: rows that this has passed are late.
    before: int
    #: After the rows of the epoch.
    after: int
    #: Whether all that comes before the vertex has ended with the epoch.
    is_final: bool
    #: Whether what comes before it is left out of the watermark for want of rows.
    is_idle: bool = False
    #: How far the rows that come out of it may be behind `after`.
    held_ms: int = 0
    #: Whether the state after the epoch is written; False if the job ends with it and nothing reads that state.
    keeps_state: bool = True

    @property
    def behind(self) -> int:
        """Where event time stands after the vertex."""
        return _held_back(self.after, self.held_ms)


def vertex_times(
    job: JobGraph,
    vertices: Sequence[JobVertex],
    plan: EpochPlan,
    final_scans: Mapping[str, bool],
    known: Mapping[str, VertexTime],
) -> dict[str, VertexTime]:
    """Return where time stands at each of some vertices in an epoch.

    Args:
        job: The job.
        vertices: Producers before consumers.
        plan: The epoch.
        final_scans: For each scan whether it will have ended, as far as that is known.
        known: Where it stands at the operators before them, by operator id.
    """
    times: dict[str, VertexTime] = {}
    for vertex in vertices:
        parts = subtask_plans(vertex, plan)
        seen = min((seen_by(part, vertex.head.operator_id) for part in parts), default=MIN_WATERMARK)
        if vertex.is_source:
            is_final = final_scans[vertex.vertex_id] or all(part.has_ended for part in parts)
            after = MAX_WATERMARK if is_final else _scan_time(vertex, plan)
            time = VertexTime(seen, after, is_final, held_ms=_holds_back_ms(vertex))
        else:
            operators = [producer_of(job, edge).operator_id for edge in job.inputs_of(vertex.vertex_id)]
            producers = [times.get(each) or known[each] for each in operators]
            time = _time_behind(vertex, plan, seen, producers)
        times[vertex.vertex_id] = time
    if plan.keeps_last_state or len(vertices) < len(job.vertices):
        return times
    if not all(time.is_final for time in times.values()):
        return times
    return {vertex_id: replace(time, keeps_state=False) for vertex_id, time in times.items()}


def _time_behind(
    vertex: JobVertex, plan: EpochPlan, seen: int, producers: Sequence[VertexTime]
) -> VertexTime:
    """Return where time stands at a vertex that has seen a watermark, and whose producers have got so far."""
    is_final = all(time.is_final for time in producers)
    is_idle = not is_final and all(time.is_idle or time.is_final for time in producers)
    if not isinstance(vertex.head.declaration, TableWatermarkDeclaration):
        after = max(seen, _merged(producers))
    elif is_final:
        after = MAX_WATERMARK
    else:
        after = MIN_WATERMARK if plan.holds_watermarks else seen
    return VertexTime(seen, after, is_final, is_idle, _holds_back_ms(vertex))


def _scan_time(vertex: JobVertex, plan: EpochPlan) -> int:
    """Return where time stands after the rows of a scan; no watermark stands where a probe has cut them."""
    return MIN_WATERMARK if plan.holds_watermarks else scan_watermark(vertex, plan)


def _merged(producers: Sequence[VertexTime]) -> int:
    """Return the lowest time of those that take part; where none does, it stands where the furthest is."""
    running = [time for time in producers if not time.is_final] or producers
    active = [time.behind for time in running if not time.is_idle]
    return min(active) if active else max(time.behind for time in running)


def _holds_back_ms(vertex: JobVertex) -> int:
    declaration = vertex.head.declaration
    return declaration.holds_back_ms if isinstance(declaration, StatefulNode) else 0


def _held_back(watermark: int, by_ms: int) -> int:
    """Return a watermark for rows that may be so much older; the end of time is the end for all."""
    return watermark if watermark in (MIN_WATERMARK, MAX_WATERMARK) else watermark - by_ms


def border_time(times: Sequence[TableTime]) -> VertexTime:
    """Return where time stands after the rows that the subtasks of a stream handed to a table."""
    running = [time for time in times if not time.is_final]
    if not running:
        return VertexTime(MIN_WATERMARK, MAX_WATERMARK, is_final=True)
    active = [time.watermark for time in running if not time.is_idle]
    after = min(active) if active else max(time.watermark for time in running)
    return VertexTime(MIN_WATERMARK, after, is_final=False, is_idle=not active)


def needs_event_time(job: JobGraph, vertex_id: str) -> bool:
    """Whether something after a vertex follows its watermark."""
    for edge in job.outputs_of(vertex_id):
        if reads_watermark(fragment_of(edge).steps):
            return True
        declaration = job.vertex(edge.target_vertex).head.declaration
        if isinstance(declaration, TableToStream):
            return True
        if isinstance(declaration, StatefulNode) and declaration.goes_by_watermark:
            return True
        if isinstance(declaration, SinkDeclaration) and declaration.sink.goes_by_watermark:
            return True
        if needs_event_time(job, edge.target_vertex):
            return True
    return False


def next_watermarks(job: JobGraph, vertices: Sequence[JobVertex], known: Mapping[str, int]) -> dict[str, int]:
    """Return how far each of some vertices will come in the next epoch.

    Args:
        job: The job.
        vertices: Producers before consumers.
        known: What is reached already by those that find out time themselves, and by streams before them, by id.
    """
    reached: dict[str, int] = dict(known)
    held = {vertex.vertex_id: _holds_back_ms(vertex) for vertex in vertices}
    for vertex in vertices:
        if vertex.vertex_id not in known:
            operators = [producer_of(job, edge).operator_id for edge in job.inputs_of(vertex.vertex_id)]
            behind = [_held_back(reached[each], held.get(each, 0)) for each in operators]
            reached[vertex.vertex_id] = min(behind)
    return reached


def scan_watermark(vertex: JobVertex, plan: EpochPlan) -> int:
    """Return the lowest watermark that subtasks of a scan had reached before the epoch, without those that idle."""
    parts = subtask_plans(vertex, plan)
    active = [part for part in parts if not part.has_ended and not is_idle(vertex, part)]
    if not active:
        # All of them idle: time stands still where the furthest is; all ended: it is over.
        ended = all(part.has_ended for part in parts)
        idle = max((seen_by(part, vertex.head.operator_id) for part in parts), default=MIN_WATERMARK)
        return MAX_WATERMARK if ended else idle
    return min(seen_by(part, vertex.head.operator_id) for part in active)


def is_idle(vertex: JobVertex, part: SubtaskPlan) -> bool:
    """Whether a subtask of a scan is left out of the watermark: all its splits idle, or it has none to read.

    Without an idle timeout no subtask is: one without a split may get one with older rows.
    """
    declaration = vertex.head.declaration
    assert isinstance(declaration, SourceDeclaration), "only scans have splits"
    return declaration.idleness_ms is not None and part.open_splits <= part.idle_splits


def watermark_of_rows(vertex: JobVertex, plan: EpochPlan, time: VertexTime) -> int | None:
    """Return how far event time has advanced where the rows of a vertex are; None: there is no watermark yet.

    Of a scan, what the rows before this epoch say; rows that a node emits are followed by the watermark that they
    were waiting for.
    """
    known = _scan_time(vertex, plan) if vertex.is_source else _held_back(time.before, time.held_ms)
    return None if known == MIN_WATERMARK else known


def subtask_plans(vertex: JobVertex, plan: EpochPlan) -> list[SubtaskPlan]:
    """Return the plans of a vertex's subtasks."""
    return [plan.subtasks[SubtaskId(vertex.vertex_id, index)] for index in range(vertex.parallelism)]


def seen_by(part: SubtaskPlan, operator_id: str) -> int:
    """Return the watermark that a subtask has seen."""
    seen, _ = own_part(part.operator_state.get(operator_id), TIME) or NO_TIME
    return int(seen)


def split_times(
    part: SubtaskPlan, operator_id: str, seen: Mapping[str, int], ended: AbstractSet[str]
) -> dict[str, int]:
    """Return how far event time has advanced in each split that a subtask still reads.

    Args:
        part: What the subtask was to do in the epoch.
        operator_id: The scan's.
        seen: How far it came in the rows of the epoch, by split.
        ended: The splits that have come to their end.
    """
    before: Mapping[str, int] = own_part(part.operator_state.get(operator_id), SPLIT_TIMES) or {}
    still_read = part.open_splits - ended
    times = {split: before.get(split, MIN_WATERMARK) for split in still_read}
    return {split: max(ms, seen.get(split, MIN_WATERMARK)) for split, ms in times.items()}


def lowest_split_time(times: Mapping[str, int], idle: AbstractSet[str]) -> int:
    """Return the watermark of a subtask: that of its slowest split, without those that idle."""
    return min((ms for split, ms in times.items() if split not in idle), default=MIN_WATERMARK)


def time_state(
    part: SubtaskPlan, operator_id: str, watermark: int, splits: Mapping[str, int] | None = None
) -> dict[str, bytes]:
    """Return the operator state that keeps a watermark, and those of splits; nothing if all is kept already."""
    state = before = part.operator_state.get(operator_id)
    if watermark != seen_by(part, operator_id):
        state = with_own_part(state, TIME, (watermark, None))
    if splits is not None and splits != own_part(before, SPLIT_TIMES):
        state = with_own_part(state, SPLIT_TIMES, dict(splits))
    return {} if state is None or state == before else {operator_id: state}
