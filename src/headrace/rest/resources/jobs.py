"""Jobs: lists, details, plan, configuration, exceptions, result; cancelling them."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import lru_cache
from typing import Any

import msgspec

from headrace.common.job_status import JobStatus
from headrace.config.options import execution as execution_options
from headrace.graph.execution_graph import ExecutionJobVertex
from headrace.graph.plan_json import job_plan
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, CamelBody, Empty, Number, Request
from headrace.rest.resources.accumulators import (
    UserAccumulatorBody,
    packed_accumulators,
    shown_accumulators,
)
from headrace.rest.resources.outcomes import FailureCause, QueueStatus, failure_cause
from headrace.rest.resources.states import duration_of, end_of, job_timestamps, start_of, state_counts
from headrace.rest.routing import Endpoint, QueryParameters
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.failure_history import Failure
from headrace.runtime.monitoring.job_monitor import SubtaskView

#: Parallelism can change while a job runs, which Flink's clients take from this.
SCHEDULER = "Adaptive"


class JobState(Body):
    id: str
    status: str


class JobStates(Body):
    jobs: list[JobState]


class TaskCounts(Body):
    running: int
    canceling: int
    canceled: int
    total: int
    created: int
    scheduled: int
    deploying: int
    reconciling: int
    finished: int
    initializing: int
    failed: int


class JobLine(Body):
    """A job in the overview."""

    jid: str
    name: str
    job_type: str = msgspec.field(name="jobType")
    scheduler_type: str = msgspec.field(name="schedulerType")
    start_time: int
    end_time: int
    duration: int
    state: str
    last_modification: int
    tasks: TaskCounts
    pending_operators: int


class JobLines(Body):
    jobs: list[JobLine]


class TaskMetrics(Body):
    read_bytes: int
    read_bytes_complete: bool
    write_bytes: int
    write_bytes_complete: bool
    read_records: int
    read_records_complete: bool
    write_records: int
    write_records_complete: bool
    accumulated_backpressured_time: int
    accumulated_idle_time: int
    accumulated_busy_time: Number


class VertexLine(Body):
    id: str
    slot_sharing_group_id: str = msgspec.field(name="slotSharingGroupId")
    name: str
    max_parallelism: int = msgspec.field(name="maxParallelism")
    parallelism: int
    status: str
    start_time: int
    end_time: int
    duration: int
    tasks: dict[str, int]
    metrics: TaskMetrics


class PlanInput(msgspec.Struct, frozen=True):
    id: str
    num: int
    exchange: str
    ship_strategy: str


class PlanNode(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    operator: str
    parallelism: int
    operator_strategy: str
    description: str
    optimizer_properties: dict[str, str]
    inputs: list[PlanInput] = msgspec.field(default_factory=list)


class PlanBody(msgspec.Struct, frozen=True):
    jid: str
    name: str
    type: str
    nodes: list[PlanNode]


class JobPlan(msgspec.Struct, frozen=True):
    plan: PlanBody


class JobDetails(Body):
    jid: str
    application_id: str
    name: str
    is_stoppable: bool = msgspec.field(name="isStoppable")
    state: str
    job_type: str
    scheduler_type: str = msgspec.field(name="schedulerType")
    start_time: int
    end_time: int
    duration: int
    max_parallelism: int = msgspec.field(name="maxParallelism")
    now: int
    timestamps: dict[str, int]
    vertices: list[VertexLine]
    status_counts: dict[str, int]
    plan: PlanBody
    pending_operators: int


class JobStatusAnswer(Body):
    status: str


class ExecutionConfigBody(Body):
    restart_strategy: str
    job_parallelism: int
    object_reuse_mode: bool
    user_config: dict[str, str]


class JobConfig(Body):
    jid: str
    name: str
    execution_config: ExecutionConfigBody


class JobAccumulatorsBody(Body):
    """What user functions have added up; `job-accumulators` is empty in Flink, too."""

    job_accumulators: list[str]
    user_task_accumulators: list[UserAccumulatorBody]
    serialized_user_task_accumulators: dict[str, str]


class ExceptionInfo(CamelBody):
    exception_name: str
    stacktrace: str
    timestamp: int
    task_name: str | None
    endpoint: str | None
    task_manager_id: str | None
    failure_labels: dict[str, str]


class ExceptionEntry(ExceptionInfo):
    """The first failure, and what else failed with it."""

    concurrent_exceptions: list[ExceptionInfo]


class ExceptionHistory(CamelBody):
    entries: list[ExceptionEntry]
    truncated: bool


class JobExceptions(CamelBody):
    exception_history: ExceptionHistory


class JobResultBody(Body, omit_defaults=True):
    id: str
    application_status: str
    accumulator_results: dict[str, str]
    net_runtime: int
    failure_cause: FailureCause | None = None


class ExecutionResult(Body, omit_defaults=True):
    status: QueueStatus
    job_execution_result: JobResultBody | None = None


class ConfigEntry(Body):
    key: str
    value: str


# -- lists -------------------------------------------------------------------------------------------------------


def job_line(job: LiveJob, now_ms: int) -> JobLine:
    """Return a job's line in the overview."""
    execution = job.master.execution
    counts = {state.name.lower(): count for state, count in execution.state_counts().items()}
    ended_ms = job.ended_ms
    return JobLine(
        jid=job.job_id,
        name=job.name,
        job_type=_job_type(job),
        scheduler_type=SCHEDULER,
        start_time=job.monitor.started_ms,
        end_time=-1 if ended_ms is None else ended_ms,
        duration=max(0, (ended_ms or now_ms) - job.monitor.started_ms),
        state=execution.status.name,
        last_modification=max(execution.status_timestamps.values()),
        tasks=TaskCounts(total=sum(counts.values()), reconciling=0, **counts),
        pending_operators=0,
    )


def _job_type(job: LiveJob) -> str:
    return "BATCH" if job.master.job.is_batch else "STREAMING"


def ended_lines(context: RestContext) -> list[JobLine]:
    """Return the lines of the jobs that have ended."""
    return [_ended_line(ended.overview) for ended in context.dispatcher.history.jobs()]


@lru_cache(maxsize=2_000)
def _ended_line(overview: str) -> JobLine:
    # Read once: the overview is asked for often, and what has ended does not change.
    return msgspec.json.decode(overview, type=JobLines).jobs[0]


def job_states(context: RestContext, request: Request) -> JobStates:
    live = [JobState(id=job.job_id, status=job.status.name) for job in context.dispatcher.live_jobs()]
    return JobStates(jobs=live + [JobState(id=line.jid, status=line.state) for line in ended_lines(context)])


def jobs_overview(context: RestContext, request: Request) -> JobLines:
    now_ms = context.dispatcher.now_ms()
    live = [job_line(job, now_ms) for job in context.dispatcher.live_jobs()]
    return JobLines(jobs=live + ended_lines(context))


# -- one job -----------------------------------------------------------------------------------------------------


def job_details(context: RestContext, request: Request) -> JobDetails:
    job = context.live(request)
    now_ms = context.dispatcher.now_ms()
    execution = job.master.execution
    line = job_line(job, now_ms)
    views = job.monitor.subtasks()
    vertices = [vertex_line(vertex, views, now_ms) for vertex in execution]
    states = Counter(vertex.state for vertex in execution)
    return JobDetails(
        jid=job.job_id,
        application_id=job.job_id,
        name=job.name,
        is_stoppable=False,
        state=line.state,
        job_type=line.job_type,
        scheduler_type=SCHEDULER,
        start_time=line.start_time,
        end_time=line.end_time,
        duration=line.duration,
        max_parallelism=job.configuration.get(execution_options.MAX_PARALLELISM),
        now=now_ms,
        timestamps=job_timestamps(execution.status_timestamps, job.monitor.started_ms),
        vertices=vertices,
        status_counts=state_counts(states),
        plan=_plan(job),
        pending_operators=0,
    )


def _plan(job: LiveJob) -> PlanBody:
    return msgspec.convert(job_plan(job.master.job), JobPlan).plan


def vertex_line(vertex: ExecutionJobVertex, views: dict[SubtaskId, SubtaskView], now_ms: int) -> VertexLine:
    """Return a vertex's line in the details of its job."""
    current = [subtask.current for subtask in vertex.subtasks]
    starts = [start_of(execution) for execution in current if start_of(execution) >= 0]
    start_ms = min(starts, default=-1)
    ends = [end_of(execution) for execution in current]
    end_ms = max(ends) if all(end >= 0 for end in ends) else -1
    graph = vertex.vertex
    own = [view for subtask, view in views.items() if subtask.vertex_id == graph.vertex_id]
    return VertexLine(
        id=graph.vertex_id,
        slot_sharing_group_id=hashlib.md5(
            graph.slot_sharing_group.encode(), usedforsecurity=False
        ).hexdigest(),
        name=graph.name,
        max_parallelism=graph.max_parallelism,
        parallelism=graph.parallelism,
        status=vertex.state.name,
        start_time=start_ms,
        end_time=end_ms,
        duration=duration_of(start_ms, end_ms, now_ms),
        tasks=state_counts(vertex.state_counts()),
        metrics=task_metrics(own, is_complete=len(own) == graph.parallelism),
    )


def task_metrics(views: list[SubtaskView], *, is_complete: bool) -> TaskMetrics:
    """Add up what subtasks did."""
    return TaskMetrics(
        read_bytes=sum(view.bytes_in for view in views),
        read_bytes_complete=is_complete,
        write_bytes=sum(view.bytes_out for view in views),
        write_bytes_complete=is_complete,
        read_records=sum(view.records_in for view in views),
        read_records_complete=is_complete,
        write_records=sum(view.records_out for view in views),
        write_records_complete=is_complete,
        accumulated_backpressured_time=round(sum(view.backpressured_ms for view in views)),
        accumulated_idle_time=round(sum(view.idle_ms for view in views)),
        accumulated_busy_time=float(round(sum(view.busy_ms for view in views))),
    )


def plan(context: RestContext, request: Request) -> JobPlan:
    return JobPlan(_plan(context.live(request)))


def status(context: RestContext, request: Request) -> JobStatusAnswer:
    return JobStatusAnswer(status=context.live(request).status.name)


def job_config(context: RestContext, request: Request) -> JobConfig:
    job = context.live(request)
    graph = job.master.job
    return JobConfig(
        jid=job.job_id,
        name=job.name,
        execution_config=ExecutionConfigBody(
            restart_strategy=job.master.settings.restart.describe(),
            job_parallelism=max(vertex.parallelism for vertex in graph.vertices),
            object_reuse_mode=graph.object_reuse,
            user_config=dict(graph.global_job_parameters),
        ),
    )


def accumulators(context: RestContext, request: Request) -> JobAccumulatorsBody:
    totals = context.live(request).master.accumulators.of_job()
    return JobAccumulatorsBody(
        job_accumulators=[],
        user_task_accumulators=shown_accumulators(totals),
        serialized_user_task_accumulators=(
            packed_accumulators(totals) if request.query.get("includeSerializedValue") == "true" else {}
        ),
    )


def exceptions(context: RestContext, request: Request) -> JobExceptions:
    failures = context.live(request).master.failures
    most = int(request.query.get("maxExceptions", "20"))
    entries = failures.latest(most)
    return JobExceptions(
        exception_history=ExceptionHistory(
            entries=[_exception_entry(failure, context) for failure in entries],
            truncated=failures.count > len(entries),
        )
    )


def _exception_entry(failure: Failure, context: RestContext) -> ExceptionEntry:
    others = [ExceptionInfo(**_told(other, context)) for other in failure.concurrent]
    return ExceptionEntry(**_told(failure, context), concurrent_exceptions=others)


def _told(failure: Failure, context: RestContext) -> dict[str, Any]:
    executor = failure.executor
    if executor is None and failure.host is not None:
        known = context.executor_of(failure.host)
        executor = None if known is None else known.executor_id
    return {
        "exception_name": failure.name,
        "stacktrace": failure.text,
        "timestamp": failure.timestamp_ms,
        "task_name": failure.task,
        "endpoint": None if failure.host is None else f"{failure.host}:-1",
        "task_manager_id": executor,
        "failure_labels": {},
    }


_APPLICATION_STATUS = {
    JobStatus.FINISHED: "SUCCEEDED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELED: "CANCELED",
}


def execution_result(context: RestContext, request: Request) -> ExecutionResult:
    job = context.live(request)
    ended_ms = job.ended_ms
    if ended_ms is None:
        return ExecutionResult(status=QueueStatus(id="IN_PROGRESS"))
    cause = job.master.execution.failure_cause if job.status is JobStatus.FAILED else None
    return ExecutionResult(
        status=QueueStatus(id="COMPLETED"),
        job_execution_result=JobResultBody(
            id=job.job_id,
            application_status=_APPLICATION_STATUS.get(job.status, "UNKNOWN"),
            accumulator_results=packed_accumulators(job.master.accumulators.of_job()),
            net_runtime=max(0, ended_ms - job.monitor.started_ms),
            failure_cause=None if cause is None else failure_cause(cause),
        ),
    )


def job_configuration(context: RestContext, request: Request) -> list[ConfigEntry]:
    entries = context.live(request).configuration.entries()
    return [ConfigEntry(key=entry.key, value=entry.value) for entry in entries]


# -- steering ----------------------------------------------------------------------------------------------------


def cancel(context: RestContext, request: Request) -> Empty:
    mode = request.query.get("mode", "cancel")
    if mode == "stop":
        raise RestError(
            410, "Stopping without a savepoint is not supported, in Flink either; use POST /jobs/:jobid/stop."
        )
    job_id = request.params["jobid"]
    if context.dispatcher.history.get(job_id) is not None:
        raise RestError(409, f"Job {job_id} cannot be cancelled: it has already ended.")
    job = context.live(request)
    if job.status.is_terminal_state():
        raise RestError(409, f"Job {job_id} cannot be cancelled: it is already {job.status.name}.")
    job.job.cancel()
    return Empty()


def heartbeat(context: RestContext, request: Request) -> Empty:
    context.live(request)
    return Empty()


def _job(path: str, summary: str, handler: Any, answer: Any, **more: Any) -> Endpoint:
    return Endpoint("GET", f"/jobs/{{jobid}}{path}", summary, handler, answer, is_archived=True, **more)


_SERIALIZED = QueryParameters(
    "includeSerializedValue",
    "Whether to include the serialized values as well as their text.",
    {"type": "boolean"},
)
_MODE = QueryParameters("mode", "What to do; `cancel`.", {"type": "string", "enum": ["cancel"]}, ("stop",))
_MOST = QueryParameters("maxExceptions", "How many.", {"type": "integer", "minimum": 1, "maximum": 10_000})

ENDPOINTS = (
    Endpoint("GET", "/jobs", "All jobs and their states.", job_states, JobStates),
    Endpoint("GET", "/jobs/overview", "A summary of every job.", jobs_overview, JobLines),
    _job("", "One job: states, vertices, plan.", job_details, JobDetails),
    _job("/plan", "The plan of a job.", plan, JobPlan),
    _job("/status", "The state of a job.", status, JobStatusAnswer),
    _job("/config", "How a job is configured.", job_config, JobConfig),
    _job("/accumulators", "Accumulators of a job.", accumulators, JobAccumulatorsBody, query=(_SERIALIZED,)),
    _job("/exceptions", "Why a job failed, newest first.", exceptions, JobExceptions, query=(_MOST,)),
    _job("/execution-result", "How a job ended.", execution_result, ExecutionResult),
    _job("/jobmanager/config", "All options of a job.", job_configuration, list[ConfigEntry]),
    Endpoint("PATCH", "/jobs/{jobid}", "Cancel a job.", cancel, Empty, query=(_MODE,), status=202),
    Endpoint(
        "GET",
        "/jobs/{jobid}/yarn-cancel",
        "Cancel a job; needs a token, or a request from the web page.",
        cancel,
        Empty,
        status=202,
        is_changing_get=True,
    ),
    Endpoint(
        "PATCH",
        "/jobs/{jobid}/clientHeartbeat",
        "Report that the client is still alive.",
        heartbeat,
        Empty,
        status=202,
    ),
)
