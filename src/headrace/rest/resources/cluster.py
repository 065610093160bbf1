"""The cluster as a whole: configuration of the web page, counts, applications, shutting down."""

from __future__ import annotations

import time
from datetime import timedelta

from headrace import __version__
from headrace.common.job_status import JobStatus
from headrace.config.options import rest as options
from headrace.pyflink_alias.version import __version__ as FLINK_VERSION
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, Empty, Request
from headrace.rest.resources.jobs import JobLine, ended_lines, job_line
from headrace.rest.resources.programs import takes_programs
from headrace.rest.routing import Endpoint
from headrace.rest.slots import slots_by_executor


class Features(Body):
    web_submit: bool
    web_cancel: bool
    web_rescale: bool
    web_history: bool


class DashboardConfig(Body):
    """What the web page asks first."""

    refresh_interval: int
    timezone_name: str
    timezone_offset: int
    flink_version: str
    flink_revision: str
    features: Features


class About(Body):
    """What Flink's `/config` has no place for."""

    version: str
    #: Whether programs may be sent to `/headrace/programs`.
    takes_programs: bool


class ClusterOverview(Body):
    taskmanagers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int
    flink_version: str
    flink_commit: str


class ApplicationLine(Body):
    id: str
    name: str
    start_time: int
    end_time: int
    duration: int
    status: str
    jobs: dict[str, int]


class Applications(Body):
    applications: list[ApplicationLine]


class ApplicationDetails(Body):
    """One application; here each job is one."""

    id: str
    name: str
    status: str
    start_time: int
    end_time: int
    duration: int
    jobs: list[JobLine]


def config(context: RestContext, request: Request) -> DashboardConfig:
    get = context.configuration.get
    return DashboardConfig(
        refresh_interval=get(options.REFRESH_INTERVAL) // timedelta(milliseconds=1),
        timezone_name=time.tzname[0],
        timezone_offset=-time.timezone * 1000,
        flink_version=FLINK_VERSION,
        flink_revision=f"headrace {__version__}",
        features=Features(
            web_submit=False,  # Flink's page uploads jars
            web_cancel=get(options.CANCEL_ENABLED),
            web_rescale=get(options.RESCALE_ENABLED),
            web_history=False,
        ),
    )


def about(context: RestContext, request: Request) -> About:
    return About(version=__version__, takes_programs=takes_programs(context))


def overview(context: RestContext, request: Request) -> ClusterOverview:
    live = context.dispatcher.live_jobs()
    slots = slots_by_executor(context)
    ended = [line.state for line in ended_lines(context)]
    states = [job.status.name for job in live] + ended
    return ClusterOverview(
        taskmanagers=len(slots),
        slots_total=sum(each.total for each in slots),
        slots_available=sum(each.free for each in slots),
        jobs_running=sum(state not in _OVER for state in states),
        jobs_finished=states.count("FINISHED"),
        jobs_cancelled=states.count("CANCELED"),
        jobs_failed=states.count("FAILED"),
        flink_version=FLINK_VERSION,
        flink_commit="headrace",
    )


def _jobs_and_slots(context: RestContext) -> object:
    """Return what the overview depends on."""
    jobs = [(job.status, job.master.slots_held) for job in context.dispatcher.live_jobs()]
    return context.cluster.executors(), jobs, context.dispatcher.history.version


_OVER = {status.name for status in JobStatus if status.is_terminal_state()}


def _lines(context: RestContext) -> list[JobLine]:
    return [
        *(job_line(job, context.dispatcher.now_ms()) for job in context.dispatcher.live_jobs()),
        *ended_lines(context),
    ]


def applications(context: RestContext, request: Request) -> Applications:
    return Applications(
        applications=[
            ApplicationLine(
                id=line.jid,
                name=line.name,
                start_time=line.start_time,
                end_time=line.end_time,
                duration=line.duration,
                status=line.state,
                jobs={line.state: 1},
            )
            for line in _lines(context)
        ]
    )


def application(context: RestContext, request: Request) -> ApplicationDetails:
    for line in _lines(context):
        if line.jid == request.params["jobid"]:
            return ApplicationDetails(
                id=line.jid,
                name=line.name,
                status=line.state,
                start_time=line.start_time,
                end_time=line.end_time,
                duration=line.duration,
                jobs=[line],
            )
    raise RestError(404, f"Application {request.params['jobid']} not found.")


def cancel_application(context: RestContext, request: Request) -> Empty:
    context.live(request).job.cancel()
    return Empty()


def shut_down(context: RestContext, request: Request) -> Empty:
    if context.shut_down is None:
        raise RestError(403, "This process ends when its program ends: cancel or stop its job instead.")
    context.shut_down()
    return Empty()


ENDPOINTS = (
    Endpoint("GET", "/config", "How the web page is configured.", config, DashboardConfig),
    Endpoint(
        "GET", "/headrace/about", "The version, and what this server allows. Not in Flink.", about, About
    ),
    Endpoint(
        "GET",
        "/overview",
        "Numbers of task managers, slots and jobs.",
        overview,
        ClusterOverview,
        depends_on=_jobs_and_slots,
    ),
    Endpoint(
        "GET", "/applications/overview", "All applications; each job is one.", applications, Applications
    ),
    Endpoint("GET", "/applications/{jobid}", "One application.", application, ApplicationDetails),
    Endpoint(
        "POST",
        "/applications/{jobid}/cancel",
        "Cancel an application.",
        cancel_application,
        Empty,
        status=202,
    ),
    Endpoint("DELETE", "/cluster", "End a session; its jobs are cancelled.", shut_down, Empty),
)
