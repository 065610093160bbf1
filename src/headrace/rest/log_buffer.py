"""The last lines of the driver's log, for those who watch from outside."""

from __future__ import annotations

import logging
import time
from collections import deque

_LINES = 5_000


class LogBuffer(logging.Handler):
    """A handler that keeps the last lines in memory."""

    def __init__(self, lines: int = _LINES) -> None:
        super().__init__(logging.INFO)
        self._lines: deque[str] = deque(maxlen=lines)
        self.changed_ms = time.time_ns() // 1_000_000
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s - %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        try:
            self._lines.append(self.format(record))
        except Exception:  # noqa: BLE001 - a line that cannot be formatted must not stop anybody
            return
        self.changed_ms = int(record.created * 1000)

    def text(self) -> str:
        """Return what is kept."""
        return "".join(f"{line}\n" for line in tuple(self._lines))
