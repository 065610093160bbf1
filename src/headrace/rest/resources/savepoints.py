"""Savepoints, stopping with one, checkpoints on request, disposal: operations that are triggered, then asked for."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated, Any, Literal

import msgspec

from headrace.errors import ConfigurationError
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, Request
from headrace.rest.resources.outcomes import FailureCause, QueueStatus, failure_cause
from headrace.rest.routing import Endpoint
from headrace.runtime.checkpoint.savepoints import delete_savepoint

TriggerId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$")]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern="^[^\\x00]+$")]
#: Both are written alike here.
Format = Literal["CANONICAL", "NATIVE"]


class SavepointRequest(Body):
    """As Flink's clients send it."""

    target_directory: Path | None = None
    cancel_job: bool = False
    format_type: Format | None = msgspec.field(name="formatType", default=None)
    trigger_id: TriggerId | None = msgspec.field(name="triggerId", default=None)


class StopRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    target_directory: Path | None = None
    drain: bool = False
    format_type: Format | None = None
    trigger_id: TriggerId | None = None


class CheckpointRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] | None = None
    trigger_id: TriggerId | None = None


class DisposalRequest(Body):
    savepoint_path: Path


class Triggered(Body):
    request_id: str


class SavepointResult(Body, omit_defaults=True):
    location: str | None = None
    failure_cause: FailureCause | None = None


class SavepointStatus(Body, omit_defaults=True):
    status: QueueStatus
    operation: SavepointResult | None = None


class CheckpointResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    checkpoint_id: int | None = None
    failure_cause: FailureCause | None = None


class CheckpointStatusAnswer(Body, omit_defaults=True):
    status: QueueStatus
    operation: CheckpointResult | None = None


class OperationResult(Body, omit_defaults=True):
    failure_cause: FailureCause | None = None


class OperationStatus(Body, omit_defaults=True):
    status: QueueStatus
    operation: OperationResult | None = None


IN_PROGRESS, COMPLETED = QueueStatus(id="IN_PROGRESS"), QueueStatus(id="COMPLETED")


def trigger_savepoint(context: RestContext, request: Request) -> Triggered:
    body = request.read(SavepointRequest)
    job = context.live(request)

    def begin() -> Future[str]:
        if body.cancel_job:
            return job.master.stop_with_savepoint(body.target_directory, drain=False)
        return job.master.trigger_savepoint(body.target_directory)

    return _start(context, ("savepoint", job.job_id), begin, body.trigger_id)


def stop(context: RestContext, request: Request) -> Triggered:
    body = request.read(StopRequest)
    job = context.live(request)

    def begin() -> Future[str]:
        return job.master.stop_with_savepoint(body.target_directory, drain=body.drain)

    return _start(context, ("savepoint", job.job_id), begin, body.trigger_id)


def _start(context: RestContext, scope: tuple[str, ...], begin: Any, trigger_id: str | None) -> Triggered:
    try:
        chosen = None if trigger_id is None else trigger_id.lower()
        return Triggered(request_id=context.operations.start(scope, begin, chosen))
    except ConfigurationError as error:  # there is no directory
        raise RestError(400, str(error)) from error


def savepoint_status(context: RestContext, request: Request) -> SavepointStatus:
    done = _future(context, ("savepoint", request.params["jobid"]), request)
    if done is None:
        return SavepointStatus(status=IN_PROGRESS)
    error = done.exception()
    if error is not None:
        return SavepointStatus(
            status=COMPLETED, operation=SavepointResult(failure_cause=failure_cause(error))
        )
    return SavepointStatus(status=COMPLETED, operation=SavepointResult(location=done.result()))


def trigger_checkpoint(context: RestContext, request: Request) -> Triggered:
    body = request.read(CheckpointRequest)
    job = context.live(request)
    return _start(context, ("checkpoint", job.job_id), job.master.trigger_checkpoint, body.trigger_id)


def checkpoint_status(context: RestContext, request: Request) -> CheckpointStatusAnswer:
    done = _future(context, ("checkpoint", request.params["jobid"]), request)
    if done is None:
        return CheckpointStatusAnswer(status=IN_PROGRESS)
    error = done.exception()
    if error is not None:
        result = CheckpointResult(failure_cause=failure_cause(error))
        return CheckpointStatusAnswer(status=COMPLETED, operation=result)
    return CheckpointStatusAnswer(status=COMPLETED, operation=CheckpointResult(checkpoint_id=done.result()))


def dispose(context: RestContext, request: Request) -> Triggered:
    body = request.read(DisposalRequest)
    done: Future[None] = Future()

    def begin() -> Future[None]:
        try:
            delete_savepoint(body.savepoint_path)
            done.set_result(None)
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            done.set_exception(error)
        return done

    return Triggered(request_id=context.operations.start(("disposal",), begin))


def disposal_status(context: RestContext, request: Request) -> OperationStatus:
    return operation_status(_future(context, ("disposal",), request))


def operation_status(done: Future[Any] | None) -> OperationStatus:
    """Say how an operation without a result has ended, if it has."""
    if done is None:
        return OperationStatus(status=IN_PROGRESS)
    error = done.exception()
    cause = None if error is None else failure_cause(error)
    return OperationStatus(status=COMPLETED, operation=OperationResult(failure_cause=cause))


def _future(context: RestContext, scope: tuple[str, ...], request: Request) -> Future[Any] | None:
    """Return an operation that is done; None while it is not."""
    operation = context.operations.find(scope, request.params["triggerid"])
    if operation is None:
        raise RestError(404, f"Operation {request.params['triggerid']} not found, or its result has expired.")
    return operation.future if operation.future.done() else None


operation_future = _future

ENDPOINTS = (
    Endpoint(
        "POST",
        "/jobs/{jobid}/savepoints",
        "Take a savepoint.",
        trigger_savepoint,
        Triggered,
        body=SavepointRequest,
        status=202,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/savepoints/{triggerid}",
        "The status of a savepoint.",
        savepoint_status,
        SavepointStatus,
    ),
    Endpoint(
        "POST",
        "/jobs/{jobid}/stop",
        "Take a savepoint and stop the job.",
        stop,
        Triggered,
        body=StopRequest,
        status=202,
    ),
    Endpoint(
        "POST",
        "/jobs/{jobid}/checkpoints",
        "Take a checkpoint.",
        trigger_checkpoint,
        Triggered,
        body=CheckpointRequest,
        status=202,
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/checkpoints/{triggerid}",
        "The status of a checkpoint.",
        checkpoint_status,
        CheckpointStatusAnswer,
    ),
    Endpoint(
        "POST",
        "/savepoint-disposal",
        "Delete a savepoint.",
        dispose,
        Triggered,
        body=DisposalRequest,
        status=202,
        is_slow=True,
    ),
    Endpoint(
        "GET",
        "/savepoint-disposal/{triggerid}",
        "The status of a savepoint deletion.",
        disposal_status,
        OperationStatus,
    ),
)
