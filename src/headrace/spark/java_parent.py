"""A driver that spark-submit has started ends when its Java process does.

In application mode Spark's Java process is the parent of the program. If it is killed, the program lives on: it could
never run an epoch again, but would renew its lease, and the driver that the cluster starts in its place could not take
over the job. So the program ends at once, as if it had been killed with its parent; its lease runs out.

Until the watch has seen it, what fails for lack of Java must not be taken for the end of a job that a user asked for:
a job that was cancelled would stay cancelled in the driver that comes next.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping

from headrace.spark.masters import STARTED_BY_SPARK

__all__ = ["end_with_java", "java_is_gone"]

_log = logging.getLogger(__name__)
_INTERVAL_S = 1.0
_EXIT_CODE = 1


def _end() -> None:
    _log.error("the Java process of Spark that started this program has ended; exiting")
    os._exit(_EXIT_CODE)  # nothing of the job can be saved without Spark: no handler may wait for it


def java_is_gone(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this program was started by Spark's Java process, and that does not answer any more."""
    port = environment.get(STARTED_BY_SPARK)
    if port is None:
        return False
    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=_INTERVAL_S).close()
    except OSError:
        return True
    return False


def end_with_java(environment: Mapping[str, str] = os.environ, end: Callable[[], None] = _end) -> None:
    """Watch the parent process, if it is Spark's, and end this one when it is gone."""
    if STARTED_BY_SPARK not in environment:
        return
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(_INTERVAL_S)
        end()

    threading.Thread(target=watch, name="headrace-java-parent", daemon=True).start()
