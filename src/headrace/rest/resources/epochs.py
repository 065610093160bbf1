"""The time line of a job: its epochs, or the barriers of a live job, by phases, and why each took so long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.rest.context import RestContext
from headrace.rest.http import Body, Request
from headrace.rest.routing import Endpoint, QueryParameters
from headrace.runtime.checkpoint.statistics import CheckpointRecord
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.job_monitor import EpochView
from headrace.runtime.monitoring.slow_epochs import Explanation, LevelVertex, Usual, explain_epoch

_MOST = 2**53


class EpochPart(Body):
    """A part of an epoch's time: planning, level, spark, publishing or checkpoint."""

    kind: str
    #: Of kind level: which; else null.
    level: int | None
    #: Milliseconds.
    duration: float
    #: From 0 to 1.
    share: float


class EpochCheckpoint(Body):
    id: int
    is_savepoint: bool
    status: str


class OperatorTime(Body):
    """What the subtasks of a vertex did in an epoch, taken together: one part of their work, or idle."""

    vertex: str
    name: str
    part: str
    #: Milliseconds.
    duration: float


class EpochLine(Body):
    epoch: int
    start_time: int
    end_time: int
    duration: int
    records: int
    watermark: int | None
    #: First start and last end of the subtasks of each level.
    levels: list[tuple[int, int]]
    #: In their order; together the whole epoch, from its plan until the next one could begin.
    parts: list[EpochPart]
    #: How long there was nothing to do after it, ms.
    waited: float
    tries: int
    checkpoints: list[EpochCheckpoint]
    is_slow: bool
    #: Where the time went, in plain words.
    why: str
    #: Of tables: what their operators did, part by part.
    operators: list[OperatorTime]


class Scaling(Body):
    timestamp: int
    utilization: float
    before: int
    after: int
    reason: str


class Epochs(Body):
    epochs: list[EpochLine]
    restarts: int
    rescales: int
    #: What the autoscaler has decided.
    scaling: list[Scaling]
    #: Whether the job is live: each epoch is then the way of a barrier, with the records read since the one before.
    is_live: bool


def epochs(context: RestContext, request: Request) -> Epochs:
    job = context.live(request)
    since = request.number("since", 0, least=0, most=_MOST)
    known = job.monitor.epochs()
    usual = Usual.of(known)
    levels = [
        [LevelVertex(vertex.vertex_id, vertex.name, vertex.parallelism) for vertex in level]
        for level in job.master.job.levels()
    ]
    is_live = job.master.settings.live is not None
    marks = _marks(known, job.master.checkpoints.coordinator.statistics().history)
    return Epochs(
        epochs=[
            _line(
                each, explain_epoch(each, levels, usual, is_live=is_live), levels, marks.get(each.epoch, ())
            )
            for each in known
            if each.epoch >= since
        ],
        restarts=job.master.progress.restarts,
        rescales=job.master.progress.rescales,
        scaling=[
            Scaling(each.timestamp_ms, round(each.utilization, 4), each.before, each.after, each.reason)
            for each in job.master.scaling_decisions
        ],
        is_live=is_live,
    )


def _line(
    epoch: EpochView,
    explained: Explanation,
    levels: Sequence[Sequence[LevelVertex]],
    checkpoints: Iterable[CheckpointRecord],
) -> EpochLine:
    return EpochLine(
        epoch=epoch.epoch,
        start_time=epoch.started_ms,
        end_time=epoch.ended_ms,
        duration=epoch.ended_ms - epoch.started_ms,
        records=epoch.records,
        watermark=epoch.watermark,
        levels=list(epoch.levels),
        parts=[
            EpochPart(
                kind=part.kind, level=part.level, duration=round(part.ms, 1), share=round(part.share, 4)
            )
            for part in explained.parts
        ],
        waited=round(epoch.waiting_ms, 1),
        tries=epoch.tries,
        checkpoints=[
            EpochCheckpoint(id=each.id, is_savepoint=each.is_savepoint, status=each.status.name)
            for each in checkpoints
        ],
        is_slow=explained.is_slow,
        why=explained.text,
        operators=[
            OperatorTime(
                vertex=vertex.vertex_id, name=vertex.name, part=part, duration=round(milliseconds, 1)
            )
            for level in levels
            for vertex in level
            for part, milliseconds in epoch.spent_ms.get(vertex.vertex_id, {}).items()
        ],
    )


def _marks(
    epochs: Sequence[EpochView], checkpoints: Iterable[CheckpointRecord]
) -> dict[int, list[CheckpointRecord]]:
    """Put each checkpoint to the epoch it was taken behind: the last one that had begun."""
    marks: dict[int, list[CheckpointRecord]] = {}
    for record in checkpoints:
        begun = [each.epoch for each in epochs if each.started_ms <= record.trigger_timestamp]
        if begun:
            marks.setdefault(max(begun), []).append(record)
    return marks


def levels_of(job: LiveJob) -> dict[str, int]:
    """Return the level of each vertex, by its id."""
    return {
        vertex.vertex_id: number for number, level in enumerate(job.master.job.levels()) for vertex in level
    }


_SINCE = QueryParameters(
    "since",
    "The first epoch to list; by default all that are kept.",
    {"type": "integer", "minimum": 0, "maximum": _MOST},
)

ENDPOINTS = (
    Endpoint(
        "GET",
        "/jobs/{jobid}/epochs",
        "The last epochs of a job by their phases, or barriers of a live job, and why they took so long. Not in Flink.",
        epochs,
        Epochs,
        query=(_SINCE,),
        is_archived=True,
    ),
)
