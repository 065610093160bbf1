"""The job manager: this process. Its options, environment, log and threads."""

from __future__ import annotations

import platform
import sys
import threading
import traceback

import msgspec

from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import TEXT, Body, CamelBody, Request, Response
from headrace.rest.resources.jobs import ConfigEntry
from headrace.rest.resources.taskmanagers import find_executor
from headrace.rest.routing import Endpoint

_LOG_NAME = "headrace.log"


class Machine(Body):
    version: str
    arch: str
    options: list[str]


class Environment(msgspec.Struct, frozen=True):
    """What runs here; Flink's name for it is kept, though it is Python."""

    jvm: Machine
    classpath: list[str]


class LogFile(Body):
    name: str
    size: int
    mtime: int


class LogFiles(Body):
    logs: list[LogFile]


class ThreadDumpEntry(CamelBody):
    thread_name: str
    stringified_thread_info: str


class ThreadDump(CamelBody):
    thread_infos: list[ThreadDumpEntry]


class LogUrl(Body):
    url: str


def configuration(context: RestContext, request: Request) -> list[ConfigEntry]:
    return [ConfigEntry(key=entry.key, value=entry.value) for entry in context.configuration.entries()]


def environment(context: RestContext, request: Request) -> Environment:
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return Environment(
        jvm=Machine(
            version=version, arch=platform.machine(), options=[f"-{flag}" for flag in sys.warnoptions]
        ),
        classpath=list(sys.path),
    )


def job_environment(context: RestContext, request: Request) -> Environment:
    context.live(request)
    return environment(context, request)


def logs(context: RestContext, request: Request) -> LogFiles:
    size = len(context.log.text().encode())
    return LogFiles(logs=[LogFile(name=_LOG_NAME, size=size, mtime=context.log.changed_ms)])


def log(context: RestContext, request: Request) -> Response:
    return Response(context.log.text().encode(), content_type=TEXT)


def log_file(context: RestContext, request: Request) -> Response:
    if request.params["filename"] != _LOG_NAME:
        raise RestError(404, f"There is no log file {request.params['filename']}.")
    return log(context, request)


def stdout(context: RestContext, request: Request) -> Response:
    return Response(b"", content_type=TEXT)


def thread_dump(context: RestContext, request: Request) -> ThreadDump:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return ThreadDump(
        thread_infos=[
            ThreadDumpEntry(
                thread_name=names.get(number, str(number)),
                stringified_thread_info=f'"{names.get(number, number)}" Id={number}\n'
                + "".join(traceback.format_stack(frame)),
            )
            for number, frame in sys._current_frames().items()
        ]
    )


def log_url(context: RestContext, request: Request) -> LogUrl:
    context.live(request)
    return LogUrl(url=f"{context.url}/jobmanager/log")


def executor_logs(context: RestContext, request: Request) -> LogFiles:
    find_executor(context, request)
    return LogFiles(logs=[])


def executor_log(context: RestContext, request: Request) -> Response:
    executor = find_executor(context, request)
    raise RestError(
        404, f"Logs of executor {executor.executor_id} are where Spark's cluster manager puts them."
    )


ENDPOINTS = (
    Endpoint("GET", "/jobmanager/config", "The options that are set.", configuration, list[ConfigEntry]),
    Endpoint("GET", "/jobmanager/environment", "What this process runs on.", environment, Environment),
    Endpoint("GET", "/jobmanager/logs", "The log files there are.", logs, LogFiles),
    Endpoint("GET", "/jobmanager/logs/{filename}", "One log file.", log_file, None),
    Endpoint("GET", "/jobmanager/log", "The last lines of the log.", log, None),
    Endpoint("GET", "/jobmanager/stdout", "The standard output belongs to the program: empty.", stdout, None),
    Endpoint(
        "GET", "/jobmanager/thread-dump", "What the threads of this process do.", thread_dump, ThreadDump
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/jobmanager/environment",
        "What the job's driver runs on.",
        job_environment,
        Environment,
    ),
    Endpoint("GET", "/jobs/{jobid}/jobmanager/log-url", "Where the job's log is.", log_url, LogUrl),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/logs",
        "Logs of a task manager: Spark has them.",
        executor_logs,
        LogFiles,
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/log",
        "The log of a task manager: Spark has it.",
        executor_log,
        None,
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/stdout",
        "The output of a task manager: Spark has it.",
        executor_log,
        None,
    ),
)
