"""Errors in a notebook: the lines of the cell, without headrace's own frames."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from headrace.util.short_traces import without_our_frames

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["show_short_traceback"]


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
