"""Alignment: holds channels back whose barrier has come, until it has come on all of them.

channel 0   r r B2 r r            buffers after B2 wait ...
channel 1   r r r r r r B2        ... until this one is here
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.runtime.exchange.buffers import Header
from headrace.util import clock

Channel = tuple[int, int]


class Alignment:
    """The barriers of one subtask.

    Args:
        channels: All channels that barriers come on.
        blocks: Whether what follows a barrier waits for the barriers of the others, for exactly once.
    """

    def __init__(self, channels: Iterable[Channel], *, blocks: bool = True) -> None:
        self._channels = frozenset(channels)
        self._blocks = blocks
        self._arrived: set[Channel] = set()
        self._held: list[tuple[Header, bytes]] = []
        self._first_ms = 0
        #: Bytes that are held back.
        self.held_bytes = 0

    def holds(self, header: Header, buffer: bytes) -> bool:
        """Whether a buffer has to wait; it is kept then."""
        if not self._blocks or (header.edge_id, header.producer) not in self._arrived:
            return False
        self._held.append((header, buffer))
        self.held_bytes += len(buffer)
        return True

    def arrive(self, header: Header) -> bool:
        """A barrier has come; return whether it is the last one."""
        if not self._arrived:
            self._first_ms = clock.now_ms()
        self._arrived.add((header.edge_id, header.producer))
        return not self.open_channels

    @property
    def is_awaiting_first(self) -> bool:
        """Whether no barrier has come yet."""
        return not self._arrived

    @property
    def held_buffers(self) -> int:
        """How many buffers are held back."""
        return len(self._held)

    def has_arrived(self, channels: Iterable[Channel]) -> bool:
        """Whether the barrier has come on all of these channels."""
        return self._arrived.issuperset(channels)

    @property
    def open_channels(self) -> frozenset[Channel]:
        """The channels on which the barrier is still to come."""
        return self._channels - self._arrived

    @property
    def first_ms(self) -> int:
        """When the first barrier came, ms since 1970; now, if none has."""
        return self._first_ms if self._arrived else clock.now_ms()

    def release(self) -> list[tuple[Header, bytes]]:
        """The next barrier is awaited: return what was held back, in the order it came."""
        held, self._held = self._held, []
        self.held_bytes = 0
        self._arrived.clear()
        return held
