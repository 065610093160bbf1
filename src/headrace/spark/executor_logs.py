"""Logs and threads of executors. On a cluster Spark's workers keep the logs, and serve them at an address Spark has.

A standalone worker answers `/log?...&offset=..&byteLength=..` with a line `==== Bytes 0-99 of 1234 of ... ====` and
that part of the file. Other cluster managers show pages for people; for those the address is all that can be given.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from headrace.errors import ClusterError
from headrace.util.application_log import LogFile

_STANDALONE = re.compile(r"(https?://[^/]+)/logPage/?\?(.*)")
_PART = re.compile(rb"==== Bytes (\d+)-(\d+) of (\d+) of .* ====\n")
_PART_BYTES = 512 * 1024
#: The end of a log that is larger is what is read of it.
_MOST_BYTES = 16 << 20
_TIMEOUT_S = 10.0


class _Part(NamedTuple):
    begin: int
    end: int
    total: int
    content: bytes


def executor_log_urls(executor_id: str) -> dict[str, str]:
    """Ask Spark where the logs of an executor are: `stdout` and `stderr`, as far as it knows."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return {}
    try:
        found = context._jsc.sc().statusStore().executorList(False)
        for index in range(found.size()):
            summary = found.apply(index)
            if str(summary.id()) == executor_id:
                entries = summary.executorLogs().toSeq()
                return {
                    str(entry._1()): str(entry._2()) for entry in map(entries.apply, range(entries.size()))
                }
    except (Py4JError, OSError):  # Spark is going down
        pass
    return {}


def executor_threads(executor_id: str) -> list[tuple[str, str]]:
    """Ask an executor's Java process what its threads do: names, and stacks as text."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return []
    try:
        dump = context._jsc.sc().getExecutorThreadDump(executor_id)
        threads = list(dump.get()) if dump.isDefined() else []
        return [(str(each.threadName()), str(each.toString())) for each in threads]
    except (Py4JError, OSError):  # Spark is going down, or the executor is
        return []


def remote_log_files(executor_id: str, urls: Mapping[str, str]) -> list[LogFile]:
    """List the logs of an executor.

    Raises:
        ClusterError: If its worker does not tell.
    """
    # When they were written last, nobody says.
    return [
        LogFile(name, _read_part(executor_id, url, begin=0, length=1).total, 0)
        for name, url in sorted(urls.items())
    ]


def read_remote_log(executor_id: str, urls: Mapping[str, str], name: str) -> bytes | None:
    """Read a log of an executor, the end of it if it is large; None if there is none of that name.

    Raises:
        ClusterError: If its worker does not give it.
    """
    url = urls.get(name)
    if url is None:
        return None
    total = _read_part(executor_id, url, begin=0, length=1).total
    content = bytearray()
    position = max(0, total - _MOST_BYTES)
    while position < total:
        part = _read_part(executor_id, url, begin=position, length=_PART_BYTES)
        if part.end <= position:
            break
        content += part.content
        position = part.end
    return bytes(content)


def _read_part(executor_id: str, url: str, *, begin: int, length: int) -> _Part:
    place = _STANDALONE.fullmatch(url)
    if place is None:
        raise ClusterError(
            f"the cluster manager shows the log of executor {executor_id} at {url}", status=404
        )
    asked = f"{place[1]}/log?{place[2]}&offset={begin}&byteLength={length}"
    try:
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the pattern says http
            text: bytes = answer.read()
    except (OSError, http.client.HTTPException, urllib.error.URLError) as error:
        raise ClusterError(
            f"the Spark worker of executor {executor_id} did not return its log: {error}",
            status=404,
            hint=f"it should be at {url}",
        ) from error
    head = _PART.match(text)
    if head is None:
        raise ClusterError(f"the log of executor {executor_id} cannot be read at {url}", status=404)
    return _Part(int(head[1]), int(head[2]), int(head[3]), text[head.end() :])
