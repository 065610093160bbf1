"""Timers of a keyed operator: registered in the scope of a key and a namespace, called back when time has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.state.keyed import KeyedStateBackend
from headrace.state.timers import Timer

OnTimer = Callable[[Timer], None]

_EVENT_TIME = "_timers/event"
_PROCESSING_TIME = "_timers/processing"


def no_namespace(namespace: Any) -> bytes:
    """Encode the namespace of timers that have none: those of user functions."""
    return b""


class OperatorTimers:
    """The timers of one operator subtask, in both time domains.

    ``on_event_time`` and ``on_processing_time`` are called with the current key set to the timer's.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        *,
        on_event_time: OnTimer,
        on_processing_time: OnTimer,
        encode_namespace: Callable[[Any], bytes] = no_namespace,
    ) -> None:
        self._current = backend.current
        self._event = backend.timers(_EVENT_TIME, encode_namespace)
        self._processing = backend.timers(_PROCESSING_TIME, encode_namespace)
        self._on_event_time = on_event_time
        self._on_processing_time = on_processing_time

    def register_event_time(self, timestamp: int, namespace: Any = None) -> None:
        """Register a timer for when the watermark reaches a time."""
        self._event.register(timestamp, self._current.key, namespace)

    def register_processing_time(self, timestamp: int, namespace: Any = None) -> None:
        """Register a timer for when the clock reaches a time."""
        self._processing.register(timestamp, self._current.key, namespace)

    def delete_event_time(self, timestamp: int, namespace: Any = None) -> None:
        """Delete a timer, if there is one for this time."""
        self._event.delete(timestamp, self._current.key, namespace)

    def delete_processing_time(self, timestamp: int, namespace: Any = None) -> None:
        """Delete a timer, if there is one for this time."""
        self._processing.delete(timestamp, self._current.key, namespace)

    def advance_watermark(self, watermark: int) -> None:
        """Call back what has fallen due in event time."""
        for timer in self._event.due(watermark):
            self._current.key = timer.key
            self._on_event_time(timer)

    def advance_processing_time(self, now_ms: int) -> None:
        """Call back what has fallen due by the clock."""
        for timer in self._processing.due(now_ms):
            self._current.key = timer.key
            self._on_processing_time(timer)

    def next_processing_time(self) -> int | None:
        """Return when the next processing-time timer falls due."""
        return self._processing.next_time()
