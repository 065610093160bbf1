"""Runs programs that were sent from the web page: each in a process of its own, which submits its jobs here.

It is `headrace run -d -m <this server> program.py`, so a program means the same as from a terminal. Whoever may do that
runs code as the user of the cluster, hence it goes with `web.submit.enable`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from headrace.config.configuration import Configuration
from headrace.config.references import escaped
from headrace.util.host_directories import temporary_directory

#: A program that has not submitted its jobs by then is ended, s.
_TIMEOUT_S = 300.0
_MOST_AT_ONCE = 2
_MOST_OUTPUT = 64 * 1024
_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True)
class EndedProgram:
    """How a program ended; its jobs may still run."""

    exit_code: int
    output: str


class ProgramRunner:
    """Runs programs for a session.

    Args:
        configuration: The options of the session.
        url: Where the session is, once it is there.
    """

    def __init__(self, configuration: Configuration, url: Callable[[], str]) -> None:
        self._url = url
        given = configuration.to_dict()
        # As variables, which a program's own options win over, and which nobody sees in a list of processes: jobs
        # start from the session's options, and their client knows its token.
        self._environment = {
            option.environment_variable: escaped(given[option.key])
            for option in configuration.registry
            if option.key in given
        }
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def has_room(self) -> bool:
        """Return whether another program may be started now."""
        if self._room.acquire(blocking=False):
            self._room.release()
            return True
        return False

    def run(
        self,
        name: str,
        source: str,
        arguments: Sequence[str],
        *,
        parallelism: int | None = None,
        savepoint: str | None = None,
    ) -> Future[EndedProgram]:
        """Start a program; the future is done when it has submitted its jobs, or failed."""
        done: Future[EndedProgram] = Future()

        def work() -> None:
            with self._room:
                try:
                    done.set_result(self._run(name, source, arguments, parallelism, savepoint))
                except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
                    done.set_exception(error)

        threading.Thread(target=work, name="headrace-program", daemon=True).start()
        return done

    def _run(
        self, name: str, source: str, arguments: Sequence[str], parallelism: int | None, savepoint: str | None
    ) -> EndedProgram:
        with temporary_directory("program") as folder:
            # The name is for messages: no part of it may lead elsewhere.
            plain = _FILE_NAME.sub("_", Path(name).name).lstrip(".-") or "program"
            file = Path(folder) / (plain if plain.endswith(".py") else f"{plain}.py")
            file.write_text(source, encoding="utf-8")
            command = [sys.executable, "-m", "headrace.cli.main", "run", "-d", "-m", self._url()]
            command += [] if parallelism is None else ["-p", str(parallelism)]
            command += [] if savepoint is None else ["-s", savepoint]
            return _finish([*command, str(file), *arguments], {**os.environ, **self._environment})


def _finish(command: Sequence[str], environment: Mapping[str, str]) -> EndedProgram:
    try:
        ended = subprocess.run(  # noqa: S603  # this very program; the session's owner allows it
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        text = _last(late.stdout or b"")
        return EndedProgram(
            -1, f"{text}\nstopped: it did not submit its jobs within {_TIMEOUT_S:.0f} seconds"
        )
    return EndedProgram(ended.returncode, _last(ended.stdout))


def _last(output: bytes) -> str:
    return output[-_MOST_OUTPUT:].decode("utf-8", "replace")
