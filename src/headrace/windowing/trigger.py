"""What a trigger is: when the contents of a window are given to its function, and when they are forgotten.

    on_element          |                      FIRE             compute, keep the contents
    on_event_time       |--> TriggerResult --> PURGE            forget the contents
    on_processing_time  |                      FIRE_AND_PURGE   both
                                               CONTINUE         neither

What a trigger has to remember it keeps in partitioned state, which belongs to a key and a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

from headrace.errors import JobDefinitionError
from headrace.state.descriptors import StateDescriptor

__all__ = ["Trigger", "TriggerResult"]

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What a trigger decides about a window: (fire, purge)."""

    #: Nothing.
    CONTINUE = (False, False)
    #: The function is called; the contents are then forgotten.
    FIRE_AND_PURGE = (True, True)
    #: The function is called; the contents stay.
    FIRE = (True, False)
    #: The contents are forgotten.
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window's function is called."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the window's contents are forgotten."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window fires. Subclass it for your own rules.

    An object serves all keys and windows of a subtask, so fields must not change: use partitioned state.
    """

    class TriggerContext(ABC):
        """Clocks, timers and state of the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """Return the metric group of the operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark the input has reached."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have `on_processing_time` called when the clock reaches a time."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have `on_event_time` called when the watermark reaches a time."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a timer, if there is one for this time."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete a timer, if there is one for this time."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """Return the state under this descriptor, of this key in this window."""

    class OnMergeContext(TriggerContext):
        """The same for a window that several were merged into."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the windows that are no more into that of the new one."""

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int | None, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Look at a record that was added to a window.

        Args:
            element: The record.
            timestamp: Its timestamp in ms; None if it has none.
            window: The window.
            ctx: Clocks, timers and state.
        """

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Take the call of a processing-time timer."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Take the call of an event-time timer."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge; then `on_merge` must be right."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Take over what the merged windows had: merge state, register timers of the new window.

        Raises:
            JobDefinitionError: Always, unless a subclass that can merge says what to do.
        """
        raise JobDefinitionError(f"{type(self).__name__} does not work with windows that merge")

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Delete state and timers of a window that is removed."""
