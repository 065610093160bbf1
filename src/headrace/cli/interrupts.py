"""Ctrl-C, kill and a closed terminal: the first ends the program in an orderly way, the second at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

from headrace.cli.errors import ExitCode
from headrace.cli.signals import SignalHandler

__all__ = ["Interrupts"]


class Interrupts(SignalHandler):
    """Turns SIGINT, SIGTERM and SIGHUP into one KeyboardInterrupt, and a second into the process's end.

    Args:
        force: Called before the process ends at once; must be quick and not fail.
    """

    def __init__(self, force: Callable[[], None]) -> None:
        # Ignored from the start: a shell script runs us in the background, where Ctrl-C is not for us.
        super().__init__(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, leaves_ignored=True)
        self._force = force
        #: The signal that came first; None while none has come.
        self._first: int | None = None

    @property
    def have_come(self) -> bool:
        """Whether the program was interrupted, even if it continued."""
        return self._first is not None

    @property
    def is_for_process(self) -> bool:
        """Whether it is the process that is to end, as when its machine is: SIGTERM or SIGHUP, not Ctrl-C."""
        return self._first in (signal.SIGTERM, signal.SIGHUP)

    @property
    def exit_code(self) -> int:
        """The exit code of an interrupted program: 128 and the number of the signal."""
        return ExitCode.INTERRUPTED if self._first is None else 128 + self._first

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._first is None:
            self._first = number
            raise KeyboardInterrupt
        try:
            self._force()
        finally:
            # Java sees the end of its input and ends; the workers end with it.
            os._exit(128 + number)
