"""The two clocks of a program, and what functions can ask about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum


class TimeDomain(Enum):
    """Which clock a timer follows."""

    #: The time in the records, as far as watermarks have brought it.
    EVENT_TIME = 0
    #: The clock of the machine.
    PROCESSING_TIME = 1


class TimerService(ABC):
    """Time and timers of the current key. All times are milliseconds since the epoch.

    A timer is kept once per key and timestamp: setting it again changes nothing.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the time of the machine."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the event time reached; the smallest number before the first watermark."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Have `on_timer` called when the machine's clock passes a time."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Have `on_timer` called when the watermark passes a time."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget a timer of `register_processing_time_timer`, if it is set."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget a timer of `register_event_time_timer`, if it is set."""
