"""One channel of the exchange on the producer's side: elements wait here until there are enough for a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.elements import Event
from headrace.runtime.exchange.buffers import encode_items, event_item


class Channel:
    """Elements on their way to one consumer, in stream order."""

    def __init__(self) -> None:
        #: Items that are complete: batches before an event, and events.
        self._items: list[Any] = []
        #: The open batch. The list objects stay the same for life: routers hold their bound ``append``.
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self.append = self._values.append
        #: Like ``append``, for the timestamps; call `start_timed` before a run of both.
        self.append_timestamp = self._timestamps.append
        self.records = 0

    def start_timed(self) -> None:
        """Get ready for records that are appended together with their timestamps."""
        missing = len(self._values) - len(self._timestamps)
        if missing:
            self._timestamps.extend([None] * missing)

    def extend(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        if timestamps is None:
            if self._timestamps:
                self._timestamps.extend([None] * len(values))
        else:
            self.start_timed()
            self._timestamps.extend(timestamps)
        self._values.extend(values)

    def add_event(self, event: Event) -> None:
        """Add an event after the records so far."""
        self._close_batch()
        self._items.append(event_item(event))

    @property
    def waiting(self) -> int:
        """Records of the open batch."""
        return len(self._values)

    @property
    def taken(self) -> int:
        """Records so far, those that wait included."""
        return self.records + len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._values and not self._items

    def take_payload(self, encode: Callable[[list[Any]], bytes] = encode_items) -> bytes:
        """Return everything that waits, serialized, and start over."""
        self._close_batch()
        items, self._items = self._items, []
        return encode(items)

    def _close_batch(self) -> None:
        if self._values:
            # Records appended without a time after timed ones have none.
            if self._timestamps:
                self.start_timed()
            self.records += len(self._values)
            self._items.append((self._values.copy(), self._timestamps.copy() or None))
            self._values.clear()
            self._timestamps.clear()
