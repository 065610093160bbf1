"""Outbox: buffers that leave a live subtask. Its loop waits for consumers that do not take them, which is timed."""

from __future__ import annotations

import time
from collections.abc import Iterator

#: A partition of the next level, and a buffer for it.
Sent = tuple[int, bytes]

#: Bytes that the subtask's side of Spark's shuffle takes before it waits for the next level.
ROOM_BYTES = 256 << 10
#: One buffer is taken at once unless all the room behind it is full, s.
_FULL_AFTER_S = 0.02


class Outbox:
    """What one subtask sends."""

    def __init__(self) -> None:
        self._ready: list[Sent] = []
        #: How long others have not taken what was sent, s.
        self.blocked_s = 0.0
        #: Buffers and bytes that are on their way out, and since when the next of them is.
        self._leaving = (0, 0)
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._ready)

    def put(self, partition: int, buffer: bytes) -> None:
        """Have a buffer leave next time."""
        self._ready.append((partition, buffer))

    def leave(self) -> Iterator[Sent]:
        """Yield what is to go out; the time that takes is the time that others cannot follow."""
        ready, self._ready = self._ready, []
        count, size = len(ready), sum(len(buffer) for _, buffer in ready)
        started = self._since = time.monotonic()
        for sent in ready:
            self._leaving = (count, size)
            yield sent
            count, size = count - 1, size - len(sent[1])
            self._since = time.monotonic()
        self._leaving = (0, 0)
        self.blocked_s += self._since - started

    def waiting(self) -> tuple[int, int, float]:
        """Return buffers and bytes that wait, and how much of the room they take; may be asked from any thread.

        What waits in Spark is not known here. But a buffer that is not taken has all of the room full behind it.
        """
        count, size = self._leaving
        if not count:
            return 0, 0, 0.0
        is_full = time.monotonic() - self._since >= _FULL_AFTER_S
        return count, size, 1.0 if is_full else min(1.0, size / ROOM_BYTES)
