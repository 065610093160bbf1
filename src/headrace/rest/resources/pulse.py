"""What a job does right now, in one answer each: its vertices for the drawn graph, its throughput, its state."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.rest.context import RestContext
from headrace.rest.http import Body, Request
from headrace.rest.resources.epochs import levels_of
from headrace.rest.routing import Endpoint
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.job_monitor import Rates, SubtaskView
from headrace.runtime.monitoring.throughput import STEP_MS
from headrace.runtime.run.state_registry import StateSize


class VertexPulse(Body):
    """A vertex over the last seconds; parts of time are of its busiest and most held up subtask, from 0 to 1."""

    id: str
    level: int
    busy: float
    backpressured: float
    idle: float
    records_in_per_second: float
    records_out_per_second: float
    bytes_in_per_second: float
    bytes_out_per_second: float
    #: The busiest subtask against the mean of all; 1 is even.
    skew: float
    watermark: int | None


class Pulse(Body):
    now: int
    vertices: list[VertexPulse]


class Throughput(Body):
    jid: str
    #: Records that sources read, per second, by step, oldest first.
    records_per_second: list[float]


class Throughputs(Body):
    #: The length of a step, ms.
    step: int
    jobs: list[Throughput]


class OperatorState(Body):
    """State of one operator over all its subtasks, bytes."""

    vertex_id: str
    operator_id: str
    operator: str
    parallelism: int
    keyed_size: int
    operator_size: int
    #: Of the subtask that has most.
    largest_subtask: int
    files: int


class OperatorStates(Body):
    operators: list[OperatorState]


def pulse(context: RestContext, request: Request) -> Pulse:
    job = context.live(request)
    rates, views = job.rates(), job.monitor.subtasks()
    levels = levels_of(job)
    vertices = []
    for vertex in job.master.job.vertices:
        ids = [SubtaskId(vertex.vertex_id, index) for index in range(vertex.parallelism)]
        vertices.append(
            _vertex(
                vertex.vertex_id,
                levels[vertex.vertex_id],
                [rates.get(each, Rates()) for each in ids],
                [views.get(each, SubtaskView()) for each in ids],
            )
        )
    return Pulse(now=context.dispatcher.now_ms(), vertices=vertices)


def _vertex(vertex_id: str, level: int, rates: Sequence[Rates], views: Sequence[SubtaskView]) -> VertexPulse:
    mean_busy = sum(each.busy for each in rates) / len(rates)
    busiest = max(each.busy for each in rates)
    watermarks = [view.watermark for view in views if view.watermark is not None]
    return VertexPulse(
        id=vertex_id,
        level=level,
        busy=round(busiest, 4),
        backpressured=round(max(each.backpressured for each in rates), 4),
        idle=round(min(each.idle for each in rates), 4),
        records_in_per_second=round(sum(each.records_in for each in rates), 1),
        records_out_per_second=round(sum(each.records_out for each in rates), 1),
        bytes_in_per_second=round(sum(each.bytes_in for each in rates), 1),
        bytes_out_per_second=round(sum(each.bytes_out for each in rates), 1),
        skew=round(busiest / mean_busy, 2) if mean_busy else 1.0,
        watermark=min(watermarks, default=None),
    )


def _throughput(job: LiveJob) -> Throughput:
    return Throughput(
        jid=job.job_id, records_per_second=[round(each, 1) for each in job.monitor.throughput()]
    )


def all_throughputs(context: RestContext, request: Request) -> Throughputs:
    return Throughputs(step=STEP_MS, jobs=[_throughput(job) for job in context.dispatcher.live_jobs()])


def throughput(context: RestContext, request: Request) -> Throughputs:
    return Throughputs(step=STEP_MS, jobs=[_throughput(context.live(request))])


def states(context: RestContext, request: Request) -> OperatorStates:
    job = context.live(request)
    sizes = job.master.state_sizes()
    return OperatorStates(
        operators=[
            _state(vertex.vertex_id, node.operator_id, node.name, vertex.parallelism, sizes[node.operator_id])
            for vertex in job.master.job.vertices
            for node in vertex.operators
            if node.operator_id in sizes
        ]
    )


def _state(vertex_id: str, operator_id: str, name: str, parallelism: int, size: StateSize) -> OperatorState:
    return OperatorState(
        vertex_id=vertex_id,
        operator_id=operator_id,
        operator=name,
        parallelism=parallelism,
        keyed_size=size.keyed,
        operator_size=size.operator,
        largest_subtask=size.largest,
        files=size.files,
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/headrace/throughput",
        "What the sources of running jobs read per second, over the last ten minutes. Not in Flink.",
        all_throughputs,
        Throughputs,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/headrace/throughput",
        "What the sources of one job read per second, over the last ten minutes. Not in Flink.",
        throughput,
        Throughputs,
        is_archived=True,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/headrace/vertices",
        "How busy each vertex of a job is. Not in Flink.",
        pulse,
        Pulse,
        is_archived=True,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/headrace/state",
        "How much state each operator has. Not in Flink.",
        states,
        OperatorStates,
        is_archived=True,
    ),
)
