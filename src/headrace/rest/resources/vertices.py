"""Vertices and their subtasks: states, times, where they run, watermarks, back pressure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.graph.execution_graph import Execution
from headrace.graph.job_graph import JobVertex
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, Number, Request
from headrace.rest.resources.accumulators import UserAccumulatorBody, shown_accumulators
from headrace.rest.resources.jobs import TaskMetrics, task_metrics
from headrace.rest.resources.states import (
    duration_of,
    end_of,
    start_of,
    state_counts,
    state_durations,
    state_timestamps,
)
from headrace.rest.routing import Endpoint
from headrace.runtime.checkpoint.statistics import percentile
from headrace.runtime.epoch.back_pressure import BackPressureLevel
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.job_monitor import Rates, SubtaskView

_UNKNOWN = "(unassigned)"


class SubtaskAggregate(Body):
    """A quantity over the subtasks."""

    min: int
    max: int
    avg: int
    sum: int
    median: int
    p25: int
    p75: int
    p95: int


class Aggregates(Body):
    metrics: dict[str, SubtaskAggregate]
    status_duration: dict[str, SubtaskAggregate]


class SubtaskLine(Body):
    subtask: int
    status: str
    attempt: int
    endpoint: str
    start_time: int
    end_time: int
    duration: int
    metrics: TaskMetrics
    taskmanager_id: str
    status_duration: dict[str, int]
    #: Flink writes it under both names.
    start_time_again: int = msgspec.field(name="start_time")


class VertexDetails(Body):
    id: str
    name: str
    parallelism: int
    max_parallelism: int = msgspec.field(name="maxParallelism")
    now: int
    subtasks: list[SubtaskLine]
    aggregated: Aggregates


class SubtaskTime(Body):
    subtask: int
    endpoint: str
    duration: int
    timestamps: dict[str, int]


class SubtaskTimes(Body):
    id: str
    name: str
    now: int
    subtasks: list[SubtaskTime]


class VertexTaskManager(Body):
    endpoint: str
    status: str
    start_time: int
    end_time: int
    duration: int
    metrics: TaskMetrics
    status_counts: dict[str, int]
    taskmanager_id: str
    aggregated: Aggregates


class VertexTaskManagers(Body):
    id: str
    name: str
    now: int
    taskmanagers: list[VertexTaskManager]


class MetricValue(Body):
    id: str
    value: str


class SubtaskBackPressure(Body):
    subtask: int
    level: str = msgspec.field(name="backpressureLevel")
    ratio: float
    idle_ratio: float = msgspec.field(name="idleRatio")
    busy_ratio: Number = msgspec.field(name="busyRatio")
    #: Flink writes it under both names.
    level_again: str = msgspec.field(name="backpressure-level")


class BackPressure(Body):
    status: str
    level: str = msgspec.field(name="backpressureLevel")
    end_timestamp: int
    subtasks: list[SubtaskBackPressure]
    level_again: str = msgspec.field(name="backpressure-level")


class UserAccumulators(Body):
    id: str
    user_accumulators: list[UserAccumulatorBody]


class SubtaskAccumulators(Body):
    subtask: int
    attempt: int
    endpoint: str
    user_accumulators: list[UserAccumulatorBody]


class AllSubtaskAccumulators(Body):
    id: str
    parallelism: int
    subtasks: list[SubtaskAccumulators]


class OneSubtaskAccumulators(Body):
    id: str
    subtask: int
    attempt: int
    user_accumulators: list[UserAccumulatorBody]


# -- parts -------------------------------------------------------------------------------------------------------


def _aggregate(values: Sequence[float]) -> SubtaskAggregate:
    ordered = sorted(round(value) for value in values)
    total = sum(ordered)

    def at(point: float) -> int:
        return round(percentile(ordered, point))

    return SubtaskAggregate(
        min=ordered[0],
        max=ordered[-1],
        avg=total // len(ordered),
        sum=total,
        median=at(0.5),
        p25=at(0.25),
        p75=at(0.75),
        p95=at(0.95),
    )


def _aggregates(views: Sequence[SubtaskView], durations: Sequence[dict[str, int]]) -> Aggregates:
    quantities: dict[str, Sequence[float]] = {
        "read-bytes": [view.bytes_in for view in views],
        "write-bytes": [view.bytes_out for view in views],
        "read-records": [view.records_in for view in views],
        "write-records": [view.records_out for view in views],
        "accumulated-backpressured-time": [view.backpressured_ms for view in views],
        "accumulated-idle-time": [view.idle_ms for view in views],
        "accumulated-busy-time": [view.busy_ms for view in views],
    }
    states = sorted({state for each in durations for state in each})
    return Aggregates(
        metrics={name: _aggregate(values) for name, values in quantities.items()},
        status_duration={
            state: _aggregate([each[state] for each in durations if state in each]) for state in states
        },
    )


class _Subtasks:
    """The subtasks of a vertex with all there is to know of them."""

    def __init__(self, context: RestContext, job: LiveJob, vertex: JobVertex) -> None:
        self._context = context
        self.now_ms = context.dispatcher.now_ms()
        known = job.monitor.subtasks()
        subtasks = job.master.execution.job_vertices[vertex.vertex_id].subtasks
        self.executions: list[Execution] = [subtask.current for subtask in subtasks]
        self.views = [
            known.get(SubtaskId(vertex.vertex_id, index), SubtaskView()) for index in range(len(subtasks))
        ]
        self.has_reported = [SubtaskId(vertex.vertex_id, index) in known for index in range(len(subtasks))]

    def line(self, index: int) -> SubtaskLine:
        execution, view = self.executions[index], self.views[index]
        start_ms, end_ms = start_of(execution), end_of(execution)
        return SubtaskLine(
            subtask=index,
            status=execution.state.name,
            attempt=execution.attempt,
            endpoint=self.endpoint(index),
            start_time=start_ms,
            end_time=end_ms,
            duration=duration_of(start_ms, end_ms, self.now_ms),
            metrics=task_metrics([view], is_complete=self.has_reported[index]),
            taskmanager_id=self.task_manager(index),
            status_duration=state_durations(execution, self.now_ms),
            start_time_again=start_ms,
        )

    def endpoint(self, index: int) -> str:
        host = self.views[index].host
        return f"{host}:-1" if host else _UNKNOWN

    def task_manager(self, index: int) -> str:
        host = self.views[index].host
        executor = self._context.executor_of(host) if host else None
        return _UNKNOWN if executor is None else executor.executor_id

    def aggregates(self, indexes: Sequence[int]) -> Aggregates:
        durations = [state_durations(self.executions[index], self.now_ms) for index in indexes]
        return _aggregates([self.views[index] for index in indexes], durations)


# -- handlers ----------------------------------------------------------------------------------------------------


def details(context: RestContext, request: Request) -> VertexDetails:
    job, vertex = context.vertex(request)
    subtasks = _Subtasks(context, job, vertex)
    indexes = range(len(subtasks.executions))
    return VertexDetails(
        id=vertex.vertex_id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        now=subtasks.now_ms,
        subtasks=[subtasks.line(index) for index in indexes],
        aggregated=subtasks.aggregates(indexes),
    )


def subtask(context: RestContext, request: Request) -> SubtaskLine:
    job, vertex, index = context.subtask(request)
    return _Subtasks(context, job, vertex).line(index)


def subtask_attempt(context: RestContext, request: Request) -> SubtaskLine:
    job, vertex, index = context.subtask(request)
    line = _Subtasks(context, job, vertex).line(index)
    if line.attempt != int(request.params["attempt"]):
        raise RestError(
            404, f"Attempt {request.params['attempt']} not found; the current attempt is {line.attempt}."
        )
    return line


def times(context: RestContext, request: Request) -> SubtaskTimes:
    job, vertex = context.vertex(request)
    subtasks = _Subtasks(context, job, vertex)
    return SubtaskTimes(
        id=vertex.vertex_id,
        name=vertex.name,
        now=subtasks.now_ms,
        subtasks=[
            SubtaskTime(
                subtask=index,
                endpoint=subtasks.endpoint(index),
                duration=duration_of(min(execution.timestamps.values()), end_of(execution), subtasks.now_ms),
                timestamps=state_timestamps(execution),
            )
            for index, execution in enumerate(subtasks.executions)
        ],
    )


def task_managers(context: RestContext, request: Request) -> VertexTaskManagers:
    job, vertex = context.vertex(request)
    subtasks = _Subtasks(context, job, vertex)
    places: dict[tuple[str, str], list[int]] = {}
    for index in range(len(subtasks.executions)):
        places.setdefault((subtasks.endpoint(index), subtasks.task_manager(index)), []).append(index)
    return VertexTaskManagers(
        id=vertex.vertex_id,
        name=vertex.name,
        now=subtasks.now_ms,
        taskmanagers=[
            _task_manager(
                subtasks, endpoint, name, indexes, job.master.execution.vertex_state(vertex.vertex_id).name
            )
            for (endpoint, name), indexes in places.items()
        ],
    )


def _task_manager(
    subtasks: _Subtasks, endpoint: str, name: str, indexes: list[int], status: str
) -> VertexTaskManager:
    executions = [subtasks.executions[index] for index in indexes]
    start_ms = min((start for each in executions if (start := start_of(each)) >= 0), default=-1)
    ends = [end_of(each) for each in executions]
    end_ms = max(ends) if all(end >= 0 for end in ends) else -1
    counts: dict[Any, int] = {}
    for execution in executions:
        counts[execution.state] = counts.get(execution.state, 0) + 1
    return VertexTaskManager(
        endpoint=endpoint,
        status=status,
        start_time=start_ms,
        end_time=end_ms,
        duration=duration_of(start_ms, end_ms, subtasks.now_ms),
        metrics=task_metrics(
            [subtasks.views[index] for index in indexes],
            is_complete=all(subtasks.has_reported[index] for index in indexes),
        ),
        status_counts=state_counts(counts),
        taskmanager_id=name,
        aggregated=subtasks.aggregates(indexes),
    )


def watermarks(context: RestContext, request: Request) -> list[MetricValue]:
    job, vertex = context.vertex(request)
    if vertex.is_source:
        return []
    views = job.monitor.subtasks()
    found = [views.get(SubtaskId(vertex.vertex_id, index)) for index in range(vertex.parallelism)]
    return [
        MetricValue(id=f"{index}.currentInputWatermark", value=str(view.watermark))
        for index, view in enumerate(found)
        if view is not None and view.watermark is not None
    ]


def back_pressure(context: RestContext, request: Request) -> BackPressure:
    job, vertex = context.vertex(request)
    known = job.rates()
    rates = [known.get(SubtaskId(vertex.vertex_id, index), Rates()) for index in range(vertex.parallelism)]
    worst = BackPressureLevel.of(max(each.backpressured for each in rates)).value
    return BackPressure(
        status="ok",
        level=worst,
        end_timestamp=context.dispatcher.now_ms(),
        subtasks=[
            SubtaskBackPressure(
                subtask=index,
                level=BackPressureLevel.of(each.backpressured).value,
                ratio=round(each.backpressured, 3),
                idle_ratio=round(each.idle, 3),
                busy_ratio=round(each.busy, 3),
                level_again=BackPressureLevel.of(each.backpressured).value,
            )
            for index, each in enumerate(rates)
        ],
        level_again=worst,
    )


def accumulators(context: RestContext, request: Request) -> UserAccumulators:
    job, vertex = context.vertex(request)
    totals = job.master.accumulators.of_vertex(vertex.vertex_id)
    return UserAccumulators(id=vertex.vertex_id, user_accumulators=shown_accumulators(totals))


def _accumulators_of(job: LiveJob, vertex: JobVertex, index: int) -> list[UserAccumulatorBody]:
    return shown_accumulators(job.master.accumulators.of_subtask(SubtaskId(vertex.vertex_id, index)))


def all_subtask_accumulators(context: RestContext, request: Request) -> AllSubtaskAccumulators:
    job, vertex = context.vertex(request)
    subtasks = _Subtasks(context, job, vertex)
    return AllSubtaskAccumulators(
        id=vertex.vertex_id,
        parallelism=vertex.parallelism,
        subtasks=[
            SubtaskAccumulators(
                subtask=index,
                attempt=execution.attempt,
                endpoint=subtasks.endpoint(index),
                user_accumulators=_accumulators_of(job, vertex, index),
            )
            for index, execution in enumerate(subtasks.executions)
        ],
    )


def one_subtask_accumulators(context: RestContext, request: Request) -> OneSubtaskAccumulators:
    job, vertex, index = context.subtask(request)
    attempt = subtask_attempt(context, request).attempt
    return OneSubtaskAccumulators(
        id=vertex.vertex_id,
        subtask=index,
        attempt=attempt,
        user_accumulators=_accumulators_of(job, vertex, index),
    )


def _vertex(path: str, summary: str, handler: Any, answer: Any, **more: Any) -> Endpoint:
    return Endpoint(
        "GET",
        f"/jobs/{{jobid}}/vertices/{{vertexid}}{path}",
        summary,
        handler,
        answer,
        is_archived=True,
        **more,
    )


ENDPOINTS = (
    _vertex("", "One vertex and its subtasks.", details, VertexDetails),
    _vertex("/subtasktimes", "When subtasks entered their states.", times, SubtaskTimes),
    _vertex("/taskmanagers", "The vertex by task manager.", task_managers, VertexTaskManagers),
    _vertex("/watermarks", "The watermark of each subtask.", watermarks, list[MetricValue]),
    _vertex("/backpressure", "How busy, idle and backpressured subtasks are.", back_pressure, BackPressure),
    _vertex("/accumulators", "Accumulators of a vertex.", accumulators, UserAccumulators),
    _vertex(
        "/subtasks/accumulators",
        "Accumulators by subtask.",
        all_subtask_accumulators,
        AllSubtaskAccumulators,
    ),
    _vertex("/subtasks/{subtaskindex}", "One subtask.", subtask, SubtaskLine),
    Endpoint(
        "GET",
        "/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex}/attempts/{attempt}",
        "One attempt at a subtask.",
        subtask_attempt,
        SubtaskLine,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex}/attempts/{attempt}/accumulators",
        "Accumulators of one attempt at a subtask.",
        one_subtask_accumulators,
        OneSubtaskAccumulators,
    ),
)
