"""Python programs that run in a process of their own, because they may crash it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


class KilledError(Exception):
    """The process was ended by a signal.

    Args:
        signal: The name of the signal.
        output: What the process had written to its standard output.
    """

    def __init__(self, signal: str, output: bytes) -> None:
        super().__init__(signal, output)
        self.signal = signal
        self.output = output


def run_program(text: str, data: bytes) -> bytes:
    """Run a program and return what it writes, or has written when it fails with an exception.

    Args:
        text: The program.
        data: Its standard input.

    Raises:
        KilledError: It was ended by a signal.
    """
    return _run(["-c", text], data)


def run_module(name: str, data: bytes) -> bytes:
    """Run a module of headrace as a program; arguments and errors are those of `run_program`."""
    return _run(["-m", name], data)


def _run(words: list[str], data: bytes) -> bytes:
    done = subprocess.run(  # noqa: S603 - our own text, in our own Python
        [sys.executable, *words],
        input=data,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    if done.returncode < 0:
        raise KilledError(signal.Signals(-done.returncode).name, done.stdout)
    return done.stdout
