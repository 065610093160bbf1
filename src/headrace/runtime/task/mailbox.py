"""Mailbox: what a live subtask has to attend to, gathered by other threads and worked off by one.

Spark's input  --reader thread--> [ buffers, up to so many bytes ] --+
                                                                     +--> take() by the subtask's only loop
control channel --its thread----> [ messages                     ] --+
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from headrace.runtime.control.messages import Message


class Mailbox:
    """Buffers and messages for one subtask.

    Args:
        most_bytes: Buffers that may wait; whoever brings more waits, and with it the sender before.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._buffers: list[bytes] = []
        self._waiting_bytes = 0
        self._messages: list[Message] = []
        self._has_input_ended = False
        self._is_disconnected = False
        #: Whether one of these has happened since somebody last looked.
        self._has_news = False
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._has_room = threading.Condition(self._lock)

    # -- those who bring something ------------------------------------------------------------------------------

    def put_buffer(self, buffer: bytes) -> None:
        """Bring a buffer; waits while there are too many."""
        with self._lock:
            while self._waiting_bytes >= self._most_bytes:
                self._has_room.wait()
            self._buffers.append(buffer)
            self._waiting_bytes += len(buffer)
            self._filled.notify()

    def put_message(self, message: Message) -> None:
        """Bring a message of the driver; never waits."""
        with self._lock:
            self._messages.append(message)
            self._filled.notify()

    def end_input(self, error: BaseException | None = None) -> None:
        """There will be no more buffers; with an error, because they cannot be read."""
        with self._lock:
            self._has_input_ended = True
            self._error = error
            self._has_news = True
            self._filled.notify()

    def disconnect(self) -> None:
        """The driver is gone."""
        with self._lock:
            self._is_disconnected = self._has_news = True
            self._filled.notify()

    # -- the loop -----------------------------------------------------------------------------------------------

    def take(self, timeout_s: float | None) -> tuple[Sequence[Message], Sequence[bytes]]:
        """Return what has come, waiting until there is something or the time is over.

        Raises:
            BaseException: What the input could not be read for.
        """
        with self._lock:
            if not (self._buffers or self._messages or self._has_news):
                self._filled.wait(timeout_s)
            self._has_news = False
            if self._error is not None:
                raise self._error
            messages, buffers = self._messages, self._buffers
            self._messages, self._buffers = [], []
            if buffers:
                self._waiting_bytes = 0
                self._has_room.notify()
            return messages, buffers

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._buffers and not self._messages

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the buffers that wait."""
        return self._waiting_bytes

    @property
    def has_input_ended(self) -> bool:
        """Whether all buffers there will ever be were taken or wait."""
        return self._has_input_ended

    @property
    def is_disconnected(self) -> bool:
        """Whether the driver is gone."""
        return self._is_disconnected
