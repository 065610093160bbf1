"""Functions that are called with the elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic

from headrace.datastream.functions.base import IN, KEY, OUT, W2, Function, W
from headrace.state.interfaces import KeyedStateStore


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Makes results of all records of a key in a window."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield results."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Makes results of all records in a window of a stream without a key."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield results."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """A window function that knows more: clocks, and state per window and per key."""

    class Context(ABC, Generic[W2]):
        """What is known of the current window."""

        @abstractmethod
        def window(self) -> W2:
            """Return the window that is being evaluated."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark the input has reached."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return state of this key in this window; clear it in `clear`."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return state of this key in all windows."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """Return or yield results."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the window's state when the window is removed."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """A process window function on a stream without a key."""

    class Context(ABC, Generic[W2]):
        """What is known of the current window."""

        @abstractmethod
        def window(self) -> W2:
            """Return the window that is being evaluated."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return state of this window; clear it in `clear`."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return state of all windows."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield results."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the window's state when the window is removed."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Emits the records it gets, unchanged."""

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Return the records as they are."""
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Emits the records it gets, unchanged."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Return the records as they are."""
        return inputs
