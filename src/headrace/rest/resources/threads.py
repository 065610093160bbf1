"""What threads do at this moment: those of this process, and those of the Java processes of executors."""

from __future__ import annotations

import sys
import threading
import traceback

from headrace.rest.context import RestContext
from headrace.rest.http import CamelBody, Request
from headrace.rest.resources.taskmanagers import find_executor
from headrace.rest.routing import Endpoint


class ThreadDumpEntry(CamelBody):
    thread_name: str
    stringified_thread_info: str


class ThreadDump(CamelBody):
    thread_infos: list[ThreadDumpEntry]


def driver_threads(context: RestContext, request: Request) -> ThreadDump:
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


def executor_threads(context: RestContext, request: Request) -> ThreadDump:
    threads = context.cluster.threads_of(find_executor(context, request).executor_id)
    return ThreadDump(
        thread_infos=[
            ThreadDumpEntry(thread_name=name, stringified_thread_info=text) for name, text in threads
        ]
    )


ENDPOINTS = (
    Endpoint("GET", "/jobmanager/thread-dump", "A thread dump of this process.", driver_threads, ThreadDump),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/thread-dump",
        "A thread dump of an executor's Java process.",
        executor_threads,
        ThreadDump,
        is_slow=True,
    ),
)
