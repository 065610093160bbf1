"""A live subtask without threads and sockets: tests run its loop turn by turn.

What it says to the driver, and what it sends, goes to whoever drives it. The loop itself, with mailbox, alignment and
task, is the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.runtime.control.messages import Message
from headrace.runtime.task.live_subtask import LiveSubtask
from headrace.runtime.task.outbox import Sent

__all__ = ["SteppedSubtask"]


class SteppedSubtask(LiveSubtask):
    """One subtask of a live job, driven by hand.

    Args:
        arguments: Those of `LiveSubtask`.
        tell: Takes what the subtask says to the driver.
        named: Those of `LiveSubtask`.
    """

    def __init__(self, *arguments: Any, tell: Callable[[Message], None], **named: Any) -> None:
        self._told = tell
        super().__init__(*arguments, **named)

    def begin(self) -> None:
        """Restore state, and open functions."""
        self._begin()

    def put(self, buffer: bytes) -> None:
        """Hand a buffer to an input channel."""
        self._mailbox.put_buffer(buffer)

    def put_message(self, message: Message) -> None:
        """Bring a message of the driver."""
        self._mailbox.put_message(message)

    def turn(self) -> Iterator[Sent]:
        """Let the loop do what there is to do now."""
        yield from self._turn()

    @property
    def is_stopping(self) -> bool:
        """Whether the driver has said that it is to end."""
        return self._is_stopping

    def end(self) -> None:
        """Close the functions, as at the end of the loop."""
        self._end()

    def _tell(self, message: Message) -> None:
        self._told(message)

    #: How many buffers the loop processes in a turn; None for all that wait.
    most_buffers: int | None = None

    def _buffers_at_once(self) -> int:
        return super()._buffers_at_once() if self.most_buffers is None else self.most_buffers

    def _patience_s(self) -> float:
        return 0.0  # whoever takes turns knows when
