"""Submission: a job that was built elsewhere, if the configuration allows it; jars never."""

from __future__ import annotations

from typing import NoReturn

import msgspec

from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.config.options import rest as options
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import JOB_TYPE, Body, Empty, Request
from headrace.rest.routing import Endpoint
from headrace.runtime.artifacts import unbundle
from headrace.runtime.high_availability.job_store import StoredJob
from headrace.runtime.job.dispatcher import LiveJob
from headrace.storage.files import delete_directory
from headrace.storage.paths import join_path


class Submitted(Body):
    job_url: str = msgspec.field(name="jobUrl")
    job_id: str


class JarFiles(Body):
    address: str
    files: list[str]


def submit(context: RestContext, request: Request) -> Submitted:
    ensure_allowed(context)
    if request.content_type != JOB_TYPE:
        raise RestError(
            415,
            f"Jobs are submitted as {JOB_TYPE} by `headrace run -m`. Jobs from `flink run` are Java objects, "
            "which headrace cannot run.",
        )
    assert context.unpack is not None
    try:
        stored = msgspec.msgpack.decode(request.body, type=StoredJob)
    except msgspec.MsgspecError as error:
        raise RestError(400, f"Bad request: the body is not a job: {error}") from error
    graph = context.unpack(stored.graph)
    if graph.job_id != stored.job_id:
        raise RestError(400, "Bad request: the id of the job differs from the id in its envelope")
    place = join_path(context.artifact_directory, stored.job_id)
    configuration = unbundle(stored.configuration, stored.artifacts, place)
    try:
        job = context.dispatcher.submit(graph, Configuration.handed_on(configuration, stored.origins))
    except BaseException:
        delete_directory(place)
        raise
    if stored.artifacts:
        job.job.result_future().add_done_callback(lambda _: _discard(job, place))
    return Submitted(job_url=f"/jobs/{job.job_id}", job_id=job.job_id)


def _discard(job: LiveJob, artifacts: str) -> None:
    """Delete a job's artifacts when it is over; the next driver wants those of one that continues."""
    if job.status is not JobStatus.SUSPENDED:
        delete_directory(artifacts)


def takes_programs(context: RestContext) -> bool:
    """Whether jobs may be submitted here."""
    is_allowed = context.configuration.get(options.SUBMIT_ENABLED)
    return is_allowed and context.unpack is not None and context.dispatcher.takes_jobs


def ensure_allowed(context: RestContext) -> None:
    """Make sure that jobs may be submitted.

    Raises:
        RestError: If they may not.
    """
    if not context.configuration.get(options.SUBMIT_ENABLED):
        raise RestError(
            403, f"Job submission through REST is disabled: {options.SUBMIT_ENABLED.key} is false."
        )
    if context.unpack is None or not context.dispatcher.takes_jobs:
        raise RestError(403, "This process runs one program and does not accept other jobs; use a session.")


def jars(context: RestContext, request: Request) -> JarFiles:
    return JarFiles(address=context.url, files=[])


def refuse_jar(context: RestContext, request: Request) -> NoReturn:
    raise RestError(404, "headrace runs Python programs, not jars. Use `headrace run -m`.")


ENDPOINTS = (
    Endpoint(
        "POST",
        "/jobs",
        "Submit a job; `headrace run -m` creates the body.",
        submit,
        Submitted,
        status=202,
        is_slow=True,
        takes_job=True,
    ),
    Endpoint("GET", "/jars", "Uploaded jars; always empty.", jars, JarFiles),
    Endpoint("POST", "/jars/upload", "Always rejected: headrace has no jars.", refuse_jar, Empty),
    Endpoint("POST", "/jars/{jarid}/run", "Always rejected: headrace has no jars.", refuse_jar, Empty),
    Endpoint("GET", "/jars/{jarid}/plan", "Always rejected: headrace has no jars.", refuse_jar, Empty),
    Endpoint("POST", "/jars/{jarid}/plan", "Always rejected: headrace has no jars.", refuse_jar, Empty),
    Endpoint("DELETE", "/jars/{jarid}", "Always rejected: headrace has no jars.", refuse_jar, Empty),
)
