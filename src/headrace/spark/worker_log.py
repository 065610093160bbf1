"""What functions log in workers: with `logging`, to the standard error of the executor, which keeps it.

    2026-11-15 22:13:20,123 INFO    [Map -> Sink (1/2)] orders - a large one: 17

With a local master the executor is the driver's Java process, so `jvm_output` takes it from there to the application's
log. A program that sets up logging in its functions' process itself is left alone.
"""

from __future__ import annotations

import logging
import re
import sys

_FORMAT = "%(asctime)s %(levelname)-7s [%(task)s] %(name)s - %(message)s"
#: The first line of a record, and its level.
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING|ERROR|CRITICAL) +\[")


class _WorkerHandler(logging.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """Writes to whatever the standard error is, and says which task it was."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.task = "?"
        self.least = ""
        self.setFormatter(_Indented(_FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        record.task = self.task
        super().emit(record)


class _Indented(logging.Formatter):
    """Further lines of a record are set off, so that it is seen what belongs together."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", "\n    ")


_handler: _WorkerHandler | None = None


def log_as(task: str, level: str) -> None:
    """Have what is logged from here on say which task it was."""
    global _handler  # noqa: PLW0603 - a process has one standard error
    root = logging.getLogger()
    if _handler is None:
        _handler = _WorkerHandler()
        if not root.handlers:
            root.addHandler(_handler)
    if _handler in root.handlers and _handler.least != level:
        root.setLevel(level)
        _handler.least = level
    _handler.task = task
