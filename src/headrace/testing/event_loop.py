"""An event loop for tests of asynchronous functions: its time jumps to what is due next, instead of passing.

    AsyncWaitDeclaration(Ask(), timeout_ms=1000, capacity=10, is_ordered=True, make_loop=VirtualTimeLoop)

A sleep of an hour takes no time, and calls end in an order that depends on their delays alone.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

__all__ = ["VirtualTimeLoop"]


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a time, says that it has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if not events:
            if timeout is None:
                raise RuntimeError("VirtualTimeLoop: all tasks are waiting, and no timer is due")
            self.now += max(timeout, 0.0)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs what is due next at once.

    Example:
        >>> loop = VirtualTimeLoop()
        >>> loop.run_until_complete(asyncio.sleep(3600))
        >>> loop.time()
        3600.0
        >>> loop.close()
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the time so far, in seconds from 0."""
        return self._jumping.now
