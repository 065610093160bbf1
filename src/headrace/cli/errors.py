"""Errors for people: what to print, and the exit code it means.

The user's own frames are kept, headrace's are left out, so that the author of the program finds the place.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path

from headrace.errors import (
    ConfigurationError,
    HeadraceError,
    JobDefinitionError,
    JobSubmissionError,
    LeadershipError,
    SqlError,
    UnsupportedFeatureError,
    UserFunctionError,
)

__all__ = ["ExitCode", "describe_error", "exit_code_of"]

_PACKAGE = Path(__file__).resolve().parents[1]
_STARTS_PROGRAM = Path(__file__).resolve().with_name("program.py")
#: Lines of a Java stack trace, which errors of Spark's own libraries have in their text.
_JAVA_FRAME = re.compile(r"\s+at [\w.$/<>]+\(.*\)|\s*\.\.\. \d+ more")
#: Found before anything runs; the place in the program helps more than anything else.
_REFUSALS = (ConfigurationError, JobDefinitionError, SqlError, UnsupportedFeatureError)


class ExitCode(IntEnum):
    """The exit codes of `headrace`."""

    OK = 0
    #: A job or the program failed.
    FAILED = 1
    #: Usage, configuration or the job's definition is wrong; nothing has run.
    REFUSED = 2
    #: Another process leads the job: it was there first, or has taken over; it continues there.
    NOT_LEADING = 3
    #: 128 and the number of the signal, as shells do.
    INTERRUPTED = 130


def exit_code_of(error: BaseException) -> ExitCode:
    """Say which exit code an error means."""
    if isinstance(error, LeadershipError):
        return ExitCode.NOT_LEADING
    return ExitCode.REFUSED if isinstance(error, (*_REFUSALS, JobSubmissionError)) else ExitCode.FAILED


def describe_error(error: BaseException) -> str:
    """Put an error into words: headrace's own as a message, any other as the traceback of the program."""
    if isinstance(error, UserFunctionError) and error.user_traceback:
        return str(error)
    if not isinstance(error, HeadraceError):
        return _program_traceback(error)
    text = f"error: {error}"
    place = _place_in_program(error) if isinstance(error, _REFUSALS) else None
    if place is None:
        return text
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return f"{text.removesuffix(hint)}\n  {place}{hint}"


def _place_in_program(error: BaseException) -> str | None:
    """Return the innermost line of the program that led to an error; None if the error is not from the program."""
    frames = [
        frame
        for frame in _frames_of_program(traceback.extract_tb(error.__traceback__))
        if not _is_ours(frame.filename)
    ]
    if not frames:
        return None
    frame = frames[-1]
    return f"at {frame.filename}, line {frame.lineno}" + (f": {frame.line}" if frame.line else "")


def _program_traceback(error: BaseException) -> str:
    """Format an exception as Python does, without headrace's frames, except where one of them raised it."""
    described = traceback.TracebackException.from_exception(error)
    pending: list[traceback.TracebackException | None] = [described]
    while pending:
        each = pending.pop()
        if each is not None:
            frames = _frames_of_program(each.stack) or list(each.stack)
            kept = [frame for frame in frames[:-1] if not _is_ours(frame.filename)] + frames[-1:]
            each.stack = traceback.StackSummary.from_list(kept)
            pending += [each.__cause__, each.__context__, *(each.exceptions or ())]
    lines = "".join(described.format()).rstrip().splitlines()
    return "\n".join(line for line in lines if not _JAVA_FRAME.fullmatch(line))


def _frames_of_program(stack: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Return the frames below the one that started the program; none if it was not running."""
    frames = list(stack)
    starts = [index for index, frame in enumerate(frames) if Path(frame.filename) == _STARTS_PROGRAM]
    return frames[starts[-1] + 1 :] if starts else []


def _is_ours(filename: str) -> bool:
    return filename.startswith("<frozen ") or Path(filename).is_relative_to(_PACKAGE)
