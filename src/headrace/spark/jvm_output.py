"""Passes what Spark's Java process writes to its standard error to ours and to the application's log.

Java gets the end of a pipe instead of our own standard error. So its lines come out whole and wherever
`sys.stderr` leads at that moment, beside the progress display of the command line. Its greetings do not come out at
all, nor does what PySpark says about workers that were interrupted with their epoch, and Java about threads that Spark
has already stopped. What functions print and log in
workers takes the same way: Spark sends it there. The file gets everything; of what functions log, the terminal gets
warnings and worse.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from typing import Final

from py4j import java_gateway

from headrace.spark.worker_log import LOG_LINE
from headrace.util.application_log import BoundedFile

#: Said at every start, by Java about Spark's own choice of modules and by Spark about the level of its log.
_GREETINGS: Final = re.compile(
    r"WARNING: Using incubator modules: |Setting default log level to |To adjust logging level use "
    r"|Using Spark's default log4j profile: |Picked up JAVA_TOOL_OPTIONS: "
)
#: PySpark says that it could not write to Spark when an epoch was cancelled or Spark has stopped: with this line before
#: the traceback, or with this place at its beginning.
_INTERRUPTED_WORKER: Final = re.compile("PySpark daemon failed to flush the output to the worker process:")
_IN_DAEMON: Final = re.compile(r'  File ".*pyspark/daemon\.py", line \d+, in (manager|worker)')
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):")
_TRACEBACK_BODY: Final = re.compile(r"\s|$")
_TRACEBACK_LINK: Final = re.compile(
    r"During handling of the above exception|The above exception was the direct cause|\s*$"
)
#: Java says that a thread had something to do for others that have ended: Spark was stopped in the middle of tasks.
_STOPPED_POOL: Final = re.compile(
    r'(Exception in thread ".*" )?java\.util\.concurrent\.RejectedExecutionException: .*\[(Shutting down|Terminated)\b'
)
_JAVA_TRACE: Final = re.compile(r"\s+(at |\.\.\. \d+ more|Suppressed: )|Caused by: ")


def quiet_gateway_log() -> None:
    """Keep Py4J from telling a program that logs its own messages about every connection to Spark's Java process."""
    log = logging.getLogger("py4j")
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)
    # Lost connections it logs with functions of `logging`, which give a program without handlers one for everything:
    # from then on warnings would be shown as "WARNING:headrace.runtime:...".
    java_gateway.logging = java_gateway.logger


class NoiseFilter:
    """Tells lines that say something about the job from those that only Spark's own machinery asked for."""

    def __init__(self) -> None:
        self._is_in_noise = False
        self._is_in_java_trace = False
        #: The traceback has come to its error; another one may hang on to it.
        self._is_at_its_end = False
        #: The first line of a traceback, until the next one says whose it is.
        self._held: list[str] = []

    def passed(self, line: str) -> list[str]:
        """Return the lines to show now that this one has come; lines are to be given in order."""
        held, self._held = self._held, []
        self._is_in_java_trace = bool(
            _STOPPED_POOL.match(line) or (self._is_in_java_trace and _JAVA_TRACE.match(line))
        )
        if self._is_in_java_trace:
            return held
        if _INTERRUPTED_WORKER.match(line) or (held and _IN_DAEMON.match(line)):
            self._is_in_noise, self._is_at_its_end = True, False
            return []
        if self._is_in_noise and self._belongs_to_noise(line):
            return held
        self._is_in_noise = False
        if _TRACEBACK.match(line):
            self._held = [line]
            return held
        return held if _GREETINGS.match(line) else [*held, line]

    def rest(self) -> list[str]:
        """Return what is still held when no more lines come."""
        held, self._held = self._held, []
        return held

    def _belongs_to_noise(self, line: str) -> bool:
        if self._is_at_its_end:
            is_linked = _TRACEBACK_LINK.match(line) is not None
            if is_linked and line.strip():
                self._is_at_its_end = False
            return is_linked
        self._is_at_its_end = not (_TRACEBACK.match(line) or _TRACEBACK_BODY.match(line))
        return True


class WarningsOnly:
    """Of the records that workers log, keeps warnings and worse; anything else is let through."""

    def __init__(self) -> None:
        self._is_in_record = False

    def lets_through(self, line: str) -> bool:
        """Whether to show a line; lines are to be given in order."""
        head = LOG_LINE.match(line)
        if head is not None:
            self._is_in_record = head[1] in {"DEBUG", "INFO"}
        elif not line[:1].isspace():
            self._is_in_record = False
        return not self._is_in_record


class JvmOutput:
    """A pipe for a process to write to, and a thread that passes its lines on.

    Args:
        log: Takes every line.
    """

    def __init__(self, log: BoundedFile) -> None:
        reading, self._writing = os.pipe()
        self._log = log
        self._is_silent = False
        self._thread = threading.Thread(
            target=self._forward, args=(reading,), name="headrace-jvm-output", daemon=True
        )
        self._thread.start()

    @property
    def descriptor(self) -> int:
        """The end to write to; for the process, which gets a copy."""
        return self._writing

    def close_own_end(self) -> None:
        """Keep the process as the only writer, so that the thread ends with it."""
        os.close(self._writing)

    def silence(self) -> None:
        """Pass nothing on from now on: a thread must not write while the interpreter shuts down."""
        self._is_silent = True

    def _forward(self, reading: int) -> None:
        noise, levels = NoiseFilter(), WarningsOnly()
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._log.write(line)
                if levels.lets_through(line):
                    self._show(noise.passed(line))
        self._show(noise.rest())
        self._log.close()

    def _show(self, lines: list[str]) -> None:
        if lines and not self._is_silent:
            # Whoever has replaced sys.stderr may have closed it; Java must be able to write on.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.writelines(lines)
                sys.stderr.flush()
