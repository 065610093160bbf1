"""Errors in a notebook: the lines of the cell, without headrace's own frames."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["show_short_traceback", "without_our_frames"]

_PACKAGE: Final = Path(__file__).resolve().parents[1]


def show_short_traceback(
    shell: InteractiveShell,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show an error of headrace with the frames of the user's code only."""
    error.__suppress_context__ = True
    shown = without_our_frames(trace)
    shell.showtraceback((kind, error.with_traceback(shown), shown), tb_offset=tb_offset)


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of headrace and those they call. Frames above them stay."""
    if trace is None or Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
        return None
    return TracebackType(without_our_frames(trace.tb_next), trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
