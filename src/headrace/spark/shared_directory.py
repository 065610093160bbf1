"""Makes sure that every executor sees the job's directory: a checkpoint is useless where others cannot read it.

Before an epoch runs on executors that were not seen so far, the driver writes a file into the directory, every executor
reads it and writes one of its own, and the driver reads those:

    driver       writes .probe-x/driver                                        reads .probe-x/a, .probe-x/b
    executor a                            reads it, writes .probe-x/a
    executor b                            reads it, writes .probe-x/b

Whether a path is shared cannot be told from the path: `/data` may be a disk or a network file system. What may pass,
such as an object store that does not answer, fails the epoch like any other failure of storage, and is tried again.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from pyspark import SparkContext

from headrace.config.options.checkpointing import DIRECTORY
from headrace.errors import ConfigurationError, StateError
from headrace.spark.cluster import spark_executors
from headrace.spark.failures import carry
from headrace.spark.masters import ClusterManager
from headrace.storage.files import delete_directory, read_file, write_new_file
from headrace.storage.paths import absolute_path, join_path

#: Tasks go to whoever is free: an executor that was busy is tried again so many times.
_ROUNDS = 3
_DRIVER = "driver"
#: Refusals that do not pass by themselves.
_MAY_NOT_WRITE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@dataclass(frozen=True)
class Look:
    """What an executor saw."""

    host: str
    #: Tells executors apart, also those of one host.
    executor: str
    #: The file it has written; empty if it could not.
    marker: str = ""
    problem: str = ""


#: Runs `look` with a directory and a content on every executor that is there, and returns what each saw.
Ask = Callable[[str, bytes], Sequence[Look]]


class SharedDirectory:
    """Checks the directory of one job; on one machine there is nothing to check.

    Args:
        context: Spark.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._is_needed = ClusterManager.of(context.master or "local") not in {
            ClusterManager.LOCAL,
            ClusterManager.LOCAL_CLUSTER,
        }
        #: Executors that have seen it, as Spark names them: host and port.
        self._seen: frozenset[str] = frozenset()

    def check(self, directory: str) -> None:
        """Make sure that the driver and all executors that are there now see the same directory.

        Raises:
            ConfigurationError: If one does not.
        """
        if not self._is_needed:
            return
        # In one string: each step of a walk through a map of Java's is a conversation.
        registered = self._context._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")
        executors = frozenset(str(registered).split())
        if executors <= self._seen:
            return
        check_directory(directory, partial(_ask_executors, self._context))
        self._seen |= executors


def check_directory(directory: str, ask: Ask) -> None:
    """Write a marker and compare what others see.

    Args:
        directory: The job's directory.
        ask: Has executors look.

    Raises:
        ConfigurationError: If one does not see what the driver sees, or the other way round.
    """
    place = join_path(absolute_path(directory), f".probe-{uuid4().hex}")
    content = uuid4().bytes
    try:
        write_new_file(join_path(place, _DRIVER), content)
        looks = ask(place, content)
        blind = [
            (look, problem) for look in looks if (problem := look.problem or _unseen(place, look, content))
        ]
    finally:
        with suppress(OSError):  # what was found matters more
            delete_directory(place)
    if blind:
        raise _not_shared(directory, blind)


def look(place: str, content: bytes) -> Look:
    """Look for the driver's file and leave one for it; runs in a worker."""
    host = socket.gethostname()
    # Workers of an executor are forked from one process, and have a file system in common.
    executor = f"{host}/{os.getppid()}/{_mounts()}"
    try:
        found = read_file(join_path(place, _DRIVER))
    except StateError:
        return Look(host, executor, problem="does not see files that the driver has written there")
    except PermissionError as error:
        return Look(host, executor, problem=f"cannot read there: {error}")
    if found != content:
        return Look(host, executor, problem="sees different files from those that the driver has written")
    marker = uuid4().hex
    try:
        write_new_file(join_path(place, marker), content)
    except OSError as error:
        if error.errno not in _MAY_NOT_WRITE:
            raise
        return Look(host, executor, problem=f"cannot write there: {error}")
    return Look(host, executor, marker)


def _mounts() -> str:
    try:
        return os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""


def _unseen(place: str, look: Look, content: bytes) -> str:
    try:
        is_seen = read_file(join_path(place, look.marker)) == content
    except StateError:
        is_seen = False
    return "" if is_seen else "writes files that the driver does not see"


def _ask_executors(context: SparkContext, place: str, content: bytes) -> list[Look]:
    """Run as many tasks as there are slots: Spark gives one to every slot that is free."""
    seen: dict[str, Look] = {}
    for _ in range(_ROUNDS):
        executors = spark_executors()
        cpus = int(context.getConf().get("spark.task.cpus", "1") or 1)
        slots = sum(max(1, executor.cores // cpus) for executor in executors) or 1
        tasks = context.parallelize(range(slots), slots)
        seen |= {look.executor: look for look in tasks.map(partial(_look, place, content)).collect()}
        if len(seen) >= len(executors) or any(look.problem for look in seen.values()):
            break
    return list(seen.values())


def _look(place: str, content: bytes, _: int) -> Look:
    try:
        return look(place, content)
    except Exception as error:
        raise carry(error) from error


def _not_shared(directory: str, blind: Iterable[tuple[Look, str]]) -> ConfigurationError:
    found = sorted({(look.host, problem) for look, problem in blind})
    hosts = "; ".join(f"host {host} {problem}" for host, problem in found)
    return ConfigurationError(
        f"the job's directory {directory} is not shared by all hosts of the cluster: {hosts}",
        hint=f"set {DIRECTORY.key} to a directory that the driver and all executors can read and write under the same "
        "name: a network file system, or an object store such as s3://bucket/checkpoints",
    )
