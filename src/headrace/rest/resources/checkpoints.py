"""Checkpoints: what was taken, how long it took, how large it is, and how checkpointing is configured."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.config.options import state as state_options
from headrace.config.options.checkpointing import ExternalizedCheckpointRetention
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Number, Request, SnakeBody, number
from headrace.rest.routing import Endpoint
from headrace.runtime.checkpoint.statistics import (
    CheckpointRecord,
    CheckpointStatus,
    Percentiles,
    Summary,
    TaskStatistics,
)
from headrace.runtime.job.dispatcher import LiveJob

#: Flink's "never": checkpoints are taken on request only.
_NEVER = 2**63 - 1
_BACKENDS = {"hashmap": "HashMapStateBackend", "rocksdb": "EmbeddedRocksDBStateBackend"}


class StatisticsSummary(SnakeBody):
    min: int
    max: int
    avg: int
    p50: Number
    p90: Number
    p95: Number
    p99: Number
    p999: Number


class CheckpointCounts(SnakeBody):
    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class CheckpointSummaries(SnakeBody):
    checkpointed_size: StatisticsSummary
    state_size: StatisticsSummary
    end_to_end_duration: StatisticsSummary
    alignment_buffered: StatisticsSummary
    processed_data: StatisticsSummary
    persisted_data: StatisticsSummary


class TaskCheckpoint(SnakeBody):
    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int


class Checkpoint(SnakeBody, omit_defaults=True):
    class_name: str = msgspec.field(name="className")
    id: int
    status: str
    is_savepoint: bool
    savepoint_format: str | None = msgspec.field(name="savepointFormat")
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: str
    tasks: dict[str, TaskCheckpoint]
    #: Of completed ones.
    external_path: str | msgspec.UnsetType | None = msgspec.UNSET
    discarded: bool | msgspec.UnsetType = msgspec.UNSET
    #: Of failed ones.
    failure_timestamp: int | msgspec.UnsetType = msgspec.UNSET
    failure_message: str | msgspec.UnsetType = msgspec.UNSET


class RestoredCheckpoint(SnakeBody):
    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str


class LatestCheckpoints(SnakeBody):
    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: RestoredCheckpoint | None


class Checkpoints(SnakeBody):
    counts: CheckpointCounts
    summary: CheckpointSummaries
    latest: LatestCheckpoints
    history: list[Checkpoint]


class Externalization(SnakeBody):
    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfigBody(SnakeBody):
    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_periodic_materialization_interval: int
    changelog_storage: str


class SubtaskDurations(msgspec.Struct, frozen=True):
    sync: int
    async_: int = msgspec.field(name="async")


class SubtaskAlignment(SnakeBody):
    buffered: int
    processed: int
    persisted: int
    duration: int


class SubtaskCheckpoint(SnakeBody):
    class_name: str = msgspec.field(name="className")
    index: int
    ack_timestamp: int
    end_to_end_duration: int
    checkpointed_size: int
    state_size: int
    checkpoint: SubtaskDurations
    alignment: SubtaskAlignment
    start_delay: int
    unaligned_checkpoint: bool
    aborted: bool
    status: str


class DurationSummaries(msgspec.Struct, frozen=True):
    sync: StatisticsSummary
    async_: StatisticsSummary = msgspec.field(name="async")


class AlignmentSummaries(SnakeBody):
    buffered: StatisticsSummary
    processed: StatisticsSummary
    persisted: StatisticsSummary
    duration: StatisticsSummary


class TaskSummaries(SnakeBody):
    checkpointed_size: StatisticsSummary
    state_size: StatisticsSummary
    end_to_end_duration: StatisticsSummary
    checkpoint_duration: DurationSummaries
    alignment: AlignmentSummaries
    start_delay: StatisticsSummary


class TaskCheckpointDetails(TaskCheckpoint):
    summary: TaskSummaries
    subtasks: list[SubtaskCheckpoint]


def _summary(found: Percentiles) -> StatisticsSummary:
    points = (found.p50, found.p90, found.p95, found.p99, found.p999)
    p50, p90, p95, p99, p999 = map(number, points)
    return StatisticsSummary(
        min=found.min, max=found.max, avg=found.avg, p50=p50, p90=p90, p95=p95, p99=p99, p999=p999
    )


_ZERO = StatisticsSummary(min=0, max=0, avg=0, p50=0.0, p90=0.0, p95=0.0, p99=0.0, p999=0.0)


def _summary_of(values: list[int]) -> StatisticsSummary:
    summary = Summary()
    for value in values:
        summary.add(value)
    return _summary(summary.percentiles())


def _checkpoint(record: CheckpointRecord, *, with_tasks: bool = False) -> Checkpoint:
    more: dict[str, Any] = {}
    if record.status is CheckpointStatus.COMPLETED:
        more = {"external_path": record.external_path, "discarded": record.discarded}
    elif record.status is CheckpointStatus.FAILED:
        more = {
            "failure_timestamp": record.failure_timestamp or 0,
            "failure_message": record.failure_message or "",
        }
    tasks = {each.vertex_id: _task(record, each) for each in record.tasks.values()} if with_tasks else {}
    return Checkpoint(
        class_name=record.class_name,
        id=record.id,
        status=record.status.name,
        is_savepoint=record.is_savepoint,
        savepoint_format=None if record.savepoint_format is None else record.savepoint_format.name,
        trigger_timestamp=record.trigger_timestamp,
        latest_ack_timestamp=record.latest_ack_timestamp,
        checkpointed_size=record.checkpointed_size,
        state_size=record.state_size,
        end_to_end_duration=record.end_to_end_duration,
        alignment_buffered=0,
        processed_data=record.processed_data,
        persisted_data=record.persisted_data,
        num_subtasks=record.num_subtasks,
        num_acknowledged_subtasks=record.num_acknowledged_subtasks,
        checkpoint_type=record.checkpoint_type.name,
        tasks=tasks,
        **more,
    )


def _task_fields(record: CheckpointRecord, task: TaskStatistics) -> dict[str, Any]:
    return {
        "id": record.id,
        "status": record.status.name,
        "latest_ack_timestamp": task.latest_ack_timestamp,
        "checkpointed_size": task.checkpointed_size,
        "state_size": task.state_size,
        "end_to_end_duration": max(0, task.latest_ack_timestamp - record.trigger_timestamp),
        "alignment_buffered": 0,
        "processed_data": task.processed_data,
        "persisted_data": task.persisted_data,
        "num_subtasks": len(task.subtasks),
        "num_acknowledged_subtasks": len(task.subtasks),
    }


def _task(record: CheckpointRecord, task: TaskStatistics) -> TaskCheckpoint:
    return TaskCheckpoint(**_task_fields(record, task))


def checkpoints(context: RestContext, request: Request) -> Checkpoints:
    statistics = context.live(request).master.checkpoints.coordinator.statistics()
    counts, summaries, restored = statistics.counts, statistics.summary, statistics.latest_restored
    latest = (statistics.latest_completed, statistics.latest_savepoint, statistics.latest_failed)
    completed, savepoint, failed = (None if each is None else _checkpoint(each) for each in latest)
    return Checkpoints(
        counts=CheckpointCounts(
            restored=counts.restored,
            total=counts.total,
            in_progress=counts.in_progress,
            completed=counts.completed,
            failed=counts.failed,
        ),
        summary=CheckpointSummaries(
            alignment_buffered=_ZERO,
            **{name: _summary(found) for name, found in summaries.items()},
        ),
        latest=LatestCheckpoints(
            completed=completed,
            savepoint=savepoint,
            failed=failed,
            restored=None
            if restored is None
            else RestoredCheckpoint(
                id=restored.id,
                restore_timestamp=restored.restore_timestamp,
                is_savepoint=restored.is_savepoint,
                external_path=restored.external_path,
            ),
        ),
        history=[_checkpoint(record) for record in statistics.history],
    )


def _record(context: RestContext, request: Request) -> CheckpointRecord:
    job = context.live(request)
    checkpoint_id = int(request.params["checkpointid"])
    for record in job.master.checkpoints.coordinator.statistics().history:
        if record.id == checkpoint_id:
            return record
    raise RestError(404, f"Could not find checkpointing statistics for checkpoint {checkpoint_id}.")


def checkpoint_details(context: RestContext, request: Request) -> Checkpoint:
    return _checkpoint(_record(context, request), with_tasks=True)


def checkpoint_subtasks(context: RestContext, request: Request) -> TaskCheckpointDetails:
    record = _record(context, request)
    task = record.tasks.get(request.params["vertexid"])
    if task is None:
        raise RestError(404, f"No statistics found for task {request.params['vertexid']}.")
    parts = task.subtasks
    return TaskCheckpointDetails(
        **_task_fields(record, task),
        summary=TaskSummaries(
            checkpointed_size=_summary_of([part.checkpointed_size for part in parts]),
            state_size=_summary_of([part.state_size for part in parts]),
            end_to_end_duration=_summary_of(
                [part.ack_timestamp - record.trigger_timestamp for part in parts]
            ),
            checkpoint_duration=DurationSummaries(
                _summary_of([part.sync_duration for part in parts]),
                _summary_of([part.async_duration for part in parts]),
            ),
            alignment=AlignmentSummaries(
                buffered=_ZERO,
                processed=_summary_of([part.processed_data for part in parts]),
                persisted=_summary_of([part.persisted_data for part in parts]),
                duration=_summary_of([part.alignment_duration for part in parts]),
            ),
            start_delay=_summary_of([part.start_delay for part in parts]),
        ),
        subtasks=[
            SubtaskCheckpoint(
                class_name="completed",
                index=part.index,
                ack_timestamp=part.ack_timestamp,
                end_to_end_duration=part.ack_timestamp - record.trigger_timestamp,
                checkpointed_size=part.checkpointed_size,
                state_size=part.state_size,
                checkpoint=SubtaskDurations(part.sync_duration, part.async_duration),
                alignment=SubtaskAlignment(
                    buffered=0,
                    processed=part.processed_data,
                    persisted=part.persisted_data,
                    duration=part.alignment_duration,
                ),
                start_delay=part.start_delay,
                unaligned_checkpoint=part.is_unaligned,
                aborted=False,
                status="completed",
            )
            for part in parts
        ],
    )


def config(context: RestContext, request: Request) -> CheckpointConfigBody:
    job: LiveJob = context.live(request)
    settings = job.master.settings.checkpoints
    keeps = settings.retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    stays = settings.retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    backend = job.configuration.get(state_options.BACKEND)
    live = job.master.settings.live
    overtakes_after_ms = None if live is None else live.overtakes_after_ms
    return CheckpointConfigBody(
        mode=settings.mode.name.lower(),
        interval=_NEVER if settings.effective_interval_ms is None else settings.effective_interval_ms,
        timeout=settings.timeout_ms,
        min_pause=settings.min_pause_ms,
        max_concurrent=settings.effective_max_concurrent,
        externalization=Externalization(enabled=keeps, delete_on_cancellation=not stays),
        state_backend=_BACKENDS.get(backend, backend),
        checkpoint_storage="FileSystemCheckpointStorage",
        unaligned_checkpoints=overtakes_after_ms is not None,
        tolerable_failed_checkpoints=settings.tolerable_failures,
        aligned_checkpoint_timeout=overtakes_after_ms or 0,
        checkpoints_after_tasks_finish=settings.after_tasks_finish,
        state_changelog_enabled=False,
        changelog_periodic_materialization_interval=600_000,
        changelog_storage="memory",
    )


def _job(path: str, summary: str, handler: Any, answer: Any) -> Endpoint:
    return Endpoint("GET", f"/jobs/{{jobid}}/checkpoints{path}", summary, handler, answer, is_archived=True)


ENDPOINTS = (
    _job("", "Counts, summaries and history of checkpoints.", checkpoints, Checkpoints),
    _job("/config", "How checkpointing is configured.", config, CheckpointConfigBody),
    _job("/details/{checkpointid}", "One checkpoint.", checkpoint_details, Checkpoint),
    _job(
        "/details/{checkpointid}/subtasks/{vertexid}",
        "One checkpoint of one vertex.",
        checkpoint_subtasks,
        TaskCheckpointDetails,
    ),
)
