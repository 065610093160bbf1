"""Logs: those of this process, and those of its executors."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import TEXT, Body, Request, Response
from headrace.rest.resources.taskmanagers import find_executor
from headrace.rest.routing import Endpoint
from headrace.util import application_log

#: Which file of an executor is its log: of a local one, and of one that Spark's worker has started.
_EXECUTOR_LOGS = (application_log.WORKERS_LOG, "stderr")


class LogFileBody(Body):
    name: str
    size: int
    mtime: int


class LogFiles(Body):
    logs: list[LogFileBody]


def logs(context: RestContext, request: Request) -> LogFiles:
    return _listed(() if context.log is None else context.log.files())


def log(context: RestContext, request: Request) -> Response:
    return _file(context, application_log.DRIVER_LOG)


def log_file(context: RestContext, request: Request) -> Response:
    return _file(context, request.params["filename"])


def stdout(context: RestContext, request: Request) -> Response:
    return Response(b"", content_type=TEXT)


def executor_logs(context: RestContext, request: Request) -> LogFiles:
    return _listed(context.cluster.logs_of(find_executor(context, request).executor_id))


def executor_log(context: RestContext, request: Request) -> Response:
    executor_id = find_executor(context, request).executor_id
    for name in _EXECUTOR_LOGS:
        content = context.cluster.read_log(executor_id, name)
        if content is not None:
            return Response(content, content_type=TEXT)
    raise RestError(404, f"Executor {executor_id} has no log.")


def executor_stdout(context: RestContext, request: Request) -> Response:
    executor_id = find_executor(context, request).executor_id
    # A local executor has none of its own: Spark sends what functions print to the standard error.
    return Response(context.cluster.read_log(executor_id, "stdout") or b"", content_type=TEXT)


def executor_log_file(context: RestContext, request: Request) -> Response:
    executor_id = find_executor(context, request).executor_id
    name = request.params["filename"]
    content = context.cluster.read_log(executor_id, name)
    if content is None:
        raise RestError(404, f"Executor {executor_id} has no log file {name}.")
    return Response(content, content_type=TEXT)


def _listed(files: Sequence[application_log.LogFile]) -> LogFiles:
    return LogFiles(
        logs=[LogFileBody(name=each.name, size=each.size, mtime=each.modified_ms) for each in files]
    )


def _file(context: RestContext, name: str) -> Response:
    content = None if context.log is None else context.log.read(name)
    if content is None:
        raise RestError(404, f"Log file {name} not found.")
    return Response(content, content_type=TEXT)


ENDPOINTS = (
    Endpoint("GET", "/jobmanager/logs", "The log files of the driver.", logs, LogFiles),
    Endpoint(
        "GET", "/jobmanager/logs/{filename}", "One log file of the driver.", log_file, None, is_slow=True
    ),
    Endpoint("GET", "/jobmanager/log", "What headrace has logged in the driver.", log, None, is_slow=True),
    Endpoint(
        "GET", "/jobmanager/stdout", "Always empty: the standard output belongs to the program.", stdout, None
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/logs",
        "The log files of an executor.",
        executor_logs,
        LogFiles,
        is_slow=True,
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/logs/{filename}",
        "One log file of an executor.",
        executor_log_file,
        None,
        is_slow=True,
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/log",
        "What functions and Spark have logged and printed in an executor.",
        executor_log,
        None,
        is_slow=True,
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/stdout",
        "The standard output of an executor.",
        executor_stdout,
        None,
        is_slow=True,
    ),
)
