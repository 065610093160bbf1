"""Stops a replay: before a record, at a line, or where a function raised. With pdb, or debugpy for editors.

headrace and the standard library are stepped over, so the first stop is in a function of the program.
"""

from __future__ import annotations

import importlib
import os
import pdb
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Protocol

from headrace.errors import ConfigurationError
from headrace.runtime.epoch.messages import SubtaskId

_DEBUGPY_PORT = 5678


class Debugger(Protocol):
    """Stops the replayed program at breakpoints and errors."""

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
        self.number = number
        self.subtask = subtask
        self.has_stopped = False

    def __call__(self, subtask: SubtaskId, number: int, record: Any) -> None:
        """Take notice of a record that a subtask is about to process."""
        if self.has_stopped or number != self.number or self.subtask not in (None, subtask):
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
        self.message("".join(traceback.format_exception_only(error)).rstrip())
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

    Args:
        port: Where it listens.
        say: Told what it waits for.

    Raises:
        ConfigurationError: If debugpy is not installed, or the port is in use.
    """

    def __init__(
        self, port: int = _DEBUGPY_PORT, *, say: Callable[[str], object] = lambda text: None
    ) -> None:
        # Python's own modules are not stepped into, so that they are frozen is nothing to warn of.
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        try:
            self._debugpy: Any = importlib.import_module("debugpy")
        except ImportError as error:
            raise ConfigurationError(
                "debugpy is not installed", hint="pip install debugpy, or use --debugger pdb"
            ) from error
        try:
            self._debugpy.listen(("127.0.0.1", port))
        except (RuntimeError, OSError) as error:
            raise ConfigurationError(
                f"debugpy cannot listen on 127.0.0.1:{port}: {error}",
                hint="end the other replay that waits for an editor, or use --debugger pdb",
            ) from error
        say(f"waiting for an editor to attach to 127.0.0.1:{port}")
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
        """Stop where an error was raised first, if the editor stops for uncaught errors, as editors do by default."""
        while error.__cause__ is not None:
            error = error.__cause__
        pydevd: Any = importlib.import_module("pydevd")  # comes with debugpy
        tracer = pydevd.get_global_debugger()
        thread = threading.current_thread()
        state = tracer.set_additional_thread_info(thread)
        state.is_tracing += 1
        try:
            tracer.stop_on_unhandled_exception(
                tracer, thread, state, (type(error), error, error.__traceback__)
            )
        finally:
            state.is_tracing -= 1
