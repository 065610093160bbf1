"""The log files of one process, in a directory of its own.

    ~/.local/state/headrace/log/20261115-221320-4711/
        headrace.log    what headrace logs in the driver
        spark.log       what Spark's Java process logs
        workers.log     what Spark's Java process writes to its standard error; with a local master also what functions
                        log and print in workers. On a cluster that is in the logs of Spark's executors.

Each is bounded: a full file becomes `name.1`, which takes the place of the one before it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.config.configuration import Configuration
from headrace.config.options import logs as options
from headrace.util.state_home import state_home

__all__ = [
    "LINE_FORMAT",
    "ApplicationLog",
    "BoundedFile",
    "DriverLogging",
    "LogFile",
    "application_log",
    "log_directory",
]

_log = logging.getLogger(__name__)

DRIVER_LOG, SPARK_LOG, WORKERS_LOG = "headrace.log", "spark.log", "workers.log"
LINE_FORMAT = "%(asctime)s %(levelname)-7s %(name)s - %(message)s"
_DIRECTORY_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-([0-9]+)")


class LogFile(NamedTuple):
    """A log file that can be read."""

    name: str
    size: int
    modified_ms: int


class BoundedFile:
    """Text that is appended to a file, which is begun again when it is full; a stream for `logging`.

    Args:
        path: The file.
        max_bytes: How large it gets.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._file = path.open("ab", buffering=0)

    def write(self, text: str) -> int:
        """Append text; a file that went away or a full disk is nobody's failure."""
        content = text.encode("utf-8", "replace")
        with self._lock, suppress(OSError, ValueError):
            if self._file.tell() and self._file.tell() + len(content) > self._max_bytes:
                self._file.close()
                self._path.replace(f"{self._path}.1")
                self._file = self._path.open("ab", buffering=0)
            self._file.write(content)
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()


class ApplicationLog:
    """A directory with log files.

    Args:
        directory: It exists.
        max_bytes: How large a file gets.
        level: The least level that is logged.
    """

    def __init__(self, directory: Path, max_bytes: int = 10 << 20, level: str = "INFO") -> None:
        self.directory = directory
        self.max_bytes = max_bytes
        self.level = level

    def path(self, name: str) -> Path:
        """Return where a file of that name is, or would be."""
        return self.directory / name

    def open(self, name: str) -> BoundedFile:
        """Open a file to append to it."""
        return BoundedFile(self.path(name), self.max_bytes)

    def files(self, *prefixes: str) -> list[LogFile]:
        """List the files, those whose name begins so."""
        found = []
        with suppress(OSError):
            for entry in sorted(self.directory.iterdir()):
                if entry.is_file() and entry.name.startswith(prefixes or ""):
                    status = entry.stat()
                    found.append(LogFile(entry.name, status.st_size, status.st_mtime_ns // 1_000_000))
        return found

    def read(self, name: str) -> bytes | None:
        """Return what is in a file; None if it is not of ours."""
        if name not in {file.name for file in self.files()}:
            return None
        with suppress(OSError):
            return self.path(name).read_bytes()
        return None


class DriverLogging:
    """Has headrace's own loggers write to the driver's log, beside what the program does with them.

    The program's own handlers get warnings and errors, and more if the program has given the logger `headrace` a level.
    One that only asks for its own messages (`logging.basicConfig(level=INFO)`) gets none of ours: PyFlink's jobs log
    in Java.
    """

    def __init__(self, log: ApplicationLog) -> None:
        self._logger = logging.getLogger("headrace")
        self._log = log
        self._stream: BoundedFile | None = None
        self._handlers: Sequence[logging.Handler] = ()
        self._before = self._logger.level, self._logger.propagate

    def start(self) -> None:
        """Write from now on."""
        self._stream = self._log.open(DRIVER_LOG)
        to_file = logging.StreamHandler(self._stream)
        to_file.setFormatter(logging.Formatter(LINE_FORMAT))
        to_root = _ToRoot(self._before[0] or logging.WARNING)
        self._handlers = (to_file, to_root)
        self._logger.setLevel(self._log.level)
        self._logger.propagate = False
        for handler in self._handlers:
            self._logger.addHandler(handler)

    def stop(self) -> None:
        """Leave loggers as they were."""
        for handler in self._handlers:
            self._logger.removeHandler(handler)
        level, self._logger.propagate = self._before
        self._logger.setLevel(level)
        if self._stream is not None:
            self._stream.close()


class _ToRoot(logging.Handler):
    """What propagation does, for those records that the root logger would have taken itself."""

    def emit(self, record: logging.LogRecord) -> None:
        root = logging.getLogger()
        if root.isEnabledFor(record.levelno):
            root.callHandlers(record)


_current: ApplicationLog | None = None
_lock = threading.Lock()


def application_log(configuration: Configuration) -> ApplicationLog:
    """Return the log of this process; the first call makes its directory, and clears old ones away."""
    global _current  # noqa: PLW0603 - a process has one
    with _lock:
        if _current is None:
            _current = ApplicationLog(
                _make_directory(configuration.get(options.DIRECTORY), configuration.get(options.KEPT)),
                configuration.get(options.MAX_SIZE).get_bytes(),
                configuration.get(options.LEVEL),
            )
        return _current


def log_directory() -> Path | None:
    """Return where the log files of this process are; None if it has none so far."""
    return None if _current is None else _current.directory


def _make_directory(configured: str | None, kept: int) -> Path:
    parent = Path(configured) if configured else state_home() / "log"
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    try:
        # A place of our own choice is for this user only; who has named another knows who reads it.
        (parent / name).mkdir(0o777 if configured else 0o700, parents=True)
    except OSError as error:
        fallback = Path(tempfile.mkdtemp(prefix="headrace-log-"))
        _log.warning("logs go to %s: %s cannot be written: %s", fallback, parent, error.strerror)
        return fallback
    _clear_away(parent, kept)
    return parent / name


def _clear_away(parent: Path, kept: int) -> None:
    """Delete the logs of processes that have ended, but for the last ones."""
    ended = sorted(
        entry
        for entry in parent.iterdir()
        if (name := _DIRECTORY_NAME.fullmatch(entry.name)) and not _is_alive(int(name[1]))
    )
    for old in ended[: max(0, len(ended) - kept + 1)]:
        shutil.rmtree(old, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
