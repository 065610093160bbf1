"""Where in the user's program a step of a job was written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["ProgramLine", "call_site"]

_PACKAGE: Final = f"{Path(__file__).resolve().parents[1]}/"


class ProgramLine(NamedTuple):
    """A line of a program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def call_site() -> ProgramLine | None:
    """Return the innermost line outside of headrace that led here; None if there is none.

    Example:
        >>> place = call_site()
        >>> place.line
        1
    """
    frame = sys._getframe(1)
    # Constructors of dataclasses are made of strings.
    while frame.f_code.co_filename.startswith((_PACKAGE, "<string>")):
        following = frame.f_back
        if following is None:
            return None
        frame = following
    return ProgramLine(frame.f_code.co_filename, frame.f_lineno)
