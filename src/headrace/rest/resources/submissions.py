"""Programs sent from the web page: the text of a Python file, run here as `headrace run -m` runs it elsewhere."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, Request
from headrace.rest.resources.outcomes import FailureCause, QueueStatus, failure_cause
from headrace.rest.resources.programs import ensure_allowed
from headrace.rest.resources.savepoints import COMPLETED, IN_PROGRESS, Triggered, operation_future
from headrace.rest.routing import Endpoint

_SCOPE = ("program",)
_Parallelism = Annotated[int, msgspec.Meta(ge=1, le=32_768)]


class ProgramRequest(Body, omit_defaults=True):
    #: A file name, for messages.
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    #: The program itself.
    source: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: Annotated[list[str], msgspec.Meta(max_length=100)] = msgspec.field(default_factory=list)
    parallelism: _Parallelism | None = None
    savepoint_path: str | None = None


class ProgramResult(Body, omit_defaults=True):
    exit_code: int | None = None
    #: What the program wrote, the last of it.
    output: str | None = None
    failure_cause: FailureCause | None = None


class ProgramStatus(Body, omit_defaults=True):
    status: QueueStatus
    operation: ProgramResult | None = None


def start(context: RestContext, request: Request) -> Triggered:
    ensure_allowed(context)
    # A form of another page cannot send this type, however old the browser.
    if request.content_type != "application/json":
        raise RestError(415, "Programs must be sent as application/json.")
    body = request.read(ProgramRequest)
    programs = context.programs
    if programs is None:
        raise RestError(403, "This process does not run programs; submit jobs with `headrace run -m`.")
    if not programs.has_room():
        raise RestError(429, "Other programs are being submitted; try again later.", {"Retry-After": "2"})
    return Triggered(
        request_id=context.operations.start(
            _SCOPE,
            lambda: programs.run(
                body.name,
                body.source,
                body.arguments,
                parallelism=body.parallelism,
                savepoint=body.savepoint_path,
            ),
        )
    )


def status(context: RestContext, request: Request) -> ProgramStatus:
    done = operation_future(context, _SCOPE, request)
    if done is None:
        return ProgramStatus(status=IN_PROGRESS)
    error = done.exception()
    if error is not None:
        return ProgramStatus(status=COMPLETED, operation=ProgramResult(failure_cause=failure_cause(error)))
    ended = done.result()
    return ProgramStatus(
        status=COMPLETED, operation=ProgramResult(exit_code=ended.exit_code, output=ended.output)
    )


ENDPOINTS = (
    Endpoint(
        "POST",
        "/headrace/programs",
        "Run a Python program that submits jobs on this server, if submission is enabled. Not in Flink.",
        start,
        Triggered,
        body=ProgramRequest,
        status=202,
    ),
    Endpoint(
        "GET",
        "/headrace/programs/{triggerid}",
        "The status of a program. Not in Flink.",
        status,
        ProgramStatus,
    ),
)
