"""One line at the bottom of a terminal, which gives way to whatever else is written there."""

from __future__ import annotations

import threading
from typing import Any, TextIO

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

__all__ = ["GuardedStream", "StatusLine"]


class StatusLine:
    """A line that is drawn over and over. Safe to use from several threads.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.RLock()
        #: What stands on the line now; None while there is none.
        self._shown: Text | None = None
        #: Whether the program has written a line without its end: then the cursor is not ours to move.
        self._is_mid_line = False

    def show(self, text: Text) -> None:
        """Draw the line, cut at the terminal's width; not while the program is in the middle of a line."""
        with self._lock:
            if self._is_mid_line or text == self._shown:
                return
            self._erase()
            self._shown = text.copy()
            # One column less: a full line would make the terminal go to the next one.
            text.truncate(max(1, self._console.width - 1), overflow="ellipsis")
            self._console.print(text, end="", no_wrap=True, overflow="crop")

    def hide(self) -> None:
        """Take the line away until it is drawn again."""
        with self._lock:
            if self._shown is not None:
                self._erase()
                self._shown = None

    def write(self, stream: TextIO, text: str) -> int:
        """Write text of the program's, with the line out of the way."""
        with self._lock:
            self.hide()
            written = stream.write(text)
            # At once, or the line would come before text that was written before it.
            stream.flush()
            if text:
                self._is_mid_line = not text.endswith("\n")
            return written

    def _erase(self) -> None:
        self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))


class GuardedStream:
    """A standard stream whose text and the status line do not run into each other.

    Args:
        stream: The stream; everything but writing is left to it.
        line: The status line on the same terminal.
    """

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        return self._line.write(self._stream, text)

    def writelines(self, lines: list[str]) -> None:
        """Write pieces of text."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
