"""Stops a replay: before a record, at a line, or where a function raised. With pdb, or debugpy for editors.

headrace and the standard library are stepped over, so the first stop is in a function of the program.
"""

from __future__ import annotations

import importlib
import pdb
import sys
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Protocol

from headrace.errors import ConfigurationError
from headrace.runtime.epoch.messages import SubtaskId

_DEBUGPY_PORT = 5678


class Debugger(Protocol):
    """Stops the program."""

    def stop(self) -> None:
        """Stop in the next function of the program that is called."""

    def break_at(self, places: Sequence[tuple[str, int]]) -> None:
        """Stop whenever one of these lines of a file is reached."""

    def post_mortem(self, error: BaseException) -> None:
        """Look at the place where an error was raised."""


class StopBeforeRecord:
    """Stops before a record of a subtask.

    Args:
        debugger: What stops.
        number: Which record of the subtask in the epoch, from 1.
        subtask: The subtask; None for whichever gets so many first.
    """

    def __init__(self, debugger: Debugger, number: int, subtask: SubtaskId | None) -> None:
        self._debugger = debugger
        self._number = number
        self.subtask = subtask
        self.has_stopped = False

    def __call__(self, subtask: SubtaskId, number: int, record: Any) -> None:
        """Take notice of a record that a subtask is about to process."""
        if self.has_stopped or number != self._number or self.subtask not in (None, subtask):
            return
        self.has_stopped = True
        self._debugger.stop()


class PdbDebugger(pdb.Pdb):
    """Python's own debugger, in the terminal."""

    def __init__(self, **streams: Any) -> None:
        super().__init__(skip=["headrace.*"], nosigint=True, **streams)
        self.prompt = "(replay) "

    def stop(self) -> None:
        """Stop in the next function of the program that is called."""
        self.set_trace(sys._getframe())

    def break_at(self, places: Sequence[tuple[str, int]]) -> None:
        """Stop whenever one of these lines of a file is reached.

        Raises:
            ConfigurationError: If there is no code at a line.
        """
        for file, line in places:
            problem = self.set_break(file, line)
            if problem:
                raise ConfigurationError(f"no breakpoint can be set at {file}:{line}: {problem}")
        self.reset()
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            self.botframe = frame
            frame = frame.f_back
        self.set_continue()
        sys.settrace(self.trace_dispatch)

    def post_mortem(self, error: BaseException) -> None:
        """Look at the place where an error was raised first."""
        sys.settrace(None)
        while error.__cause__ is not None:
            error = error.__cause__
        self.reset()
        self.interaction(None, error.__traceback__)

    def is_skipped_module(self, module_name: str | None) -> bool:
        """Whether a module is not the program's."""
        top = (module_name or "").partition(".")[0]
        return top == "headrace" or top in sys.stdlib_module_names

    def get_stack(
        self, f: FrameType | None, t: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        """Return the calls, and the innermost that is the program's: an error may be raised in what it calls."""
        stack, index = super().get_stack(f, t)
        if t is None:
            return stack, index
        own = [
            number
            for number, (frame, _) in enumerate(stack)
            if not self.is_skipped_module(frame.f_globals.get("__name__"))
        ]
        return stack, own[-1] if own else index


class DebugpyDebugger:
    """Waits for an editor that speaks the debug adapter protocol, and stops there.

    Raises:
        ConfigurationError: If debugpy is not installed.
    """

    def __init__(self, port: int = _DEBUGPY_PORT) -> None:
        try:
            self._debugpy: Any = importlib.import_module("debugpy")
        except ImportError as error:
            raise ConfigurationError(
                "debugpy is not installed", hint="pip install debugpy, or use --debugger pdb"
            ) from error
        self._debugpy.listen(("127.0.0.1", port))
        self._debugpy.wait_for_client()

    def stop(self) -> None:
        """Stop here; the program's function is a few steps away."""
        self._debugpy.breakpoint()

    def break_at(self, places: Sequence[tuple[str, int]]) -> None:
        """Editors set their own breakpoints.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("set breakpoints in the editor; --break is for pdb")

    def post_mortem(self, error: BaseException) -> None:
        """Editors stop where an error is raised, by their own settings."""
