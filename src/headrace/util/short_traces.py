"""Tracebacks of users' errors, without headrace's frames between their call and the check that failed.

In an interactive session, the traceback of an error is what people read first. Whatever is wrong with a statement or a
program is in its message, and the frames that matter are the user's own; errors that are headrace's keep all of theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Final, ParamSpec, TypeVar

from headrace.errors import HeadraceError, InvariantViolation

__all__ = ["short_trace", "shorten_in_repl", "without_our_frames"]

_PACKAGE: Final = Path(__file__).resolve().parents[1]

P = ParamSpec("P")
R = TypeVar("R")


def short_trace(function: Callable[P, R]) -> Callable[P, R]:
    """Have a public function raise errors as if it had found them itself.

    Example:
        >>> from headrace.errors import JobDefinitionError
        >>> def find(): raise JobDefinitionError("no such thing")
        >>> try:
        ...     short_trace(lambda: find())()
        ... except JobDefinitionError as error:
        ...     frames = error.__traceback__
        >>> frames.tb_next.tb_next is None
        True
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except InvariantViolation:
            raise
        except HeadraceError as error:
            raise error.with_traceback(None)  # noqa: B904 - it is the error itself

    return call


def shorten_in_repl() -> None:
    """Have Python's interactive prompt show errors of headrace with the user's frames only.

    Does nothing in a program, and where something else shows errors already.
    """
    if hasattr(sys, "ps1") and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_shortened


def _show_shortened(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, HeadraceError) and not isinstance(error, InvariantViolation):
        error.__suppress_context__ = True
        error.__cause__ = None
        trace = without_our_frames(trace)
        error = error.with_traceback(trace)
    sys.__excepthook__(kind, error, trace)


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of headrace and those they call. Frames above them stay."""
    if trace is None or Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
        return None
    return TracebackType(without_our_frames(trace.tb_next), trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
